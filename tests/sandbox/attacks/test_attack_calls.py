"""Attacks on call mode: one process for all calls of a program, whose replies are compared as bytes.

Whatever a program does, it decides about nothing but its own replies, and leaves nothing behind.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from attacking import WRITER

import codea1_env
from codea1_env.sandbox import Limits, Outcome

LEVELS = ("process", "kernel", "namespaces")

# Finds the pipe that carries the replies, and writes to it what the process itself would write.
QUICK = Limits(call_wall_time=0.4, call_cpu_time=1.0, result=1 << 20, memory=256 << 20)
PATIENT = replace(
    QUICK, call_wall_time=10.0, call_cpu_time=10.0
)  # for what has no end but another limit
F, E, T, BIG = Outcome.FORBIDDEN, Outcome.EXITED, Outcome.TIMEOUT, Outcome.OUTPUT_LIMIT
FAILED = set(Outcome) - {Outcome.PASS, Outcome.INFRA_ERROR}


def raw(statement: str, rest: str = "") -> str:
    """A program that does something in its first call, and returns what it is given in all others."""
    return f"{WRITER}\n{rest}\ndef f(x):\n    if x == 0:\n        {statement}\n    return x"


CHANNEL = {
    # Replies are the program's own: one too many is noticed.
    "an extra frame": (raw("write(ok(0))"), [F, F, F]),
    "all replies at once": (raw("write(ok(7) * 3); os._exit(0)"), [7, 7, 7]),
    "all replies and more": (raw("write(ok(7) * 4); os._exit(0)"), None),
    "one reply for the next": (raw("write(ok(7)); os._exit(0)"), [7, E, 2]),
    "a verdict": (raw("write(frame(encode(('pass', '')))); os._exit(0)"), [F, E, 2]),
    "a bare value": (raw("write(frame(encode(2))); os._exit(0)"), [F, E, 2]),
    "two values": (raw("write(frame(encode(('ok', 2, 2)))); os._exit(0)"), [F, E, 2]),
    "our own failure": (raw("write(frame(encode(('infra_error', 'x')))); os._exit(0)"), [F, E, 2]),
    "an empty frame": (raw("write(frame(b'')); os._exit(0)"), [F, E, 2]),
    "half a frame, then the end": (raw("write(ok(2)[:-1]); os._exit(0)"), [E, 1, 2]),
    "half a frame, then a stall": (raw("write(ok(2)[:-1]); time.sleep(60)"), [T, 1, 2]),
    "half a frame, then a reply": (raw("write(ok(2)[:-4])"), None),
    "half a length": (raw("write(b'\\x01\\x00'); os._exit(0)"), [E, 1, 2]),
    "an endless length": (raw("write(b'\\xff\\xff\\xff\\xff')"), [BIG, 1, 2]),
    "text": (raw("write(b'PASS' * 1000)"), [BIG, 1, 2]),
    "a flood": (raw("while True: write(bytes(1 << 16))"), None),
    "a flood of frames": (raw("while True: write(ok(0) * 1000)"), None),
    "closes it": (raw("os.close(pipe)"), [E, 1, 2]),
    "closes it and waits": (raw("os.close(pipe); time.sleep(60)"), [E, 1, 2]),
    "closes everything": (raw("os.closerange(0, 256)"), [E, 1, 2]),
    "swaps it for its output": (raw("os.dup2(1, pipe); time.sleep(60)"), [E, 1, 2]),
    "writes everywhere else": (
        raw("[quietly(n) for n in range(64) if n != pipe]", "def quietly(n):\n    try: os.write(n, b'x')\n    except OSError: pass"),
        [0, 1, 2],
    ),
    "reads everything": (
        raw("[quietly(n) for n in range(64)]", "def quietly(n):\n    try: os.set_blocking(n, False); os.read(n, 1 << 16)\n    except OSError: pass"),
        [0, 1, 2],
    ),
    # Another thread writes when the main one has answered.
    "a late frame": (
        raw("threading.Thread(target=lambda: (time.sleep(0.02), write(ok(7)))).start()", "import atexit\natexit.register(time.sleep, 1)"),
        None,
    ),
    "a thread that floods": (
        raw("threading.Thread(target=flood, daemon=True).start(); time.sleep(0.1)", "def flood():\n    while True: write(ok(7))"),
        None,
    ),
    "a thread that goes on": (
        raw("threading.Thread(target=time.sleep, args=(60,)).start()"),
        [0, 1, 2],
    ),
    # The machinery around it.
    "never ends": (raw("sys.modules['inside.run.running']._exit = lambda _: time.sleep(60)"), None),
    "never closes": (raw("sys.modules['inside.run.running']._close = lambda _: time.sleep(60)"), [F, F, F]),
    "another writer": (
        raw("sys.modules['inside.codec.frames'].write_frame = lambda pipe, payload: write(frame(payload) * 2)"),
        None,
    ),
    "another encoder": (
        raw("sys.modules['inside.run.running'].encode = lambda *a, **k: encode(7)"),
        [7, 7, 7],
    ),
    "another caller": (
        raw("sys.modules['inside.run.running']._answered = lambda *a: encode(('ok', 7))"),
        [0, 7, 7],
    ),
    "other builtins": (
        raw("import builtins; builtins.__dict__.update(len=None, isinstance=None, type=None, bytes=None)"),
        None,
    ),
    "another marshal": (raw("import marshal; marshal.loads = lambda _: ([9], {})"), None),
    "another os": (raw("os.write = os.close = os._exit = os.read = None"), [0, 1, 2]),
    "other calls": (raw("of_main('calls')[:] = []"), None),
    "ends in the middle": (raw("os._exit(0)"), [E, 1, 2]),
    "ends itself": (raw("os.kill(os.getpid(), 15)"), [Outcome.SIGNALLED, 1, 2]),
    "ends by a thread": (
        raw("threading.Thread(target=lambda: os._exit(0)).start(); time.sleep(60)"),
        [E, 1, 2],
    ),
    "waits": (raw("time.sleep(60)"), [T, 1, 2]),
    "waits for a signal": (raw("import signal; signal.pause()"), [T, 1, 2]),
    "prints": (raw("print('x' * 10 ** 7)"), [0, 1, 2]),
    "prints to stderr": (raw("print('x' * 10 ** 7, file=sys.stderr)"), [0, 1, 2]),
    "recursion": (raw("f(x)"), [Outcome.ERROR, 1, 2]),
    "much memory": (raw("x = bytearray(1 << 40)"), [Outcome.MEMORY, 1, 2]),
    "all memory": (raw("x = []\n        while True: x.append(bytearray(1 << 20))"), [Outcome.MEMORY, 1, 2]),
}  # fmt: skip


def test_the_channel(arena):
    """A reply is at most wrong: three calls get the listed replies, or none but failures."""
    found = {}
    started = time.monotonic()
    for name, (code, _) in CHANNEL.items():
        limits = PATIENT if "memory" in name else QUICK
        found[name] = arena.replies(code, 0, 1, 2, limits=limits)
    assert time.monotonic() - started < 90
    expected = {name: replies for name, (_, replies) in CHANNEL.items() if replies is not None}
    assert {name: found[name] for name in expected} == expected
    for name, replies in found.items():
        assert Outcome.INFRA_ERROR not in replies, name
        assert len(replies) <= 3, name


def test_a_forger_spoils_itself_alone(arena):
    for name in ("an extra frame", "a flood", "never closes", "closes everything", "another os"):
        arena.replies(CHANNEL[name][0], 0, 1, 2, limits=QUICK)
        assert arena.replies("def f(x): return x + 1", 1, 2) == [2, 3]


def test_replies_before_they_are_asked_for(arena):
    """Answers to all calls from the program's first line: they are answers, to whatever was asked."""
    code = f"{WRITER}\nwrite(frame(encode(('ok',))) + ok(5) * 3)\nos._exit(0)\ndef f(x): return 5"
    assert arena.replies(code, 1, 2, 3) == [5, 5, 5]


