"""What does judging as Ray tasks cost beside this machine's own sandbox, and how far does it reach?

    python benchmarks/ray_judging.py
    python benchmarks/ray_judging.py --pairs 3 --reaped 0

Both sides judge the same questions (8 programs x 8 suites x 8 asserts each) with two processes: the sandbox with two workers,
and a Ray cluster of this machine with two processors. A pair is one batch on each side, in alternating order; references have
loaded before, and all tests are new. Messages are those of one step of the paper (256 problems). What follows for
64 nodes is calculated. Last, worker processes of Ray that end after one task: how many processes of sandboxes stay?
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sandbox_speed.jobs import Question, questions

from codea1_env.judging.verdicts import AttackAnswers
from codea1_env.problems import load_problems
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.responses import Program
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.support.machine import this_machine
from codea1_env.training.ray.cluster import connect
from codea1_env.training.ray.judging import RayReferee, Rules, judged, read

_WORKERS = 2
_STEP = 256
"""Problems of a step of the paper."""
_NODES, _CORES = 64, 32
_RULES = RefereeConfig()


class Pair(NamedTuple):
    """Seconds for the same batch."""

    here: float
    ray: float

    @property
    def ratio(self) -> float:
        """How many times as fast Ray is."""
        return self.here / self.ray


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--questions", type=int, default=24)
    parser.add_argument("--reaped", type=int, default=100)
    parser.add_argument("--address", default="local", help="Of a cluster with two processors.")
    given = parser.parse_args()
    ray = _cluster(given.address)
    with Sandbox(_WORKERS) as sandbox:
        made = questions(
            load_problems("starter"), sandbox, np.random.default_rng(0), given.questions
        )
        referees = [Referee(sandbox, _RULES), RayReferee(ray, sandbox, _RULES, print)]
        for number in range(4):  # both processes of Ray meet every reference
            for referee in referees:
                referee.judge_parts(_parts(made, f"warm {number}"))
        pairs = [_pair(referees, _parts(made, f"{n}"), turn=n % 2) for n in range(given.pairs)]
    print(f"{this_machine()}; {len(made)} questions in a batch, n = {len(pairs)} pairs")
    for pair in pairs:
        print(f"here {pair.here:.2f} s, Ray {pair.ray:.2f} s: {pair.ratio:.2f} times as fast")
    ratios = sorted(pair.ratio for pair in pairs)
    print(f"median {statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}] (aim: 0.9)")
    task = _WORKERS * statistics.median(pair.ray for pair in pairs) / len(made)
    _messages(ray, _parts(made, "messages"), task)
    if given.reaped:
        _reaped(ray, _parts(made, "reaped")[0], given.reaped)


def _cluster(address: str) -> Any:
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    ray = connect(address, _WORKERS - len(os.sched_getaffinity(0)))
    if (there := ray.cluster_resources().get("CPU", 0)) != _WORKERS:
        sys.exit(f"Expect a cluster with {_WORKERS} processors, actually: {there:g}.")
    return ray


def _parts(made: Sequence[Question], name: str) -> list[AttackAnswers]:
    """Make what the questions ask, under a name of which nothing is remembered."""
    return [
        AttackAnswers(
            replace(each.problem, task_id=f"{each.problem.task_id} {name}"),
            [Program(code) for code in each.programs],
            ["```python\n{}\n```".format("\n".join(s)) for suites in each.suites for s in suites],
            (),
        )
        for each in made
    ]


def _pair(referees: Sequence[Referee], parts: Sequence[AttackAnswers], turn: int) -> Pair:
    seconds, rewards = [0.0, 0.0], []
    for place in (turn, 1 - turn):
        started = time.perf_counter()
        found = referees[place].judge_parts(parts)
        seconds[place] = time.perf_counter() - started
        rewards.append([(verdict.code_reward, verdict.failed) for _, verdict in found])
    if rewards[0] != rewards[1]:
        sys.exit("Expect the same verdicts of both, actually: they differ.")
    return Pair(*seconds)


def _messages(ray: Any, parts: Sequence[AttackAnswers], seconds: float) -> None:
    """Send the questions and answers of a step, without judging, and calculate from it."""
    answers: list[bytes] = ray.get([ray.remote(judged).remote(_rules(), each) for each in parts])
    sizes = [len(ray.cloudpickle.dumps(each)) for each in parts]
    back = [len(each) for each in answers]

    def answer(rules: Rules, asked: AttackAnswers, size: int) -> bytes:
        return os.urandom(size)

    task = ray.remote(answer).options(scheduling_strategy="SPREAD")
    ray.get([task.remote(_rules(), *each) for each in zip(parts, back, strict=True)])
    rounds = _STEP // len(parts)
    started, cpu = time.perf_counter(), time.process_time()
    asked = [
        task.remote(_rules(), *each)
        for _ in range(rounds)
        for each in zip(parts, back, strict=True)
    ]
    for number, reference in enumerate(asked):
        ray.get(reference)
        read(answers[number % len(parts)])
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    each = 1000 / len(asked)
    print(
        f"a problem's messages: {statistics.mean(sizes) / 1000:.0f} kB there, {statistics.mean(back) / 1000:.0f} kB back, "
        f"{wall * each:.1f} ms, of which the driver's CPU {cpu * each:.1f} ms (n = {len(asked)})"
    )
    for nodes in (1, _NODES):
        at_once = min(nodes * _CORES, _STEP)
        whole = -(-_STEP // at_once) * seconds
        print(
            f"calculated, a step of {_STEP} problems on {nodes} nodes of {_CORES} cores: {whole:.1f} s judging "
            f"({seconds:.2f} s a task, {at_once} at once) + {_STEP * wall * each / 1000:.1f} s messages"
        )


def _rules() -> Rules:
    return Rules(_RULES, Limits(), None, ("numpy",), os.getcwd())


def _reaped(ray: Any, part: AttackAnswers, number: int) -> None:
    """End worker processes after a task each; count what is left of their sandboxes."""

    def judge_and_tell(rules: Rules, asked: AttackAnswers) -> list[int]:
        judged(rules, asked)
        return _family(os.getpid())

    task = ray.remote(max_calls=1)(judge_and_tell)
    small = part._replace(programs=part.programs[:1], attacks=part.attacks[:1])
    found = ray.get([task.remote(_rules(), small) for _ in range(number)])
    pids = {pid for family in found for pid in family}
    ends = time.monotonic() + 30
    while pids & set(_parents()) and time.monotonic() < ends:
        time.sleep(0.1)
    left = len(pids & set(_parents()))
    print(f"{number} ended workers had {len(pids)} processes, {left} are left")


def _parents() -> dict[int, int]:
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = Path("/proc", name, "stat").read_bytes()
        except OSError:  # it has just ended
            continue
        found[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    return found


def _family(pid: int) -> list[int]:
    family, everybody = {pid}, _parents()
    while new := {each for each, parent in everybody.items() if parent in family} - family:
        family |= new
    return sorted(family)


if __name__ == "__main__":
    main()
