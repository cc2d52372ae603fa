"""Does `codea1 eval code` judge programs for LiveCodeBench as LiveCodeBench does?

    pip download --no-deps nvidia-livecodebench==26.3 && unzip nvidia_livecodebench-*.whl -d grader
    python benchmarks/livecodebench_agreement.py --grader grader/livecodebench/evaluation/testing_util.py

The data set is not needed: small programs print, or return, texts and values near the border between right and wrong
(space, numbers written differently, tuples, errors, exits). LiveCodeBench's grader runs them in this process, without
its guard, since they are our own. Every program on which the two disagree is listed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from codea1_env.problem_sets.judging import passes, submit_to_tests
from codea1_env.problem_sets.livecodebench import PREAMBLE
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.support.plugins import load_file

WORDS = (
    "1", "1.0", "01", "1e0", "2", "-0", "0", "0.5", ".5", "0.50", "yes", "Yes", "YES", "", " ", "a b", "a  b", "1 2",
    "1  2", "1 2.0", "nan", "NaN", "inf", "Infinity", "1_000", "1000", "0x10", "50000000000000000",
    "50000000000000001", "1e400", "\t1", "1\r", "\u00e9", "\u0661",
)  # fmt: skip
PRINTS = (
    "import sys\nsys.stdout.write({!r})",
    "if __name__ == '__main__':\n    print({!r})",
    "print({!r})\nexit()",
    "print({!r})\nraise ValueError",
    "def main():\n    x = input()\n    print({!r})\nmain()",
)
VALUES = (
    "1", "1.0", "True", "'1'", "[1, 2]", "(1, 2)", "[[1, 2], [3]]", "[(1, 2), [3]]", "None", "{'a': 1}", "[1.0, 2]",
    "2", "'a'", "[]", "()", "0.1 + 0.2", "0.3", "[1, 2][::-1]", "sorted({2, 1})", "1 / 0",
)  # fmt: skip
EXPECTED: tuple[object, ...] = (
    1, True, "1", [1, 2], [[1, 2], [3]], None, {"a": 1}, 2, "a", [], 0.3, [2, 1],
)  # fmt: skip
CLASS = "class Solution:\n    def f(self, x: List[int]):\n        return {}"


def main() -> int:
    arguments = parse()
    grader = load(arguments.grader)
    # The grader's process has the limit of digits itself.
    if (
        grader.import_string.split()
        != PREAMBLE.replace("sys.set_int_max_str_digits(50000)", "").split()
    ):
        print("the imports before every program differ")
    rng = np.random.default_rng(arguments.seed)
    cases = [reading(rng) for _ in range(arguments.programs)]
    cases += [
        (row("functional", "5", json.dumps(expected)), CLASS.format(value))
        for expected in EXPECTED
        for value in VALUES
    ]
    with Sandbox(2) as sandbox:
        limits = Limits(call_cpu_time=6, call_wall_time=18)
        jobs = [
            submit_to_tests(to_problem(Row(fields, "here")), code, limits, sandbox)
            for fields, code in cases
        ]
        ours = [passes(job.result()) for job in jobs]
    theirs = [judged_by(grader, fields, code) for fields, code in cases]
    for (fields, code), a, b in zip(cases, ours, theirs, strict=True):
        if a != b:
            print(f"here {a}, there {b}: {fields['public_test_cases']}\n{code}\n")
    same = sum(a == b for a, b in zip(ours, theirs, strict=True))
    print(f"{len(cases)} programs, {sum(ours)} of them right here; {same} verdicts agree")
    print(f"Command: python {' '.join(sys.argv)}")
    return 0 if same == len(cases) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--grader", type=Path, required=True, help="its testing_util.py")
    parser.add_argument("--programs", type=int, default=600, help="programs that print")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def load(path: Path) -> Any:
    grader = load_file(path)
    grader.reliability_guard = lambda *_: None  # it would cripple this process
    return grader


def row(kind: str, given: str, expected: str) -> dict[str, Any]:
    tests = [{"input": given, "output": expected, "testtype": kind}]
    return {
        "question_id": "1",
        "question_content": "-",
        "starter_code": "class Solution:",
        "public_test_cases": json.dumps(tests),
        "private_test_cases": "[]",
        "metadata": json.dumps({"func_name": "f"}),
    }


def reading(rng: np.random.Generator) -> tuple[dict[str, Any], str]:
    """Return a test, and a program that prints what is expected, something like it, or something else."""
    expected = lines(rng)
    printed = expected if rng.random() < 0.2 else lines(rng)
    if rng.random() < 0.5:
        words = expected.split("\n")
        words[rng.integers(len(words))] = str(rng.choice(WORDS))
        printed = "\n".join(words)
    form = PRINTS[0] if rng.random() < 0.75 else PRINTS[rng.integers(len(PRINTS))]
    return row("stdin", "5\n", expected), form.format(printed)


def lines(rng: np.random.Generator) -> str:
    words = rng.choice(WORDS, size=rng.integers(1, 4))
    return "\n".join(map(str, words)) + str(rng.choice(["", "\n", "\n\n", " \n"]))


def judged_by(grader: Any, fields: dict[str, Any], code: str) -> bool:
    (test,) = json.loads(fields["public_test_cases"])
    name = "f" if test["testtype"] == "functional" else None
    content = {"inputs": [test["input"]], "outputs": [test["output"]], "fn_name": name}
    results, _ = grader.run_test({"input_output": json.dumps(content)}, test=code, timeout=6)
    return all(result is True or result == 1 for result in results)


if __name__ == "__main__":
    sys.exit(main())
