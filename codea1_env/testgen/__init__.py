"""Tests to keep for code of one's own, and what a branch does differently.

`search` finds tests of a function or class, `write` writes them as a pytest file, `against` compares with an earlier
version.
"""

from codea1_env.testgen.modules import Module, TargetError, modules_in
from codea1_env.testgen.search import WrittenSuite, write_suite
from codea1_env.testgen.target import OpenModule, Target
from codea1_env.testgen.write import pytest_file

__all__ = ["Module", "OpenModule", "Target", "TargetError", "WrittenSuite", "modules_in", "pytest_file", "write_suite"]  # fmt: skip
