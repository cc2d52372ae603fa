"""Does an agent help? Mutants killed with and without a language model, and how often its predictions are right.

    pip install --no-deps --target SITE NAME==VERSION ...    # those at the top of benchmarks/testgen/functions.txt
    nice python benchmarks/testgen/agents.py --site SITE

Functions are drawn by the seed from `functions.txt`. Each gets three suites, in an order that is drawn, too:

- none: made-up calls, as without --agent;
- model: the same with the calls and tests of the language model;
- control: as many tests as the model wrote, with arguments drawn at random, that predict 0.

All see the same mutants, and have the same bound of time, which counts seconds of processor time of this process and
those below it, so that it means the same on a busy machine; the answers of the model take theirs besides. Intervals are
95% bootstrap intervals over functions. The folder of results keeps what is done: the same command goes on where it was
stopped.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from packages import Log, allow, listed, module_at, parser_for
from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.engines import computing_for, load_player
from codea1_env.agents.llm.prompts import FewShot
from codea1_env.rollout import ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe
from codea1_env.testgen import function
from codea1_env.testgen.function import FunctionSuite, write_function_suite
from codea1_env.testgen.importing import sandbox_for
from codea1_env.testgen.looking import Deadline
from codea1_env.testgen.modules import TargetError
from codea1_env.testgen.target import Target, read_target

ARMS = ("none", "model", "control")
VALUES: tuple[Any, ...] = (
    0, 1, -1, 2, 10, 255, 1.5, "", "a", "abc", "Hello World", "2024-01-31", [], [1, 2, 3], ["a", "b"], (1, 2), {"a": 1},
    None, True, False,
)  # fmt: skip
"""What the control draws arguments from."""


def main(arguments: list[str] | None = None) -> int:
    parser = parser_for(__doc__)
    parser.add_argument("--results", type=Path, default=Path("testgen-agents"))
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--functions", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=3.0)
    parser.add_argument("--num-samples", type=int, default=3)
    parser.add_argument("--num-tests", type=int, default=5)
    parser.add_argument("--max-completion-length", type=int, default=110)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="only show what there is")
    options = parser.parse_args(arguments)
    path = options.results / "functions.jsonl"
    if not options.show:
        allow(options.site)
        function.Deadline = ProcessorDeadline  # type: ignore[attr-defined]
        run(options, Log(path))
    rows = [row for row in Log(path) if "refused" not in row]
    show(rows, f"python {shlex.join(sys.argv)}")
    return 0


def run(options: argparse.Namespace, rows: Log) -> None:
    functions = list(listed())
    order = np.random.default_rng(options.seed).permutation(len(functions))
    done = {row["name"]: row for row in rows}
    sampling = SamplingConfig(
        temperature=0.7,
        top_p=0.95,
        max_prompt_length=4096,
        max_completion_length=options.max_completion_length,
        stop=("\n```\n",),
    )
    computing = computing_for(options.model, None, 1)
    with Sandbox(packages=()) as analyst:
        player = load_player(options.model, sampling=sampling, computing=computing)
        handled = 0
        for number in order:
            file, name = functions[int(number)]
            row = done.get(f"{file}::{name}")
            if row is None:
                agent = LLMAgent(
                    player.backend, sampling, options.seed, write=FewShot(options.num_tests)
                )
                row = {"name": f"{file}::{name}", "load": os.getloadavg()[0]}
                row |= look(options, file, name, agent, analyst, int(number))
                rows.add(row)
                print({key: value for key, value in row.items() if key != "answers"}, flush=True)
            handled += "refused" not in row
            if handled == options.functions:
                break
        player.backend.close()


def look(
    options: argparse.Namespace,
    file: str,
    name: str,
    agent: LLMAgent,
    analyst: Sandbox,
    number: int,
) -> dict[str, Any]:
    """Return what the three suites of a function are, or why there are none."""
    module = module_at(options.site, file)
    with sandbox_for(module, analyst, workers=2) as (sandbox, imported):
        try:
            target = read_target(module, name, sandbox, imported)
        except TargetError as error:
            return {"refused": str(error)}
        seen = observe(target.problem, code=target.core, turn=1)
        started = processor_time()
        answers = ask(agent, "tester", [seen] * options.num_samples)
        found = {"answers": answers, "asking": round(processor_time() - started, 2)}
        rng = np.random.default_rng([options.seed, number])
        return found | compare(target, answers, sandbox, rng, options)


def compare(
    target: Target,
    answers: Sequence[str],
    sandbox: Sandbox,
    rng: np.random.Generator,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Return what the three suites of a function kill."""
    found: dict[str, Any] = {}
    number = sum(answer.count("assert ") for answer in answers)
    given: dict[str, list[str] | None] = {
        "none": None,
        "model": list(answers),
        "control": ["\n".join(at_random(target, rng) for _ in range(number))],
    }
    for arm in rng.permutation(ARMS):
        started = processor_time()
        suite = write_function_suite(target, given[arm], sandbox, options.seed, options.timeout)
        found[str(arm)] = kept(suite) | {"seconds": round(processor_time() - started, 2)}
        if arm == "model" and suite.predictions is not None:
            found["predictions"] = vars(suite.predictions)
            found["asked"] = [str(each) for each in suite.questions if each.kind == "tester"]
            found["contradicted"] = [text for text, why in suite.dropped if "predicts" in why]
    return found


