"""Sandboxes on a real Ray cluster: nodes on this machine, each with a loopback address of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

ray = pytest.importorskip("ray")

from clusters import join, joined, ray_processes  # noqa: E402

from codea1_env import load_problems  # noqa: E402
from codea1_env.cluster import (  # noqa: E402
    ClusterError,
    RemoteJudges,
    RemoteSandbox,
    remote_judges,
)
from codea1_env.cluster.actors import Failure, Request, packed, unpacked  # noqa: E402
from codea1_env.cluster.dispatcher import Dispatcher  # noqa: E402
from codea1_env.cluster.nodes import LostError, nodes  # noqa: E402
from codea1_env.cluster.remote_judges import Seats  # noqa: E402
from codea1_env.referee import Referee  # noqa: E402
from codea1_env.responses import Program  # noqa: E402
from codea1_env.sandbox import (  # noqa: E402
    InfraError,
    Job,
    Limits,
    Sandbox,
    SandboxError,
    encoded_arguments,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def remote(cluster: Any) -> Iterator[RemoteSandbox]:
    with RemoteSandbox(limits=Limits(call_cpu_time=1.0)) as sandbox:
        yield sandbox


def jobs(count: int) -> list[Job]:
    """Right and wrong programs, those that raise, end the process, print, and do not load."""
    programs = (
        "def f(n): return n + {}",
        "def f(n): return 1 // (n - {} % 3)",
        "import os\ndef f(n):\n    print('x' * {})\n    return n if n < 3 else os._exit(3)",
        "def f(n): return [n] * {}",
        "def f(n) {}",
    )
    return [
        Job(programs[i % 5].format(i % 7), [f"assert f(2) == {i % 9}", "assert f(3)"], "f")
        for i in range(count)
    ]


def plain(results: list[list[Any]]) -> list[list[tuple[Any, ...]]]:
    return [
        [(each.outcome, each.message, each.error, each.limit) for each in one] for one in results
    ]


def test_verdicts_are_those_of_a_local_sandbox(remote: RemoteSandbox) -> None:
    work = jobs(100)
    with Sandbox(1, Limits(call_cpu_time=1.0)) as local:
        expected = plain(local.run_many(work))
    assert plain(remote.run_many(work)) == expected
    assert len({outcome for one in expected for outcome, *_ in one}) >= 5
    assert remote.workers == len(remote.nodes) == 2


def test_all_ways_to_ask(remote: RemoteSandbox) -> None:
    assert remote.run_tests("def f(): return 1", ["assert f() == 1"])[0].passed
    assert remote.call("def f(a, b=1): return [a, b]", "f", [((2,), {"b": 3})])[0].value == [2, 3]
    answers = remote.submit_encoded(
        "def f(n): return n", "f", [encoded_arguments([5], {})]
    ).result()
    assert answers.load.passed
    assert len(answers.replies) == 1
    assert remote.run_script("print(int(input()) + 1)", "41").stdout == "42\n"
    assert remote.in_background(lambda: 7).result() == 7


class OnlyHere(Job):
    """Of a module that nodes do not have."""


def test_what_cannot_be_sent_costs_no_other(remote: RemoteSandbox) -> None:
    class Local(Job):
        """Of no module."""

    good = [remote.submit(Job("def f(): return 1", ["assert f() == 1"])) for _ in range(90)]
    with pytest.raises(TypeError, match="can be sent"):
        remote.submit(Local("def f(): return 1"))
    bad = remote.submit(OnlyHere("def f(): return 1"))
    argument = [1]
    calls = remote.submit_calls("def f(x): return x", "f", [((argument,), {})])
    argument.append(2)
    with pytest.raises(ImportError):
        bad.result(60)
    assert calls.result(60)[0].value == [1]
    assert all(future.result(60).tests[0].passed for future in good)


def test_a_forked_copy_is_refused(remote: RemoteSandbox) -> None:
    if not (pid := os.fork()):
        try:
            remote.submit(Job(""))
        except SandboxError:
            remote.close()
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_nodes_that_are_lost_and_nodes_that_join(cluster: Any, remote: RemoteSandbox) -> None:
    work = jobs(120)
    expected = plain(remote.run_many(work))
    futures = [remote.submit(job) for job in work]
    futures[20].result()
    cluster.remove_node(cluster.list_all_nodes()[-1], allow_graceful=False)
    assert plain([list(future.result().tests) for future in futures]) == expected
    join(cluster)
    deadline = time.monotonic() + 180
    while len(remote.nodes) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    assert len(remote.nodes) == 2
    assert plain(remote.run_many(work)) == expected


def test_an_actor_that_hangs_is_given_up(
    cluster: Any, remote: RemoteSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codea1_env.cluster.dispatcher._SILENCE", 4.0)
    os.kill(ray_processes(cluster, "SandboxActor")[0], signal.SIGSTOP)
    work = jobs(60)
    with Sandbox(1, Limits(call_cpu_time=1.0)) as local:
        assert plain(remote.run_many(work)) == plain(local.run_many(work))


def until_there_are(count: int) -> None:
    deadline = time.monotonic() + 180
    while len(nodes(ray)) != count:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_judges_on_nodes_judge_as_one_referee_does(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when all are killed, and on a node that joins, where the first attempt to start one fails."""
    until_there_are(2)
    problems = load_problems("starter")[:3]  # one for each judge, so that each is needed
    programs = [
        Program(code)
        for problem in problems
        for code in (problem.reference, f"def {problem.entry_point}(*values): return 1")
    ]
    asked = [problem for problem in problems for _ in range(2)]
    attacks = ["\n".join(problem.tests) for problem in asked]
    before = {node.id for node in nodes(ray)}
    tried, start = [], remote_judges.start_actor

    def failing_at_first(_: Any, node: Any, *rest: Any, **options: Any) -> Any:
        if node.id not in before:
            tried.append(node.id)
            if len(tried) == 1:
                raise LostError("as where a node is not ready yet")
        return start(ray, node, *rest, **options)

    def told(referee: Referee) -> list[Any]:
        judged = referee.judge_answers(asked, programs, attacks, {})
        return [
            (one, each.code_reward, [suite.tests for suite in each.suites]) for one, each in judged
        ]

    monkeypatch.setattr("codea1_env.cluster.remote_judges.start_actor", failing_at_first)
    with Sandbox(1) as sandbox, RemoteJudges(sandbox) as judges:
        expected = told(Referee(sandbox))
        assert told(judges) == expected
        for pid in ray_processes(cluster, "JudgeActor"):
            os.kill(pid, signal.SIGKILL)
        assert told(judges) == expected
        with joined(cluster):
            deadline = time.monotonic() + 300
            while len(ray_processes(cluster, "JudgeActor")) < 3 and time.monotonic() < deadline:
                assert told(judges) == expected
            assert len(ray_processes(cluster, "JudgeActor")) == 3
            assert len(tried) == 2
        assert told(judges) == expected
    with pytest.raises(SandboxError, match="close"):
        told(judges)


