"""What functions and classes do differently from an earlier version in git."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from codea1_env.sandbox import Limits, Outcome
from codea1_env.testgen.driver import ADDRESS
from codea1_env.testgen.findings import Finding, code_that_shows, finding, findings_alone, short
from codea1_env.testgen.inputs import Inputs
from codea1_env.testgen.modules import (
    Module,
    TargetError,
    files_in,
    is_test_file,
    module_of_file,
)
from codea1_env.testgen.observe import Clock, Looker, Observer, Seen, differ, is_stable
from codea1_env.testgen.search import candidates
from codea1_env.testgen.target import OpenModule
from codea1_env.testgen.texts import Trial

_ROUNDS = 2
_ENDED = (Outcome.TIMEOUT, Outcome.MEMORY, Outcome.OUTPUT_LIMIT, Outcome.EXITED, Outcome.SIGNALLED)
_ONCE = Limits(call_cpu_time=2, call_wall_time=10)
_SHOW = """
def _codea1_show(code):
    import contextlib, io
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(code, {"__name__": "__main__"})
    except Exception as error:
        return "raises", f"{type(error).__name__}: {error}".rstrip(": ")
    return "gives", out.getvalue().strip()
"""


@dataclass
class Checked:
    """What came of checking a module."""

    findings: list[Finding] = field(default_factory=list)
    looked: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    """Label -> why it was not looked at."""


@dataclass(frozen=True)
class Changes:
    """What has changed in a repository since a revision."""

    top: Path
    revision: str
    modules: dict[Module, str]
    """Module -> its file in the repository."""
    skipped: dict[str, str]
    """File -> why it was not looked at."""

    @contextmanager
    def earlier_tree(self) -> Iterator[Path]:
        """Give a folder with the repository as it was."""
        packed = _git(self.top, "archive", "--format=tar", _commit_of(self.revision, self.top))
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            place.chmod(0o755)  # programs run as another user
            with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
                archive.extractall(place, filter="data")
            yield place


def changes_since(revision: str, paths: Sequence[Path]) -> Changes:
    """Return the modules that have changed since a revision of git, untracked ones among them.

    Args:
        revision: Commit, branch or tag.
        paths: Files and folders of one repository.
    """
    for path in paths:
        if not path.exists():
            raise TargetError(f"Expect {path} to be a file or folder, actually: there is none.")
    places = [path.resolve() for path in paths]
    folders = [each if each.is_dir() else each.parent for each in places]
    tops = {_git(each, "rev-parse", "--show-toplevel") for each in folders}
    if len(tops) > 1:
        raise TargetError(
            f"Expect paths in one repository with --against, actually: in {len(tops)}. Check one after the other."
        )
    top = Path(tops.pop().decode().strip())
    changes = Changes(top, revision, {}, {})
    for name in sorted(_changed_files(top, revision, places)):
        path = top / name
        is_code = name.endswith(".py") and not is_test_file(path.name) and path.name != "setup.py"
        if not is_code or not any(map(path.is_relative_to, places)):
            continue
        if not path.is_file():
            changes.skipped[name] = "it was removed"
            continue
        try:
            changes.modules[module_of_file(path)] = name
        except TargetError as error:
            changes.skipped[name] = str(error)
    return changes


def how_to_go_back(revision: str, path: Path) -> str:
    """Return what to do so that a finding's line runs in the earlier version of this file's repository."""
    top = Path(_git(path.resolve().parent, "rev-parse", "--show-toplevel").decode().strip())
    before = os.path.relpath(top.parent / "before")
    add = f"worktree add {{}} {shlex.quote(revision)}"
    if Path.cwd().is_relative_to(top):
        folder = os.path.normpath(os.path.join(before, Path.cwd().relative_to(top)))
        return f"git {add.format(shlex.quote(before))}; cd {shlex.quote(folder)}"
    here = shlex.quote(os.path.relpath(top))
    return f"git -C {here} {add.format('../before')}, and write {before} for {here} in the line"


def _changed_files(top: Path, revision: str, places: Sequence[Path]) -> set[str]:
    untracked = {top / name for name in _listed(top, "ls-files", "--others", "--exclude-standard", "-z")}  # fmt: skip
    untracked &= {file for each in places for file in (files_in(each) if each.is_dir() else [each])}
    known = {str(path.relative_to(top)) for path in untracked}
    commit = _commit_of(revision, top)
    return known.union(_listed(top, "diff", "--name-only", "--no-renames", "-z", commit))


def _commit_of(revision: str, top: Path) -> str:
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return _git(top, *words).decode().strip()
    except TargetError as error:
        raise TargetError(
            f"Expect a commit, branch or tag with --against, actually: {revision!r}. git log --oneline shows commits."
        ) from error


def _listed(top: Path, *arguments: str) -> list[str]:
    return _git(top, *arguments).decode("utf-8", "replace").split("\0")[:-1]


def _git(folder: Path, *arguments: str) -> bytes:
    command = ["git", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise TargetError("Expect git to be installed for --against, actually: it is not.") from error  # fmt: skip
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip() or "git fails"
        raise TargetError(f"Expect {folder} to lie in a git repository, actually: {said}")
    return done.stdout


def check_module(opened: OpenModule, timeout: float) -> Checked:
    """Run the examples of docstrings and look for calls that never end, in all public names."""
    checked = Checked()
    for each in opened.definitions.values():
        if each.public:
            target = opened.target(each.name)
            checked.looked.append(target.label)
            looker = Looker(target, opened.sandbox, Clock(timeout))
            for trials in candidates(looker, Inputs(target, 0)):
                looker.look(trials)
            checked.findings += findings_alone(target, looker.endless(), opened.sandbox)
    return checked


def compare_modules(now: OpenModule, was: OpenModule, revision: str, timeout: float) -> Checked:
    """Compare the public functions and classes that have changed, or that use something which has changed.

    A definition that uses a changed one is compared only where no difference was found for that one.

    Args:
        now: The module as it is.
        was: The module as it was.
        revision: As the user names it.
        timeout: Seconds of processor time for each.
    """
    checked, explained = Checked(), set[str]()
    changed = _changed(now, was)
    public = [name for name, each in now.definitions.items() if each.public]
    causes = {name: _causes(name, now, changed) for name in public}
    reached = {cause for some in causes.values() for cause in some}
    for name in sorted(causes, key=lambda name: (name not in changed, len(causes[name]))):
        label = f"{now.module.name}::{name}"
        if not causes[name]:
            checked.skipped[label] = "it has not changed"
        elif name not in was.definitions:
            checked.skipped[label] = f"it is new since {revision}"
        elif causes[name] <= explained:
            used = ", ".join(sorted(causes[name]))
            checked.skipped[label] = f"it differs by what it uses: {used}"
        else:
            checked.looked.append(label)
            found = _Comparison(now, was, name, revision, timeout).findings()
            checked.findings += found
            if any(each.kind == "difference" for each in found):
                explained |= causes[name]
    for name in now.definitions.keys() & changed - reached:
        new = name not in was.definitions
        checked.skipped[f"{now.module.name}::{name}"] = (
            f"it is new since {revision}"
            if new
            else "it is private, and nothing public here uses it"
        )
    for name, each in was.definitions.items():
        if each.public and name not in now.definitions:
            checked.skipped[f"{now.module.name}::{name}"] = "it was removed"
    return checked


def _changed(now: OpenModule, was: OpenModule) -> set[str]:
    """Return the names whose source or plain value is another one."""
    new, old = (
        {**each.constants, **{name: known.source for name, known in each.definitions.items()}}
        for each in (now, was)
    )
    return {name for name in new.keys() | old.keys() if new.get(name) != old.get(name)}


def _causes(name: str, now: OpenModule, changed: set[str]) -> set[str]:
    """Return the changed names that a definition uses, also through others."""
    seen, left = set[str](), [name]
    while left:
        each = left.pop()
        if each not in seen:
            seen.add(each)
            left += now.definitions[each].uses if each in now.definitions else ()
    return seen & changed


class _Comparison:
    """Compares one function or class in two versions."""

    def __init__(
        self, now: OpenModule, was: OpenModule, name: str, revision: str, timeout: float
    ) -> None:
        self._now, self._was, self._revision = now, was, revision
        target, self._before = now.target(name), was.target(name)
        self._target = replace(
            target,
            words=list(dict.fromkeys([*target.words, *self._before.words])),
            numbers=list(dict.fromkeys([*target.numbers, *self._before.numbers])),
            examples=(*target.examples, *self._before.examples),
            attributes=self._before.attributes,
        )
        self._looker = Looker(self._target, now.sandbox, Clock(timeout))
        self._old = Observer(name, self._before.attributes, was.sandbox)
        self._inputs = Inputs(self._target, 0)

    def findings(self) -> list[Finding]:
        """Return what differs; or what is wrong with it on its own, if nothing does."""
        if self._target.is_class != self._before.is_class:
            return []
        for trials in self._parts():
            if found := self._first_shown(trials):
                return [found]
        return findings_alone(self._target, self._looker.endless(), self._now.sandbox)

    def _parts(self) -> Iterator[Sequence[Trial]]:
        yield from candidates(self._looker, self._inputs)
        for _ in range(_ROUNDS):
            if not self._looker.clock.is_over(0.5):
                yield self._inputs.varied([trial for trial, _ in self._looker.seen.values()])

    def _first_shown(self, trials: Sequence[Trial]) -> Finding | None:
        """Return the simplest difference that a line of Python shows."""
        pairs = self._differences(trials)
        pairs.sort(key=lambda pair: _simplicity(self._looker.text(pair[0])))
        for trial, was, now in pairs[:3]:
            trial, was, now = self._shortened(trial, was, now)
            for code in code_that_shows(self._target, trial, was, now):
                before, after = self._show(code, self._was), self._show(code, self._now)
                if before != after and not before.startswith("does not end"):
                    text = self._looker.text(trial)
                    if "print(list(itertools" in code:
                        text = f"list({text})"
                    elif "print(repr(" in code and text not in code:
                        text = code.partition(f"import {self._target.name}; ")[2]
                    message = (
                        f"{short(text)} {short(after)}; at {self._revision} it {short(before)}"
                    )
                    return finding(self._target, "difference", message, code)
        return None

    def _differences(self, trials: Sequence[Trial]) -> list[tuple[Trial, Seen, Seen]]:
        found = []
        self._looker.look(trials)
        runs = {self._looker.text(each): each for each in trials}
        known = [
            (runs[text], self._looker.runs[text]) for text in runs if text in self._looker.runs
        ]
        for part in self._looker.clock.parts(known, first=16):
            old = self._old.twice(self._before.program, [trial for trial, _ in part])
            for (trial, (one, other)), (was, again) in zip(part, old, strict=False):
                if _is_same(one, other) and self._is_reliable(was, again) and _differs(was, one):
                    found.append((trial, was, one))
        return found

    def _is_reliable(self, was: Seen, again: Seen) -> bool:
        """Whether the earlier version decided what happens: the same in two runs, and no error that nobody raises on purpose."""
        meant = self._before.raises.issuperset(was.errors)
        return was.outcome is Outcome.PASS and _is_same(was, again) and meant

    def _shortened(self, trial: Trial, was: Seen, now: Seen) -> tuple[Trial, Seen, Seen]:
        """Leave out steps without which it still differs."""
        for step in reversed(range(len(trial.steps))):
            less = replace(trial, steps=(*trial.steps[:step], *trial.steps[step + 1 :]))
            if found := self._differences([less]):
                [(trial, was, now)] = found
        return trial, was, now

    def _show(self, code: str, opened: OpenModule) -> str:
        target = self._target if opened is self._now else self._before
        program = target.program + _SHOW
        [result] = opened.sandbox.call(program, "_codea1_show", [((code,), {})], limits=_ONCE)
        if result.outcome is Outcome.TIMEOUT:
            return "does not end"
        if result.outcome is not Outcome.PASS:
            return f"ends with {result.outcome.value}"
        how, what = result.value
        return ADDRESS.sub("", f"{how} {what}")


def _is_same(one: Seen, other: Seen) -> bool:
    return is_stable(one, other) and one.printed == other.printed


def _differs(was: Seen, now: Seen) -> bool:
    if now.outcome in _ENDED:
        return True
    new, old = (replace(each, found={**each.found, "attributes": {}}) for each in (now, was))
    return now.outcome is Outcome.PASS and (
        differ(was, now) or differ(new, old) or was.printed != now.printed
    )


def _simplicity(text: str) -> tuple[int, int, str]:
    """Sort calls: those without empty arguments and zeros first, then short ones."""
    return len(re.findall(r"''|\[\]|\{\}|\b0\b(?!\.\d*[1-9])", text)), len(text), text
