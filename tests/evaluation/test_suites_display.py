"""What `codea1 eval tests` prints."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from codea1_env.cli.tables import print_report
from codea1_env.evaluation.suites.evaluation import SuiteEvaluation

ONE = {"value": 0.5, "low": 0.25, "high": 0.75}
TWO = {"value": 0.6, "low": 0.4, "high": 0.8}
REPORT: dict[str, Any] = {
    "figures": {"pass@1": ONE, "pass@10": TWO, "mut@1": ONE, "mut@10": TWO, "mut@10@pass": TWO},
    "tests": {"right": 3, "wrong value": 7},
    "samples": 2,
    "scored": 2,
    "problems": 3,
    "mutants": 40,
    "not_installed": {"pandas": 2},
    "without_tests": {"the answer is empty": 4, "a": 1, "b": 1, "c": 1},
    "judged_inside": 2,
    "repeated": 0,
    "repeated_suites": 1,
    "late": 0,
    "wrong_programs": {"programs": 9, "problems": 2, "problems_unchecked": 1},
    "missing": [],
    "unknown": {},
    "excluded": {"ULT/1": "why"},
    "settings": {"seed": 0, "model": None},
}


def shown(**changes: Any) -> list[str]:
    out = io.StringIO()
    print_report(SuiteEvaluation(), {**REPORT, **changes}, Console(file=out, width=80))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_figures_faults_and_settings_are_shown():
    lines = shown(figures={**REPORT["figures"], "any pass@1": TWO, "p_u": ONE, "p_01": TWO})
    assert "figure [95%] k = 1 k = 10" in lines
    assert "pass@k 0.500 [0.250, 0.750] 0.600 [0.400, 0.800]" in lines
    assert "mut@k@pass - 0.600 [0.400, 0.800]" in lines
    assert "Whole suites: any pass@1 0.600 [0.400, 0.800]" in " ".join(lines)
    assert "2 suites for 2 of 3 problems, 40 mutants. Tests: right 3, wrong value 7" in lines
    assert any(line.startswith("Imported by tests, and not there: pandas (2).") for line in lines)
    assert not any("right test" in line and "repeating" in line for line in lines)
    at = lines.index("On 9 wrong programs of 2 problems:")
    assert lines[at + 1] == "a test is right (p_u): 0.500 [0.250, 0.750]"
    assert "Excluded: ULT/1: why" in lines
    assert "Settings: seed 0" in lines


def test_what_is_not_known_is_said():
    none = {"programs": 0, "problems": 0, "problems_unchecked": 0}
    assert any("No problem has wrong programs" in line for line in shown(wrong_programs=none))
    assert "On 9 wrong programs of 2 problems: no test ran on them" in shown()
