"""One server for all tests that leave it as it is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers import serving


@pytest.fixture(scope="session")
def url() -> Iterator[str]:
    with serving("--workers", "2") as server:
        yield server.url
