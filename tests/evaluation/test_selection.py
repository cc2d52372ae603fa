"""Choices among programs by tests that nobody has checked: by hand, and in one process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from in_one_process import InFolder

from codea1_env.evaluation import program_verdicts, selection
from codea1_env.evaluation.programs import CodeEvaluation
from codea1_env.evaluation.samples import ProgramSample
from codea1_env.evaluation.selection import agreement, select, selection_report, selection_table
from codea1_env.problems import Problem
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.support.jobs import Jobs

NEXT = Problem(
    "demo/next", "def step(n):\n", "step", "def step(n): return n + 1",
    ("assert step(0) == 1", "assert step(-1) == 0", "assert step(4) == 5"), preamble="ONE = 1",
)  # fmt: skip
SIGN = Problem(
    "demo/sign", "def sign(n):\n", "sign", "def sign(n): return (n > 0) - (n < 0)",
    ("assert sign(0) == 0",),
)  # fmt: skip
RIGHT, ABS, TWICE, HANGS = (
    "def step(n): return n + ONE",
    "def step(n): return abs(n) + 1",
    "def step(n): return 2 * n",
    "def step(n):\n    while True: pass",
)
PROGRAMS = {
    "demo/next": [ABS, RIGHT, TWICE, RIGHT],
    "demo/sign": ["def sign(n): return 1", "def sign(n): return 2"],
}
TESTS = {
    "step": [
        "assert step(1) == 2\nassert step(-1) == 0\nassert step(0) == 0",  # the last is wrong
        "assert step(1) == 2\nassert other(1) == 2\nassert step(",
    ],
    "sign": ["assert sign(3) == 1\nassert sign(-3) == -1", "assert sign(3) == 1"],
}


class Writer:
    """Gives prepared answers for each problem, and keeps what it was shown."""

    def __init__(self, tests: Mapping[str, list[str]] = TESTS) -> None:
        self.tests, self.codes, self.asked = tests, set[str](), 0

    def __call__(self, seed: int) -> Writer:
        return self

    def act(self, observations: Any) -> list[str]:
        self.asked += len(observations)
        self.codes |= {each["code"] for each in observations}
        name = observations[0]["entry_point"]
        return [self.tests[name][i % len(self.tests[name])] for i in range(len(observations))]


def choose(
    sandbox: Sandbox,
    path: Path,
    tester: Writer,
    programs: Mapping[str, list[str]] = PROGRAMS,
    *,
    resume: bool = False,
) -> list[Mapping[str, Any]]:
    own = CodeEvaluation(select="tester")
    own.load([each for each in (NEXT, SIGN) if each.task_id in programs])
    with Jobs(path, {}, resume=resume) as folder:
        found = InFolder(own, sandbox, folder)
        found.check()
        samples = [
            ProgramSample(task, i, code, {"task_id": task, "solution": code})
            for task, codes in programs.items()
            for i, code in enumerate(codes)
        ]
        found.judge_file(samples, own.add)
        return select(own, tester, int, folder, lambda: False, lambda: None)


def test_the_set_that_agrees_is_chosen_from(sandbox: Sandbox, tmp_path: Path) -> None:
    tester = Writer()
    step, sign = rows = choose(sandbox, tmp_path, tester)
    # Four answers: step(1) == 2 four times, step(-1) == 0 twice, and the wrong step(0) == 0 twice.
    assert step["times"] == [4, 2, 2]
    assert step["passed"] == ["100", "110", "101", "110"]
    assert (step["first"], step["random"], step["agreement"]) == (0.0, 0.5, 1.0)
    assert step["unusable"] == 2  # what is no Python; a test of another function is none
    assert (sign["random"], sign["agreement"]) == (0.0, 0.0)
    assert tester.codes == {""}, "it sees the problem alone"
    report = selection_report(rows)
    assert {name: each["value"] for name, each in report["figures"].items()} == {"first": 0.0, "random": 0.25, "agreement": 0.5}  # fmt: skip
    assert report["gains"]["agreement"] == {"value": 0.25, "low": 0.0, "high": 0.5}
    table, lines = selection_table(report)
    assert [row[0] for row in table[1:]] == ["first sample", "random sample", "chosen by agreement"]
    assert lines == ["Chosen in 2 problems by 11 tests; 2 more could not be read"]  # fmt: skip


def test_what_is_chosen_is_kept_for_the_same_programs(sandbox: Sandbox, tmp_path: Path) -> None:
    first = choose(sandbox, tmp_path, Writer())
    silent = Writer({})
    assert choose(sandbox, tmp_path, silent, resume=True) == first
    assert silent.asked == 0
    log = tmp_path / "selection.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole.splitlines(keepends=True)[0] + b'{"task')
    tester = Writer()
    assert choose(sandbox, tmp_path, tester, resume=True) == first
    assert (tester.asked, log.read_bytes()) == (2, whole)
    changed = whole.replace(b'"programs_sha256": "', b'"programs_sha256": "x', 1)
    log.write_bytes(changed)
    tester = Writer()
    assert choose(sandbox, tmp_path, tester, resume=True) == first
    assert (tester.asked, log.read_bytes()) == (6, whole)


def test_programs_that_never_end_pass_nothing(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_verdicts, "MIN_TIME_LIMIT", 0.2)
    monkeypatch.setattr(selection, "_LIMITS", Limits(call_cpu_time=0.2))
    tests = {"step": ["assert step(0) == 1\nassert step(1) == 2"]}
    [row] = choose(sandbox, tmp_path, Writer(tests), {"demo/next": [HANGS, RIGHT]})
    assert row["passed"] == ["00", "11"]
    assert row["agreement"] == 1.0


def test_only_tests_that_are_data_choose(sandbox: Sandbox, tmp_path: Path) -> None:
    text = "def test_it():\n    try:\n        step('x')\n    except TypeError:\n        return\n    assert False"
    tests = {"step": [f"{text}\nassert step(2) > 2\nassert step(1) == 2"]}
    [row] = choose(sandbox, tmp_path, Writer(tests), {"demo/next": [RIGHT, TWICE]})
    assert (row["tests"], row["unusable"]) == (["assert step(1) == 2"], 2)


def test_agreement_beats_the_program_that_passes_a_wrong_test() -> None:
    # Three programs pass the two right tests; a wrong one passes one of them, and both wrong tests.
    assert agreement(["1100", "1100", "1100", "1011"], [1] * 4) == [1 / 3, 1 / 3, 1 / 3, 0]


def test_tests_that_were_written_twice_count_twice() -> None:
    assert agreement(["110", "001"], [1, 1, 1]) == [1, 0]
    assert agreement(["110", "001"], [1, 1, 3]) == [0, 1]


def test_ties_are_shared() -> None:
    # Sets {a, b}: 2 x 1; {c}: 1 x 2; {d}: 1 x 1.
    assert agreement(["100", "100", "011", "010"], [1] * 3) == [1 / 3, 1 / 3, 1 / 3, 0]


@pytest.mark.parametrize("rows", [["", "", ""], ["00", "00", "00"], ["11", "11", "11"]])
def test_tests_that_tell_nothing_are_a_random_choice(rows: list[str]) -> None:
    assert agreement(rows, [1] * len(rows[0])) == [1 / 3] * 3


def test_programs_that_pass_no_test_do_not_outnumber_one_that_does() -> None:
    assert agreement(["00", "00", "01"], [1, 1]) == [0, 0, 1]
