"""What problems of HumanEval+ and MBPP+ presuppose of their arguments, where their rows do not say it as a contract."""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path


def contract_of(task_id: str, given: object = None) -> str:
    """Return the contract of a problem; "" where none is known.

    Args:
        task_id: As the readers name it, such as "MBPP/3".
        given: The row's own contract, as the releases of EvalPlus have it; it goes first.

    Raises:
        TypeError: What is given is no text.

    Example:
        >>> contract_of("HumanEval/55"), contract_of("HumanEval/55", "assert n > 2"), contract_of("mine/1")
        ('assert 0 <= n <= 200', 'assert n > 2', '')
    """
    if given is None or given == "":
        return _contracts().get(task_id, "")
    if not isinstance(given, str):
        raise TypeError(f"Expect 'contract' to be text, actually: {type(given).__name__}")
    return given


@functools.cache
def _contracts() -> dict[str, str]:
    text = Path(__file__).with_name("contracts.toml").read_text(encoding="utf-8")
    return {task_id: contract.strip("\n") for task_id, contract in tomllib.loads(text).items()}
