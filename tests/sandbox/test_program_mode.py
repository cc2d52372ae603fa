"""Program mode against plain Python: the cases in `cases/` run both ways and must agree.

A file holds blocks: `### name`, a program, and tests, each after a line `---`. A test passes in plain
Python and in the sandbox unless its first line says otherwise:

    # fails          it fails or raises, both ways
    # cannot cross   it passes in plain Python and is UNENCODABLE in the sandbox
    # differs: why   it passes in plain Python and not in the sandbox, by decision
"""

from __future__ import annotations

from pathlib import Path

import pytest
from plain_python import PlainPython

from codea1_env.sandbox import Outcome, Sandbox

FAILED = (Outcome.FAIL, Outcome.ERROR)


def read_cases() -> list[object]:
    cases = []
    for file in sorted((Path(__file__).parent / "cases").glob("*.txt")):
        for block in ("\n" + file.read_text()).split("\n### ")[1:]:
            name, _, body = block.partition("\n")
            code, *tests = body.strip("\n").split("\n---\n")
            assert tests, f"{file.name}: {name} has no test"
            for index, test in enumerate(tests):
                cases.append(pytest.param(code, test, id=f"{file.stem}: {name} {index}"))
    return cases


@pytest.mark.parametrize(("code", "test"), read_cases())
def test_as_in_plain_python(code: str, test: str, sandbox: Sandbox, plain: PlainPython) -> None:
    expected = plain.verdict(code, test)
    [result] = sandbox.run_tests(code, [test])
    if test.startswith("# fails"):
        assert expected in ("fail", "error")
        assert result.outcome in FAILED, result
    elif test.startswith("# cannot cross"):
        assert expected == "pass"
        assert result.outcome is Outcome.UNENCODABLE, result
        assert result.message
    elif test.startswith("# differs: "):
        assert expected == "pass"
        assert result.outcome in (*FAILED, Outcome.UNENCODABLE), result
    else:
        assert expected == "pass"
        assert result.outcome is Outcome.PASS, result
