"""Judging on a real Ray cluster is that of one process, whatever programs do, and whichever process or node is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ray")
sys.path.insert(0, str(Path(__file__).parents[1] / "sandbox"))

import ray
from clusters import TABLES, contents, ports, run, there, workers_of
from processes import descendants, parents, until

from codea1_env.cli.app import run as codea1
from codea1_env.judging.verdicts import AttackAnswers
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig, Round, Verdict
from codea1_env.responses import Program
from codea1_env.rewards import RewardConfig
from codea1_env.sandbox import InfraError, Limits, Outcome, Sandbox
from codea1_env.training.ray import judging
from codea1_env.training.ray.judging import RayReferee, Rules, judged, read

pytestmark = pytest.mark.slow
INC = Problem("inc", "def inc(n: int) -> int:", "inc", "def inc(n):\n    return n + 1")
TWICE = Problem("twice", "def twice(n: int) -> int:", "twice", "def twice(n):\n    return 2 * n")
TESTS = ["assert inc(1) == 2", "assert inc(2) == 4", "assert inc('') == 1"]


def without_times(verdicts: Sequence[Verdict]) -> list[Verdict]:
    return [replace(each, load=replace(each.load, cpu_time=0.0)) for each in verdicts]


def outcomes(verdict: Verdict) -> list[Outcome | None]:
    return [test.outcome for suite in verdict.suites for test in suite.tests]


def test_tables_learn_what_they_learn_here(cluster: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    """Also where a node is lost while it judges."""
    run(tmp_path / "here", TABLES, sandbox)
    node = cluster.add_node(num_cpus=2, node_ip_address="127.0.0.4", **ports())
    lost: list[set[int]] = []

    def lose_the_node() -> None:
        while not (judging := set().union(*map(descendants, workers_of(node)))):
            time.sleep(0.1)
        lost.append(judging)
        cluster.remove_node(node, allow_graceful=False)

    thread = threading.Thread(target=lose_the_node, daemon=True)
    thread.start()
    shown = run(tmp_path / "there", TABLES, sandbox, **there(cluster))
    thread.join(timeout=100)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert shown.count("Node 127.0.0.4 is gone") == 1
    [sandboxes] = lost
    assert until(lambda: not sandboxes & parents().keys())


HOSTILE = {
    "def inc(n):\n    return [0] * 10**11": Outcome.MEMORY,
    "def inc(n):\n    while True: pass": Outcome.TIMEOUT,
    "while True: pass": None,
    "def inc(n):\n    raise SystemExit": Outcome.EXITED,
    "import os, signal\ndef inc(n):\n    os.kill(os.getppid(), signal.SIGKILL)": Outcome.ERROR,
}
"""Programs, and what their first test ends with; None if they do not even load."""


def test_hostile_programs_end_as_they_do_here(cluster: Any, sandbox: Sandbox) -> None:
    problems = [replace(INC, task_id=f"inc {number}") for number in range(len(HOSTILE))]
    rounds = [
        *(Round(each, code, [TESTS]) for each, code in zip(problems, HOSTILE, strict=True)),
        Round(TWICE, "def twice(n):\n    return 4", [["assert twice(2) == 4"], []]),
        *(Round(each, INC.reference, [TESTS]) for each in problems),  # beside a hostile one
    ]
    found = RayReferee(ray, sandbox, RefereeConfig(), print).judge(rounds)
    assert without_times(found) == without_times(Referee(sandbox).judge(rounds))
    for verdict, outcome in zip(found, HOSTILE.values(), strict=False):
        assert verdict.code_executes == (outcome is not None), verdict
        assert outcome in (None, outcomes(verdict)[0]), verdict
    assert outcomes(found[len(HOSTILE)]) == [Outcome.PASS]
    assert found[-1].code_reward == 1.0


def test_an_error_in_the_data_is_told_as_it_is_here(cluster: Any, sandbox: Sandbox) -> None:
    broken = replace(INC, reference="raise KeyError")
    said = []
    for referee in (RayReferee(ray, sandbox, RefereeConfig(), print), Referee(sandbox)):
        with pytest.raises(
            ValueError, match="Expect the reference of problem 'inc' to run"
        ) as told:
            referee.judge([Round(broken, "", [TESTS])])
        said.append((type(told.value), str(told.value)))
    assert said[0] == said[1]


KILLS = """
import os, signal
def pay(outcome, config):
    if outcome.invalid:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0.5, 0.25
"""
"""A reward that ends the process which judges a suite with an invalid test."""


def test_what_is_lost_each_time_pays_nobody(
    cluster: Any, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "_RETRIES", 1)
    (tmp_path / "pay.py").write_text(KILLS)
    rules = RefereeConfig(RewardConfig(function=f"{tmp_path}/pay.py:pay"))
    referee = RayReferee(ray, sandbox, rules, print)
    lost = AttackAnswers(INC, [Program(INC.reference)], ["assert inc('') == 1"] * 2, ())
    kept = AttackAnswers(TWICE, [Program(TWICE.reference)], ["assert twice(1) == 2"] * 2, ())
    (suites, verdict), (_, judged_one) = referee.judge_parts([lost, kept])
    assert [suite.rewards.test for suite in judged_one.suites] == [0.25, 0.25]
    assert verdict.load.outcome is Outcome.INFRA_ERROR
    assert [suite.rewards.test for suite in verdict.suites] == [None] * len(suites) == [None] * 2
    assert verdict.code_reward is None
    assert (verdict.failed, verdict.forgettable) == ((), ())
    assert referee.counters.unjudged == 2
    with pytest.raises(InfraError, match="No problem could be judged on the cluster"):
        referee.judge([Round(INC, INC.reference, [TESTS])])


def test_a_worker_that_ends_takes_its_sandbox_along(cluster: Any) -> None:
    path = [*sys.path]

    def judge_and_tell(rules: Rules, rounds: list[Round]) -> tuple[int, set[int]]:
        sys.path[:] = path
        import processes

        [verdict], _ = read(judged(rules, rounds))
        assert verdict.code_reward == 1.0
        return os.getpid(), processes.descendants(os.getpid())

    rules = Rules(RefereeConfig(), Limits(), None, ("numpy",), os.getcwd())
    rounds = [Round(INC, INC.reference, [TESTS])]
    # Ray ends such a worker after its first task, as it ends idle ones.
    once = ray.remote(max_calls=1)(judge_and_tell)
    ended = [ray.get(once.remote(rules, rounds)) for _ in range(2)]
    pid, killed = ray.get(ray.remote(judge_and_tell).remote(rules, rounds))
    os.kill(pid, signal.SIGKILL)
    everything = killed.union(*(sandboxes for _, sandboxes in ended))
    assert len({worker for worker, _ in ended}) == 2
    assert len(everything) >= 2 * 3
    assert until(lambda: not everything & parents().keys())


WITHOUT_RAY = """
import sys
sys.modules["ray"] = None
from codea1_env.cli.app import run
sys.exit(run(sys.argv[1:]))
"""


def test_without_ray_the_extra_is_named(tmp_path: Path) -> None:
    command = ["train", "--quick", "--engine", "ray", "--output-dir", str(tmp_path / "run")]
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RAY, *command], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 2
    assert "pip install 'codea1-env[ray]'" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_two_runs_in_one_folder(
    finished: tuple[Path, Any, str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(finished[0])
    command = ["train", "--quick", "--engine", "ray", "--output-dir", str(finished[0])]
    assert codea1(command) == 2
    assert "to be a new folder, actually: it holds a run" in capsys.readouterr().err
    assert contents(finished[0]) == before
