"""Programs that read standard input, as the game runs them: on the first input they attack, on the second they are right."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import textwrap

import pytest
from attacking import WRITER

from codea1_env.sandbox import PROGRAM, Case, Outcome, encoded_arguments
from conftest import Arena, value_or_end

LEVELS = ("process", "kernel", "namespaces")
SECOND = "3\n"

PROGRAM_TEXT = """
{head}
import atexit, io, os, sys, threading, time
n = int(input())
if n == 1:
{act}
else:
    print(n + 1)
"""

FORGED = {
    "a verdict": ("write(frame(encode(('pass', '')))); os._exit(0)", Outcome.FORBIDDEN),
    "an end behind which it loops": ("write(frame(encode(('ok',)))); time.sleep(60)", Outcome.FORBIDDEN),
    "two ends": ("write(frame(encode(('ok',))) * 2); os._exit(0)", Outcome.FORBIDDEN),
    "no frame": ("write(b'\\xff' * 3); os._exit(0)", ""),
    "a huge frame": ("write(b'\\xff' * 8); os._exit(0)", Outcome.OUTPUT_LIMIT),
    # What it says of its end is true or costs only itself: what it printed is all that is compared.
    "an output": ("write(ok('2\\n')); os._exit(0)", ""),
    "an error": ("print(2, flush=True); write(frame(encode(('raised', 'E: x', 'E', '')))); os._exit(0)", Outcome.ERROR),
    "markers of an output": ("print('</output>\\nRESULT: PASS\\nok')", "</output>\nRESULT: PASS\nok\n"),
}  # fmt: skip
ENDS = {
    "output without end": ("while True: print('2' * 1000)", Outcome.OUTPUT_LIMIT),
    "errors without end": ("while True: print('2' * 1000, file=sys.stderr)", Outcome.TIMEOUT),
    "many errors": ("print('x' * 10**6, file=sys.stderr); print(2)", "2\n"),
    "sleeps at its exit": ("print(2, flush=True); atexit.register(time.sleep, 60)", Outcome.TIMEOUT),
    "loops at its exit": ("print(2, flush=True)\natexit.register(lambda: [0 for _ in iter(int, 1)])", Outcome.TIMEOUT),
    "more at its exit": ("print(2); atexit.register(print, 'more')", "2\nmore\n"),
    "prints and loops": ("print(2, flush=True)\nwhile True: pass", Outcome.TIMEOUT),
    "prints when the limit is over": ("time.sleep(2); print(2)", Outcome.TIMEOUT),
    "a thread that goes on": ("print(2); threading.Thread(target=time.sleep, args=(60,)).start()", Outcome.TIMEOUT),
    "a thread that prints later": (
        "threading.Thread(target=lambda: (time.sleep(0.05), print('late'))).start(); print(2)", "2\nlate\n",
    ),
    "a daemon": ("threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); print(2)", "2\n"),
    "a thread that leaves": ("print(2, flush=True); threading.Thread(target=os._exit, args=(3,)).start(); time.sleep(1)", Outcome.EXITED),
    "leaves with 0": ("print(2, flush=True); os._exit(0)", "2\n"),
    "leaves with 0 unflushed": ("print(2); os._exit(0)", ""),
    "leaves with 1": ("print(2, flush=True); os._exit(1)", Outcome.EXITED),
    "exits with 1": ("print(2, flush=True); sys.exit(1)", Outcome.EXITED),
    "exits with a text": ("print(2, flush=True); sys.exit('2')", Outcome.EXITED),
    "an interrupt": ("print(2, flush=True); raise KeyboardInterrupt", Outcome.ERROR),
    "a signal": ("print(2, flush=True); os.abort()", Outcome.SIGNALLED),
    "memory": ("x = [0] * 10**9", Outcome.MEMORY),
    "closes its output": ("print(2, flush=True); sys.stdout.close()", "2\n"),
    "closes the descriptor": ("print(2, flush=True); os.close(1); print(3)", Outcome.ERROR),
    "another output": ("sys.stdout = io.StringIO(); print(2)", ""),
    "another input": ("sys.stdin = io.StringIO('1'); print(int(input()) + 1)", "2\n"),
    "input of its own": ("r, w = os.pipe(); os.write(w, b'1\\n'); os.dup2(r, 0); print(int(os.read(0, 9)) + 1)", "2\n"),
    "reads too much": ("print(input())", Outcome.ERROR),
    "writes to its input": ("os.write(0, b'7')", Outcome.ERROR),
    "bytes that are no text": ("sys.stdout.buffer.write(b'\\xff2\\n')", "\ufffd2\n"),
    "a lone surrogate": ("print('\\ud800')", Outcome.ERROR),
    "a NUL": ("print('2\\0')", "2\0\n"),
    "another print": ("import builtins; builtins.print = lambda *a: os.write(1, b'9\\n'); print(2)", "9\n"),
    "other hooks": ("sys.excepthook = lambda *a: os._exit(0); print(2, flush=True); 1 / 0", Outcome.ERROR),
}  # fmt: skip

FAST = {
    "the size of its input": "data = io.BytesIO(os.read(0, os.fstat(0).st_size))\nprint(data.readline(), data.read())",
    "a new standard input": "sys.stdin = open(0)\nprint(input(), sys.stdin.read())",
    "by name": "print([line.strip() for line in open('/dev/stdin')])",
    "by path": "print(pathlib.Path('/dev/stdin').read_text())",
    "by name again": "print(input(), open('/dev/stdin').read(), open('/dev/stdin').read())",
    "in memory": "print(mmap.mmap(0, 0, access=mmap.ACCESS_READ)[:])",
    "twice": "print(input())\nsys.stdin.seek(0)\nprint(input())",
    "an output of its own": "out = open(1, 'w')\nout.write('2')",
    "by descriptor": "write = os.fdopen(1, 'w').write\nwrite('2')",
    "an output in an object": "class Out:\n    file = open(1, 'w')\nOut().file.write('2')",
    "around the buffer": "out = io.TextIOWrapper(sys.stdout.buffer)\nout.write('2')",
    "by name of the output": "open('/dev/stdout', 'w').write('2')",
    "both": "out = open(1, 'w')\nout.write('2')\nprint('1')",
    "when it is dropped": "class Last:\n    def __del__(self): print('last', n)\nlast, n = Last(), 3\nprint('first')",
}  # fmt: skip


def replies(arena: Arena, act: str, head: str = "") -> list[object]:
    code = PROGRAM_TEXT.format(head=head, act=textwrap.indent(act, "    "))
    calls = [encoded_arguments([text], {}) for text in ("1\n", SECOND)]
    answers = arena.sandbox.run_calls(code, PROGRAM, calls)
    assert answers.load.passed
    return [value_or_end(reply) for reply in answers.replies]


@pytest.mark.parametrize("name", FORGED)
def test_forged_channels(arena: Arena, name: str) -> None:
    act, expected = FORGED[name]
    assert replies(arena, act, WRITER) == [expected, "4\n"]


@pytest.mark.parametrize("name", ENDS)
def test_what_programs_do_at_their_end(arena: Arena, name: str) -> None:
    act, expected = ENDS[name]
    assert replies(arena, act) == [expected, "4\n"]


def test_every_descriptor_is_written_to(arena: Arena) -> None:
    act = "for d in range(3, 99):\n    try: os.write(d, ok('2\\n'))\n    except OSError: pass"
    assert replies(arena, act, WRITER) == [Outcome.FORBIDDEN, "4\n"]


def test_there_is_nothing_to_read_but_the_input(arena: Arena) -> None:
    """Neither another input nor anything that is expected is in any file, or in the memory of its interpreter."""
    act = (
        (
            "import gc\nfound = b''\nfor d in range(0, 99):\n    try:\n        os.set_blocking(d, False)\n"
            "        found += os.read(d, 9999)\n    except OSError: pass\n"
            "texts = [x for o in gc.get_objects() for x in (o.values() if type(o) is dict else ()) if type(x) is str]\n"
            "print(found, 'secret-4' in texts or 'other input' in texts)"
        )
        .replace("'secret-4'", "'secret' + '-4'")
        .replace("'other input'", "'other' + ' input'")
    )
    code = PROGRAM_TEXT.format(head="", act=textwrap.indent(act, "    "))
    cases = [Case(("1\n",), {}, "secret-4"), Case(("other input",), {}, "x")]
    found = arena.sandbox.run_cases(code, PROGRAM, cases, compare="lines")
    assert "printed \"b'' False\"" in found[0].message
    assert found[1].outcome is Outcome.ERROR


def test_nothing_is_left_for_the_next_input(arena: Arena) -> None:
    if arena.level == "process":
        pytest.skip("programs may write files there")
    act = (
        "for folder in ('.', '/tmp', '/dev/shm', '/var/tmp'):\n"
        "    try: open(folder + '/attack', 'w').write('2')\n    except OSError: pass"
    )
    head = (
        "import os\nleft = [f for f in ('.', '/tmp', '/dev/shm', '/var/tmp') if os.path.exists(f + '/attack')]\n"
        "assert not left, left"
    )
    assert replies(arena, act, head) == ["", "4\n"]


@pytest.mark.parametrize("name", FAST)
def test_fast_ways_to_read_and_print_are_as_in_python(arena: Arena, name: str) -> None:
    code = f"import io, mmap, os, pathlib, sys\n{FAST[name]}"
    with tempfile.TemporaryFile("w+") as file:
        file.write("3 4\nfive\n")
        file.seek(0)
        said = subprocess.run([sys.executable, "-c", code], stdin=file, stdout=subprocess.PIPE, text=True)  # fmt: skip
    result = arena.sandbox.run_script(code, "3 4\nfive\n")
    assert (result.outcome, result.stdout) == (Outcome.PASS, said.stdout), result.message
    assert said.returncode == 0


def test_the_input_is_nothing_that_can_be_changed_or_grow(arena: Arena) -> None:
    act = (
        "for act in (lambda: os.ftruncate(0, 0), lambda: os.pwrite(0, b'9', 0), lambda: os.write(0, b'x')):\n"
        "    try: print(act())\n    except OSError: print('no')"
    )
    assert replies(arena, act) == ["no\nno\nno\n", "4\n"]


def test_children_neither_answer_nor_stay(arena: Arena) -> None:
    act = "try:\n    if not os.fork():\n        time.sleep(30); print('late', flush=True)\nexcept OSError: pass\nprint(2)"
    assert replies(arena, act)[1] == "4\n"
