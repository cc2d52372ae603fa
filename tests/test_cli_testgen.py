"""`codea1 testgen` from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import codea1_env
from codea1_env.cli.app import run
from codea1_env.problems import load_problems
from codea1_env.sandbox import Limits
from codea1_env.testgen import observing

BUGGY = '''\
def median(numbers: list[int]) -> float:
    """Return the median.

    >>> median([3, 1, 2])
    2
    """
    middle = len(numbers) // 2
    if len(numbers) % 2:
        return numbers[middle]
    return (numbers[middle - 1] + numbers[middle]) / 2


def half(n: int) -> int:
    return n // 2


def draw(n: int) -> object:
    return object()


def connect(channel: "Socket"):
    return channel.open()


def apply(f, n: int) -> int:
    return f(n)


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.value = start

    def add(self, n: int) -> int:
        self.value += n
        return self.value
'''


PACKAGE = {
    "units.py": "SCALE = 2\n",
    "shapes/__init__.py": "from .inner.flat import Side, area\n",
    "shapes/inner/__init__.py": "",
    "shapes/inner/sides.py": "class Side:\n    def __init__(self, length):\n        self.length = length\n",
    "shapes/inner/flat.py": """\
from __future__ import annotations

import units

from .. import inner
from .sides import Side


def area(side: Side | int) -> int:
    \'\'\'Area of a square.

    >>> from shapes import Side
    >>> area(Side(2))
    8
    \'\'\'
    length = side.length if isinstance(side, Side) else side
    return length * length * units.SCALE


class Square:
    def __init__(self, length: int = 1) -> None:
        self.length = length

    def grown(self, by: int) -> Square:
        return Square(self.length + by)

    def __repr__(self) -> str:
        return f"Square({self.length})"
""",
    "shapes/effects.py": """\
import socket
import sys

print("hello")
sys.stderr.write("x" * 100_000)
try:
    socket.create_connection(("127.0.0.1", 1), timeout=0.1)
except OSError:
    pass


def inc(n: int) -> int:
    return n + 1
""",
}


def python(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=180,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(codea1_env.__file__).parent.parent),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they take longer to load than a file to run
        },
    )


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    (tmp_path / "stats.py").write_text(BUGGY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function_without_findings(folder, capsys):
    done = python("codea1_env.cli", "testgen", "stats.py::half", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "Wrote test_stats_half.py: " in done.stdout
    assert "found" not in done.stdout
    before = (folder / "test_stats_half.py").read_text()
    assert "pytest.mark.skip" not in before
    assert python("pytest", "-q", "test_stats_half.py", cwd=folder).returncode == 0
    assert run(["testgen", "stats.py::half"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert "test_stats_half.py to be a new file, actually: it exists" in shown
    assert (folder / "test_stats_half.py").read_text() == before
    assert run(["testgen", "stats.py::half", "--output", "test_two.py"]) == 0
    assert (folder / "test_two.py").read_text() == before


def test_findings_are_printed_and_give_exit_code_1(folder, capsys):
    assert run(["testgen", "stats.py::median"]) == 1
    shown = capsys.readouterr().out
    assert "found: median([3, 1, 2]) returns 1; the docstring says 2\n" in shown
    assert "such as: median([]) raises IndexError: list index out of range; neither its" in shown
    text = (folder / "test_stats_median.py").read_text()
    assert "@pytest.mark.skip(reason='median([]) raises IndexError" in text
    assert python("pytest", "-q", "test_stats_median.py", cwd=folder).returncode == 0


def test_as_json(folder, capsys):
    assert run(["testgen", "stats.py::Counter", "--json", "--seed", "4"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["output"] == "test_stats_counter.py"
    assert report["killed"] == report["mutants"] - len(report["survivors"]) > 0
    assert report["findings"] == []
    assert all("Counter(" in test for test in report["tests"])


def test_an_agent_of_ones_own(folder, capsys):
    (folder / "tester.py").write_text(
        "class Guesser:\n    def act(self, observations):\n        assert all(o['turn'] == 1 for o in observations)\n"
        "        assert 'n // 2' in observations[0]['code']\n"
        "        return ['assert half(7) == 3\\nassert half(-3) == -2\\nassert half(5) == 3', 'who knows'] * (len(observations) // 2)\n"
    )
    arguments = ["testgen", "stats.py::half", "--agent", "tester.py:Guesser", "-n", "4"]
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert "1 question, such as: half(5) returns 2; the tester expected 3" in shown
    assert (
        "The agent wrote 6 tests in 4 answers: 4 right, 2 wrong, 2 of no use (the first: " in shown
    )
    text = (folder / "test_stats_half.py").read_text()
    assert "a tester wrote" in text
    assert "6 of 6 copies" in text
    assert "half(5)" in text.partition("skip")[2]
    assert run([*arguments, "--overwrite", "--all-findings"]) == 1
    assert "found: half(5) returns 2; the tester expected 3\n" in capsys.readouterr().out


LOCKED = """\
def opens(word: str) -> int:
    if sum(ord(sign) * place for place, sign in enumerate(word)) == 15033:
        return len(word) * 3 + 1
    return 0


