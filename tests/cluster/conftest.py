"""One cluster for all tests of this folder: starting it takes longer than most of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clusters import cluster_of


@pytest.fixture(scope="package")
def cluster() -> Iterator[Any]:
    """Two nodes with one processor each."""
    pytest.importorskip("ray")
    with cluster_of(2) as made:
        yield made
