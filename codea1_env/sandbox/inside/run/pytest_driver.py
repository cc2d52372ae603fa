"""Runs one test module, which is in memory, by the installed pytest. Imported where pytest is."""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion.rewrite import rewrite_asserts
from _pytest.fixtures import FixtureLookupError

from .texts import HowItEnded, Send, Texts, finding_of

_NEEDS_FOLDER = (
    "{name} needs a folder, which a test has only at level 'namespaces'; "
    "`codea1 sandbox doctor` says what the machine lacks"
)
_ARGUMENTS = (
    "--rootdir={folder}", "-c", os.devnull, "--noconftest", "--tb=short",
    "-p", "no:cacheprovider", "-p", "no:faulthandler", "-p", "no:junitxml", "-p", "no:pastebin",
)  # fmt: skip


def rewritten(text: str, path: str) -> types.CodeType:
    """Compile a test file so that its assertions say what they have compared."""
    tree = ast.parse(text, path)
    rewrite_asserts(tree, text.encode("utf-8", "surrogatepass"), path)
    code: types.CodeType = compile(tree, path, "exec", dont_inherit=True)
    return code


class _Module(pytest.Module):
    """A test module that is imported already."""

    found: types.ModuleType

    def _getobj(self) -> types.ModuleType:
        return self.found


class _WithoutFolder:
    """A plugin that says plainly what a test lacks that asks for a folder where there is none."""

    @pytest.fixture(scope="session")
    def tmp_path_factory(self) -> None:
        pytest.fail(_NEEDS_FOLDER.format(name="tmp_path"))

    @pytest.fixture
    def capfd(self) -> None:
        pytest.fail(_NEEDS_FOLDER.format(name="capfd"))

    @pytest.fixture
    def capfdbinary(self) -> None:
        pytest.fail(_NEEDS_FOLDER.format(name="capfdbinary"))


class Driver:
    """A plugin that collects one module and reports each test as it ends."""

    def __init__(
        self,
        texts: Texts,
        module: types.ModuleType,
        send: Send,
        first: int,
        has_folder: bool,
        text: bool,
    ) -> None:
        self._texts, self._module, self._send = texts, module, send
        self._first, self._has_folder = first, has_folder
        self._text = text
        self._finding: HowItEnded | None = None
        self._skipped = False
        self._printed = ("", "")
        self.failed = False

    def run(self, seen: dict[str, Any]) -> None:
        """Collect and run. Of plugins there are those of packages that the sandbox allows: this process sees no others."""
        self._seen = seen
        folder = os.path.dirname(self._texts.path(self._module.__name__))
        arguments = [each.format(folder=folder) for each in _ARGUMENTS]
        arguments += ["-x", "--capture=no"] if self._text else ["--capture=sys"]
        if self._has_folder:
            arguments.append(f"--basetemp={os.path.join(folder, 'pytest-tmp')}")
        plugins = [self] if self._has_folder else [self, _WithoutFolder()]
        status = pytest.ExitCode(pytest.main(arguments, plugins=plugins))
        if status in (pytest.ExitCode.INTERNAL_ERROR, pytest.ExitCode.USAGE_ERROR):
            failed = HowItEnded("error", f"pytest itself has failed: {status!r}")
            self._send(("failed", failed))

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(self, collector: Any, name: str, obj: object) -> list[Any] | None:
        """Leave out what is the program's, whatever its name."""
        return [] if name in self._seen and self._seen[name] is obj else None

    def _name(self, item: pytest.Item) -> str:
        return str(item.nodeid).partition("::")[2]

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Print nothing: what is said goes another way."""
        config.pluginmanager.unregister(name="terminalreporter")

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """Collect the one module in place of files."""
        path = Path(self._texts.path(self._module.__name__))
        node = _Module.from_parent(session, path=path)
        node.found = self._module
        session.items = items = list(session.genitems(node))
        if not self.failed:
            session.config.hook.pytest_collection_modifyitems(
                session=session, config=session.config, items=items
            )
            session.config.hook.pytest_collection_finish(session=session)
            names = [self._name(item)[:300] for item in items]
            self._send(("collected", names))
            self._numbers = {item.nodeid: number for number, item in enumerate(items)}
            del items[: self._first]
        session.testscollected = len(items)
        return True

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Say why the module, or a class in it, could not be collected."""
        if report.failed and not self.failed:
            self.failed = True
            text = str(getattr(report, "longreprtext", "") or report.longrepr)
            last = text.strip().rpartition("\n")[2].removeprefix("E").strip()
            failed = HowItEnded("error", f"cannot be collected: {last}", traceback=text)
            self._send(("failed", failed))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run nothing where the collection has failed."""
        return True if self.failed else None

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """Forget the last test."""
        self._finding, self._skipped, self._printed = None, False, ("", "")

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Note how a phase of a test has ended, when every plugin has had its say."""
        report = yield
        self._skipped = self._skipped or report.outcome == "skipped"
        self._printed = (report.capstdout, report.capstderr)
        if report.outcome == "failed" and self._finding is None:
            error = call.excinfo.value if call.excinfo is not None else None
            line = self._texts.line_of(self._module.__name__, error)
            fails = isinstance(error, (AssertionError, pytest.fail.Exception)) or error is None
            kind = "fail" if fails and call.when == "call" else "error"
            text = "" if error is not None else str(report.longrepr)
            if isinstance(error, FixtureLookupError):
                text = f"fixture {error.argname!r} not found"
            self._finding = finding_of(error, kind, line, report.longreprtext, text)
        return report

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        """Report the test."""
        finding = self._finding or HowItEnded("skip" if self._skipped else "pass")
        self._send(("test", self._numbers[nodeid], finding, *self._printed))
