"""Asks a node which version of this package it has. Sent as code: the node may have none."""

from __future__ import annotations


def found_version() -> str:
    """Return the version of this package that can be imported here; "" if there is none."""
    try:
        import codea1_env
    except ImportError:
        return ""
    return codea1_env.__version__
