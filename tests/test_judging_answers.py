from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from codea1_env import MistakeBook, Referee, RefereeConfig, Sandbox
from codea1_env.agents import FixedAgent, ReferenceCoder
from codea1_env.judging.spread import JudgingProcesses, _homes
from codea1_env.judging.verdicts import Judged, by_problem
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problems import Problem, load_problems
from codea1_env.responses import Program
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.sandbox import InfraError, Limits, SandboxError

PROBLEMS = load_problems("starter", "train")[:5]
GOLDEN = ["\n".join(problem.tests) for problem in PROBLEMS]
HOSTILE = ["", "nonsense(", "assert f(\0) == 1", "assert is_even(2) == 3\n" * 9, "[" * 10_000]
SLOW = Problem("slow", "def f(n):", "f", "def f(n):\n    return n")


def answers(problems=PROBLEMS, hostile=HOSTILE):
    """Two programs for each problem, the reference and one that is wrong; its own tests and hostile ones."""
    asked = [problem for problem in problems for _ in range(2)]
    programs = [
        Program(code)
        for problem in problems
        for code in (problem.reference, f"def {problem.entry_point}(*args):\n    return args")
    ]
    attacks = [text for problem in asked for text in ("\n".join(problem.tests), *hostile)]
    history = {problem.task_id: problem.tests[:2] for problem in problems[::2]}
    return asked, programs, attacks, history


def timeless(judged: list[Judged]) -> list[Judged]:
    """Without the CPU time of a program, which is not the same twice."""
    return [
        (suites, dataclasses.replace(verdict, load=dataclasses.replace(verdict.load, cpu_time=0.0)))
        for suites, verdict in judged
    ]


@pytest.fixture(scope="module")
def judges(sandbox: Sandbox) -> Iterator[JudgingProcesses]:
    with JudgingProcesses(sandbox, processes=2) as made:
        yield made


def pids(judges: JudgingProcesses) -> list[int]:
    return [place.process.pid for place in judges._places if place.process is not None]


