"""Data inside a page: JSON that cannot end the element that it stands in."""

from __future__ import annotations

import json
from typing import Any


def embedded(value: Any) -> str:
    r"""JSON in ASCII without a character that HTML could read as more than text.

    Example:
        >>> embedded({"a": "</script><!-- é"})
        '{"a":"\\u003c/script\\u003e\\u003c!-- \\u00e9"}'
    """
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
