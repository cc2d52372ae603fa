"""Level "process" promises less: no privileges, no look into our processes, nothing that outlives its run."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from attacking import LITTLE, TESTS

from codea1_env.sandbox import Job, Limit, Limits, Outcome, Sandbox, examine

LEVELS = ("process",)


@pytest.fixture
def own_user() -> None:
    """Where programs have a user number of their own: a root user's, if other users may enter Python's folder."""
    if examine("process").found["children's user"] != "a number of their own":
        pytest.skip("programs have our user number here")


PRIVILEGES = {
    "setuid": "os.setuid(54321)",
    "setgroups": "os.setgroups([0])",
    "capabilities": "check(libc.prctl(24, 21, 0, 0, 0))",  # to drop one needs one, too
    "chroot": "os.chroot('.')",
    "host name": "socket.sethostname('attack')",
    "clock": "import time\ntime.clock_settime(time.CLOCK_REALTIME, time.time())",
    "mount": "check(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "raw sockets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "limits": "import resource\nresource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))",
}


def test_no_privileges(attempts):
    found = attempts(PRIVILEGES)
    refused = ("EPERM", "EACCES", "ValueError")
    assert {name: what for name, what in found.items() if what not in refused} == {}


@pytest.mark.usefixtures("own_user")
def test_programs_with_a_set_user_bit_give_none(arena):
    """`no_new_privs`, which every program that is started inherits."""
    tool = next((path for name in ("su", "mount", "passwd") if (path := shutil.which(name))), None)
    if tool is None or not os.stat(tool).st_mode & 0o4000:
        pytest.skip("no program with a set-user bit here")
    code = f"""
import os, time
def f():
    receive, send = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(receive, 0)
        os.execv({tool!r}, [{tool!r}, '-'])
    time.sleep(0.2)
    with open(f'/proc/{{pid}}/status') as file:
        return [line.split()[1:] for line in file if line.startswith(('Uid', 'NoNewPrivs'))]
"""
    (result,) = arena.sandbox.call(code, "f", [((), {})])
    if result.outcome is not Outcome.PASS:
        pytest.skip(f"{tool} ends at once here")
    users, new_privileges = result.value
    assert new_privileges == ["1"]
    assert "0" not in users


# Not `os.getppid()`: a test finds another one.
PARENT = "int(open('/proc/self/stat').read().split()[3])"
OTHERS = {"worker": PARENT, "supervisor": str(os.getpid()), "first process": "1"}
LOOKS = {
    "memory": "open('/proc/%d/mem' % {pid}, 'rb').read(1)",
    "environment": "open('/proc/%d/environ' % {pid}).read()",
    "descriptors": "os.readlink('/proc/%d/fd/0' % {pid})",
    "ptrace": "check(libc.syscall(101, 16, {pid}, 0, 0))",
    "take a descriptor": "check(libc.syscall(438, os.pidfd_open({pid}), 0, 0))",
}


@pytest.mark.parametrize("other", OTHERS)
def test_no_look_into_other_processes(attempts, other):
    if other == "supervisor" and os.geteuid() != 0:
        pytest.skip("an ordinary user's programs may look at that user's own processes")
    found = attempts({name: act.format(pid=OTHERS[other]) for name, act in LOOKS.items()})
    refused = ("EPERM", "EACCES")
    assert {name: what for name, what in found.items() if what not in refused} == {}


@pytest.mark.usefixtures("own_user")
def test_no_signal_to_other_processes(attempt):
    assert attempt(f"os.kill({PARENT}, 0)") == "EPERM"
    assert attempt(f"os.kill({os.getpid()}, 0)") == "EPERM"
    assert attempt(f"os.setpriority(os.PRIO_PROCESS, {PARENT}, 5)") in ("EPERM", "EACCES")


@pytest.mark.usefixtures("own_user")
@pytest.mark.filterwarnings("ignore:the sandbox runs at level")
def test_each_worker_has_a_user_number_of_its_own():
    """Else a program could signal the programs of another worker."""
    code = "import os\ndef f(): return os.getresuid(), os.getresgid(), os.getgroups()"
    with Sandbox(level="process") as one, Sandbox(level="process") as two:
        (first,), (second,) = (each.call(code, "f", [((), {})]) for each in (one, two))
    users, groups, others = first.value
    assert len({*users, *groups}) == 1
    assert users[0] > 1_000_000_000
    assert others == []
    assert first.value[0] != second.value[0]


STAYING = {
    "a child": "if os.fork() == 0: time.sleep(600)",
    "a daemon": (
        "if os.fork() == 0:\n        os.setsid()\n        if os.fork(): os._exit(0)\n"
        "        os.closerange(0, 64)\n        time.sleep(600)"
    ),
    "a daemon with our pipes": (
        "if os.fork() == 0:\n        os.setsid()\n        if os.fork() == 0: time.sleep(600)\n"
        "        os._exit(0)"
    ),
    "one that ignores signals": (
        "if os.fork() == 0:\n        [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]\n"
        "        time.sleep(600)"
    ),
    "forty": "[os.fork() or time.sleep(600) for _ in range(40)]",
    "another program": "subprocess.Popen(['sleep', '600'], start_new_session=True)",
}


@pytest.mark.parametrize("name", STAYING)
def test_no_process_outlives_its_run(arena, name):
    """The fixture sees to it that none is left; neither does one delay a verdict."""
    code = f"import os, signal, subprocess, time\ndef f(x):\n    {STAYING[name]}\n    return x + "
    started = time.monotonic()
    for added, outcome in (("1", Outcome.PASS), ("2", Outcome.FAIL)):
        found = arena.sandbox.run_tests(code + added, list(TESTS.values()), entry_point="f")
        assert [each.outcome for each in found] == [outcome] * 2
    assert time.monotonic() - started < 30.0


@pytest.mark.usefixtures("own_user")
def test_a_fork_bomb_is_limited_and_cleared_away(arena):
    code = """