def test_all_that_a_program_can_find(arena):
    """Its own calls, and not what is expected of them: that never comes here."""
    code = """
import gc, marshal, sys
def f(x):
    seen, texts, todo = set(), set(), list(gc.get_objects())
    frame = sys._getframe()
    while frame:
        todo += [frame.f_locals, frame.f_globals]
        frame = frame.f_back
    while todo and len(seen) < 400_000:
        each = todo.pop()
        if id(each) in seen: continue
        seen.add(id(each))
        if isinstance(each, bytes):
            try: each = marshal.loads(each)
            except Exception: continue
        if isinstance(each, str) and each.startswith("mark"): texts.add(each)
        elif type(each) in (list, tuple, dict, set): todo += gc.get_referents(each)
    return sorted(texts)
"""
    limits = Limits(call_cpu_time=5.0, call_wall_time=20.0)
    assert arena.replies(code, "mark one", limits=limits) == [["mark", "mark one"]]


def test_nothing_lives_on(arena):
    """Each run is a fresh process of a worker that no program has ever touched."""
    touch = """
import builtins, os, random, sys, json, inside.codec.encoding
sys.modules["attack"] = builtins.attack = json.attack = inside.codec.encoding.attack = 1
os.environ["attack"] = "1"
random.seed(7)
os.umask(0)
os.chdir("/usr") if os.path.exists("/usr") else None
import signal
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
sys.setrecursionlimit(50_000)
def f(x): return x
"""
    look = """
import builtins, json, os, random, signal, sys, inside.codec.encoding
def f(x):
    return [
        "attack" in sys.modules, hasattr(builtins, "attack"), hasattr(json, "attack"),
        hasattr(inside.codec.encoding, "attack"), "attack" in os.environ, random.random(), os.umask(0), os.stat(".").st_ino,
        str(signal.getsignal(signal.SIGTERM)), sys.getrecursionlimit(), sorted(sys.modules), dict(os.environ),
    ]
"""
    [before] = arena.replies(look, 1)
    assert arena.replies(touch, 1) == [1]
    [after] = arena.replies(look, 1)
    assert before == after
    assert isinstance(before, list)
    assert before[:5] == [False] * 5
    assert "ATTACK_TOKEN" not in before[-1]
    assert not [name for name in before[-1] if "TOKEN" in name or "KEY" in name]


