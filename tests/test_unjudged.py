"""A job at which the sandbox fails, while others are judged: it pays nobody, is remembered nowhere, and is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from programs_of import texts_of

from codea1_env.evaluation import HeldOut, kill_rate, kills, pass_rate, pass_rates
from codea1_env.evaluation.comparison import compare
from codea1_env.evaluation.programs import CodeEvaluation
from codea1_env.evaluation.runner import EvaluationPlan, EvaluationRun, build_report
from codea1_env.evaluation.samples import SuiteSample, read_samples
from codea1_env.evaluation.selection import select
from codea1_env.evaluation.suites.evaluation import SuiteEvaluation
from codea1_env.evaluation.suites.scores import (
    ProblemCheck,
    SuiteJudge,
    SuiteScore,
    fails,
    kind_of,
)
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.referee import Referee, Round
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import Case, Outcome, Sandbox, TestResult
from codea1_env.support.jobs import Jobs
from codea1_env.training.measuring import beyond
from codea1_env.training.metrics import step_metrics

MARK = "# at this the sandbox fails"
WHY = TestResult(Outcome.UNJUDGED, "killed three times")
RIGHT = "def inc(n):\n    return n + 1"
SUITE = ["assert inc(1) == 2", "assert inc(2) == 3", "assert inc(3) == 9"]
INC = Problem("inc", "def inc(n):", "inc", RIGHT)


class FailingSandbox(Sandbox):
    """Fails at marked programs."""

    def _run(self, attempt: Any, kind: Any, limits: Any, unjudged: Any) -> Any:
        if any(MARK in text for text in texts_of(attempt)):
            return unjudged(WHY)
        return super()._run(attempt, kind, limits, unjudged)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[FailingSandbox]:
    with FailingSandbox() as made:
        yield made


def test_an_unjudged_program_pays_nobody_and_is_in_no_book(sandbox: FailingSandbox) -> None:
    referee = Referee(sandbox)
    rounds = [
        Round(INC, f"{RIGHT}  {MARK}", [SUITE, []], SUITE[:1]),
        Round(INC, "def inc(n): return n", [SUITE, []], SUITE[:1]),
    ]
    unjudged, wrong = referee.judge(rounds)
    assert (unjudged.code_reward, wrong.code_reward) == (None, 0.0)
    assert [suite.rewards.test for suite in unjudged.suites] == [None, None]
    assert all(suite.rewards.test is not None for suite in wrong.suites)
    assert (unjudged.failed, unjudged.forgettable, unjudged.history) == ((), (), ())
    assert [test.outcome for test in unjudged.suites[0].tests] == [Outcome.UNJUDGED] * 3
    assert unjudged.load.outcome is Outcome.UNJUDGED
    assert len(wrong.failed) == 3


def test_an_unjudged_reference_pays_nobody_and_is_asked_again(
    sandbox: FailingSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    referee = Referee(sandbox)
    other = Problem("other", "def inc(n):", "inc", f"{RIGHT}\n# other")
    round_ = Round(other, "def inc(n): return n", [SUITE], SUITE[:1])
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "MARK", "# other")
        [verdict] = referee.judge([round_])
    assert verdict.suites[0].rewards.test is None
    assert (verdict.code_reward, verdict.failed, verdict.forgettable) == (None, (), ())
    [verdict] = referee.judge([round_])
    assert (verdict.code_reward, len(verdict.failed)) == (0.0, 3)


class Says:
    """Answers the same every time, one after the other."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers

    def act(self, observations: Any) -> list[str]:
        return [self._answers[i % len(self._answers)] for i in range(len(observations))]


def test_a_step_goes_on_and_counts_them(sandbox: FailingSandbox) -> None:
    referee, book = Referee(sandbox), MistakeBook()
    coder = Says(f"```python\n{RIGHT}  {MARK}\n```", "```python\ndef inc(n): return n\n```")
    tester = Says("```python\n" + "\n".join(SUITE) + "\n```")
    config = RolloutConfig(num_generations=2, num_suites=2)
    played = rollout([INC], coder, tester, referee, book, config)
    rewards = [each.reward for each in played.coder_experience()]
    assert rewards == [None, 0.0]
    assert [each.reward is None for each in played.tester_experience("all")] == [
        True,
        True,
        False,
        False,
    ]
    row = step_metrics(played, played.coder_experience(), played.tester_experience(), len(book))
    assert row["sandbox/unjudged"] > 0
    assert row["reward/coder/mean"] == 0.0


HELD = HeldOut(INC, (), (), (Case((1,), {}, 2), Case((2,), {}, 3)), ("def inc(n): return n",))
WRONG = "def inc(n): return n"


