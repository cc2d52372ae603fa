"""Findings: an example that the program contradicts, a call that never ends, a difference to an earlier version."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from codea1_env.oracle import gather
from codea1_env.sandbox import Limits, Outcome, Sandbox
from codea1_env.testgen import examples
from codea1_env.testgen.driver import MANY
from codea1_env.testgen.modules import Module, NotImportedError
from codea1_env.testgen.observe import Seen
from codea1_env.testgen.target import Target, beside
from codea1_env.testgen.texts import Trial, awaited, call_text, literal, modules_of

_LIMITS = Limits(call_cpu_time=3, call_wall_time=15, calls_per_test=1)
_MOST = 160  # Characters of a value that are shown
_SYNTAX_ERRORS = ("SyntaxError", "IndentationError", "TabError")
_STATEMENT = re.compile(
    r"(?:print|for|with|if|while|try|assert|import|from|del|raise)\b|[\w.\[\]'\"]+ *=[^=]"
)
_APPENDED = """
def _codea1_contradiction(text):
    return _codea1_examples["contradiction"](text, globals())
"""


@dataclass(frozen=True)
class Finding:
    """What the author of a function should look at."""

    target: str
    """MODULE::NAME, or MODULE."""
    path: str
    line: int
    kind: Literal["example", "endless", "difference", "import"]
    message: str
    command: str
    """Shows it in a shell, outside the sandbox."""


def finding(target: Target, kind: Literal["example", "endless", "difference"], message: str, code: str) -> Finding:  # fmt: skip
    """Return a finding, which this Python code shows."""
    path, line = os.path.relpath(target.module.path), target.definition.lines[0]
    shell = _command(target.module, code, kind == "endless")
    return Finding(target.label, path, line, kind, message, shell)


def failed_import(module: Module, error: NotImportedError, revision: str) -> Finding | None:
    """Return the finding that a module cannot be imported, as it could at a revision if one is named.

    None if only the sandbox may be the reason.
    """
    if not revision and not error.error.startswith(_SYNTAX_ERRORS):
        return None
    place = re.search(rf"\({re.escape(module.path.name)}, line (\d+)\)", error.error)
    message = f"{module.name} cannot be imported: {short(error.error)}"
    message += f"; at {revision} it can" if revision else ""
    path, line = os.path.relpath(module.path), int(place[1]) if place else 1
    command = _command(module, f"import {module.name}")
    return Finding(module.name, path, line, "import", message, command)


def _command(module: Module, code: str, limited: bool = False) -> str:
    """Return a shell command that runs code."""
    root = os.path.relpath(module.root)
    path = "" if root == "." else f"PYTHONPATH={shlex.quote(root)} "
    return f"{path}{'timeout 10 ' if limited else ''}python -c {shlex.quote(code)}"


def findings_alone(target: Target, endless: str, sandbox: Sandbox) -> list[Finding]:
    """Return what is wrong with a target whatever it did earlier: a contradicted example, and a call that never ends."""
    found = list(_contradicted_example(target, sandbox))[:1]
    if endless:
        message = f"{short(endless)} does not end in 5 s of processor time"
        code = awaited(endless, target.asynchronous)
        found.append(finding(target, "endless", message, f"{_imports(target, code)}; {code}"))
    return found


def _contradicted_example(target: Target, sandbox: Sandbox) -> Iterator[Finding]:
    """Run the docstring's own examples; what differs between two processes is no finding."""
    docs = [([each], dict[str, object]()) for each in target.docs if ">>>" in each]
    program, name = target.program + beside(examples) + _APPENDED, "_codea1_contradiction"
    limits = _LIMITS.with_room_for(len(docs))
    jobs = [
        sandbox.submit_calls(program, name, docs, limits=limits, hash_seed=seed) for seed in (0, 1)
    ]
    for one, other in zip(*gather(jobs), strict=True):
        row = one.value
        if one.outcome is Outcome.PASS and row and row == other.value and set(row) == {"before", "source", "want", "got"}:  # fmt: skip
            message = f"{short(row['source'])} gives {short(row['got'])}; the docstring says {short(row['want'])}"
            source = row["source"]
            is_whole = _STATEMENT.match(source) or "\n" in source
            shown = source if is_whole else f"print(repr({source}))"
            code = list(filter(None, [_imports(target, source), row["before"], shown]))
            sign = "\n" if any("\n" in each for each in code) else "; "
            yield finding(target, "example", message, sign.join(code))


def _imports(target: Target, text: str) -> str:
    modules = [f"import {each}" for each in modules_of(text)]
    return "; ".join([*modules, f"from {target.module.name} import {target.name}"])


def code_that_shows(target: Target, trial: Trial, was: Seen, now: Seen) -> list[str]:
    """Return Python texts of one line that may show what a trial gives, the likely one first."""
    shape = target.shape
    made = call_text(target.name, trial.arguments, trial.keywords)
    texts: list[list[str]] = []
    if shape.is_class:
        steps = [shape.step(step, statement=True) for step in trial.steps]
        start = [f"{shape.object} = {made}", *steps[:-1]]
        if steps:
            texts += [[*start, each] for each in _shown(shape.step(trial.steps[-1]))]
        for name in {**was.found.get("attributes", {}), **now.found.get("attributes", {})}:
            texts.append([*start, *steps[-1:], f"print(repr({shape.attribute(name)}))"])
        texts.append([f"print(repr({made}))"])
    else:
        texts += [[each] for each in _shown(awaited(made, shape.asynchronous))]
        given = [literal(each) for each in trial.arguments]
        words = [f"{key}={literal(each)}" for key, each in trial.keywords.items()]
        for place, value in enumerate(given):  # what a call does to its arguments
            call = ", ".join([*given[:place], "x", *given[place + 1 :], *words])
            texts.append([f"x = {value}", f"{shape.name}({call})", "print(x)"])
    return ["; ".join([_imports(target, "; ".join(each)), *each]) for each in texts]


def _shown(source: str) -> list[str]:
    return [
        f"print(repr({source}))",
        f"print(list(itertools.islice({source}, {MANY})))",
        f"print(type({source}))",
    ]


def short(text: str) -> str:
    """Return a text in one line, cut where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."
