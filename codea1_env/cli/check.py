"""`codea1 check`: what functions do differently from an earlier version, with a line to repeat each difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console

from codea1_env.cli.errors import InputError, library_errors
from codea1_env.cli.parsing import Packages, SandboxLevel, check_packages, parse
from codea1_env.cli.tables import say
from codea1_env.rendering.display import clean, counted
from codea1_env.testgen.against import (
    Checked,
    changes_since,
    check_module,
    compare_modules,
    how_to_go_back,
)
from codea1_env.testgen.findings import Finding, failed_import
from codea1_env.testgen.modules import (
    Module,
    NotImportedError,
    TargetError,
    module_of_file,
    modules_in,
)
from codea1_env.testgen.target import OpenModule

_UNCHANGED = "it has not changed"


@dataclass(frozen=True, kw_only=True)
class CheckCommand:
    """Show what this branch does differently, with one line to repeat each difference. It writes no file.

    Exit codes: 0 nothing was found, 1 something was found, 2 bad input, or nothing could be checked.

    With --against, functions and classes are compared that have changed since, or that use something which has. Without
    it, all public ones are looked at. Both run the docstring's own examples and name calls that never end.
    """

    paths: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATHS")] = (".",)
    """Files and folders."""
    against: Annotated[str | None, tyro.conf.arg(metavar="REV")] = None
    """Commit, branch or tag to compare with."""
    format: Literal["text", "github", "json"] = "text"
    """"github" writes annotations for pull requests, "json" one object."""
    timeout: Annotated[float, tyro.conf.arg(metavar="SECONDS")] = 10.0
    """Processor time for each function or class."""
    packages: Packages = ()
    sandbox_level: SandboxLevel = None

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        check_packages(self.packages)


def check_timeout(seconds: float) -> None:
    """Refuse what is no time."""
    if not 0 < seconds < 1e6:
        raise ValueError(f"Expect --timeout to be a number of seconds above 0, actually: {seconds}")


@contextmanager
def own_code_errors() -> Iterator[None]:
    """Tell a user in one line what is wrong with code of one's own."""
    try:
        with library_errors():
            yield
    except TargetError as error:
        raise InputError(lowered(error)) from error


def lowered(error: Exception) -> str:
    """Return a message of the library as commands print it."""
    text = str(error)
    return text[:1].lower() + text[1:]


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 check`; returns the exit code."""
    command = parse(CheckCommand, arguments, name="check")
    console = Console(stderr=command.format != "text")
    everything, was_checked = Checked(), list[bool]()
    with own_code_errors(), console.status("Checking") as status:
        for label, look in _looks(command, everything):
            status.update(f"Checking {clean(label)}")
            try:
                checked = look()
                was_checked.append(True)
            except TargetError as error:
                checked = Checked(skipped={label: lowered(error)})
                was_checked.append(False)
            everything.findings += checked.findings
            everything.looked += checked.looked
            everything.skipped |= checked.skipped
            for each in checked.findings if command.format != "json" else ():
                _show(each, command.format)
    if command.format == "json":
        print(json.dumps(asdict(everything)))
    else:
        _sum_up(everything, command, console)
    if was_checked and not any(was_checked):
        raise InputError("nothing was checked: no module could be imported")
    return 1 if everything.findings else 0


def _looks(
    command: CheckCommand, everything: Checked
) -> Iterator[tuple[str, Callable[[], Checked]]]:
    """Yield modules with what checks them; it raises `TargetError` for one that never could be imported."""
    if command.against is None:
        for place in command.paths:
            for module in modules_in(place):
                yield module.name, partial(_check, command, module, None)
        return
    changes = changes_since(command.against, list(map(Path, command.paths)))
    everything.skipped |= changes.skipped
    if changes.modules:
        with changes.earlier_tree() as tree:
            for module, file in changes.modules.items():
                yield module.name, partial(_check, command, module, tree / file)


def _check(command: CheckCommand, module: Module, earlier: Path | None) -> Checked:
    timeout, revision = command.timeout, command.against or ""

    def opened(one: Module) -> OpenModule:
        return OpenModule(one, level=command.sandbox_level, packages=command.packages)

    before = module_of_file(earlier) if earlier is not None and earlier.is_file() else None
    try:
        now = opened(module)
    except NotImportedError as error:
        could = before is not None and _is_imported(opened, before)
        if found := failed_import(module, error, revision if could else ""):
            return Checked([found])
        raise
    with now:
        if earlier is None:
            return check_module(now, timeout)
        if before is None:
            return Checked(skipped={module.name: f"it is new since {revision}"})
        with opened(before) as was:
            return compare_modules(now, was, revision, timeout)


def _is_imported(opened: Callable[[Module], OpenModule], module: Module) -> bool:
    try:
        with opened(module):
            return True
    except TargetError:
        return False


def _show(found: Finding, form: str) -> None:
    if form == "github":
        text = clean(f"{found.message}\n{found.command}")
        for sign, code in (("%", "%25"), ("\r", "%0D"), ("\n", "%0A")):
            text = text.replace(sign, code)
        line = f"::warning file={found.path},line={found.line},title=codea1 check::{text}"
    else:
        line = f"{found.path}:{found.line}: {clean(found.message)}\n  {clean(found.command)}"
    print(line, flush=True)


def _sum_up(everything: Checked, command: CheckCommand, console: Console) -> None:
    skipped = [label for label, why in everything.skipped.items() if why != _UNCHANGED]
    same = len(everything.skipped) - len(skipped)
    number, looked = len(everything.findings), len(everything.looked)
    parts = [counted(number, "findings") if number else "No findings"]
    what = "function or class" if looked == 1 else "functions and classes"
    parts += [f"{looked} {what} looked at"]
    parts += [f"{same} {'has' if same == 1 else 'have'} not changed"] if same else []
    lines = [", ".join(parts)]
    lines += [f"skipped {clean(label)}: {clean(everything.skipped[label])}" for label in skipped]
    differing = [each for each in everything.findings if each.kind == "difference"]
    if command.against and differing:
        how = how_to_go_back(command.against, Path(differing[0].path))
        lines.append(f"To run a line in the earlier version: {how}")
    say(console, "\n".join(lines))
