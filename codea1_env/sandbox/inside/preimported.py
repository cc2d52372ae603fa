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

MODULE_NAMES = frozenset({*PREIMPORTED, "asyncio", "np", "numpy", "threading"})
"""Names that always mean these modules in a test; a program cannot offer an object under them."""

STANDARD_NAMES = {
    name: module
    for module, names in {
        "abc": "ABC abstractmethod", "copy": "deepcopy", "dataclasses": "asdict dataclass field", "decimal": "Decimal",
        "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple", "enum": "Enum IntEnum auto",
        "datetime": "date datetime timedelta timezone", "fractions": "Fraction", "io": "BytesIO StringIO",
        "functools": "cached_property cmp_to_key partial total_ordering wraps", "math": "inf isclose nan pi",
        "operator": "attrgetter itemgetter", "pathlib": "Path", "time": "perf_counter sleep", "types": "SimpleNamespace",
        "typing": (
            "Any Callable Deque Dict Generator Generic Iterable Iterator List Literal Mapping NamedTuple Optional "
            "Sequence Set Tuple TypeVar Union"),
        "unittest": "TestCase",
    }.items()
    for name in names.split()
}  # fmt: skip
"""Names that mean these in a test which does not define them, whatever the program has imported, unless it defines them
itself. None that a problem may ask for: the function under test must never be Python's."""

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