def test_held_out_measures_leave_out_what_was_not_judged(sandbox: FailingSandbox) -> None:
    coder = Says(RIGHT, f"{RIGHT}  {MARK}", WRONG)
    rates = pass_rates(coder, [HELD], sandbox, 3)["inc"]
    assert (rates.held_out, rates.solved, rates.unjudged) == (0.5, (True, False), 2)
    assert pass_rate(Says(f"{RIGHT}  {MARK}"), [HELD], sandbox, 2) is None
    referee = Referee(sandbox)
    split = HeldOut(INC, (), (), (), (WRONG, f"{WRONG}  {MARK}"))
    assert kills(Says(SUITE[0]), [split], referee, 2) == {"inc": [True, None]}
    assert kill_rate(Says(SUITE[0]), [split], referee, 2) == 1.0
    assert kills(Says("no test"), [split], referee, 2) == {"inc": [False, False]}
    assert beyond([True, None, True, False], [False, False, None, False]) == [True, False]


def test_unjudged_programs_are_not_chosen_from_nor_compared(
    sandbox: FailingSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems = [
        Problem(name, "def inc(n):", "inc", RIGHT, ("assert inc(1) == 2",)) for name in ("a", "b")
    ]
    programs = [
        ("a", f"{RIGHT} "),
        ("a", f"{RIGHT}  {MARK}"),
        ("a", WRONG),
        ("a", f"{WRONG}  # later"),
        ("b", f"{WRONG}{MARK}"),
    ]
    given = tmp_path / "given.jsonl"
    given.write_text("".join(json.dumps({"task_id": t, "solution": c}) + "\n" for t, c in programs))
    own = CodeEvaluation()
    own.load(problems)
    own.begin(sandbox)
    with Jobs(tmp_path / "found", {}, resume=False) as folder:
        run = EvaluationRun(own, folder)
        run.check()
        run.judge_file(read_samples(given, problems).samples, own.add)
        folder.write("report.json", build_report(own, {}, {}))
    assert [right for _, right in own.programs_of("a")] == [True, False, False]
    with Jobs(tmp_path / "chosen", {}, resume=False) as folder:
        monkeypatch.setitem(globals(), "MARK", "# later")
        tester = Says("\n".join(SUITE))
        [row] = select(own, lambda _: tester, int, folder, lambda: False, lambda: None)
    assert (row["unjudged"], row["passed"], row["random"]) == (1, ["110", "000"], 0.5)
    compared = compare(tmp_path / "found", tmp_path / "found")
    assert compared.not_compared == ("b",)
    assert compared.differences[0].a.value == pytest.approx(1 / 3)


def judged(
    path: Path, sandbox: Sandbox, problems: list[Problem], tester: Says | None, *, resume: bool
) -> dict[str, Any]:
    own: Any = SuiteEvaluation(num_tests=2) if tester else CodeEvaluation()
    own.load(problems)
    own.begin(sandbox)
    with Jobs(path, {}, resume=resume) as folder:
        run = EvaluationRun(own, folder)
        run.check()
        if tester:
            run.judge_agent(lambda _: tester, EvaluationPlan(1, 1, 0), own.add)
        else:
            given = path.parent / "given.jsonl"
            rows = [{"task_id": each.task_id, "solution": WRONG} for each in problems]
            given.write_text("".join(json.dumps(row) + "\n" for row in rows))
            run.judge_file(read_samples(given, problems).samples, own.add)
        return build_report(own, {}, {})


@pytest.mark.parametrize("tester", [None, Says("\n".join(SUITE))])
def test_a_resumed_evaluation_asks_unjudged_references_again(
    sandbox: FailingSandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tester: Says | None
) -> None:
    problems = [
        Problem(name, "def inc(n):", "inc", f"{RIGHT}\n# {name}", ("assert inc(1) == 2",))
        for name in ("a", "b", "c")
    ]
    with monkeypatch.context() as patched:
        patched.setitem(globals(), "MARK", "# b")
        first = judged(tmp_path / "some", sandbox, problems, tester, resume=False)
    assert "unjudged" in first["excluded"]["b"]
    again = judged(tmp_path / "some", sandbox, problems, tester, resume=True)
    whole = judged(tmp_path / "whole", sandbox, problems, tester, resume=False)
    assert again == whole
    assert not again["excluded"]
    for name in ("samples.jsonl", "verdicts.jsonl"):
        assert (tmp_path / "some" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_what_is_not_known_of_a_test_makes_it_neither_right_nor_wrong(
    sandbox: FailingSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Judge(SuiteJudge):
        def _make_mutants(self, source: str) -> list[str]:
            return ["def inc(n): return n", f"def inc(n): return n  {MARK}"]

    sample = SuiteSample("inc", 0, {"tests": SUITE})
    known = Judge(sandbox, 3).judge(INC, ProblemCheck("inc", "", ()), sample)
    assert (known.mutants, known.killed) == (2, (1, 0, 0))
    monkeypatch.setitem(globals(), "MARK", "# other")
    other = Problem("inc", "def inc(n):", "inc", f"{RIGHT}\n# other")
    score = Judge(sandbox, 3).judge(other, ProblemCheck("inc", "", ()), sample)
    assert list(map(kind_of, score.tests)) == ["not made"] * 3
    assert [score.right(3), *map(fails, score.tests)] == [0, False, False, False]
    assert SuiteScore.of(json.loads(json.dumps(score.row()))) == score