class ProcessorDeadline(Deadline):
    """Counts the processor time of this process, and of all below it."""

    def __init__(self, seconds: float | None) -> None:
        super().__init__(seconds)
        self._before = processor_time()

    @property
    def elapsed(self) -> float:
        """Seconds of it that have passed."""
        return processor_time() - self._before


def processor_time() -> float:
    """Seconds of processor time of this process and those below it, with those that have ended."""
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with suppress(OSError):  # it has ended meanwhile
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                parents[int(place.name)] = int(fields[1])
                ticks[int(place.name)] = sum(map(int, fields[11:15]))
    mine = {os.getpid()}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        mine |= more
        grown = bool(more)
    return sum(ticks[pid] for pid in mine) / os.sysconf("SC_CLK_TCK")


def kept(suite: FunctionSuite) -> dict[str, Any]:
    return {
        "killed": len(suite.kills.killed),
        "mutants": len(suite.kills.mutants),
        "tests": len(suite.tests),
        "by_tester": sum(test.origin == "tester" for test in suite.tests),
        "cut": suite.cut,
    }


def at_random(target: Target, rng: np.random.Generator) -> str:
    """Return a test with arguments that are drawn."""
    needed = [each for each in target.parameters if each.way != "star" and not each.optional]
    words = [
        f"{each.name}={value!r}" if each.way == "keyword" else repr(value)
        for each in needed
        for value in [VALUES[int(rng.integers(len(VALUES)))]]
    ]
    return f"assert {target.name}({', '.join(words)}) == 0"


def show(rows: list[dict[str, Any]], command: str) -> None:
    rng = np.random.default_rng(0)
    draws = rng.integers(len(rows), size=(10_000, len(rows)))
    table = Table(
        "suite", "killed", "of", "share", "better than none in", "worse in", "more than none"
    )
    base = np.array([row["none"]["killed"] for row in rows])
    for arm in ARMS:
        killed = np.array([row[arm]["killed"] for row in rows])
        mutants = np.array([row[arm]["mutants"] for row in rows])
        share = killed[draws].sum(1) / mutants[draws].sum(1)
        more = (killed - base)[draws].sum(1) / mutants[draws].sum(1)
        table.add_row(
            arm,
            str(killed.sum()),
            str(mutants.sum()),
            _interval(killed.sum() / mutants.sum(), share),
            str((killed > base).sum()),
            str((killed < base).sum()),
            _interval((killed - base).sum() / mutants.sum(), more),
        )
    console = Console(width=140)
    console.print(table)
    right = np.array([row["predictions"]["right"] for row in rows])
    wrong = np.array([row["predictions"]["wrong"] for row in rows])
    useless = sum(row["predictions"]["useless"] for row in rows)
    precision = right[draws].sum(1) / np.maximum((right + wrong)[draws].sum(1), 1)
    console.print(
        f"{len(rows)} functions. Predictions: {right.sum()} right, {wrong.sum()} wrong, {useless} of no use; right are "
        f"{_interval(right.sum() / max((right + wrong).sum(), 1), precision)}. Tests of the model in its suites: "
        f"{sum(row['model']['by_tester'] for row in rows)} of {sum(row['model']['tests'] for row in rows)}. Processor seconds "
        f"for the answers: median {np.median([row['asking'] for row in rows]):.1f}. Load: median "
        f"{np.median([row['load'] for row in rows]):.0f}."
    )
    console.print(command, soft_wrap=True)


def _interval(value: float, draws: Any) -> str:
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    sys.exit(main())
