"""Writes the tests of a function as a file for pytest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox
from codea1_env.testgen.findings import Finding
from codea1_env.testgen.function import FunctionSuite
from codea1_env.testgen.layout import laid_out, snake_case
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import is_builtin_error

WRITTEN = "written by codea1 testgen"
"""Stands at the top of every file."""


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
    """Return the text of the file, formatted as ruff is told to there, if it is installed and has settings.

    Args:
        suite: The tests, findings and questions.
        output: Where it will lie: that decides how it imports the function.
        sandbox: Where the texts of tests are parsed.
    """
    target = suite.target
    asked = [*suite.findings, *suite.questions] if target.name != "pytest" else []
    shown = [_with_known_errors(test.shown, test.errors, target.names) for test in suite.tests]
    tests = [
        (text, "an example of the docstring" if test.origin == "docstring" else "", "")
        for text, test in zip(shown, suite.tests, strict=True)
    ]
    for finding in asked:
        tests.append((_question(finding, target), "", clean(str(finding))))
    used = [*suite.tests, *(each.test for each in asked if each.test is not None)]
    names = {target.name, *(each for test in used for each in (*test.uses, *test.errors))}
    names &= {target.name, *target.names, *(each for test in used for each in test.uses)}
    # What pytest would take for tests is imported where it does not look.
    inside = sorted(name for name in names if name.lower().startswith("test"))
    imports = [*_from_imports(target, inside), *[""] * bool(inside)]
    local = "".join(f"    {line}".rstrip() + "\n" for line in imports)
    snake = snake_case(target.name).strip("_")
    parameters = list(target.shape.parameters)
    functions = sandbox.analyse(laid_out, tests, target.name, snake, parameters, local)
    text = "".join(f"\n\n{each}\n" for each in functions)
    standard = {each for test in used for each in test.modules}
    head = _head(target, standard, text, output, sorted(names.difference(inside)))
    return formatted(_docstring(suite) + head + text, output)


def formatted(text: str, output: Path) -> str:
    """Return the text as ruff formats it where it will lie; unchanged without ruff, or without settings for it."""
    folder = output.resolve().parent
    command = shutil.which("ruff") or shutil.which("ruff", path=str(Path(sys.executable).parent))
    if command is None or not any(map(_has_settings, (folder, *folder.parents))):
        return text
    for part in (["check", "--fix-only", "--select", "I"], ["format"]):
        done = subprocess.run(
            [command, *part, "--quiet", "--stdin-filename", str(output.resolve()), "-"],
            input=text,
            capture_output=True,
            text=True,
            cwd=folder,
            encoding="utf-8",
        )
        text = done.stdout if done.returncode == 0 and done.stdout else text
    return text


def _has_settings(folder: Path) -> bool:
    if any((folder / name).is_file() for name in ("ruff.toml", ".ruff.toml")):
        return True
    project = folder / "pyproject.toml"
    return project.is_file() and b"[tool.ruff" in project.read_bytes()


def _question(finding: Finding, target: Target) -> str:
    """Return the body of a test that is skipped."""
    if finding.test is not None:
        return _with_known_errors(finding.test.shown, finding.test.errors, target.names)
    lines = "\n".join([finding.before, finding.source]).strip().splitlines()
    return "\n".join([*(f"# {clean(line)}" for line in lines), "..."])


def _docstring(suite: FunctionSuite) -> str:
    killed, mutants = len(suite.kills.killed), len(suite.kills.mutants)
    lines = [f"Tests of {suite.target.name}, {WRITTEN}.", ""]
    origins = {test.origin for test in suite.tests}
    if "observed" in origins:
        lines += [
            "What they expect is what the program gave when they were written. Read them: they say that it",
            "still does the same, not that it is right.",
        ]
    if "tester" in origins:
        lines += ["What they expect is what a tester wrote, and what the program gave."]
    lines += [f"They tell the program from {killed} of {mutants} copies with one small fault."]
    if suite.findings or suite.questions:
        lines += [
            "",
            "Tests that are skipped ask something: decide who is right, and take the mark away.",
        ]
    return '"""' + "\n".join(lines) + '\n"""\n'


def _head(target: Target, standard: set[str], text: str, output: Path, names: Sequence[str]) -> str:
    """Return the imports, in blocks."""
    folder, root = output.resolve().parent, target.home.root.resolve()
    away = not target.home.installed and _import_base(folder) != root
    standard |= {"sys"} if away else set()
    blocks = [
        [f"import {name}" for name in sorted(standard)],
        ["import pytest"] if "pytest." in text else [],
        _from_imports(target, names),
    ]
    if away:
        place = f"Path(__file__).resolve().parent / {os.path.relpath(root, folder)!r}"
        blocks[0].append("from pathlib import Path")
        blocks[2] = [f"{line}  # noqa: E402" for line in blocks[2]]
        blocks.insert(2, [f"sys.path.insert(0, str({place}))"])
    return "".join("\n" + "\n".join(block) + "\n" for block in blocks if block)


def _from_imports(target: Target, names: Sequence[str]) -> list[str]:
    return [f"from {module} import {', '.join(some)}" for module, some in target.imports(names)]


def _import_base(folder: Path) -> Path:
    """Return the folder that pytest puts on the path for a test in this folder."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def _with_known_errors(text: str, errors: Sequence[str], names: Sequence[str]) -> str:
    """Return the text with exceptions that it can name: builtin ones, and those of the file."""
    for error in errors:
        if not is_builtin_error(error) and error not in names:
            text = text.replace(f"pytest.raises({error}):", f"pytest.raises(Exception):  # {error}")
    return text
