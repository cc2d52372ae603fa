"""A supervisor or a worker killed in the middle of a batch: nothing is left, and nothing is lost silently."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import processes
import pytest
from processes import descendants, parents, until

from codea1_env.sandbox import examine
from codea1_env.sandbox.jobs import WorkerKind
from codea1_env.sandbox.packages import settings
from codea1_env.sandbox.worker import environment

# Asks for more than it waits for, and is gone: answers cannot be sent, or are never read.
IMPATIENT = """
import os, signal, sys
from codea1_env.sandbox.jobs import WorkerKind
from codea1_env.sandbox.worker import Worker
worker = Worker(WorkerKind(), sys.argv[1], {})
print("ready", flush=True)
for _ in range(20):
    worker.ask(b"c", [])
os.kill(os.getpid(), signal.SIGKILL)
"""

# Is killed between its fork and the first act of the process that goes on inside, which has to notice.
KILLED_AT_FORK = """
import os, select, signal, sys
from codea1_env.sandbox.inside.run import zygote
fork, worker = os.fork, os.pidfd_open(os.getpid())
def fork_and_die():
    if fork():
        print("forked", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    select.select([worker], [], [])
    os.close(1)
    os.fork = fork
    return 0
os.fork = fork_and_die
zygote.main(sys.argv[1:])
"""

LEVELS = ("kernel", "namespaces", "process")

# Each program waits; where it can, it also leaves a process behind.
BATCH = """
import sys, warnings
warnings.simplefilter("ignore")
from codea1_env.sandbox import Job, Sandbox
level, daemon = sys.argv[1:]
code = '''
import os, time
if DAEMON and os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(600)
    os._exit(0)
def f(x):
    time.sleep(0.2)
    return 2 * x
'''.replace("DAEMON", daemon)
tests = ["assert f(1) == 2", "for x in [2]:\\n    assert f(x) == 4"]
with Sandbox(workers=2, level=level) as sandbox:
    sandbox.run_many([Job(code, tests)] * 2)
    print("ready", flush=True)
    results = sandbox.run_many([Job(code, tests)] * 6)
print([test.outcome.value for job in results for test in job], flush=True)
"""


def start(script: str, level: str, tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """A process that has said that it is ready; its files are in `tmp_path`."""
    if not examine(level).works:
        pytest.skip(f"level {level} does not work here: {examine(level).error}")
    tmp_path.chmod(0o711)  # programs with a user number of their own pass through it
    for folder in tmp_path.parents[:2]:
        folder.chmod(0o711)
    process = subprocess.Popen(
        [sys.executable, "-c", script, level, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=processes.environment(TMPDIR=str(tmp_path)),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def start_batch(level: str, tmp_path: Path, *, daemons: bool) -> subprocess.Popen[str]:
    """A process that is in the middle of a batch of jobs."""
    process = start(BATCH, level, tmp_path, str(daemons))
    time.sleep(0.4)
    return process


def outcome_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    with process.stdout:
        said = process.stdout.read()
    process.wait(60)
    return said.strip()


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_left_by_a_killed_supervisor(level: str, tmp_path: Path) -> None:
    batch = start_batch(level, tmp_path, daemons=level == "process")
    started = descendants(batch.pid)
    assert len(started) >= 4
    batch.kill()
    assert outcome_of(batch) == ""
    assert until(lambda: not started & parents().keys())  # also those that left their session
    assert until(lambda: list(tmp_path.iterdir()) == [])


@pytest.mark.parametrize("level", LEVELS)
def test_nothing_is_left_by_a_supervisor_that_waits_for_no_answer(
    level: str, tmp_path: Path
) -> None:
    asking = start(IMPATIENT, level, tmp_path)
    assert outcome_of(asking) == ""
    assert asking.returncode == -signal.SIGKILL
    assert until(lambda: list(tmp_path.iterdir()) == [])


def test_a_worker_killed_while_it_enters_its_namespaces_leaves_no_process(tmp_path: Path) -> None:
    if not examine("namespaces").works:
        pytest.skip(f"level namespaces does not work here: {examine('namespaces').error}")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    chosen = settings(WorkerKind(with_packages=False, scratch=True), "namespaces", {})
    ours.send(chosen.encode())
    with ours, theirs:  # kept open: a closed socket would end what is left, too
        worker = subprocess.Popen(
            [sys.executable, "-c", KILLED_AT_FORK, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=environment(0) | {"PYTHONPATH": processes.ROOT},
            stdout=subprocess.PIPE,
            text=True,
        )
        said = outcome_of(worker)
        assert (said, worker.returncode) == ("forked", -signal.SIGKILL)
        ours.settimeout(20)
        theirs.close()
        assert ours.recv(100) == b"", (
            "the process inside has begun to serve, or has an error to tell"
        )


@pytest.mark.parametrize("level", LEVELS)
def test_a_batch_survives_its_killed_workers(level: str, tmp_path: Path) -> None:
    batch = start_batch(level, tmp_path, daemons=False)
    started = descendants(batch.pid)
    for pid, parent in parents().items():
        if parent == batch.pid:
            os.kill(pid, signal.SIGKILL)
    assert outcome_of(batch) == str(["pass"] * 12)
    assert batch.returncode == 0
    assert until(lambda: not started & parents().keys())
    assert list(tmp_path.iterdir()) == []