def ended(pid: int, seconds: float = 20.0) -> bool:
    """Whether a process ends in time. One that nobody has waited for has ended, too."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_verdicts_and_counters_are_those_of_one_process(sandbox, judges):
    referee = Referee(sandbox)
    expected = referee.judge_answers(*answers())
    before = dataclasses.replace(judges.counters)
    found = judges.judge_answers(*answers())
    assert repr(timeless(found)) == repr(timeless(expected))
    for name in ("programs", "tests", "timeouts", "errors"):
        done = getattr(judges.counters, name) - getattr(before, name)
        assert done == getattr(referee.counters, name)
    assert referee.counters.tests > 100


def test_one_by_one_as_together(judges):
    asked, programs, attacks, history = answers()
    share = len(attacks) // len(programs)
    alone = [
        judged
        for i in range(len(programs))
        for judged in judges.judge_answers(
            asked[i : i + 1], programs[i : i + 1], attacks[i * share : (i + 1) * share], history
        )
    ]
    assert timeless(alone) == timeless(judges.judge_answers(asked, programs, attacks, history))
    assert judges.judge_answers([], [], [], {}) == []


def test_rollouts_are_the_same(sandbox, judges):
    class Golden(FixedAgent):
        def act(self, observations):
            tests = {problem.entry_point: problem.tests for problem in PROBLEMS}
            return ["\n".join(tests[seen["entry_point"]]) for seen in observations]

    played = [
        rollout(PROBLEMS, ReferenceCoder(PROBLEMS), Golden(), each, MistakeBook(), config)
        for each in (Referee(sandbox), judges)
        for config in (RolloutConfig(2, 2), RolloutConfig(2, 2, oracle="coder", overlap=2))
    ]
    for one, other in zip(played[:2], played[2:], strict=True):
        assert one.coder_experience() == other.coder_experience()
        assert one.tester_experience("all") == other.tester_experience("all")
        assert one.sandbox.tests == other.sandbox.tests > 0


def test_settings_are_kept():
    config = RefereeConfig(
        RewardConfig(strict_paper=True), wrong_oracle="drop", limits=Limits(call_cpu_time=0.2)
    )
    asked = [SLOW], [Program("def f(n):\n    while n: pass")], ["assert f(1) == 1"], {}
    with (
        Sandbox(packages=()) as sandbox,
        JudgingProcesses(sandbox, config, processes=1) as judges,
    ):
        [(_, verdict)] = judges.judge_answers(*asked)
        assert verdict.suites[0].tests[0].outcome.value == "timeout"
        uses = Program("import numpy\ndef f(n): return n")
        [(_, verdict)] = judges.judge_answers(asked[0], [uses], *asked[2:])
        assert not verdict.code_executes
        assert judges.counters.timeouts == 1


def test_errors_of_the_data_come_out(judges):
    broken = Problem("broken", "def f(n): ...", "f", "raise ValueError")
    program = Program("def f(n): return n")
    asked = [PROBLEMS[0], broken, SLOW], [program] * 3, ["assert f(1) == 1"] * 3, {}
    with pytest.raises(BrokenReferenceError, match="problem 'broken' to run"):
        judges.judge_answers(*asked)
    assert len(judges.judge_answers(*answers())) == 2 * len(PROBLEMS)


def test_a_process_that_was_killed_is_replaced(sandbox, judges):
    expected = timeless(judges.judge_answers(*answers()))
    before = pids(judges)
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    assert timeless(judges.judge_answers(*answers())) == expected
    assert len(before) == 2
    assert not set(before) & set(pids(judges))


def test_killed_at_work_it_does_it_again(sandbox):
    sleeps = Program("import time\ndef f(n):\n    time.sleep(1)\n    return n")
    asked = [SLOW], [sleeps], ["assert f(1) == 1"], {}
    with JudgingProcesses(sandbox, processes=1) as judges:
        judges.judge_answers(*answers())

        def kill(times: int) -> None:
            done: set[int] = set()
            while len(done) < times:
                for pid in set(pids(judges)) - done:
                    time.sleep(0.3)
                    os.kill(pid, signal.SIGKILL)
                    done.add(pid)
                time.sleep(0.05)

        killer = threading.Thread(target=kill, args=(2,))
        killer.start()
        [(_, verdict)] = judges.judge_answers(*asked)
        killer.join()
        assert verdict.code_reward == 1.0
        assert verdict.suites[0].tests[0].status == "kept"

        killer = threading.Thread(target=kill, args=(3,))
        killer.start()
        with pytest.raises(InfraError, match="ended 3 times"):
            judges.judge_answers(*asked)
        killer.join()
        assert judges.judge_answers(*asked)[0][1].code_reward == 1.0


def test_an_interrupt_leaves_judges_that_work(judges):
    sleeps = Program("import time\ndef f(n):\n    time.sleep(0.5)\n    return n")
    slow = [dataclasses.replace(SLOW, task_id=f"slow/{i}") for i in range(20)]
    asked = slow, [sleeps] * 20, ["assert f(1) == 1"] * 20, {}
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        judges.judge_answers(*asked)
    timer.join()
    assert len(judges.judge_answers(*answers())) == 2 * len(PROBLEMS)


def test_closing_ends_all_processes(sandbox):
    judges = JudgingProcesses(sandbox, processes=2)
    judges.close()  # nothing has begun
    with JudgingProcesses(sandbox, processes=2) as judges:
        assert pids(judges) == []
        judges.judge_answers(*answers())
        started = pids(judges)
        assert len(started) == 2
    assert all(ended(pid, 0.1) for pid in started)
    with pytest.raises(SandboxError, match=r"close\(\) was called"):
        judges.judge_answers(*answers())


_PARENT = """
import time
from codea1_env.sandbox import Sandbox
from test_judging_answers import JudgingProcesses, answers, pids
sandbox = Sandbox()
judges = JudgingProcesses(sandbox, processes=2)
judges.judge_answers(*answers())
print(*pids(judges), flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_they_end_with_their_parent(number):
    """Also if it had no time to say so. The parent is a script without `if __name__ == "__main__"`."""
    parent = subprocess.Popen(
        [sys.executable, "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=Path(__file__).parent,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        text=True,
    )
    with parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(_PARENT)
        parent.stdin.close()
        started = [int(pid) for pid in parent.stdout.readline().split()]
        assert len(started) == 2
        parent.send_signal(number)
        parent.wait(20)
    assert all(ended(pid) for pid in started)


def test_shares_are_equal_and_stay(judges):
    names = [f"problem/{i}" for i in range(64)]
    homes = _homes(names, 2)
    assert homes.count(0) == homes.count(1) == 32
    assert _homes(names, 2) == homes
    alone = [_homes([name], 2)[0] for name in names]
    assert sum(one == other for one, other in zip(homes, alone, strict=True)) > 48


def test_answers_are_divided_by_problem():
    asked, programs, attacks, history = answers()
    parts = by_problem(asked, programs, attacks, history)
    assert [part.problem for part in parts] == PROBLEMS
    assert [program for part in parts for program in part.programs] == programs
    assert [text for part in parts for text in part.attacks] == attacks
    assert [bool(part.history) for part in parts] == [True, False, True, False, True]


@pytest.mark.parametrize("processes", [0, -1, True, 1.5, None])
def test_a_number_of_processes_is_expected(sandbox, processes):
    with pytest.raises(ValueError, match="Expect processes to be a positive integer"):
        JudgingProcesses(sandbox, processes=processes)