def test_judges_have_seats_where_they_are_free() -> None:
    there = [
        {"Resources": {"CPU": 1.0}, "Alive": True, "NodeID": each, "NodeManagerAddress": each}
        for each in ("a", "b")
    ]
    seats = Seats(SimpleNamespace(nodes=lambda: there), 1)
    one, other = seats.take(), seats.take()
    assert {one.id, other.id} == {"a", "b"}
    assert not seats.leave_crowded(one)
    seats.leave(other)
    crowded = Seats(SimpleNamespace(nodes=lambda: there), 1)
    crowded._taken[one.id] = 2  # as where the other node has been away
    assert crowded.leave_crowded(one)
    assert not crowded.leave_crowded(one)
    assert crowded.take() == other
    there.append(there[0] | {"NodeID": "c"})
    assert seats.look() == 3
    seats.refuse(nodes(SimpleNamespace(nodes=lambda: there))[-1], ClusterError("another version"))
    assert seats.look() == 2
    with pytest.raises(ClusterError, match="another version"):
        seats.refuse(one, ClusterError("another version"))


def test_three_failures_are_no_verdict(cluster: Any) -> None:
    class Failing:
        """A sandbox that fails at everything, as real ones do only where memory is short."""

        def alive(self) -> bool:
            return True

        def close(self) -> None:
            return None

        def run(self, requests: bytes) -> bytes:
            failure = packed([Failure(InfraError("no memory"))])
            return packed([failure for _ in unpacked(requests)])

    made = Dispatcher(
        ray, lambda node: ray.remote(Failing).options(num_cpus=0).remote(), leave_out=False
    )
    future = made.submit(Request("submit", (Job("def f(): pass"),)))
    with pytest.raises(InfraError, match=r"on 3 nodes.*no memory"):
        future.result(60)
    made.close()
    with pytest.raises(SandboxError, match="close"):
        made.submit(Request("submit", (Job(""),)))


def test_what_starts_while_it_is_closed_is_ended(cluster: Any) -> None:
    class Late:
        """An actor of a node that takes long to start it."""

        def alive(self) -> bool:
            return True

        def close(self) -> None:
            return None

    asked, answered = threading.Event(), threading.Event()

    def start(node: Any) -> Any:
        if there:
            asked.set()
            answered.wait(60)
        actor = ray.remote(Late).options(num_cpus=0).remote()
        assert ray.get(actor.alive.remote())
        return actor

    there: list[Any] = []
    made = Dispatcher(ray, start, leave_out=False)
    there += made.nodes
    made._helpers.submit(made._add, there[0])  # as for a node that joins
    assert asked.wait(60)
    closing = threading.Thread(target=made.close)
    closing.start()
    time.sleep(0.5)
    answered.set()
    closing.join()
    deadline = time.monotonic() + 180
    while ray_processes(cluster, "Late") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not ray_processes(cluster, "Late")


def test_nodes_that_do_not_fit_are_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codea1_env.__version__", "9.9.9")
    with pytest.raises(ClusterError, match=r"to have codea1_env 9\.9\.9.*has version"):
        RemoteSandbox()
    monkeypatch.undo()
    with pytest.raises(ValueError, match="workers"):
        RemoteSandbox(workers=0)


def test_no_cluster_at_the_address() -> None:
    program = (
        "from codea1_env.cluster import ClusterError, RemoteSandbox\n"
        "try: RemoteSandbox(address='127.0.0.2:9')\nexcept ClusterError as error: print(error)"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=110)
    assert done.stdout.startswith("Expect a Ray cluster at '127.0.0.2:9', actually: ")
    assert "ray start --head" in done.stdout
