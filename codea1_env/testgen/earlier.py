"""An earlier version of a function: what it did is what the function is expected to do."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from codea1_env.sandbox import AnalysisError, Job, Outcome, Sandbox
from codea1_env.testgen.findings import Finding, Sort, is_about_surroundings, what_it_did
from codea1_env.testgen.importing import program_of
from codea1_env.testgen.modules import TargetError
from codea1_env.testgen.observing import Seen, differ, is_stable
from codea1_env.testgen.source import describe
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import Shape, Trial, literal, observed_test, trial_text

_SECONDS = 60
_OTHER_SIGNATURE = ("unexpected keyword argument", "positional argument", "required keyword-only")
_ENDED = (Outcome.TIMEOUT, Outcome.MEMORY, Outcome.OUTPUT_LIMIT, Outcome.EXITED, Outcome.SIGNALLED)


@dataclass(frozen=True)
class Earlier:
    """The file of a function as it was."""

    revision: str
    """As the user names it."""
    program: str
    core: str
    """The part of the file that the function depended on."""

    def is_same(self, target: Target) -> bool:
        """Whether nothing has changed in the file that the function depends on."""
        was, now = (text.splitlines() for text in (self.core, target.core))
        return [*filter(str.strip, was)] == [*filter(str.strip, now)]

    def says(self, one: Seen, other: Seen) -> bool:
        """Whether it can be compared with: it does the same in two runs, and takes such arguments."""
        if one.outcome is not Outcome.PASS or not is_stable(one, other):
            return False
        wrong = any(
            name == "TypeError" and any(text in message for text in _OTHER_SIGNATURE)
            for _, name, message in one.errors
        )
        return not wrong and not is_about_surroundings(one)


def differs(was: Seen, now: Seen) -> bool:
    """Whether a function no longer does what it did."""
    if now.outcome in _ENDED:
        return True
    return now.outcome is Outcome.PASS and (differ(was, now) or differ(now, was))


def read_earlier(target: Target, revision: str, sandbox: Sandbox) -> Earlier | None:
    """Read the file of a function as it was at a revision of git.

    Returns:
        None if the function was not there.

    Raises:
        TargetError: There is no such revision, the file is in no repository, or it did not run then.
        InfraError: The sandbox failed.
    """
    text = file_at(target.path, revision)
    if text is None:
        return None
    where = f"{target.path} at {revision}"
    try:
        found = sandbox.analyse(describe, text, target.name)
    except AnalysisError as error:
        raise TargetError(f"Expect {where} to be a Python file, actually: {error}") from error
    if found["problem"]:
        raise TargetError(f"Expect {where} to be a Python program, actually: {found['problem']}.")
    if "kind" not in found or (found["kind"] == "class") != target.is_class:
        return None
    if target.module is not None:
        program = program_of(target.module, target.name, text)
    else:
        program = found["needed"] if target.left_out else text
    load = sandbox.submit(Job(program, (), target.name)).result().load
    if not load.passed:
        raise TargetError(f"Expect {where} to run when it is imported, actually: {load.message}.")
    return Earlier(revision, program, found["needed"])


def file_at(path: Path, revision: str) -> str | None:
    """Return the text of a file at a revision of git; None if it was not there.

    Raises:
        TargetError: There is no such revision, or the file lies in no repository.
    """
    folder = path.resolve().parent
    known = _git(
        folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
    )
    if known.returncode:
        if _git(folder, "rev-parse", "--git-dir").returncode:
            raise TargetError(
                f"Expect {path} to lie in a git repository, actually: {folder} does not. Leave --against out."
            )
        raise TargetError(
            f"Expect a commit, branch or tag with --against, actually: {revision!r}. git log --oneline shows commits."
        )
    commit = known.stdout.decode().strip()
    shown = _git(folder, "show", f"{commit}:./{path.name}")
    return shown.stdout.decode("utf-8", "replace") if shown.returncode == 0 else None


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise TargetError(
            "Expect git to be installed for --against, actually: it is not."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise TargetError(f"Expect git to answer, actually: not within {_SECONDS} s.") from error


def difference(
    trial: Trial, was: Seen, now: Seen, shape: Shape, earlier: Earlier
) -> tuple[Finding, Sort]:
    """Return the finding that a function does something else than it did, up to the first step where it does."""
    if now.outcome is Outcome.PASS:
        steps = range(min(len(was.found["results"]), len(now.found["results"])))
        different = (each for each in steps if _differ_upto(each, was, now))
        if (number := next(different, -1)) >= 0:
            was, now = _upto(was, number), _upto(now, number)
            trial = replace(
                trial, steps=trial.steps[: number + 1] if was.found["made"] else trial.steps
            )
    did, did_then = what_it_did(now), what_it_did(was)
    sort: tuple[Any, ...] = (_form(was), _form(now))
    if did == did_then:
        did, did_then, sort = _left(now), _left(was), ("left",)
    source, test = trial_text(trial, shape), observed_test(trial, was.found, shape)
    finding = Finding(source, did, f"at {earlier.revision} it {did_then}", "difference", test=test)
    return finding, ("difference", trial.steps[-1][0] if trial.steps else "", *sort)


def _differ_upto(number: int, was: Seen, now: Seen) -> bool:
    one, other = _upto(was, number), _upto(now, number)
    return differ(one, other) or differ(other, one)


def _upto(seen: Seen, number: int) -> Seen:
    cut = {"results": seen.found["results"][: number + 1], "after": {}, "attributes": {}}
    return replace(seen, found={**seen.found, **cut})


def _form(seen: Seen) -> str:
    if seen.outcome is not Outcome.PASS:
        return seen.outcome.value
    form, content = seen.last
    return f"{form} {content[0] if form in ('raises', 'breaks') else type(content).__name__}"


def _left(seen: Seen) -> str:
    """Return what a call has changed."""
    changed: Mapping[Any, Any] = {**seen.found.get("after", {}), **seen.found.get("attributes", {})}
    if not changed:
        return "leaves its arguments as they are"
    named = (f"argument {name + 1}" if isinstance(name, int) else str(name) for name in changed)
    pairs = zip(named, changed.values(), strict=True)
    return "leaves " + ", ".join(f"{name} as {literal(value)}" for name, value in pairs)[:200]