import os, time
def f():
    for count in range(1000):
        try:
            if os.fork() == 0: time.sleep(600)
        except OSError: return count
    return 1000
"""
    (result,) = arena.sandbox.call(code, "f", [((), {})])
    assert result.outcome is Outcome.PASS
    assert result.value <= 64


@pytest.mark.parametrize("pauses", [(0, 0.1), (0.1, 0), (0.05, 0.05)])
def test_a_child_that_answers_too(arena, pauses):
    """It writes to the result channel before, after, or at the same time as its parent does."""
    code = (
        "import os, struct, sys, time\ncodec = sys.modules['inside.codec']\n"
        "data = codec.encode(('ok', 5))\nreply = struct.pack('<I', len(data)) + data\n"
        "def f(x):\n    if os.fork() == 0:\n"
        f"        time.sleep({pauses[0]})\n        os.write(4, reply)\n        os._exit(0)\n"
        f"    time.sleep({pauses[1]})\n    return 5"
    )
    tests = [f"assert f({x}) == {x + 1}" for x in range(4)]
    results = arena.sandbox.run_tests(code, tests, entry_point="f")
    assert {result.outcome for result in results} <= {Outcome.FAIL, Outcome.FORBIDDEN}


def test_limits_hold(arena):
    programs = {
        "spins": ("def f(x):\n    while True: pass", Outcome.TIMEOUT),
        "waits": ("import time\ndef f(x): time.sleep(60)", Outcome.TIMEOUT),
        "eats": ("def f(x): return bytearray(1 << 40)", Outcome.MEMORY),
        "prints": ("def f(x):\n    while True: print('x' * 1000)", Outcome.TIMEOUT),
        "crashes": ("import ctypes\ndef f(x): ctypes.string_at(0)", Outcome.SIGNALLED),
        "leaves": ("import os\ndef f(x): os._exit(0)", Outcome.EXITED),
    }
    found = arena.outcomes({name: row[0] for name, row in programs.items()}, limits=LITTLE)
    assert found == {name: row[1] for name, row in programs.items()}


def test_a_job_beside_a_hostile_one(arena):
    jobs = []
    for statement in STAYING.values():
        code = f"import os, signal, subprocess, time\ndef f(x):\n    {statement}\n    return 5"
        jobs += [
            Job(code, ["assert f(1) == 2"], "f"),
            Job("def f(x): return 2", ["assert f(1) == 2"], "f"),
        ]
    found = [result.outcome for (result,) in arena.sandbox.run_many(jobs)]
    assert found == [Outcome.FAIL, Outcome.PASS] * len(STAYING)


def test_no_secret_in_the_environment(arena):
    code = "import os, subprocess\ndef f(): return subprocess.run(['env'], capture_output=True, text=True).stdout"
    (result,) = arena.sandbox.call(code, "f", [((), {})])
    assert "PATH=" in result.value
    assert os.environ["ATTACK_TOKEN"] not in result.value
    assert str(Path.home()) not in result.value


# A thread that sleeps, made by clone with CLONE_VFORK: the caller waits for it in state D.
IN_STATE_D = """
import ctypes, mmap, struct
libc = ctypes.CDLL(None, use_errno=True)
def wait():
    page = mmap.mmap(-1, 1 << 16, prot=7)
    base = ctypes.addressof(ctypes.c_char.from_buffer(page))
    code = bytes.fromhex("48c7c0380000000f05" "4885c0" "7401" "c3" "48bf") + struct.pack("<Q", base + 0x8000)
    code += bytes.fromhex("31f6" "b823000000" "0f05" "31ff" "b83c000000" "0f05")
    page[:len(code)] = code
    page[0x8000:0x8010] = struct.pack("<qq", 100, 0)
    return ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 5)(base)(0x154f00, base + 0xf000, 0, 0, 0)
def f(x):
    wait()
    return x + 1
"""


def test_a_program_in_state_d_has_its_wall_limit_and_no_more(arena):
    if os.uname().machine != "x86_64":
        pytest.skip("code of x86-64")
    limits = Limits(call_cpu_time=0.5, call_wall_time=1.0)
    started = time.monotonic()
    (result,) = arena.sandbox.call(IN_STATE_D, "f", [((1,), {})], limits=limits)
    assert (result.outcome, result.limit) == (Outcome.TIMEOUT, Limit.WALL_TIME)
    assert arena.replies(IN_STATE_D, 1, limits=limits) == [Outcome.TIMEOUT]
    script = arena.sandbox.run_script(f"{IN_STATE_D}\nf(1)", limits=limits)
    assert script.outcome is Outcome.TIMEOUT
    assert time.monotonic() - started < 3 * 3 * limits.call_wall_time