def is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
"""
KNOWING = """\
class Knowing:
    def act(self, observations):
        name = observations[0]["entry_point"]
        key = "the long way round"
        return [f"assert {name}({key!r}) == 1" if name == "opens" else "assert is_leap(2000)"] * len(observations)
"""


def test_an_agent_for_a_whole_file_reaches_what_search_does_not(folder, capsys):
    (folder / "locks.py").write_text(LOCKED)
    (folder / "knowing.py").write_text(KNOWING)
    killed = {}
    for agent in ([], ["--agent", "knowing.py:Knowing", "-n", "2"]):
        out = f"out-{len(agent)}"
        assert run(["testgen", "locks.py", *agent, "--output-dir", out, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        killed[out] = {row["target"]: row["killed"] for row in report["results"]}
    rows = {row["target"]: row["predictions"] for row in report["results"]}
    assert rows["locks::opens"] | {"reason": ""} == {
        "answers": 2, "tests": 2, "right": 0, "wrong": 2, "useless": 0, "reason": "",
    }  # fmt: skip
    assert rows["locks::is_leap"]["right"] == 2
    # What it predicts is wrong; what the function gives for its call kills all the same.
    assert killed["out-4"]["locks::opens"] > killed["out-0"]["locks::opens"]
    assert "the long way round" in (folder / "out-4" / "test_locks_opens.py").read_text()
    assert (
        run(["testgen", "locks.py", "--resume", "--output-dir", "out-0", "--agent", "x.py:No"]) == 2
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py::f"], "no such file"),
        (["stats.py::"], "Add two colons"),
        (["stats.py::medain"], "Did you mean median?"),
        (["stats.py::Counter.add"], "among those for its class: stats.py::Counter"),
        (["stats.py::Counter::add"], "among those for its class: stats.py::Counter"),
        (["stats.py::half", "--output", "no/folder/test_x.py"], "its folder does not exist"),
        (["stats.py::half", "--output", "x.txt"], "its name does not end with .py"),
        (["stats.py::half", "--agent", "golden"], "knows only tests of problem sets"),
        (["stats.py::half", "--agent", "bondary"], "Did you mean 'boundary'"),
        (["stats.py::half", "-n", "0"], "Expect --num-samples to be at least 1"),
        (
            ["stats.py::half", "--timeout", "0"],
            "Expect --timeout to be a number of seconds above 0",
        ),
        (["statz::half"], "Did you mean stats?"),
        (["math::gcd"], "to be written in Python, actually: it is compiled"),
        (["nowhere"], "to be a package or module, here or installed, actually: there is none"),
        (["stats.py", "--agent", "golden"], "knows only tests of problem sets"),
        (["stats.py", "--agent", "nothing.py:Tester"], "nothing.py"),
        (["stats.py", "--resume"], "expect --output-dir DIR with --resume"),
        (["stats.py::apply"], "no value can be made up for f (a function). Write an example"),
        (["stats.py::connect"], "no value can be made up for channel (Socket). Write an example"),
    ],
)
def test_bad_input(folder, arguments, message, capsys):
    try:
        code = run(["testgen", *arguments])
    except SystemExit as error:  # what the dataclass itself checks
        code = error.code
    assert code == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(folder.glob("test_*")) == []


def test_a_function_that_is_never_the_same(folder, capsys):
    (folder / "chance.py").write_text("import random\ndef draw(n: int): return random.random()\n")
    assert run(["testgen", "chance.py::draw"]) == 2
    error = capsys.readouterr().err
    assert "gave different results in two runs, such as draw(" in error
    assert "Pass in what it draws" in error


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("def f(n: int):\n    while True: pass\n", 1, "found: f(0) does not end in time"),
        (
            "import sys\ndef f(n: int): sys.exit(n)\n",
            2,
            "no call of f can be tested, and its code ends the process",
        ),
        (
            "end = __import__('os')._exit\ndef f(n: int): end(n)\n",
            2,
            "1 question, such as: f(0) ends the process",
        ),
        (
            "def f(n: int):\n    return 'x' * (40 << 20)\n",
            1,
            "found: f(0) returns more",
        ),
        (
            "import os\ndef f(n: int): os.kill(os.getppid(), 9)\n",
            2,
            "f asks for what the sandbox has not, files, the network or standard input",
        ),
        ("_codea1_driver = 1\ndef f(n: int): return n + 1\n", 0, "Wrote "),
        (
            "__import__('builtins').exec = print\ndef f(n: int): return n\n",
            2,
            "no test of f passes",
        ),
    ],
)
def test_hostile_files_end_with_a_message(folder, text, code, message, capsys, monkeypatch):
    monkeypatch.setattr(observing, "PATIENT", Limits(call_cpu_time=0.25, call_wall_time=5))
    (folder / "bad.py").write_text(text)
    assert run(["testgen", "bad.py::f"]) == code
    shown = capsys.readouterr()
    assert message in shown.out + shown.err


def test_a_function_in_a_package(folder, capsys):
    """Its module is imported as a part of it, and so is what lies beside the package."""
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    assert run(["testgen", "shapes::area"]) == 0
    assert "Wrote shapes/test_shapes_area.py" in capsys.readouterr().out
    text = (folder / "shapes" / "test_shapes_area.py").read_text()
    assert "from shapes import area" in text
    assert "assert area(Side(2)) == 8" in text  # which imports its own package
    assert run(["testgen", "shapes.inner.flat::Square", "--output", "test_square.py"]) == 0
    assert python("pytest", "-q", "shapes", "test_square.py", cwd=folder).returncode == 0


def test_all_of_a_folder_after_a_kill(folder, capsys):
    for name, text in PACKAGE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    arguments = ["testgen", "shapes", "--output-dir", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "codea1_env.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    results = folder / "out" / "results.jsonl"
    while not results.exists() or not results.read_bytes():
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.wait()
    first = results.read_bytes()
    assert run(arguments) == 2
    assert "Add --resume" in capsys.readouterr().err
    assert run([*arguments, "--resume"]) == 0
    assert results.read_bytes().startswith(first[: first.rfind(b"\n") + 1])
    report = json.loads((folder / "out" / "report.json").read_text())
    rows = {row["target"]: row for row in report["results"]}
    assert {"shapes.effects::inc", "shapes.inner.flat::area", "shapes.inner.sides::Side"} < set(
        rows
    )
    assert report["written"] == report["targets"] == 4
    assert any("opens a network socket" in act for act in rows["shapes.effects::inc"]["acts"])
    assert python("pytest", "-q", "out", cwd=folder).returncode == 0


# Problem sets


def summary(folder: Path) -> dict[str, object]:
    return json.loads((folder / "report.json").read_text())


def test_suites_for_a_problem_set(tmp_path, capsys):
    arguments = ["testgen", "--problems", "starter", "--agent", "boundary", "--max-problems", "6"]
    assert run([*arguments, "-n", "4", "--output-dir", str(tmp_path / "r")]) == 0
    shown = capsys.readouterr().out
    report = summary(tmp_path / "r")
    tests = report["tests"]
    assert f"{tests['kept']} of {tests['distinct']} different tests kill {tests['killed']}" in shown
    assert tests["killed"] == tests["killed_before"] > 0
    assert tests["right"] + tests["corrected"] >= tests["distinct"] > tests["kept"]
    problems = load_problems(str(tmp_path / "r" / "problems.jsonl"))
    assert len(problems) == report["scored"] == 6
    assert sum(len(problem.tests) for problem in problems) == tests["kept"]
    assert run(["problems", "validate", str(tmp_path / "r" / "problems.jsonl")]) == 0
    assert all(problem.metadata["tests_by"] == "boundary" for problem in problems)


@pytest.mark.slow
def test_a_run_can_be_trained_on_the_suites(tmp_path, capsys):
    arguments = ["testgen", "--problems", "starter", "--split", "train", "--agent", "golden"]
    assert run([*arguments, "--max-problems", "8", "--output-dir", str(tmp_path / "r")]) == 0
    path = str(tmp_path / "r" / "problems.jsonl")
    train = ["train", "--problems", path, "--preset", "shortest"]
    train += ["--output-dir", str(tmp_path / "run")]
    assert run(train) == 0
    assert "Error" not in capsys.readouterr().err


def test_suites_made_elsewhere(tmp_path, capsys):
    path = tmp_path / "suites.jsonl"
    rows = [
        {"task_id": "starter/add_numbers", "tests": ["assert add_numbers(1, 2) == 3"]},
        {"task_id": "starter/nothing", "tests": ["assert nothing() == 3"]},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["testgen", "--samples", str(path), "--max-problems", "2"]
    assert run([*arguments, "--output-dir", str(tmp_path / "r")]) == 2
    assert "none for 1: starter/" in capsys.readouterr().err
    assert run([*arguments, "--partial", "--output-dir", str(tmp_path / "r"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["unknown"] == {"starter/nothing": 1}
    assert len(report["missing"]) == 1
    assert report["results"]["starter/add_numbers"]["kept"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--problems", "starter"], "expect either --samples FILE.jsonl or --agent NAME"),
        (["--problems", "startr", "--agent", "boundary"], "startr"),
        (["--agent", "bondary", "--max-problems", "1"], "Did you mean 'boundary'"),
        (["--agent", "boundary", "--resume"], "expect --output-dir DIR with --resume"),
        (["--agent", "boundary", "--num-tests", "0"], "Expect --num-tests to be at least 1"),
        (["--samples", "none.jsonl"], "actually there is no none.jsonl"),
    ],
)
def test_bad_input_for_problem_sets(folder, arguments, message, capsys):
    try:
        code = run(["testgen", *arguments])
    except SystemExit as error:
        code = error.code
    assert code == 2
    assert message in " ".join(capsys.readouterr().err.split())


LONG = [
    "--agent",
    "boundary",
    "-n",
    "4",
    "--max-problems",
    "24",
    "--batch-size",
    "8",
    "--seed",
    "5",
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """What comes of `LONG`."""
    folder = tmp_path_factory.mktemp("whole") / "r"
    assert run(["testgen", *LONG, "--output-dir", str(folder)]) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_interrupted_suites_end_with_the_same_bytes(number, whole, tmp_path):
    parts = tmp_path / "parts"
    process = subprocess.Popen(
        [sys.executable, "-m", "codea1_env.cli", "testgen", *LONG, "--output-dir", str(parts)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    verdicts = parts / "verdicts.jsonl"
    while not verdicts.exists() or verdicts.read_bytes().count(b"\n") < 3:
        assert process.poll() is None
        time.sleep(0.01)
    os.kill(process.pid, number)
    assert process.wait(120) == (130 if number == signal.SIGINT else -number)
    assert not (parts / "problems.jsonl").exists()
    assert run(["testgen", *LONG, "--output-dir", str(parts), "--resume"]) == 0
    for name in ("samples.jsonl", "verdicts.jsonl", "problems.jsonl", "report.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()


def test_help(capsys):
    assert run(["testgen", "--help"]) == 0
    assert "codea1 testgen FILE.py::NAME" in capsys.readouterr().out
    assert run(["testgen"]) == 2
    for arguments, option in [
        (["x.py::f", "--help"], "FILE.py::NAME "),
        (["x.py::f", "--help"], "--output FILE.py"),
        (["--problems", "x", "--help"], "--output-dir"),
    ]:
        with pytest.raises(SystemExit) as ended:
            run(["testgen", *arguments])
        assert ended.value.code == 0
        assert option in capsys.readouterr().out
