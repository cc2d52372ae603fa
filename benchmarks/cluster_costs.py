"""What jobs and judged answers cost the controller of a cluster, and the nodes: the figures that `cluster_simulation.py` needs.

    python benchmarks/cluster_costs.py --jobs 2000 --questions 16

CPU time, which a busy machine changes less than it changes time: of the controlling process for each job and for each message
(its nodes answer at once what a sandbox has answered before), and of all else for each job and for each problem of 8 programs,
8 suites and 8 tests. Needs the extra ray.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from cluster import jobs_of
from sandbox_speed.jobs import Question, questions
from sandbox_speed.processes import descendants

from codea1_env import load_problems
from codea1_env.cluster import dispatcher
from codea1_env.cluster.requests import Request, packed, unpacked
from codea1_env.judging.spread import answer
from codea1_env.judging.verdicts import AttackAnswers
from codea1_env.referee import Referee
from codea1_env.responses import Program
from codea1_env.sandbox import Job, Sandbox


class Echo:
    """An actor that answers at once.

    Args:
        reply: What each request is answered with.
    """

    def __init__(self, reply: bytes) -> None:
        self._reply = reply

    def run(self, requests: bytes) -> bytes:
        """As `SandboxActor.run`."""
        return packed([self._reply for _ in unpacked(requests)])

    def judge(self, part: bytes) -> bytes:
        """As `JudgeActor.judge`."""
        return self._reply

    def alive(self) -> bool:
        """As those of the actors that it stands for."""
        return True

    def close(self) -> None:
        """There is nothing to end."""


def others() -> float:
    """Seconds of CPU time of all processes that this one has started."""
    return sum(each.cpu_time for each in descendants(os.getpid()))


def spent(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds of CPU time that work takes: of this process, and of those that it has started."""
    here, there = time.process_time(), others()
    work()
    return time.process_time() - here, others() - there


def costs_of_jobs(ray: Any, jobs: list[Job]) -> None:
    """Print what a job costs here, by the size of a batch, and on a node."""
    with Sandbox(1) as sandbox:
        sandbox.run_many(jobs[:100])
        _, node = spent(lambda: sandbox.run_many(jobs[:1000]))
        reply = packed([sandbox.submit(jobs[0]).result()])
    request = packed([Request("submit", (jobs[0],))])
    print(
        f"job: {1e3 * node / len(jobs[:1000]):.2f} ms in its sandbox; {len(request)} bytes, its answer {len(reply)}"
    )
    for size in (64, 16, 4):
        dispatcher.BATCH = size
        made = dispatcher.Dispatcher(
            ray,
            lambda node: ray.remote(Echo).options(num_cpus=0, max_concurrency=3).remote(reply),
            leave_out=False,
        )

        def ask(count: int, made: dispatcher.Dispatcher = made) -> None:
            for future in [made.submit(Request("submit", (job,))) for job in jobs[:count]]:
                future.result()

        ask(300)
        here, _ = spent(lambda: ask(len(jobs)))
        print(f"controller, batches of {size}: {1e6 * here / len(jobs):.0f} us a job", flush=True)
        made.close()


def answers_of(question: Question) -> AttackAnswers:
    texts = [
        "```python\n{}\n```".format("\n".join(suite))
        for suites in question.suites
        for suite in suites
    ]
    return AttackAnswers(question.problem, list(map(Program, question.programs)), texts, ())


def costs_of_judging(ray: Any, count: int) -> None:
    """Print what a problem costs whoever judges it, and who has it judged elsewhere."""
    with Sandbox(1) as sandbox:
        made = questions(load_problems("starter"), sandbox, np.random.default_rng(0), count + 1)
        parts = [answers_of(question) for question in made]
        referee = Referee(sandbox)
        replies = [answer(referee, parts[0])]
        here, there = spent(lambda: replies.extend(answer(referee, part) for part in parts[1:]))
    number = len(parts) - 1
    data, reply = packed([parts[1]]), packed([replies[1]])
    print(
        f"problem, judged in one process: {1e3 * here / number:.1f} ms of it and {1e3 * there / number:.1f} ms of its "
        f"sandbox; {len(data)} bytes, its answer {len(reply)}"
    )
    actor = ray.remote(Echo).options(num_cpus=0).remote(reply)
    ray.get(actor.alive.remote())

    def ask() -> None:
        for part in parts[1:]:
            reference = actor.judge.remote(packed([part]))
            ray.wait([reference], timeout=5.0)
            unpacked(ray.get(reference))

    ask()
    here, _ = spent(ask)
    print(f"problem, judged elsewhere: {1e3 * here / number:.2f} ms of the controller")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--questions", type=int, default=16)
    arguments = parser.parse_args()
    os.environ |= {"RAY_AUTH_MODE": "disabled", "RAY_worker_niceness": "0"}
    import ray

    print(
        f"{os.cpu_count()} cores, {platform.platform()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}"
    )
    # By value: an actor need not have this folder.
    ray.cloudpickle.register_pickle_by_value(__import__("__main__"))
    ray.init(
        "local", num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR"
    )
    try:
        costs_of_jobs(ray, jobs_of(arguments.jobs))
        costs_of_judging(ray, arguments.questions)
    finally:
        ray.shutdown()


if __name__ == "__main__":
    main()
