"""Runs a program and its tests in one process: a test file that imports it, or a text that sees its names.

What is said here can be forged by the program, and results say so (`judged="inside"`).

Messages out, one frame each, as the codec's plain data: ("collected", names of the tests); ("test", number, finding,
stdout, stderr) for each that has ended; ("failed", finding) where nothing could be collected; ("end",).
"""

from __future__ import annotations

import importlib
import os
import sys
import types
from typing import Any

from .texts import Compile, HowItEnded, Send, Texts, finding_of


def run(job: dict[str, Any], send: Send) -> None:
    """Import a test file, which imports the program, and run its tests.

    Args:
        job: `code`, `module`, `test`; `text`: whether the test sees the program's names, or one, `entry_point`;
            `first`: how many tests are left out; `pytest`: whether there are tests to collect, and not only a text;
            `has_folder`: whether the current folder may be written to.
        send: Sends one message.
    """
    # Hypothesis so has neither chance nor deadlines: load must not make a verdict.
    os.environ["CI"] = "1"
    program, tests = job["module"], f"test_{job['module'].rpartition('.')[2]}"
    compilers: dict[str, Compile] = {}
    if job["pytest"]:
        from .pytest_driver import Driver, rewritten

        compilers[tests] = rewritten
    if not job["has_folder"]:
        os.chdir("/proc")  # the current folder may be gone, and here nobody can make a file
    known = {program: job["code"], tests: job["test"]}
    texts = Texts(
        known, os.getcwd(), write=job["has_folder"] and not job["text"], compilers=compilers
    )
    module = types.ModuleType(tests)
    seen: dict[str, Any] = {}
    if job["text"]:
        finding, seen = _names(program, job["entry_point"])
        if finding is not None:
            send(("unloaded", finding))
            return
    finding = _imported(module, texts, seen)
    if finding is None and not job["pytest"]:
        finding = _not_run(module, seen)
    if finding is not None:
        send(("failed", finding))
    elif job["pytest"]:
        driver = Driver(texts, module, send, job["first"], job["has_folder"], job["text"])
        driver.run(seen)
    send(("end",))


def _names(program: str, entry_point: str | None) -> tuple[HowItEnded | None, dict[str, Any]]:
    """Import the program, and return the names of it that a text sees."""
    try:
        names = vars(importlib.import_module(program))
    except BaseException as error:
        return finding_of(error, "error"), {}
    if entry_point is not None and entry_point not in names:
        return HowItEnded(
            "error", f"NameError: the program does not define {entry_point!r}", error="NameError"
        ), {}
    return None, {
        name: value
        for name, value in names.items()
        if entry_point in (None, name) and not (name.startswith("__") and name.endswith("__"))
    }


def _imported(module: types.ModuleType, texts: Texts, seen: dict[str, Any]) -> HowItEnded | None:
    """Run the test file; how that ended, where it did not end well."""
    name = module.__name__
    spec = texts.find_spec(name)
    assert spec is not None
    module.__spec__, module.__file__, module.__loader__ = spec, spec.origin, texts
    module.__dict__.update(seen)
    sys.modules[name] = module
    try:
        texts.exec_module(module)
    except BaseException as error:
        kind = "fail" if isinstance(error, AssertionError) else "error"
        found = finding_of(error, kind, texts.line_of(name, error))
        outcomes = sys.modules.get("_pytest.outcomes")
        is_skip = outcomes is not None and isinstance(error, outcomes.Skipped)
        return found._replace(kind="skip") if is_skip else found
    return None


def _not_run(module: types.ModuleType, seen: dict[str, Any]) -> HowItEnded | None:
    """Say which test a text defines that nobody has seen in it, so that pytest was not asked."""
    case = getattr(sys.modules.get("unittest"), "TestCase", None)
    programs = [*map(id, seen.values())]
    for name, value in vars(module).items():
        if id(value) in programs:
            continue
        is_case = case is not None and issubclass(type(value), type) and issubclass(value, case)
        if (name.startswith("test") and callable(value)) or (is_case and value is not case):
            said = f"the test {name} was not run: it has to be defined by `def` or `class`"
            return HowItEnded("error", said)
    return None
