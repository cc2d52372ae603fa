"""What jobs and judged answers cost the controller of a cluster, and the nodes: the figures that `cluster_simulation.py` needs.

    python benchmarks/cluster_costs.py --jobs 2000 --questions 16
    python benchmarks/cluster_costs.py --check

CPU time, which a busy machine changes less than it changes time: of the controlling process for each job and for each message
(its nodes answer at once what a sandbox has answered before), and of all else for each job and for each problem of 8 programs,
8 suites and 8 tests. Needs the extra ray.

With --check the simulation beside the real dispatcher instead, whose nodes only wait: so that there may be more than this
machine has. They are actors that sleep as long as jobs would take, with a job's time drawn as in `cluster_simulation.py`; how many
jobs they get, the real dispatcher decides. Then nodes that answer at once: what a job costs the controller where it is the
limit, and how many go in one message.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import cluster_simulation
import numpy as np
from cluster import jobs_of, ray_here
from cluster_simulation import Costs, run_jobs, times_of
from sandbox_speed.jobs import Question, questions
from sandbox_speed.processes import descendants

from codea1_env import load_problems
from codea1_env.cluster import dispatcher
from codea1_env.cluster.actors import Request, packed, unpacked
from codea1_env.cluster.nodes import Node
from codea1_env.judging.spread import answer
from codea1_env.judging.verdicts import AttackAnswers
from codea1_env.referee import Referee
from codea1_env.responses import Program
from codea1_env.sandbox import Job, Sandbox
from codea1_env.support.machine import this_machine

WORKERS = 8


class Echo:
    """An actor that gives the same answer to everything, as a node whose programs only take time.

    Args:
        reply: What each request is answered with.
        seconds: Of a job; 0 answers at once.
        seed: Of the times.
    """

    def __init__(self, reply: bytes, seconds: float = 0.0, seed: int = 0) -> None:
        self._reply = reply
        self._draw = times_of(seconds, seed) if seconds else lambda: 0.0
        self._free_at = [0.0] * WORKERS
        self._lock = threading.Lock()
        self._messages = 0

    def run(self, requests: bytes) -> bytes:
        """As `SandboxActor.run`."""
        number = len(unpacked(requests))
        done = now = time.monotonic()
        with self._lock:
            self._messages += 1
            for _ in range(number):
                worker = min(range(WORKERS), key=self._free_at.__getitem__)
                self._free_at[worker] = max(now, self._free_at[worker]) + self._draw()
                done = max(done, self._free_at[worker])
        time.sleep(max(0.0, done - time.monotonic()))
        return packed([self._reply] * number)

    def messages(self) -> int:
        """How many there were."""
        return self._messages

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


def real(ray: Any, nodes: int, seconds: float, jobs: int) -> tuple[float, float, float]:
    """Jobs a second, jobs in a message, and microseconds of CPU time of this process for a job."""
    there = [Node(f"{number}", f"node {number}", WORKERS) for number in range(nodes)]
    dispatcher.nodes = lambda ray: there  # type: ignore[attr-defined] # they are one
    actors: list[Any] = []
    reply = packed([1])

    def start(node: Node) -> Any:
        options = {"num_cpus": 0, "max_concurrency": dispatcher.AT_ONCE}
        actor = ray.remote(Echo).options(**options).remote(reply, seconds, int(node.id))
        ray.get(actor.alive.remote())
        actors.append(actor)
        return actor

    made = dispatcher.Dispatcher(ray, start, leave_out=False)
    request = Request("submit", (Job("def f(n):\n    return n\n" * 10, ["assert f(1) == 1"] * 10),))
    began, cpu = time.monotonic(), time.process_time()
    for future in [made.submit(request) for _ in range(jobs)]:
        future.result()
    took, cpu = time.monotonic() - began, time.process_time() - cpu
    messages = sum(ray.get([actor.messages.remote() for actor in actors]))
    made.close()
    return jobs / took, jobs / messages, 1e6 * cpu / jobs


def check(ray: Any) -> None:
    """Print what is simulated beside what the real dispatcher does."""
    for nodes in (1, 2, 4):
        jobs, seconds = 400 * nodes, 0.2
        rate, batch, _ = real(ray, nodes, seconds, jobs)
        run = run_jobs(replace(Costs(), job=seconds), nodes, WORKERS, jobs)
        print(
            f"{nodes} nodes: {rate:.1f} jobs/s, simulated {run.rate:.1f}; {batch:.1f} jobs in a message, simulated "
            f"{run.batch:.1f}; load {os.getloadavg()[0]:.0f}",
            flush=True,
        )
    for nodes in (1, 8):
        rate, batch, cpu = real(ray, nodes, 0.0, 4000)
        run = run_jobs(replace(Costs(), job=1e-6), nodes, WORKERS, 4000)
        print(
            f"{nodes} nodes that answer at once: {batch:.1f} jobs in a message, simulated {run.batch:.1f}; controller "
            f"{cpu:.0f} us a job, simulated {1e6 * run.controller / run.rate:.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--questions", type=int, default=16)
    parser.add_argument("--check", action="store_true", help="the simulation beside the dispatcher")
    arguments = parser.parse_args()
    print(this_machine())
    with ray_here(sys.modules["__main__"], cluster_simulation) as ray:
        if arguments.check:
            check(ray)
        else:
            costs_of_jobs(ray, jobs_of(arguments.jobs))
            costs_of_judging(ray, arguments.questions)


if __name__ == "__main__":
    main()
