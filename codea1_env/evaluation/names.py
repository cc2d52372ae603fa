"""Short names for what a table compares."""

from __future__ import annotations

from collections.abc import Iterable


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Names that tell files and folders apart and are no longer than they must be.

    Example:
        >>> short_names(["reference", "runs/a/seed_0/run", "runs/b/seed_0/run"])
        {'reference': 'reference', 'runs/a/seed_0/run': 'a/seed_0/run', 'runs/b/seed_0/run': 'b/seed_0/run'}
        >>> short_names(["no-book", "/home/me/mine.py:Mine"])
        {'no-book': 'no-book', '/home/me/mine.py:Mine': 'mine.py:Mine'}
    """
    distinct = list(dict.fromkeys(names))
    short: dict[str, str] = {}
    for name in distinct:
        parts = name.rstrip("/").split("/")
        for length in range(1, len(parts) + 1):
            end = "/".join(parts[-length:])
            if not any(
                other != name and ("/" + other.rstrip("/")).endswith("/" + end)
                for other in distinct
            ):
                break
        short[name] = end
    return short
