"""BigCodeBench rows: both of the problems that a row describes, and what their tests may do."""

from __future__ import annotations

from typing import Any

import pytest

from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problems import Problem
from codea1_env.sandbox import Limits, Sandbox

FRAME: dict[str, Any] = {
    "task_id": "BigCodeBench/950",
    "complete_prompt": "import pandas as pd\n\ndef task_func(n):\n"
    '    """Return a table of n rows with the columns number and square."""\n',
    "instruct_prompt": "Return a table of n rows with the columns number and square.\nYou should start with:\n"
    "```\nimport pandas as pd\ndef task_func(n):\n```",
    "canonical_solution": "    numbers = list(range(n))\n"
    "    return pd.DataFrame({'number': numbers, 'square': [x * x for x in numbers]})\n",
    "code_prompt": "import pandas as pd\ndef task_func(n):\n",
    "test": "import unittest\nfrom unittest.mock import patch\nimport pandas as pd\n\n"
    "class TestCases(unittest.TestCase):\n"
    "    def test_type(self):\n        self.assertIsInstance(task_func(1), pd.DataFrame)\n"
    "    def test_values(self):\n"
    "        expected = pd.DataFrame({'number': [0, 1], 'square': [0, 1]})\n"
    "        pd.testing.assert_frame_equal(task_func(2), expected)\n"
    "    @patch('pandas.DataFrame')\n"
    "    def test_that_it_is_made_once(self, made):\n"
    "        task_func(3)\n        made.assert_called_once()\n",
    "entry_point": "task_func",
    "doc_struct": "{}",
    "libs": "['pandas', 'os.path']",
}


def problem_of(row: dict[str, Any]) -> Problem:
    return to_problem(Row(row, "set.jsonl, line 1", "v0.1.4"))


def test_the_prompt_is_the_function_to_complete() -> None:
    complete = problem_of(FRAME)
    assert complete.prompt == FRAME["complete_prompt"]
    assert complete.preamble == f"{FRAME['code_prompt']}\n    pass\n"
    facts = {"source": "bigcodebench", "split": "v0.1.4", "packages": "os pandas"}
    assert complete.metadata == facts


@pytest.mark.slow
def test_tests_share_a_process_with_the_program() -> None:
    pytest.importorskip("pandas")
    problem = problem_of(FRAME)
    wrong = "def task_func(n):\n    return pd.DataFrame({'number': range(n), 'square': range(n)}).iloc[1:]"
    limits = Limits(call_cpu_time=30, call_wall_time=120)
    with Sandbox(packages=("pandas",)) as sandbox:
        jobs = [submit_to_tests(problem, c, limits, sandbox) for c in (problem.reference, wrong)]
        right, other = (job.result().tests for job in jobs)
    assert [(each.outcome.value, each.judged) for each in right] == [("pass", "inside")] * 3
    assert {each.judged for each in other} == {"inside"}
    assert sorted(each.outcome.value for each in other) == ["fail", "pass", "pass"]
