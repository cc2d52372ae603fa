"""One answer at a time, for tests."""

from __future__ import annotations

from codea1_env.problems import Problem
from codea1_env.responses import Program, Suite, parse_programs, parse_suites, read_programs
from codea1_env.sandbox import Sandbox


def parse_program(text: str, entry_point: str | None, sandbox: Sandbox) -> Program:
    return parse_programs([(text, entry_point)], sandbox)[0]


def parse_suite(text: str, problem: Problem, sandbox: Sandbox) -> Suite:
    return parse_suites([(text, problem)], sandbox)[0]


def read_program(problem: Problem, answer: str, sandbox: Sandbox) -> Program:
    return read_programs([problem], [answer], sandbox)[0]
