"""How each tool is asked for a file of tests of a function or class, as its user would ask."""

from __future__ import annotations

import doctest
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import codea1_env

TOOLS = ("codea1 testgen", "Pynguin", "ghostwriter", "examples run")
FILES = dict(zip(TOOLS, ("test_ours.py", "test_pynguin.py", "test_ghost.py", "test_smoke.py"), strict=True))  # fmt: skip
PYNGUIN_SHARE = 3
"""Its search may take so many times what codea1 testgen has, and its assertions again: it works on one processor only,
and on the whole module."""
PATIENCE = 900
"""Seconds by the clock, after which a tool counts as one that does not end."""


@dataclass(frozen=True)
class Place:
    """Where a function or class stands."""

    target: str
    module: str
    name: str
    file: str
    first: int
    last: int
    docstring: str


@dataclass(frozen=True)
class Environment:
    """The other tools' interpreter, and the folder that the packages are in."""

    python: Path
    site: Path

    def locate(self, target: str) -> Place:
        """Where a function or class stands, though another module may offer it."""
        command = [str(self.python), str(Path(__file__).with_name("locate.py")), target]
        done = subprocess.run(command, capture_output=True, text=True, env=self.variables())
        if done.returncode:
            raise LookupError(done.stderr.strip().splitlines()[-1])
        return Place(target=target, **json.loads(done.stdout.splitlines()[-1]))

    def variables(self, *before: Path) -> dict[str, str]:
        """Return the environment in which the packages can be imported."""
        path = os.pathsep.join(map(str, [*before, self.site]))
        return os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "0", "PYNGUIN_DANGER_AWARE": "1"}

    def versions(self) -> str:
        """Return the other tools, with their versions."""
        listed = subprocess.run(
            [str(self.python), "-m", "pip", "freeze"], capture_output=True, text=True
        )
        names = ("pynguin==", "hypothesis==", "pytest==", "cosmic-ray==", "cosmic_ray==")
        return ", ".join(line for line in listed.stdout.splitlines() if line.startswith(names))

    def ask(
        self, tool: str, place: Place, folder: Path, seconds: float, seed: int
    ) -> dict[str, Any]:
        """Have a tool write its file into the folder; returns what it took, and what it said."""
        file = folder / FILES[tool]
        log = folder / f"{file.stem}.json"
        if log.exists():
            return dict(json.loads(log.read_text()))
        file.unlink(missing_ok=True)
        started, cpu = time.monotonic(), cpu_seconds()
        said = ""
        try:
            if tool == "codea1 testgen":
                said = self._ours(place, file, seconds, seed)
            elif tool == "Pynguin":
                said = self._pynguin(place, file, seconds, seed)
            elif tool == "ghostwriter":
                said = self._ghostwriter(place, file)
            else:
                file.write_text(examples_run(place), encoding="utf-8")
        except subprocess.TimeoutExpired:
            said = "does not end"
        row = {
            "seconds": round(time.monotonic() - started, 1),
            "cpu": round(cpu_seconds() - cpu, 1),
            "written": file.exists(),
            "passes": file.exists() and self.passes(file),
        } | ({} if file.exists() else {"said": said[-300:]})
        log.write_text(json.dumps(row))
        return row

    def _ours(self, place: Place, file: Path, seconds: float, seed: int) -> str:
        command = [sys.executable, "-m", "codea1_env.cli", "testgen", place.target, "--output", str(file)]  # fmt: skip
        options = ["--timeout", str(seconds), "--seed", str(seed)]
        return run(
            [*command, *options],
            file.parent,
            self.variables(Path(codea1_env.__file__).parent.parent),
        )

    def _pynguin(self, place: Place, file: Path, seconds: float, seed: int) -> str:
        output = file.parent / "pynguin"
        shutil.rmtree(output, ignore_errors=True)
        bound = round(PYNGUIN_SHARE * seconds)
        options = {
            "project-path": self.site, "module-name": place.module, "output-path": output,
            "only-cover": place.name, "seed": seed, "maximum-search-time": bound,
            "maximum-mutation-time": bound,  # of its assertions; without a bound they take minutes
            # By the clock, too: on a busy machine it gives up at once.
            "maximum-test-execution-timeout": 60, "maximum-module-execution-timeout": 300,
        }  # fmt: skip
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        environment = {
            name: value for name, value in self.variables().items() if name != "PYTHONPATH"
        }
        said = run([str(self.python.with_name("pynguin")), *words], file.parent, environment)
        for found in output.glob("test_*.py"):
            shutil.copy(found, file)
        return said

    def _ghostwriter(self, place: Place, file: Path) -> str:
        name = place.target.replace("::", ".")
        command = [str(self.python.with_name("hypothesis")), "write", name]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.variables(), timeout=PATIENCE
        )
        if not done.returncode and "def test_" in done.stdout:
            file.write_text(done.stdout, encoding="utf-8")
        return done.stdout + done.stderr

    def passes(self, file: Path) -> bool:
        """Whether plain pytest passes the file."""
        command = [str(self.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name]
        variables = {
            key: value for key, value in self.variables().items() if key != "PYTHONHASHSEED"
        }
        try:
            done = subprocess.run(
                command, cwd=file.parent, env=variables, capture_output=True, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0


def run(command: list[str], folder: Path, variables: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout + done.stderr


def cpu_seconds() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def examples_run(place: Place) -> str:
    """Return a file that runs the examples of the docstring and asserts nothing; or only imports the module."""
    try:
        examples = doctest.DocTestParser().get_examples(place.docstring)
    except ValueError:
        examples = []
    sources = [each.source for each in examples if each.exc_msg is None]
    module = place.target.partition("::")[0]
    return (
        f"import {module}\n\n\ndef test_examples():\n    names = dict(vars({module}))\n"
        f"    for source in {sources!r}:\n        exec(compile(source, '', 'single'), names)\n"
    )
