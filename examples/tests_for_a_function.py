"""Write tests for a function of yours: a tester attacks mutants of it, and the best tests are printed as a pytest file.

    python examples/tests_for_a_function.py FILE.py:NAME > test_NAME.py
    python examples/tests_for_a_function.py FILE.py:NAME --tester runs/first

The function is its own reference: a test gets the value that it returns now. You say whether that is right.
The tester "boundary" varies the examples of the docstring: `>>> half(4)`, and `2` on the next line.
"""

from __future__ import annotations

import argparse
import ast
from pathlib import Path

from codea1_env import Problem, Referee, RefereeConfig, Round, Sandbox, generate_mutants
from codea1_env.agents import Agent
from codea1_env.agents.llm.engines import load_player
from codea1_env.agents.opponents import make_opponent
from codea1_env.reading.examples import split_examples
from codea1_env.spaces import observe
from codea1_env.training.checkpoints import find_weights


def problem_of(path: Path, name: str) -> tuple[Problem, range]:
    """Make a problem of a function at the top of a file. Also return its lines."""
    text = path.read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            node.body = [ast.Expr(ast.Constant(ast.get_docstring(node, clean=False) or ""))]
            prompt = ast.unparse(node)
            return Problem(name, prompt, name, text, split_examples(prompt, name)[1]), lines
    raise SystemExit(f"Expect a function {name} at the top of {path}, actually: there is none")


def tester_of(name: str, problem: Problem, sandbox: Sandbox) -> Agent:
    """Load the language model of a training run, or make a scripted tester or one of your own."""
    if (Path(name) / "config.toml").is_file():
        return load_player(str(find_weights(Path(name), "tester", None)))
    return make_opponent(name, "tester", [problem], sandbox, num_tests=32)


def kills_of(problem: Problem, lines: range, tester: str) -> tuple[dict[str, set[int]], int]:
    """Let a tester attack every mutant of a function: each test -> the mutants it notices; how many there are."""
    kills: dict[str, set[int]] = {}
    with Sandbox(workers=2) as sandbox:
        seen = observe(problem, code=problem.reference, turn=1)
        suite = [*problem.tests, *tester_of(tester, problem, sandbox).act([seen] * 4)]
        mutants = [m for m in generate_mutants(problem.reference, sandbox) if m.line in lines]
        referee = Referee(sandbox, RefereeConfig(float_tolerance=0))
        rounds = [Round(problem, mutant.code, [suite]) for mutant in mutants]
        for number, verdict in enumerate(referee.judge(rounds)):
            for test in verdict.failed:
                kills.setdefault(test, set()).add(number)
        # By Python's own ==, as pytest compares: nan equals nothing.
        results = sandbox.run_tests(problem.reference, list(kills), entry_point=problem.entry_point)
    right = [test for test, result in zip(kills, results, strict=True) if result.passed]
    return {test: kills[test] for test in right}, len(mutants)


def main() -> None:
    """Print few tests that notice as many mutants as all tests: first those that notice most."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("function", metavar="FILE.py:NAME")
    parser.add_argument("--tester", default="boundary", help="or a training run, or FILE.py:NAME")
    given = parser.parse_args()
    path, _, name = given.function.rpartition(":")
    kills, mutants = kills_of(*problem_of(Path(path), name), given.tester)
    left = set().union(*kills.values())
    print(f"# {len(left)} of {mutants} mutants are noticed.\nfrom {Path(path).stem} import {name}")
    for number, _ in enumerate(kills, 1):
        best = max(kills, key=lambda test: (len(kills[test] & left), -len(test)))
        if left:
            print(f"\n\ndef test_{name}_{number}():  # notices {len(kills[best])}\n    {best}")
        left -= kills[best]


if __name__ == "__main__":
    main()
