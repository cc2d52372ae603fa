"""Does an agent help? Mutants killed with and without a language model, and how often its predictions are right.

    pip install --no-deps --target SITE NAME==VERSION ...    # those at the top of benchmarks/testgen/functions.txt
    nice python benchmarks/testgen/agents.py --site SITE

Functions are drawn by the seed from `functions.txt`. Each gets four suites, in an order that is drawn, too:

- none: made-up calls, as without --agent, in `--timeout` seconds;
- model: the same with the calls and tests of the language model; its answers take time besides;
- longer: as none, with the time that the answers took added;
- control: as many tests as the model wrote, with arguments drawn at random, that predict 0.

All see the same mutants. Intervals are 95% bootstrap intervals over functions. The folder of results keeps every
function that is done: the same command goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from packages import allow, listed, single_file
from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.player import load_player
from codea1_env.agents.llm.prompts import FewShot
from codea1_env.rollout import ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe
from codea1_env.testgen.function import FunctionSuite, write_function_suite
from codea1_env.testgen.target import Target, TargetError, read_target

ARMS = ("none", "model", "longer", "control")
VALUES = (
    0, 1, -1, 2, 10, 255, 1.5, "", "a", "abc", "Hello World", "2024-01-31", [], [1, 2, 3], ["a", "b"], (1, 2), {"a": 1},
    None, True, False,
)  # fmt: skip
"""What the control draws arguments from."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--site", type=Path, required=True, help="where the packages are installed")
    parser.add_argument("--results", type=Path, default=Path("testgen-agents"))
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--functions", type=int, default=24)
    parser.add_argument("--timeout", type=float, default=15.0)
    parser.add_argument("--num-samples", type=int, default=8)
    parser.add_argument("--num-tests", type=int, default=8)
    parser.add_argument("--max-completion-length", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="only show what there is")
    options = parser.parse_args(arguments)
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / "functions.jsonl"
    if not options.show:
        allow(options.site)
        run(options, path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    show([row for row in rows if "refused" not in row], f"python {shlex.join(sys.argv)}")
    return 0


def run(options: argparse.Namespace, path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["file"], row["name"]) for row in rows}
    handled = sum("refused" not in row for row in rows)
    functions = list(listed())
    order = np.random.default_rng(options.seed).permutation(len(functions))
    roots = sorted({file.partition("/")[0].removesuffix(".py") for file, _ in functions})
    sampling = SamplingConfig(
        temperature=0.7,
        top_p=0.95,
        max_prompt_length=4096,
        max_completion_length=options.max_completion_length,
        stop=("\n```\n",),
    )
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox(2, packages=roots))
        player = load_player(options.model, sampling=sampling)
        stack.callback(player.backend.close)
        out = stack.enter_context(path.open("a"))
        for number in order:
            file, name = functions[int(number)]
            if handled == options.functions:
                break
            if (file, name) in done:
                continue
            row: dict[str, Any] = {"file": file, "name": name}
            try:
                copy = single_file(options.site, file, options.results / "copies")
                target = read_target(copy, name, sandbox)
                rng = np.random.default_rng([options.seed, int(number)])
                row |= compare(target, player, sandbox, rng, options)
                handled += 1
            except TargetError as error:
                row["refused"] = str(error)
            out.write(json.dumps(row) + "\n")
            out.flush()
            print(row, flush=True)


def compare(
    target: Target,
    player: LLMAgent,
    sandbox: Sandbox,
    rng: np.random.Generator,
    options: argparse.Namespace,
) -> dict[str, Any]:
    """What the four suites of a function kill."""
    started = time.monotonic()
    seen = observe(target.problem, code=target.core, turn=1)
    wording = FewShot(options.num_tests)
    asked = LLMAgent(player.backend, player.sampling, options.seed, write=wording)
    answers = ask(asked, "tester", [seen] * options.num_samples)
    asking = time.monotonic() - started
    found: dict[str, Any] = {"asking": round(asking, 1), "load": os.getloadavg()[0]}
    number = sum(answer.count("assert ") for answer in answers)
    given: dict[str, list[str] | None] = {
        "none": None,
        "model": answers,
        "longer": None,
        "control": ["\n".join(at_random(target, rng) for _ in range(number))],
    }
    for arm in rng.permutation(ARMS):
        started = time.monotonic()
        timeout = options.timeout + (asking if arm == "longer" else 0)
        suite = write_function_suite(target, given[arm], sandbox, options.seed, timeout)
        found[str(arm)] = kept(suite) | {"seconds": round(time.monotonic() - started, 1)}
        if arm == "model" and suite.predictions is not None:
            found["predictions"] = vars(suite.predictions)
            found["asked"] = [str(each) for each in suite.questions if each.kind == "tester"]
            found["contradicted"] = [text for text, why in suite.dropped if "predicts" in why]
    found["answers"] = answers
    return found


def kept(suite: FunctionSuite) -> dict[str, Any]:
    return {
        "killed": len(suite.kills.killed),
        "mutants": len(suite.kills.mutants),
        "tests": len(suite.tests),
        "by_tester": sum(test.origin == "tester" for test in suite.tests),
        "cut": suite.cut,
    }


def at_random(target: Target, rng: np.random.Generator) -> str:
    """A test with arguments that are drawn."""
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
        f"{sum(row['model']['by_tester'] for row in rows)} of {sum(row['model']['tests'] for row in rows)}. Seconds for "
        f"the answers: median {np.median([row['asking'] for row in rows]):.1f}. Load: median "
        f"{np.median([row['load'] for row in rows]):.0f}."
    )
    console.print(command, soft_wrap=True)


def _interval(value: float, draws: Any) -> str:
    low, high = np.quantile(draws, [0.025, 0.975])
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


if __name__ == "__main__":
    sys.exit(main())
