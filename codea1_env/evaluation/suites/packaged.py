"""Parsers of the extra `evaluation`, applied to foreign text: in a sandbox that allows their package."""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os

from codea1_env.sandbox import Sandbox


@functools.cache
def packaged_sandbox(package: str, level: str | None, pid: int) -> Sandbox:
    """A sandbox that allows a package, for this process; a fork may not use its parent's.

    Args:
        package: As programs import it.
        level: How strongly the sandbox is confined, see `Sandbox`.
        pid: This process.

    Raises:
        ImportError: The package is not installed.
    """
    if importlib.util.find_spec(package) is None:
        raise ImportError(
            f"Expect the package {package} to be installed, actually: it is not. "
            "Run: pip install 'codea1-env[evaluation]'"
        )
    sandbox = Sandbox(level=level, packages=(package,))
    atexit.register(_close_in, pid, sandbox)
    return sandbox


def _close_in(pid: int, sandbox: Sandbox) -> None:
    if os.getpid() == pid:
        sandbox.close()
