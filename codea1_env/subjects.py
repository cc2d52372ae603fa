"""Subjects of tests: what a problem's tests are about, and the programs that are judged by them."""

from __future__ import annotations

from typing import NamedTuple

from codea1_env.problem_sets.contracts import contracted, validator
from codea1_env.problem_sets.judging import checker_of, comparison_of
from codea1_env.problems import Problem
from codea1_env.responses import whole_program
from codea1_env.sandbox import ITERATED, PROGRAM, Comparison, Rule


class Subject(NamedTuple):
    """Subject of tests: the parts of a `Problem` that a value depends on."""

    task_id: str
    entry_point: str
    code: str
    """The reference, behind what the problem gives."""
    contract: str = ""
    """Which calls the problem speaks of, see `Problem.contract`."""
    rule: Rule = "equal"
    """How values are compared, see `Problem.compare`."""
    atol: float = 0.0
    checker: str = ""
    yields: bool = False
    """Whether a call is `list(f(x))`."""
    prints: bool = False
    """Whether it is a program, whose call is an input and whose value is what it prints."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        *,
        with_contract: bool = True,
        with_rule: bool = False,
        yields: bool = False,
    ) -> Subject:
        """Subject of a problem, with or without its contract and its rule; see `codea1_env.responses.yielding`."""
        code = whole_program(problem, problem.reference)
        contract = problem.contract if with_contract else ""
        prints = problem.kind == "program"
        subject = cls(
            problem.task_id, problem.entry_point, code, contract, yields=yields, prints=prints
        )
        if not (with_rule or prints):
            return subject
        rule = comparison_of(problem).rule
        return subject._replace(rule=rule, atol=problem.atol, checker=checker_of(problem))

    def comparison(self, tolerance: float) -> Comparison:
        """Return the comparison of values with this float tolerance, relative and absolute; 0 is exact."""
        if self.prints:  # as the problem says
            return Comparison(self.rule, self.atol, 0.0)
        return Comparison(self.rule, max(tolerance, self.atol), tolerance)

    @property
    def program(self) -> tuple[str, str]:
        """The program text, and the function that is called."""
        if self.prints:
            return self.code, PROGRAM
        code, name = contracted(self.code, self.entry_point, self.contract)
        return code, ITERATED * self.yields + name

    @property
    def validator(self) -> Subject | None:
        """The subject that says which inputs a program is for; None where nobody says it."""
        if not (self.prints and self.contract.strip()):
            return None
        return Subject(self.task_id, *validator(self.contract)[::-1])

    @property
    def called(self) -> str:
        """Name of the function as the sandbox calls it."""
        return ITERATED * self.yields + self.entry_point


class Attack(NamedTuple):
    """A player's program, and the subject that it is judged by."""

    subject: Subject
    code: str

    @property
    def program(self) -> tuple[str, str]:
        """The program text, and the function that is called."""
        return self.code, self.subject.called
