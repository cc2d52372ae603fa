"""The parts of the loop that need no sandbox: what is shown, how long it takes, and what a run says of itself."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time

import pytest
from rich.console import Console

from codea1_env import Sandbox
from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.completions import report
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.rollout import RolloutConfig, Rollouts, rollout
from codea1_env.sandbox import Limits
from codea1_env.training.metrics import invalid_metrics, mean, slug
from codea1_env.training.problems_of_run import problems_of_step
from codea1_env.training.progress import TrainingProgress
from codea1_env.training.summary import Health, Throughput, peak_memory, start_and_end

PROBLEMS = [Problem(f"p{i}", f"def f{i}():", f"f{i}", f"def f{i}(): return {i}") for i in range(10)]


def ids(seed, step, number=3):
    return [problem.task_id for problem in problems_of_step(PROBLEMS, seed, step, number)]


def test_an_epoch_visits_problems_once():
    epoch = [name for step in range(3) for name in ids(0, step)]
    assert len(epoch) == len(set(epoch)) == 9
    following = [name for step in range(3, 6) for name in ids(0, step)]
    assert len(set(following)) == 9
    assert following != epoch
    assert [ids(4, step) for step in range(9)] != [ids(5, step) for step in range(9)]


def test_all_problems_are_visited_in_the_long_run():
    assert len({name for step in range(60) for name in ids(0, step)}) == 10


def rows():
    yield {"step": 0, "held_out/pass_rate": 0.25}
    for step in range(1, 21):
        row = {"step": step, "reward/coder/mean": step / 20, "reward/tester/mean": None}
        row["book/size"] = step
        yield row | ({"held_out/pass_rate": step / 20} if step % 10 == 0 else {})


def test_start_and_end():
    start, end = start_and_end(list(rows()))
    assert (start["held_out/pass_rate"], end["held_out/pass_rate"]) == (0.25, 1.0)
    assert start["reward/coder/mean"] == mean([1 / 20, 2 / 20])
    assert end["reward/coder/mean"] == mean([19 / 20, 1.0])
    assert (start["reward/tester/mean"], end["book/size"]) == (None, 20)


def progress(minutes=None, **console):
    out = io.StringIO()
    with TrainingProgress(Console(file=out, width=80, **console), minutes=minutes) as display:
        display.expect(20, 0)
        for row in list(rows())[1:]:
            with display.phase("coder"):
                report(0.5)
            display.update(row, last=row["step"] == 20)
    return out.getvalue()


def test_without_a_terminal_there_are_plain_lines():
    lines = progress().splitlines()
    assert lines[0] == "getting ready  0:00 so far"
    assert lines[1] == "step 1/20  coder 0.05  book 1"
    assert lines[-1] == "step 20/20  coder 1.00  book 20  pass rate 1.00"
    assert len(lines) == 21
    assert "\x1b" not in "".join(lines)


def test_minutes_are_shown_beside_the_step():
    lines = progress(minutes=10).splitlines()
    assert lines[0] == "getting ready  0:00 of 10:00"
    assert lines[1] == "step 1, 0:00 of 10:00  coder 0.05  book 1"
    assert lines[2:] == ["step 20, 0:00 of 10:00  coder 1.00  book 20  pass rate 1.00"]
    shown = progress(minutes=10, force_terminal=True)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert re.search(r"step 3  coder writes .*0:00 of 10:00", plain)


@pytest.mark.parametrize(
    ("metric", "bad", "good", "words"),
    [
        ("coder/truncated", 0.6, 0.5, "60% of the coder's answers are cut off"),
        ("tester/frac_reward_zero_std", 0.75, 0.4, "75% of the tester's groups"),
        ("tester/copied", 1.0, 0.9, "100% of the tester's tests are copies"),
        ("coder/sampling/sampling_logp_difference/mean", 0.3, 0.05, "differ by 0.30"),
    ],
)
def test_a_sign_is_told_once(metric: str, bad: float, good: float, words: str) -> None:
    well, ill = Health(), Health()
    assert not [line for step in range(9) for line in well.news({"step": step, metric: good})]
    [line] = [line for step in range(9) for line in ill.news({"step": step, metric: bad})]
    assert line.startswith("Step 2: ")
    assert words in line


def test_one_bad_step_is_no_sign() -> None:
    health = Health()
    values = [0.2, 1.0, 0.2, None, 0.2, 0.9]
    assert not [
        line for value in values for line in health.news({"step": 1, "coder/truncated": value})
    ]


def test_the_rest_takes_as_long_as_the_last_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    display = TrainingProgress(Console(file=io.StringIO(), width=80), started=40.0)
    display.expect(4, 0)
    assert display._place() == "getting ready  1:00 so far"
    for step, seconds in ((1, 30), (2, 50)):
        display.begin("coder")
        now[0] += seconds
        display.update({"step": step}, last=False)
    display.begin("judge")
    display._heard(0.25)
    now[0] += 20
    assert display._place() == "step 3/4  judging  25%  2:40 so far, about 1:00 left"
    now[0] += 1000
    assert display._place().endswith("about 0:00 left")


def test_tokens_per_second() -> None:
    speed = Throughput({})
    usages = {"coder": Usage(completion_tokens=100, seconds=4.0), "tester": Usage()}
    first = speed.of_step(
        usages, {"coder/num_tokens": 600.0}, {"coder": 5.0, "learn_coder": 2.0, "learn_tester": 1.0}
    )
    assert first == {"speed/coder/generation": 25.0, "speed/coder/update": 300.0}
    second = speed.of_step(usages, {"coder/num_tokens": 1000.0}, {"learn_coder": 2.0})
    assert second["speed/coder/update"] == 200.0


def test_a_resumed_run_counts_from_where_it_was() -> None:
    speed = Throughput({"step": 7, "model/num_tokens": 600.0})
    found = speed.of_step({"model": Usage()}, {"model/num_tokens": 700.0}, {"learn_model": 2.0})
    assert found == {"speed/model/update": 50.0}


def test_memory() -> None:
    """It is that of this process, and never falls."""
    program = (
        "from codea1_env.training.summary import peak_memory\n"
        "before = peak_memory()['memory/process_peak']\n"
        "data = b'x' * (200 << 20); del data\n"
        "print(before, peak_memory()['memory/process_peak'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    before, after = map(float, done.stdout.split())
    assert after - before == pytest.approx(200, abs=30)
    assert "memory/gpu_peak" not in peak_memory()


REFERENCE = '''
import random
calls = 0

def odd(n: int):
    """Do something else for each n."""
    if n == 1:
        raise ValueError("one")
    if n == 2:
        while True:
            pass
    if n == 3:
        return random.random()
    if n == 4:
        return object()
    if n == 5:
        raise SystemExit
    if n == 6:
        import nothing_of_this_name
    if n == 7:
        return [bytearray(100_000)]
    return n
'''
PROBLEM = Problem("odd", 'def odd(n: int):\n    """Do something."""\n', "odd", REFERENCE.strip())


class Says:
    def __init__(self, text: str) -> None:
        self.text = text

    def act(self, observations: object) -> list[str]:
        return [self.text for _ in observations]  # type: ignore[attr-defined]


def play(sandbox: Sandbox, *tests: str, **rules: object) -> Rollouts:
    """One program, and one suite with these tests."""
    limits = Limits(call_cpu_time=0.2)
    referee = Referee(sandbox, RefereeConfig(limits=limits, **rules))  # type: ignore[arg-type]
    coder = Says(f"```python\n{PROBLEM.reference}\n```")
    tester = Says("```python\n" + "\n".join(tests) + "\n```")
    return rollout([PROBLEM], coder, tester, referee, MistakeBook(), RolloutConfig(1, 1))


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("assert odd(0) == 1", "wrong_value"),
        ("assert odd(2) == 1", "timeout"),
        ("assert odd(3) == 1", "non_deterministic"),
        ("assert odd(6) == 1", "not_installed"),
        ("assert odd('a') == 1", "outside_the_signature"),
        ("assert odd(0) < 1", "unreadable"),
        ("assert odd(0) == 0", None),
    ],
)
def test_a_test_is_counted_under_its_reason(sandbox, test, reason) -> None:
    metrics = invalid_metrics(play(sandbox, test).episodes)
    counted = {f"tester/invalid/{reason}"} if reason else set()
    assert {name for name, value in metrics.items() if value} == counted
    assert list(metrics) == [f"tester/invalid/{slug(each)}" for each in InvalidReason]


def test_reasons_of_the_game(sandbox: Sandbox) -> None:
    many = [f"assert odd({n}) == {n}" for n in range(10, 15)]
    found = invalid_metrics(play(sandbox, *many, max_suite_tests=4).episodes)
    assert found["tester/invalid/too_many"] == 1
    slow = [f"assert odd(n={n}) == 1" for n in (2, 5)]
    # What is not made after them is no invalid test.
    found = invalid_metrics(play(sandbox, *slow, "assert odd(n=8) == 8").episodes)
    assert sum(found.values()) == 2
    assert found["tester/invalid/timeout"] == found["tester/invalid/limit"] == 1


def test_together_they_are_all_invalid_tests(sandbox: Sandbox) -> None:
    tests = ["assert odd(0) == 1", "assert odd(n=0) == 2", "assert odd(1) == 1", "assert odd('a') == 0", "assert odd(9) == 9", "assert odd(4) == 1"]  # fmt: skip
    for rule in ("correct", "drop"):
        episodes = play(sandbox, *tests, wrong_oracle=rule).episodes
        metrics = invalid_metrics(episodes)
        assert sum(value or 0 for value in metrics.values()) == 5
        assert episodes[0].verdict.suites[0].outcome.invalid == 5
        assert metrics["tester/invalid/wrong_value"] == 2
