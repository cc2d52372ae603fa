"""Which programs may keep something from one call to the next: asked once of each text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from codea1_env.reading.stateless import keep_nothing
from codea1_env.support.texts import LRUCache, in_batches

if TYPE_CHECKING:
    from codea1_env.sandbox import Sandbox


_known = LRUCache[str, bool]()


def may_keep(codes: Sequence[str], sandbox: Sandbox) -> dict[str, bool]:
    """Say of each program whether it may keep something; one that cannot be read may."""
    known = {code: _known.get(code) for code in codes}
    new = [code for code, keeps in known.items() if keeps is None]
    found = in_batches(
        new, len, lambda batch: sandbox.analyse(keep_nothing, batch), lambda code, error: False
    )
    for code, keeps_nothing in zip(new, found, strict=True):
        known[code] = not keeps_nothing
        _known.put(code, not keeps_nothing, len(code))
    return {code: bool(keeps) for code, keeps in known.items()}
