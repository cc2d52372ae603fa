"""Writes the tests of a function as a file for pytest."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.bodies import bodies
from codea1_env.testgen.function import FunctionSuite
from codea1_env.testgen.texts import is_builtin_error, snake_case


def default_output(path: Path, name: str) -> Path:
    """Where the tests of a function go: beside its file.

    Example:
        >>> default_output(Path("src/stats.py"), "median").name
        'test_stats_median.py'
        >>> default_output(Path("src/median.py"), "median").name
        'test_median.py'
    """
    names = [path.stem, name] if path.stem.lower() != name.lower() else [name]
    return path.with_name(f"test_{'_'.join(names).lower()}.py")


def pytest_file(suite: FunctionSuite, output: Path, sandbox: Sandbox) -> str:
    """The text of the file.

    Args:
        suite: The tests.
        output: Where it will lie: that decides how it imports the function.
        sandbox: Where the texts of tests are parsed.
    """
    target = suite.target
    shown = [_with_known_errors(test.shown, test.errors, target.names) for test in suite.tests]
    names = {target.name, *(each for test in suite.tests for each in test.uses)}
    names |= {each for test in suite.tests for each in test.errors if each in target.names}
    # What pytest would take for tests is imported where it does not look.
    inside = sorted(name for name in names if name.lower().startswith("test"))
    local = f"    from {target.place[1]} import {', '.join(inside)}\n\n" if inside else ""
    parts = [_docstring(suite), _imports(suite, shown, output, sorted(names.difference(inside)))]
    snake = snake_case(target.name).strip("_")
    for number, (test, body) in enumerate(
        zip(suite.tests, sandbox.analyse(bodies, shown), strict=True), 1
    ):
        note = "  # an example of the docstring" if test.origin == "docstring" else ""
        parts.append(f"\n\ndef test_{snake}_{number}():{note}\n{local}{body}\n")
    if suite.findings:
        parts.append(_findings(suite))
    return "".join(parts)


def _docstring(suite: FunctionSuite) -> str:
    killed, mutants = len(suite.kills.killed), len(suite.kills.mutants)
    lines = [f"Tests of {suite.target.name}, written by codea1 testgen.", ""]
    origins = {test.origin for test in suite.tests}
    if "observed" in origins:
        lines += [
            "What they expect is what the program gave when they were written. Read them: they say that it",
            "still does the same, not that it is right.",
        ]
    if "tester" in origins:
        lines += ["What they expect is what a tester wrote, and what the program gave."]
    lines += [f"They tell the program from {killed} of {mutants} copies with one small fault."]
    return '"""' + "\n".join(lines) + '\n"""\n'


def _imports(suite: FunctionSuite, shown: Sequence[str], output: Path, names: Sequence[str]) -> str:
    target = suite.target
    root = target.place[0]
    standard = {each for test in suite.tests for each in test.modules}
    added = ""
    if not target.installed and _import_base(output.resolve().parent) != root.resolve():
        standard |= {"sys"}
        away = os.path.relpath(root.resolve(), output.resolve().parent)
        added = f"\nsys.path.insert(0, str(Path(__file__).resolve().parent / {away!r}))\n"
    lines = [f"import {name}" for name in sorted(standard)]
    if added:
        lines.append("from pathlib import Path")
    if any("pytest." in text for text in shown):
        lines += [*([""] if lines else []), "import pytest"]
    head = "".join(f"{line}\n" for line in lines)
    late = "  # noqa: E402" if added else ""
    imported = "".join(
        f"from {module} import {', '.join(some)}{late}\n" for module, some in target.imports(names)
    )
    if not head and not names:
        return ""
    return f"\n{head}{added}{chr(10) if head and names else ''}{imported}"


def _import_base(folder: Path) -> Path:
    """The folder that pytest puts on the path for a test in this folder."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _with_known_errors(text: str, errors: Sequence[str], names: Sequence[str]) -> str:
    """The text with exceptions that it can name: builtin ones, and those of the file."""
    for error in errors:
        if not is_builtin_error(error) and error not in names:
            text = text.replace(f"pytest.raises({error}):", f"pytest.raises(Exception):  # {error}")
    return text


def _findings(suite: FunctionSuite) -> str:
    lines = [
        f"Findings: here {suite.target.name} does something else than was expected. They are no tests, because",
        "nobody but you can say who is right.",
        "",
    ]
    for finding in suite.findings:
        first, *more = clean(str(finding)).split("\n")
        lines += [f"- {first}", *(f"  {line}" for line in more)]
    return "\n\n" + "".join(f"# {line}".rstrip() + "\n" for line in lines)
