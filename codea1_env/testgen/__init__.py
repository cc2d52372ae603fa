"""Suites of tests to keep: right on the program, few, and as strong as all that were written.

For the problems of a set (`problem_suites`), and for a function or class of a user's own file (`function`).
"""

from codea1_env.mutation.kills import Kills, find_kills
from codea1_env.testgen.choosing import reduce_suite
from codea1_env.testgen.function import FunctionSuite, write_function_suite
from codea1_env.testgen.modules import TargetError
from codea1_env.testgen.target import Target, read_target
from codea1_env.testgen.written_file import pytest_file

__all__ = [
    "FunctionSuite",
    "Kills",
    "Target",
    "TargetError",
    "find_kills",
    "pytest_file",
    "read_target",
    "reduce_suite",
    "write_function_suite",
]
