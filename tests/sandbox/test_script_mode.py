from __future__ import annotations

import subprocess
import sys

import pytest

from codea1_env.sandbox import Limits, Outcome

QUICK = Limits(call_cpu_time=0.3, call_wall_time=0.6, output=20_000)


@pytest.mark.parametrize(
    ("code", "stdin", "stdout"),
    [
        ("print(int(input()) + 1)", "41", "42\n"),
        ("import sys\nprint(sum(map(int, sys.stdin.read().split())))", "1 2\n3", "6\n"),
        ("print(open(0).read().upper(), end='')", "é\n", "É\n"),
        ("import os\nos.write(1, os.read(0, 3))", "abcd", "abc"),
        ("if __name__ == '__main__':\n    print('main')", "", "main\n"),
        ("print(1)\nexit()\nprint(2)", "", "1\n"),
        ("def main():\n    print(1)\n    quit(0)\nmain()", "", "1\n"),
        ("print(repr(input()), end='\\r\\n')", "a\r\n", "'a\\r'\r\n"),
        ("import sys\nprint(1)\nprint('noise', file=sys.stderr)", "", "1\n"),
        ("import atexit\natexit.register(print, 'last')\nprint('first')", "", "first\nlast\n"),
        ("import threading\nthreading.Thread(target=print, args=('late',)).start()", "", "late\n"),
        (
            "from threading import Timer\nTimer(0.01, lambda: Timer(0.01, print, ('last',)).start()).start()",
            "",
            "last\n",
        ),
        (
            "from concurrent.futures import ThreadPoolExecutor\nprint(*ThreadPoolExecutor().map(int, '12'))",
            "",
            "1 2\n",
        ),
        ("import os\nprint(1, flush=True)\nos._exit(0)\nprint(2)", "", "1\n"),
        ("import sys\nprint(1)\nsys.stdout.close()", "", "1\n"),
        ("import sys\nwith sys.stdout as out:\n    out.write('1')", "", "1"),
        ("import sys\nprint(1)\nsys.stdout = None", "", "1\n"),
        ("import sys\nprint(1)\nsys.__stdout__.close()", "", "1\n"),
        ("import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())\nprint(1)", "", "1\n"),
        ("import sys\nclass Out:\n    write = sys.stdout.write\n    flush = sys.stdout.flush\nsys.stdout = Out\nprint(1)", "", "1\n"),
        ("import os\nprint(__file__ == os.path.join(os.getcwd(), 'program.py'))", "", "True\n"),
    ],
)  # fmt: skip
def test_what_a_program_prints_is_its_answer(sandbox, code, stdin, stdout):
    result = sandbox.run_script(code, stdin)
    assert (result.outcome, result.stdout, result.message) == (Outcome.PASS, stdout, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("print(1)\nraise ValueError('no')", Outcome.ERROR),
        ("print(1, flush=True)\nwhile True: pass", Outcome.TIMEOUT),
        ("import time\nprint(1, flush=True)\ntime.sleep(9)", Outcome.TIMEOUT),
        ("import sys\nprint(1)\nsys.exit(3)", Outcome.EXITED),
        ("import os\nprint(1, flush=True)\nos._exit(1)", Outcome.EXITED),
        ("import os\nprint(1, flush=True)\nos.kill(os.getpid(), 15)", Outcome.SIGNALLED),
        ("print(1, flush=True)\nx = [0] * 10**11", Outcome.MEMORY),
        # Plain Python ends with a status that is not 0, too, where standard output cannot be flushed.
        ("import sys\nprint(1)\nsys.stdout.detach()", Outcome.ERROR),
        ("import os\nprint(1)\nos.close(1)", Outcome.ERROR),
        ("import sys\nprint(1)\nsys.stdout.close()\nprint(2)", Outcome.ERROR),
        ("print(", Outcome.SYNTAX_ERROR),
        ("print('\\0')\n\0", Outcome.SYNTAX_ERROR),
    ],
)
def test_how_a_program_ends(sandbox, code, outcome):
    result = sandbox.run_script(code, limits=QUICK)
    assert result.outcome is outcome
    assert result.message
    assert result.stdout in ("", "1\n")


def test_output_is_bounded(sandbox):
    result = sandbox.run_script("while True: print('x' * 1000)", limits=QUICK)
    assert result.outcome is Outcome.OUTPUT_LIMIT
    assert len(result.stdout) < 20_000 + (1 << 18)  # no more than a piece is read of it
    for length, outcome in ((20_000, Outcome.PASS), (20_001, Outcome.OUTPUT_LIMIT)):
        result = sandbox.run_script(f"print('x' * {length}, end='')", limits=QUICK)
        assert (result.outcome, len(result.stdout)) == (outcome, 20_000)
    # Also of one that prints too much and dies.
    code = "import os\nos.write(1, b'x' * 30_000)\nos._exit(0)"
    assert sandbox.run_script(code, limits=QUICK).outcome is Outcome.OUTPUT_LIMIT


def test_a_forged_reply_is_no_success(sandbox):
    code = "import os\nos.write(4, b'\\x01\\0\\0\\0N' * 3)\nprint(1)"
    assert sandbox.run_script(code).outcome is Outcome.FORBIDDEN


def test_input_that_is_too_large_is_the_callers_mistake(sandbox):
    with pytest.raises(ValueError, match="at most 16777216 bytes, actually: 16777217"):
        sandbox.run_script("", "x" * (1 + (16 << 20)))


@pytest.mark.slow
def test_a_program_that_is_too_large_is_its_own_mistake(sandbox):
    result = sandbox.run_script("#" + "x" * (65 << 20))
    assert (result.outcome, result.message) == (Outcome.SYNTAX_ERROR, "the program is too large")


def test_large_input_arrives_whole_or_not_at_all(sandbox):
    count = "import sys\nprint(len(sys.stdin.read()))"
    assert sandbox.run_script(count, "x" * 3_000_000).stdout == "3000000\n"
    assert sandbox.run_script("print('done')", "x" * 3_000_000).stdout == "done\n"


def test_a_scripts_standard_error_is_no_answer(sandbox):
    code = "import sys\nprint(1)\nsys.stderr.write('e' * 200_000)\nprint(2)"
    result = sandbox.run_script(code, limits=Limits(output=100_000))
    assert (result.outcome, result.stdout, result.stderr) == (Outcome.PASS, "1\n2\n", "e" * 100_000)


ODD = "class E(SystemExit):\n    {}\nraise E"


@pytest.mark.parametrize(
    "code",
    [
        *(f"import sys\nsys.exit({x})" for x in ("256", "-256", "257", "2**32", "2**64", "0.0", "False", "True", "''", "[]", "'0'")),
        *(ODD.format(x) for x in ("code = property(lambda self: 1 / 0)", "code = None", "code = 3", "pass")),
        "import os\nos._exit(256)",
    ],
)  # fmt: skip
def test_the_status_of_an_exit_is_that_of_the_process(sandbox, code):
    process = subprocess.run([sys.executable, "-c", code], capture_output=True)
    expected = Outcome.EXITED if process.returncode else Outcome.PASS
    assert sandbox.run_script(code).outcome is expected


def test_an_exception_that_calls_itself_an_exit_is_none(sandbox):
    code = "class E(Exception):\n    __class__ = SystemExit\n    code = 0\nraise E"
    assert sandbox.run_script(code).outcome is not Outcome.PASS
