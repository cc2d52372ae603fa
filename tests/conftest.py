"""Fixtures for all tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from codea1_env.sandbox import Sandbox

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs so, and all processes of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def shared_data() -> Path:
    """The folder of public data sets that lies beside the project, where there is one."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the public data sets are not on this machine")
    return SHARED_DATA


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox shared by all tests; tests that change or break a sandbox make their own."""
    with Sandbox(workers=2) as shared:
        yield shared
