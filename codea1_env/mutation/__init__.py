"""Mutants: copies of a program with one small fault each.

A suite of tests is as good as the faults it finds, so mutants stand in for faults wherever tests are
judged: the scripted coder submits mutants of the reference, mutation score is the share of mutants that
a suite kills, and the tests of the starter problems are required to kill nearly all of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codea1_env.mutation.operators import mutants

if TYPE_CHECKING:
    from codea1_env.sandbox import Sandbox

OPERATORS = {
    "AOR": "arithmetic operator replaced",
    "ASR": "augmented assignment replaced",
    "BOR": "bitwise operator replaced",
    "ROR": "relational operator replaced",
    "LCR": "logical connector replaced, or one of its operands dropped",
    "COI": "condition negated",
    "UOD": "unary operator deleted",
    "CRP": "constant replaced",
    "RVR": "returned value replaced",
    "SDL": "statement deleted",
    "BCR": "break and continue exchanged",
    "SIR": "slice or range bound moved or removed",
    "FNR": "function or method exchanged for its counterpart",
    "FND": "function or method call replaced by its argument",
    "ARD": "optional argument deleted",
}
"""The kinds of faults, by the names that the literature on mutation testing gives them."""


@dataclass(frozen=True)
class Mutant:
    """A program with one fault."""

    code: str
    """The whole text of the faulty program."""
    operator: str
    """Kind of the fault, a key of `OPERATORS`."""
    line: int
    """Line of the fault in the original program, counted from 1."""
    description: str
    """The fault in words, such as ``"a < b -> a <= b"``."""


def generate_mutants(source: str, sandbox: Sandbox, limit: int | None = None) -> list[Mutant]:
    r"""Return the mutants of a program, always the same ones in the same order.

    Args:
        source: Program text. It is parsed in a helper process of the sandbox.
        sandbox: Where the untrusted text is parsed.
        limit: At most this many, spread evenly over the program; None for all.

    Raises:
        AnalysisError: The text cannot be parsed.
        TypeError: `source` is no text; the program of a `Problem` is its ``reference``.

    Example:
        >>> from codea1_env.sandbox import default_sandbox
        >>> for mutant in generate_mutants("def less(a, b):\n    return a < b\n", default_sandbox()):
        ...     print(mutant.operator, mutant.description)
        RVR return a < b -> return None
        ROR a < b -> a <= b
        ROR a < b -> a >= b
    """
    if not isinstance(source, str):
        raise TypeError(
            f"Expect source to be the text of a program, such as problem.reference, actually: {type(source)}"
        )
    from codea1_env.sandbox import AnalysisError

    try:
        return [Mutant(*row) for row in sandbox.analyse(mutants, source, limit)]
    except AnalysisError as error:
        raise AnalysisError(f"Expect source to be a Python program, actually: {error}") from error
