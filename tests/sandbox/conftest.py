"""Fixtures and a reader of cases for the tests of the sandbox."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from plain_python import PlainPython


@pytest.fixture(scope="session")
def plain() -> Iterator[PlainPython]:
    """Plain Python, which says what a verdict should be."""
    with PlainPython() as runner:
        yield runner