def test_the_worker_and_its_folder_are_out_of_reach(arena, level):
    if level == "process":
        pytest.skip("programs can see files here")
    package = Path(codea1_env.__file__).parent
    code = f"""
import os
def attempt(act):
    try: act()
    except OSError as error: return "refused"
    return "allowed"
def f(x):
    worker = os.getppid()
    found = [attempt(lambda: open(path).read(1)) for path in (
        "/etc/passwd", "/etc/shadow", {str(package / "referee.py")!r}, {__file__!r}, {str(package / "sandbox" / "pool.py")!r},
        f"/proc/{{worker}}/environ", f"/proc/{{worker}}/mem", f"/proc/{{worker}}/maps", "/proc/self/environ", "/proc/self/mem",
    )]
    found += [attempt(lambda: open(folder + "/attack-call", "w")) for folder in (
        ".", "/", "/tmp", "/var/tmp", "/dev/shm", os.environ.get("TMPDIR", "/tmp"), os.environ.get("HOME", "/"), "/proc/self",
    )]
    found += [attempt(lambda: os.kill(worker, 0)), attempt(lambda: os.kill(-1, 0)), attempt(os.fork)]
    found += [attempt(lambda: os.kill(os.getpid() + step, 0)) for step in (-2, -1, 1, 2)]
    found += [attempt(lambda: os.mkdir("attack-call")), attempt(lambda: os.listdir("."))]
    return found
"""
    [found] = arena.replies(code, 1)
    assert [number for number, what in enumerate(found) if what != "refused"] == []


def test_descriptors_are_two_pipes_and_nothing(arena):
    code = """
import os, stat, sys
def f(x):
    open_ = []
    for number in range(256):
        try: mode = os.fstat(number).st_mode
        except OSError: continue
        open_.append((number, "pipe" if stat.S_ISFIFO(mode) else "device" if stat.S_ISCHR(mode) else "other"))
    return open_
"""
    [found] = arena.replies(code, 1)
    assert found[:3] == [(0, "device"), (1, "device"), (2, "device")]
    assert [kind for _, kind in found[3:]] == ["pipe"]


def test_neighbours_do_not_meet(arena, level):
    """A child that is ready for the next run is there at the same time."""
    if level == "process":
        pytest.skip("programs may signal those of their own user here")
    code = """
import os, signal
def f(x):
    for step in range(-40, 40):
        try: step and os.kill(os.getpid() + step, signal.SIGKILL)
        except OSError: pass
    try: os.kill(os.getppid(), signal.SIGKILL)
    except OSError: pass
    return x + 1
"""
    for _ in range(5):
        assert arena.replies(code, 1, 2) == [2, 3]


def test_a_program_cannot_wait_out_its_time_piece_by_piece(arena):
    """A call may wait for its whole time, but many may not wait for all of theirs."""
    code = "import time\ndef f(x):\n    time.sleep(0.25)\n    return x"
    replies = arena.replies(code, *range(40), limits=QUICK)
    assert replies[:2] == [0, 1]
    assert replies[-1] is Outcome.TIMEOUT
    assert replies.count(Outcome.TIMEOUT) > 10  # what a run may wait is over


def test_threads_of_one_run_are_not_missing_in_the_next(arena):
    code = "import threading, time\ndef f(x):\n    for _ in range(40): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n    return x"
    for _ in range(4):
        assert arena.replies(code, 1, limits=Limits(memory=2 << 30)) == [1]


def test_damaged_values_are_values_or_failures(arena):
    """What the program's process sends is read as any hostile text: never with an exception."""
    for payload in (
        "b't' + b'\\xff' * 4", "b'l' + b'\\xff\\xff\\xff\\x0f'", "b'?' * 100", "b't\\2\\0\\0\\0s\\2\\0\\0\\0ok' + b'S\\1\\0\\0\\0l\\0\\0\\0\\0'",
        "b't\\2\\0\\0\\0s\\2\\0\\0\\0okN' + b'N'", "b't\\2\\0\\0\\0s\\2\\0\\0\\0ok' + b'l\\1\\0\\0\\0' * 5000", "b'\\x80\\x04.'",
    ):  # fmt: skip
        code = raw(f"write(frame({payload})); os._exit(0)")
        assert arena.replies(code, 0, limits=QUICK)[0] in FAILED
