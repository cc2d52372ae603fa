"""The modules that a worker imports once, so that no run pays for them."""

from __future__ import annotations

PREIMPORTED = (
    "abc", "array", "bisect", "calendar", "cmath", "collections", "contextlib", "copy", "csv",
    "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "hashlib", "heapq",
    "inspect", "io", "itertools", "json", "math", "numbers", "operator", "os", "pathlib", "random", "re",
    "statistics", "string", "sys", "textwrap", "time", "types", "typing", "unittest", "uuid",
)  # fmt: skip

COMMON = (
    "bisect", "collections", "copy", "functools", "heapq", "itertools", "math", "operator", "os", "re", "string",
    "sys", "time", "types", "typing",
)  # fmt: skip
"""Of these, what nearly every program uses that is only called: each module more makes every fork dearer."""

PARTS = {"matplotlib": ("matplotlib.pyplot",)}
"""Parts of a package that its programs use, that take long to import, and that come with it only when asked."""

_PYTEST = (
    "asyncio", "doctest", "unittest.mock", "_pytest.config", "_pytest.python", "_pytest.terminal", "_pytest.debugging",
    "_pytest.unittest", "_pytest.capture", "_pytest.skipping", "_pytest.legacypath", "_pytest.tmpdir", "_pytest.monkeypatch",
    "_pytest.recwarn", "_pytest.assertion", "_pytest.setuponly", "_pytest.setupplan", "_pytest.stepwise", "_pytest.warnings",
    "_pytest.unraisableexception", "_pytest.threadexception", "_pytest.logging", "_pytest.reports", "_pytest.subtests",
    "_pytest.cacheprovider", "_pytest.doctest", "_pytest.junitxml", "_pytest.pastebin", "_pytest.faulthandler", ".pytest_driver",
)  # fmt: skip
TESTING: dict[str, tuple[str, ...]] = {
    "": (), "pytest": _PYTEST, "coverage": (*_PYTEST, "coverage.sqldata", ".reached"),
}  # fmt: skip
"""What workers import that run tests by pytest, and measure coverage, before they are confined."""
