"""A row of every layout of problem sets, for tests."""

from __future__ import annotations

import base64
import functools
import json
import pickle
import zlib
from pathlib import Path
from typing import Any

from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Limits, Sandbox, TestResult

OWN: dict[str, Any] = {
    "task_id": "demo/double",
    "prompt": 'def double(x: int) -> int:\n    """Double it."""\n',
    "entry_point": "double",
    "reference": "def double(x): return 2 * x",
    "tests": ["assert double(2) == 4", "assert double(0) == 0"],
    "metadata": {"source": "demo", "split": "train"},
}
SOLUTION = "def double(x):\n    return 2 * x\n"
LAYOUTS: dict[str, dict[str, Any]] = {
    "own": OWN,
    "humaneval+ release": {
        "task_id": "HumanEval/900",
        "entry_point": "double",
        "declaration": "def double(x):",
        "imports": "",
        "prompt": 'def double(x):\n    """Double it."""\n',
        "description": "Double it.",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    },
    "humaneval+ hub": {
        "task_id": "HumanEval/901",
        "prompt": 'def double(x):\n    """Double it."""\n',
        "canonical_solution": "    return 2 * x\n",
        "entry_point": "double",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    },
    "mbpp+ release": {
        "task_id": "MBPP/902",
        "entry_point": "double",
        "declaration": "def double(x)",
        "imports": "import math",
        "prompt": 'import math\n\ndef double(x):\n"""\nDouble it.\n"""',
        "description": "Double it.",
        "canonical_solution": f"\n{SOLUTION}",
        "test": "def check(double):\n    inputs = [[2]]\n    results = [4]\n"
        "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
        "        assert double(*inp) == exp\n",
    },
    "mbpp+ hub": {
        "task_id": 903,
        "code": SOLUTION,
        "prompt": "Double it.",
        "source_file": "demo",
        "test_imports": [],
        "test_list": ["assert double(2) == 4"],
        "test": "import math\n\ninputs = [[2]]\nresults = [4]\n"
        "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assert double(*inp) == exp\n",
    },
    "mbpp full": {
        "text": "Double it.",
        "code": SOLUTION.replace("\n", "\r\n"),
        "task_id": 904,
        "test_setup_code": "four = 4",
        "test_list": ["assert double(2) == four"],
        "challenge_test_list": ["assert double(-2) == -four"],
    },
    "mbpp sanitized": {
        "source_file": "demo",
        "task_id": 905,
        "prompt": "Double it.",
        "code": f"import math\n{SOLUTION}",
        "test_imports": ["import itertools"],
        "test_list": ["assert double(2) == math.sqrt(16)"],
    },
    "ult": {
        "func_name": "double",
        "code": "def double(x):\n    return int(math.fsum([x, x]))\n",
        "prompt": "Double it.",
        "task_id": "906",
        "test_list": ["assert double(2) == 5"],
    },
    "bigcodebench": {
        "task_id": "BigCodeBench/907",
        "complete_prompt": 'import math\n\ndef double(x):\n    """Double it."""\n',
        "instruct_prompt": "Double it.",
        "canonical_solution": "    return 2 * x\n",
        "code_prompt": "import math\n\ndef double(x):\n",
        "test": "import unittest\n\nclass TestCases(unittest.TestCase):\n"
        "    def test_case_1(self):\n        self.assertEqual(double(2), 4)\n",
        "entry_point": "double",
        "doc_struct": "{}",
        "libs": "['math']",
    },
    "kodcode": {
        "style": "instruct",
        "subset": "Prefill",
        "question_id": "Prefill_908_I",
        "question": "Double it.",
        "solution": SOLUTION,
        "test_code": "from solution import double\n\ndef test_two():\n    assert double(2) == 4\n",
        "test_info": [{"function_name": "double", "function_declaration": "def double(x):"}],
        "gpt_difficulty": "hard",
        "gpt_pass_percentage": 0.4,
    },
    "release": {
        "prompt": [
            {"role": "system", "content": "You complete code."},
            {"role": "user", "content": "Complete the function.\n\ndef double(x):"},
        ],
        "description": "Double it.",
        "GT_code": SOLUTION,
        "problem": 'import math\n\ndef double(x):\n"""\nDouble it.\n"""',
        "test": "from solution import double\n\ndef test_two():\n    assert double(2) == 4\n",
        "data_source": "kodcode_light",
        "extra_info": {
            "function_declaration": "def double(x)",
            "function_name": "double",
            "imports": "import math",
            "question_id": "Prefill_909_I",
        },
    },
}


LIMITS = Limits()


_TEMPLATE = """
import numpy as np

def is_floats(x) -> bool:
    if isinstance(x, float):
        return True
    if isinstance(x, (list, tuple)):
        return all(isinstance(i, float) for i in x)
    return False


def assertion(out, exp, atol):
    exact_match = out == exp

    if atol == 0 and is_floats(exp):
        atol = 1e-6
    if not exact_match and atol != 0:
        assert np.allclose(out, exp, rtol=1e-07, atol=atol)
    else:
        assert exact_match


def check(candidate):
    inputs = INPUTS
    results = RESULTS
    for i, (inp, exp) in enumerate(zip(inputs, results)):
        assertion(candidate(*inp), exp, ATOL)
"""
"""The tests of HumanEval+ have this form."""


def template(inputs: str, results: str, atol: str = "0") -> str:
    """A test of HumanEval+."""
    return _TEMPLATE.replace("INPUTS", inputs).replace("RESULTS", results).replace("ATOL", atol)


def judged(
    problem: Problem, code: str, sandbox: Sandbox, limits: Limits = LIMITS
) -> list[TestResult]:
    """How a program does on all tests of a problem."""
    result = submit_to_tests(problem, code, limits, sandbox).result()
    return list(result.tests) or [result.load]


@functools.cache
def public_set(path: Path) -> list[Problem]:
    """The problems of a large file, read once for all tests."""
    return load_problems(str(path))


def write_lines(path: Path, *rows: object) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def packed(text: str) -> str:
    """As LiveCodeBench packs its private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(text))).decode()


def contest_tests(kind: str, *cases: tuple[str, str]) -> str:
    return json.dumps([{"input": a, "output": b, "testtype": kind} for a, b in cases])


CONTEST = {
    "question_title": "Sum",
    "question_content": "Two numbers are given, one a line.\n\nPrint their sum.",
    "platform": "atcoder",
    "question_id": "abc900_a",
    "contest_id": "abc900",
    "contest_date": "2024-05-04T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": contest_tests("stdin", ("1\n2\n", "3\n")),
    "private_test_cases": packed(contest_tests("stdin", ("-1\n1", "0"), ("7\n8", "15"))),
    "metadata": "{}",
}
"""A row of LiveCodeBench whose programs read standard input."""
CLASS = {
    **CONTEST,
    "question_id": "3900",
    "platform": "leetcode",
    "question_content": "Return the numbers of the list in reverse order, each times k.",
    "starter_code": "class Solution:\n    def turned(self, nums: List[int], k: int) -> List[int]:\n        ",
    "public_test_cases": contest_tests("functional", ("[1, 2]\n3", "[6, 3]"), ("[]\n1", "[]")),
    "private_test_cases": packed(contest_tests("functional", ("[5]\n-1", "[-5]"))),
    "metadata": json.dumps({"func_name": "turned"}),
}
"""A row of LiveCodeBench whose programs complete a class."""
