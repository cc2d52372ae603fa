"""Which wording should a small model be asked with, before any training?

    python benchmarks/prompts.py                                    # every wording, about 12 minutes on one core
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
import textwrap
import time
from collections.abc import Callable, Sequence
from statistics import mean

import torch
from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm import prompts
from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.completions import Message, SamplingConfig
from codea1_env.agents.llm.prompts import Task, in_block
from codea1_env.agents.llm.transformers_backend import TransformersBackend
from codea1_env.agents.models import load_model, load_tokenizer, resolve
from codea1_env.judging.verdicts import Round
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.responses import Program, parse_suites, read_programs
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import Job, Sandbox
from codea1_env.spaces import Observation, observe

PromptTemplate = Callable[[Observation], list[Message]]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--coder", nargs="*", choices=CODER, default=list(CODER))
    parser.add_argument("--tester", nargs="*", choices=TESTER, default=list(TESTER))
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
            texts, columns = answers(CODER[name], [observe(problem) for problem in asked])
            table.add_row(name, *coder_row(asked, texts, sandbox), *columns)
        console.print(table)
        if options.tester:
            texts, _ = answers(prompts.DEFAULT, [observe(problem) for problem in asked])
            programs = read_programs(asked, texts, sandbox)
            table = a_table("tester", "validity %", "tests right %", "tests", "suites that break %")
            for name in options.tester:
                seen = [
                    observe(problem, code=program.code, turn=1)
                    for problem, program in zip(asked, programs, strict=True)
                ]
                texts, columns = answers(TESTER[name], seen)
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


# ---- The wordings that were compared. The best is codea1_env.agents.llm.prompts.FewShot. -------------------

STOP = ("\n```\n",)
NUM_TESTS = 4
ONLY = prompts.ONLY_CODE
EXAMPLE = observe(prompts.EXAMPLE)
WRONG = observe(prompts.EXAMPLE, code=prompts.EXAMPLE_PROGRAM, turn=1)
SHOT_TESTS = "\n".join(prompts.EXAMPLE_TESTS[:NUM_TESTS])
LAST = Problem(
    "last",
    "def last(text):\n"
    '    """Return the last character of text, or an empty string if it is empty.\n\n'
    "    >>> last('abc')\n    'c'\n    >>> last('')\n    ''\n    \"\"\"\n",
    "last",
    "def last(text):\n    return text[-1:]",
)
LAST_WRONG = observe(LAST, code="def last(text):\n    return text[-1]", turn=1)
LAST_TESTS = "\n".join(
    f"assert last({text!r}) == {text[-1:]!r}" for text in ("abc", "", "x", "a b")
)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def assistant(code: str) -> Message:
    return Message(role="assistant", content=in_block(code))


def code_sentence(seen: Observation) -> str:
    task = Task.of(seen)
    return f"Write a Python function `{task.signature}`. {task.description} {ONLY}"


def code_asserts(seen: Observation) -> str:
    task = Task.of(seen)
    shown = f"It must pass:\n{in_block(task.asserts)}\n"
    return f"Write a Python function `{task.signature}`. {task.description} {shown}{ONLY}"


def code_docstring(seen: Observation) -> str:
    """Types and examples as they stand in the problem."""
    header, _, text = seen["problem"].partition(":\n")
    text = textwrap.dedent(text.replace('"""', ""))
    return f"Write a Python function `{header.removeprefix('def ')}`. {text.strip()}\n\n{ONLY}"


def code_complete(seen: Observation) -> str:
    return f"Complete this Python function:\n{in_block(seen['problem'])}\n{ONLY}"


def test_plain(seen: Observation) -> str:
    task = Task.of(seen)
    return (
        f"A program for `{task.signature}`:\n{in_block(seen['code'])}\n\n"
        f"`{seen['entry_point']}` must do this: {task.description}\n\n"
        f"Write {NUM_TESTS} assert statements that test `{seen['entry_point']}`. {ONLY}"
    )


def test_like_these(seen: Observation) -> str:
    like = f" like these:\n{in_block(Task.of(seen).asserts)}\n{ONLY}"
    return test_plain(seen).removesuffix(f". {ONLY}") + like


def test_loosely(seen: Observation) -> str:
    task = Task.of(seen)
    return (
        f"`{task.signature}`: {task.description}\n\nThis program may be wrong:\n{in_block(seen['code'])}\n\n"
        f"Write tests for `{seen['entry_point']}`. {ONLY}"
    )


def dialogue(seen: Observation) -> list[Message]:
    """As if the model itself had written the program."""
    ask = f"Write {NUM_TESTS} assert statements that test `{seen['entry_point']}`. {ONLY}"
    return [user(code_sentence(seen)), assistant(seen["code"]), user(ask)]


def bare(ask: Callable[[Observation], str]) -> PromptTemplate:
    return lambda seen: [user(ask(seen))]


def shot(ask: Callable[[Observation], str], *examples: tuple[Observation, str]) -> PromptTemplate:
    """Return the question after worked examples."""
    return lambda seen: [
        *(turn for shown, answer in examples for turn in (user(ask(shown)), assistant(answer))),
        user(ask(seen)),
    ]


SOLVED = (EXAMPLE, prompts.EXAMPLE.reference)
TESTED = (WRONG, SHOT_TESTS)
CODER: dict[str, PromptTemplate] = {
    "few-shot": prompts.FewShot(NUM_TESTS),
    "detailed": prompts.Detailed(NUM_TESTS),
    "complete this": bare(code_complete),
    "sentence": bare(code_sentence),
    "docstring": bare(code_docstring),
    "asserts": bare(code_asserts),
    "docstring, 1 shot": shot(code_docstring, SOLVED),
    "asserts, 1 shot": shot(code_asserts, SOLVED),
}
TESTER: dict[str, PromptTemplate] = {
    "few-shot": prompts.FewShot(NUM_TESTS),
    "detailed": prompts.Detailed(NUM_TESTS),
    "plain": bare(test_plain),
    "like these": bare(test_like_these),
    "dialogue": dialogue,
    "loosely, 1 shot": shot(test_loosely, TESTED),
    "plain, 1 shot": shot(test_plain, TESTED),
    "like these, 2 shots": shot(test_like_these, TESTED, (LAST_WRONG, LAST_TESTS)),
}

if __name__ == "__main__":
    sys.exit(main())
