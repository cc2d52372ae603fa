"""Which wording should a small model be asked with, before any training?

    python benchmarks/prompts.py                                    # both wordings, about 3 minutes on one core
    python benchmarks/prompts.py --coder few-shot --tester few-shot --temperature 1.0

For coders: the share of answers that pass all golden tests, the share of golden tests passed, and the share of
problems solved at least once. For testers, who see programs that the coder wrote with the default wording:
validity as the reward has it, the share of tests that are right as written, tests per answer, and the share of
suites that break their program. Problems are easy ones of the starter set's training split, evenly spread.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import time
from collections.abc import Sequence
from statistics import mean

import torch
from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.prompts import DEFAULT, WORDINGS, PromptTemplate
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.judging.verdicts import Round
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.responses import Program, parse_suites, read_programs
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Job, Sandbox
from codea1_env.spaces import Observation, observe

STOP = ("\n```\n",)
NUM_TESTS = 4


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--coder", nargs="*", choices=WORDINGS, default=list(WORDINGS))
    parser.add_argument("--tester", nargs="*", choices=WORDINGS, default=list(WORDINGS))
    parser.add_argument("--problems", type=int, default=18, metavar="N")
    parser.add_argument("--samples", type=int, default=3, metavar="N", help="answers per problem")
    parser.add_argument("--temperature", type=float, default=0.9)
    parser.add_argument("--tokens", type=int, default=96, help="longest answer")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print one answer of each wording")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    folder = resolve(options.model)
    backend = TransformersBackend(load_model(folder), load_tokenizer(folder))
    sampling = SamplingConfig(
        temperature=options.temperature, max_completion_length=options.tokens, stop=STOP
    )
    easy = [p for p in load_problems("starter-104", "train") if p.metadata["difficulty"] == "easy"]
    spread = easy[:: max(len(easy) // options.problems, 1)][: options.problems]
    asked = [problem for problem in spread for _ in range(options.samples)]
    console = Console(width=max(110, Console().width))

    def answers(
        write: PromptTemplate, observations: Sequence[Observation]
    ) -> tuple[list[str], list[str]]:
        """Return what the model answers, and the last columns of its row."""
        agent = LLMAgent(backend, sampling, options.seed, write=write)
        started = time.process_time()
        texts = agent.act(observations)
        usage = agent.usage
        if options.show:
            console.print(
                f"{write(observations[0])[-1]['content']}\n--->\n{texts[0]}", markup=False
            )
        columns = (
            usage.prompt_tokens / usage.answers,
            usage.completion_tokens / usage.answers,
            100 * usage.truncated / usage.answers,
            time.process_time() - started,
        )
        return texts, [f"{value:.0f}" for value in columns]

    with Sandbox(workers=2) as sandbox:
        table = a_table("coder", "all tests passed %", "tests passed %", "solved once %")
        for name in options.coder:
            texts, columns = answers(
                WORDINGS[name](NUM_TESTS), [observe(problem) for problem in asked]
            )
            table.add_row(name, *coder_row(asked, texts, sandbox), *columns)
        console.print(table)
        if options.tester:
            texts, _ = answers(DEFAULT, [observe(problem) for problem in asked])
            programs = read_programs(asked, texts, sandbox)
            table = a_table("tester", "validity %", "tests right %", "tests", "suites that break %")
            for name in options.tester:
                seen = [
                    observe(problem, code=program.code, turn=1)
                    for problem, program in zip(asked, programs, strict=True)
                ]
                texts, columns = answers(WORDINGS[name](NUM_TESTS), seen)
                table.add_row(name, *tester_row(asked, programs, texts, sandbox), *columns)
            console.print(table)
    console.print(shlex.join(["python", *sys.argv]), highlight=False, soft_wrap=True)
    return 0


def a_table(*headings: str) -> Table:
    table = Table()
    for heading in (*headings, "prompt", "answer", "cut off %", "CPU s"):
        table.add_column(heading, justify="right" if table.columns else "left")
    return table


def coder_row(asked: list[Problem], texts: list[str], sandbox: Sandbox) -> list[str]:
    jobs = [
        Job(program.code, p.tests, entry_point=p.entry_point)
        for p, program in zip(asked, read_programs(asked, texts, sandbox), strict=True)
    ]
    shares = [mean(result.passed for result in results) for results in sandbox.run_many(jobs)]
    solved = {p.task_id for p, share in zip(asked, shares, strict=True) if share == 1}
    every = len({p.task_id for p in asked})
    figures = (mean(share == 1 for share in shares), mean(shares), len(solved) / every)
    return [f"{100 * figure:.1f}" for figure in figures]


def tester_row(
    asked: list[Problem], programs: list[Program], texts: list[str], sandbox: Sandbox
) -> list[str]:
    referee = Referee(sandbox, RefereeConfig(RewardConfig(num_tests=NUM_TESTS)))
    suites = parse_suites(list(zip(texts, asked, strict=True)), sandbox)
    verdicts = referee.judge(
        [
            Round(problem, program, [suite])
            for problem, program, suite in zip(asked, programs, suites, strict=True)
        ]
    )
    judged = [verdict.suites[0] for verdict in verdicts]
    tests = [test for suite in judged for test in suite.tests]
    right = mean(test.status == "kept" for test in tests) if tests else 0.0
    return [
        f"{100 * mean(suite.rewards.validity for suite in judged):.1f}",
        f"{100 * right:.1f}",
        f"{len(tests) / len(judged):.1f}",
        f"{100 * mean(bool(suite.failed) for suite in judged):.1f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
