"""The parts of the loop that need no sandbox."""

from __future__ import annotations

import io
import re
import time

from rich.console import Console

from codea1_env.agents.llm.completions import report
from codea1_env.problems import Problem
from codea1_env.training.metrics import mean
from codea1_env.training.problems_of_run import problems_of_step
from codea1_env.training.progress import TrainingProgress
from codea1_env.training.summary import start_and_end

PROBLEMS = [Problem(f"p{i}", f"def f{i}():", f"f{i}", f"def f{i}(): return {i}") for i in range(10)]


def ids(seed, step, number=3):
    return [problem.task_id for problem in problems_of_step(PROBLEMS, seed, step, number)]


def test_an_epoch_visits_problems_once():
    epoch = [name for step in range(3) for name in ids(0, step)]
    assert len(epoch) == len(set(epoch)) == 9
    following = [name for step in range(3, 6) for name in ids(0, step)]
    assert len(set(following)) == 9
    assert following != epoch


def test_problems_follow_from_seed_and_step():
    assert ids(4, 17) == ids(4, 17)
    assert [ids(4, step) for step in range(9)] != [ids(5, step) for step in range(9)]


def test_all_problems_are_visited_in_the_long_run():
    assert len({name for step in range(60) for name in ids(0, step)}) == 10


def rows():
    yield {"step": 0, "held_out/pass_rate": 0.25}
    for step in range(1, 21):
        row = {
            "step": step,
            "reward/coder/mean": step / 20,
            "reward/tester/mean": None,
            "book/size": step,
        }
        yield row | ({"held_out/pass_rate": step / 20} if step % 10 == 0 else {})


def test_start_and_end():
    start, end = start_and_end(list(rows()))
    assert (start["held_out/pass_rate"], end["held_out/pass_rate"]) == (0.25, 1.0)
    assert start["reward/coder/mean"] == mean([1 / 20, 2 / 20])
    assert end["reward/coder/mean"] == mean([19 / 20, 1.0])
    assert (start["reward/tester/mean"], end["book/size"]) == (None, 20)


def progress(**console):
    out = io.StringIO()
    with TrainingProgress(Console(file=out, width=80, **console)) as display:
        display.expect(steps=20, done=0, step={"coder": 3.0}, measurements=1, each=5.0)
        for row in list(rows())[1:]:
            with display.phase("coder"):
                report(0.5)
            display.update(row)
    return out.getvalue()


def test_without_a_terminal_there_are_plain_lines():
    lines = progress().splitlines()
    assert lines[0] == "getting ready  0:00 so far"
    assert lines[1] == "step 1/20  coder 0.05  book 1"
    assert lines[-1] == "step 20/20  coder 1.00  book 20  pass rate 1.00"
    assert len(lines) == 21
    assert "\x1b" not in "".join(lines)


def test_lines_about_phases_are_rare(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    out = io.StringIO()
    with TrainingProgress(Console(file=out, width=80)) as display:
        display.expect(steps=2, done=0, step={"coder": 30.0, "judge": 1.0}, measurements=0, each=0)
        with display.phase("coder"):
            for tenth in range(1, 11):
                now[0] += 3
                report(tenth / 10)
        display.begin("judge")
    assert out.getvalue().splitlines() == [
        "getting ready  0:00 so far",
        "step 1/2 coder writes  0:12 so far, about 0:50 left",
        "step 1/2 coder writes  0:24 so far, about 0:38 left",
    ]


def test_in_a_terminal_there_is_a_bar():
    shown = progress(force_terminal=True)
    assert "20/20" in shown
    assert "pass rate 1.00" in shown
    assert "coder writes" in shown
    assert "left" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert max(map(len, re.split(r"[\r\n]", plain))) <= 80
