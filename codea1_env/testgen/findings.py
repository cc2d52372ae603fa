"""Findings: an example that the program contradicts, a call that never ends, a difference to an earlier version."""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from typing import Literal

from codea1_env.oracle import gather
from codea1_env.sandbox import Limits, Outcome, Sandbox
from codea1_env.testgen import examples
from codea1_env.testgen.driver import MANY
from codea1_env.testgen.modules import Module, NotImportedError
from codea1_env.testgen.observe import Seen
from codea1_env.testgen.target import Target, beside
from codea1_env.testgen.texts import Shape, Step, Trial, call_text, literal, modules_of, step_text

_LIMITS = Limits(call_cpu_time=3, call_wall_time=15, calls_per_test=1)
_MOST = 160
"""Characters of a value that are shown."""
_SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")
_APPENDED = """
def _codea1_contradiction(text):
    return _codea1_examples["contradiction"](text, globals())
"""


@dataclass(frozen=True)
class Finding:
    """What the author of a function should look at."""

    target: str
    """MODULE::NAME."""
    path: str
    line: int
    kind: Literal["example", "endless", "difference", "import"]
    message: str
    command: str
    """Shows it in a shell, outside the sandbox."""


def finding(target: Target, kind: Literal["example", "endless", "difference"], message: str, code: str) -> Finding:  # fmt: skip
    """Return a finding, which this Python code shows."""
    path = os.path.relpath(target.module.path)
    line = target.definition.lines[0]
    shell = _command(target.module, code, kind == "endless")
    return Finding(target.label, path, line, kind, message, shell)


def failed_import(module: Module, error: NotImportedError, revision: str) -> Finding | None:
    """Return the finding that a module cannot be imported any more; None if only the sandbox may be the reason.

    It could be imported at the revision, if that has a name.
    """
    if not revision and not error.error.startswith(_SYNTAX_ERRORS):
        return None
    place = re.search(rf"\({re.escape(module.path.name)}, line (\d+)\)", error.error)
    message = f"{module.name} cannot be imported: {short(error.error)}"
    message += f"; at {revision} it can" if revision else ""
    path, line = os.path.relpath(module.path), int(place[1]) if place else 1
    return Finding(
        module.name, path, line, "import", message, _command(module, f"import {module.name}")
    )


def _command(module: Module, code: str, limited: bool = False) -> str:
    """Return a shell command that runs code."""
    root = os.path.relpath(module.root)
    path = "" if root == "." or module.installed else f"PYTHONPATH={shlex.quote(root)} "
    return f"{path}{'timeout 10 ' if limited else ''}python -c {shlex.quote(code)}"


def contradicted_example(target: Target, sandbox: Sandbox) -> Finding | None:
    """Run the docstring's own examples; what differs between two processes is no finding.

    Raises:
        InfraError: The sandbox failed.
    """
    docs = [each for each in target.docs if ">>>" in each]
    program = target.program + beside(examples) + _APPENDED
    jobs = [
        sandbox.submit_calls(
            program, "_codea1_contradiction", [([each], {}) for each in docs],
            limits=_LIMITS.with_room_for(len(docs)), hash_seed=seed,
        )
        for seed in (0, 1)
    ]  # fmt: skip
    for one, other in zip(*gather(jobs), strict=True):
        row = one.value
        if one.outcome is Outcome.PASS and row and row == other.value and set(row) == {"before", "source", "want", "got"}:  # fmt: skip
            message = f"{short(row['source'])} gives {short(row['got'])}; the docstring says {short(row['want'])}"
            code = [_imports(target, row["source"]), row["before"], _printed(row["source"])]
            sign = "\n" if any("\n" in each for each in code) else "; "
            return finding(target, "example", message, sign.join(filter(None, code)))
    return None


def findings_alone(target: Target, endless: str, sandbox: Sandbox) -> list[Finding]:
    """Return what is wrong with a target whatever it did earlier: a contradicted example, and a call that never ends.

    Args:
        target: A function or class.
        endless: The call that does not end; "" for none.
        sandbox: Where its module can be imported.

    Raises:
        InfraError: The sandbox failed.
    """
    example = contradicted_example(target, sandbox)
    found = [] if example is None else [example]
    if endless:
        message = f"{short(endless)} does not end in 5 s of processor time"
        code = _awaited(endless, target.asynchronous)
        found.append(finding(target, "endless", message, f"{_imports(target, code)}; {code}"))
    return found


def _printed(source: str) -> str:
    statement = re.match(
        r"(?:print|for|with|if|while|try|assert|import|from|del|raise)\b|[\w.\[\]'\"]+ *=[^=]",
        source,
    )
    return source if statement or "\n" in source else f"print(repr({source}))"


def _imports(target: Target, text: str) -> str:
    modules = [f"import {each}" for each in modules_of(text)]
    return "; ".join(
        [*modules, f"from {target.offered or target.module.name} import {target.name}"]
    )


def code_that_shows(target: Target, trial: Trial, was: Seen, now: Seen) -> list[str]:
    """Return Python texts of one line that may show what a trial gives, the likely one first."""
    shape = target.shape
    made = call_text(target.name, trial.arguments, trial.keywords)
    texts: list[list[str]] = []
    if shape.is_class:
        steps = [_step(shape, step, statement=True) for step in trial.steps]
        start = [f"{shape.object} = {made}", *steps[:-1]]
        if steps:
            texts += [[*start, each] for each in _shown(_step(shape, trial.steps[-1]))]
        for name in {**was.found.get("attributes", {}), **now.found.get("attributes", {})}:
            value = f"len({shape.object})" if name == "len()" else f"{shape.object}.{name}"
            texts.append([*start, *steps[-1:], f"print(repr({value}))"])
        texts.append([f"print(repr({made}))"])
    else:
        call = _awaited(made, shape.asynchronous)
        texts += [[each] for each in _shown(call)]
        texts += _changed(trial, shape)
    return ["; ".join([_imports(target, "; ".join(each)), *each]) for each in texts]


def _step(shape: Shape, step: Step, *, statement: bool = False) -> str:
    text = step_text(shape.object, step, statement=statement)
    return _awaited(text, step[0] in shape.awaited)


def _awaited(text: str, awaited: bool) -> str:
    return f"asyncio.run({text})" if awaited else text


def _shown(source: str) -> list[str]:
    return [
        f"print(repr({source}))",
        f"print(list(itertools.islice({source}, {MANY})))",
        f"print(type({source}))",
    ]


def _changed(trial: Trial, shape: Shape) -> list[list[str]]:
    """Return lines that show what a call does to its arguments."""
    found = []
    words = [f"{key}={literal(each)}" for key, each in trial.keywords.items()]
    for place, value in enumerate(trial.arguments):
        given = [literal(each) for each in trial.arguments]
        given[place] = "x"
        call = f"{shape.name}({', '.join([*given, *words])})"
        found.append([f"x = {literal(value)}", call, "print(x)"])
    return found


def short(text: str) -> str:
    """Return a text in one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."
