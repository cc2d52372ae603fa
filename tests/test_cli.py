"""The command line: what it prints, its exit codes, and that a user's mistake gives one clear message."""

from __future__ import annotations

import io
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import codea1_env
from codea1_env.cli.app import COMMANDS, run
from codea1_env.cli.errors import InputError, library_errors
from codea1_env.cli.tables import print_markdown, print_sheet
from codea1_env.rendering import progress
from codea1_env.report.sheet import Sheet
from codea1_env.support.plugins import find
from codea1_env.training import TrainConfig
from codea1_env.training.settings import flat

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

PLAYER = '''
class Even:
    """Solves is_even."""

    def act(self, observations):
        return ["def is_even(n):\\n    return n % 2 == 0"] * len(observations)
'''

GOOD = {
    "task_id": "own/one",
    "prompt": "def one() -> int:",
    "entry_point": "one",
    "reference": "def one():\n    return 1",
    "tests": ["assert one() == 1"],
    "metadata": {"split": "train"},
}


def children_cpu() -> float:
    """CPU seconds of the commands run so far: unlike wall-clock time, other work on the machine does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def codea1(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command as a user's shell does."""
    return subprocess.run(
        [sys.executable, "-m", "codea1_env.cli", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(codea1_env.__file__).parent.parent)},
    )


def options_of(command: str, capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        run([*command.split(), "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


# The command itself


def test_help_names_every_command_and_is_quick() -> None:
    start = children_cpu()
    done = codea1("--help")
    seconds = children_cpu() - start
    assert done.returncode == 0
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
    assert seconds < 3.0


@pytest.mark.slow
def test_interrupt_while_loading_ends_quietly(tmp_path: Path) -> None:
    slow = "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(30)"
    (tmp_path / "pettingzoo.py").write_text(slow)
    done = subprocess.run(
        [sys.executable, "-m", "codea1_env.cli", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}:{Path(codea1_env.__file__).parent.parent}"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", ["play", "train", "problems validate", "sandbox doctor"])
def test_help_explains_every_option(command, capsys):
    text = options_of(command, capsys)
    assert f"usage: codea1 {command}" in text
    for option in re.split(r"\n. (?=--[a-z])", text)[1:]:
        explanation = re.sub(r"--?\S+( [{A-Z]\S+)?|\(default.*|[│╰╭─]", "", option).split()
        assert len(explanation) > 1, option
    if command == "train":
        for name in flat(TrainConfig()):
            assert f"--{name.replace('_', '-')}" in text


def test_the_list_of_commands_fits_into_80_columns(capsys, monkeypatch):
    assert run(["--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


# Mistakes of the user: exit code 2, one message, no traceback


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "unknown command 'trian'. Did you mean 'train'?"),
        (["train", "--baseline", "nobook"], "unknown baseline 'nobook'. Did you mean 'no-book'?"),
        (["train", "--alpha", "7"], "Expect --alpha to be less than or equal to 1, actually: 7.0"),
        (["train", "--max-minutes", "0"], "--max-minutes to be greater than 0, actually: 0.0"),
        (["train", "--tester", "no.py:X", "--dry-run"], "tester.player: Expect no.py to be a"),
        (["train", "--resume", "--output-dir", "none"], "Expect none to be the folder of a run"),
        (["train", "--resume", "--preset", "quick"], "expect --resume without --preset"),
        (["play", "--coder", "mutnat"], "unknown player 'mutnat'. Did you mean 'mutant'?"),
        (["play", "--problem", "x"], "one of the 128 problems, actually: 'x'. Known are for example 'starter/"),
        (["play", "--problem", "is_leap_yea"], "actually: 'is_leap_yea'. Did you mean 'starter/is_leap_year'?"),
        ([], "usage: codea1 COMMAND"),
        (["problems", "lst"], "unknown command 'problems lst'. Did you mean 'problems list'"),
        (["eval", "code", "--prompts", "x"], "Expect --prompts to be one of few-shot, detailed, or FILE.py:NAME, actually: 'x'"),
        (["bench", "algorithms", "--algorithms", "golden-test"], "Did you mean 'golden-tests'"),
        (["bench", "algorithms", "--seeds", "0"], "Expect --seeds to be at least 1"),
        (["bench", "algorithms", "--resume"], "expect --output-dir DIR with --resume"),
        (["eval", "cross-play", "golden", "refrence"], "Did you mean 'reference'"),
        (["eval", "cross-play", "goldn", "reference"], "Did you mean 'golden'"),
        (["eval", "cross-play", "golden", "reference", "--num-samples", "0"], "Expect --num-samples to be at least 1, actually: 0"),
        (["eval", "cross-play", "golden", "boundary"], "expect a coder among the players, actually: none. Add mutant or planted or reference"),
        (["bench", "algorithms", "--preset", "tabular", "--quick"], "expect --quick or --preset, actually: both"),
        (["eval", "code", "--agent", "mutant", "--k", "5", "-n", "4"], "k=5, and every problem has 4"),
        (["eval", "code", "--agent", "mutant", "--resume", "--output-dir", "."], "it has no eval.json"),
    ],
)  # fmt: skip
def test_mistake_is_explained(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(("codea1: ", "usage: "))
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["play --sed 1", "train --seed x", "train --max-minutes x", "eval compare", "eval tests --mutator own"])  # fmt: skip
def test_what_no_option_takes_ends_with_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run(words.split())
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "--help" in err


# codea1 play


@pytest.mark.slow
def test_play_is_quick_from_the_shell() -> None:
    start = children_cpu()
    done = codea1("play")
    seconds = children_cpu() - start
    assert done.returncode == 0, done.stderr
    assert "starter/" in done.stdout
    assert "\x1b" not in done.stdout  # this is not a terminal
    assert done.stderr == ""
    assert seconds < 5.0


@pytest.mark.slow
def test_play_as_json_is_reproducible(capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for _ in range(2):
        assert run(["play", "--json", "--seed", "3", "--rounds", "2"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    turns = json.loads(outputs[0])["turns"]
    assert [turn["agent"] for turn in turns] == ["coder_0", "tester_0"] * 2


def test_a_missing_package_of_language_models_names_its_extra() -> None:
    with pytest.raises(InputError, match=r"pip install 'codea1-env\[llm\]'"), library_errors():
        raise ModuleNotFoundError("No module named 'trl.trainer'", name="trl.trainer")
    with pytest.raises(InputError, match="No module named 'mine'"), library_errors():
        raise ModuleNotFoundError("No module named 'mine'", name="mine")


@pytest.mark.slow
def test_play_says_who_plays_and_why_the_tester_gets_what_it_gets(capsys):
    assert run(["play", "--problem", "is_leap_year", "--tester", "boundary", "--seed", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "coder mutant, tester boundary, seed 2, 8 tests a suite\nCode-A1 · starter/is_leap_year "
    )
    said = re.search(r"gets (\S+) = 0.5 x validity (\S+) \+ 0.5 x adversarial (\S+);", out)
    assert said is not None
    test, validity, adversarial = map(float, said.groups())
    assert test == pytest.approx((validity + adversarial) / 2, abs=1e-3)
    parts = re.search(
        r"validity \S+ = (\d) of 8 tests.*; adversarial \S+ = (\d) of 8 tests broke", out
    )
    assert parts is not None
    assert [int(n) / 8 for n in parts.groups()] == [validity, adversarial]


@pytest.mark.slow
def test_play_says_what_replayed_tests_and_a_broken_program_do(capsys, tmp_path):
    two = ["--problem", "starter/is_leap_year", "--tester", "copier", "--rounds", "2"]
    assert run(["play", *two]) == 0
    out = capsys.readouterr().out
    assert "mean of two shares" in out
    paid = re.search(r"adversarial (\S+) = \(1 \+ (\d) of 8 - (\d+) of (\d+)\) / 2", out)
    assert paid is not None
    adversarial, new, known, old = map(float, paid.groups())
    assert adversarial == pytest.approx((new / 8 - known / old + 1) / 2, abs=1e-3)
    (tmp_path / "mine.py").write_text(PLAYER.replace("def is_even", "def other"))
    broken = ["play", "--coder", f"{tmp_path}/mine.py:Even", "--problem", "starter/is_even"]
    assert run(broken) == 0
    assert "gets nothing, since the program does not run" in capsys.readouterr().out
    assert run([*broken, "--rewards", "rltf"]) == 0, "other rewards have reasons of their own"
    assert "gets nothing" not in capsys.readouterr().out


@pytest.mark.slow
def test_play_with_a_player_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLAYER)
    assert run(["play", "--coder", f"{path}:Even", "--problem", "starter/is_even", "--json"]) == 0
    last = json.loads(capsys.readouterr().out)["turns"][-1]
    assert last["rewards"]["coder_0"] == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_this_name\n", "line 1: ModuleNotFoundError: No module named"),
        ("class P:\n    pass\n", "it has no method act"),
        ("x = (\n", "mine.py to be Python, actually, line 1: '(' was never closed"),
        ("class P:\n    def act(self, seen): return [None]\n", "answer with strings, actually: <class 'NoneType'>"),
        ("class P:\n    def act(self, seen): return None\n", "a list of answers, one per observation, actually: None"),
    ],
)  # fmt: skip
def test_a_player_that_cannot_play_is_explained(text, message, capsys, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text)
    assert run(["play", "--coder", f"{path}:P", "--problem", "starter/is_even"]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_file_may_import_what_lies_beside_it(capsys, tmp_path):
    (tmp_path / "beside.py").write_text("ANSWER = 'def is_even(n):\\n    return n % 2 == 0'\n")
    path = tmp_path / "mine.py"
    text = "from beside import ANSWER\nclass P:\n    def act(self, seen): return [ANSWER for _ in seen]\n"
    path.write_text(text)
    before = list(sys.path)
    assert run(["play", "--coder", f"{path}:P", "--problem", "starter/is_even", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["turns"][-1]["rewards"]["coder_0"] == 1.0
    assert sys.path == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "beside.py").write_text("ANSWER = 'another'\n")
    other = tmp_path / "other" / "mine.py"
    other.write_text(text)
    assert find(f"{other}:P")().act([0]) == ["another"], "of two files each has its own"
    assert find(f"{path}:P")().act([0]) != ["another"]
    path.write_text("import nothing_of_this_name\n")
    assert run(["play", "--coder", f"{path}:P"]) == 2
    assert sys.path == before


@pytest.mark.slow
def test_a_reference_that_never_ends_is_the_users_mistake(capsys, tmp_path):
    path = tmp_path / "broken.jsonl"
    path.write_text(json.dumps({**GOOD, "reference": "while True: pass"}))
    assert run(["play", "--problems", str(path)]) == 2
    assert "Expect the reference of problem 'own/one' to run" in capsys.readouterr().err


# codea1 problems


@pytest.mark.slow
def test_bundled_problems_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["problems", "list", "--split", "eval"]) == 0
    *lines, total = capsys.readouterr().out.splitlines()
    assert total == f"{len(lines)} problems"
    assert all(line.startswith("starter/") and " eval" in line for line in lines)
    assert run(["problems", "list", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) >= 96
    assert {row["difficulty"] for row in rows} == {"easy", "medium", "hard"}
    assert all(row["tests"] >= 10 for row in rows)


@pytest.mark.slow
def test_wrong_set_is_told_with_file_and_line(capsys, tmp_path):
    path, kind = tmp_path / "bad.jsonl", "reference-fails"
    path.write_text(json.dumps(GOOD) + "\n")
    assert run(["problems", "validate", str(path)]) == 0
    weak, *table, total = capsys.readouterr().out.splitlines()
    assert f"{path}, line 1: warning [weak-tests]" in weak
    rows = [line.split() for line in table]
    assert ["stub", "1", "0"] in rows
    assert ["constant", "1", "1"] in rows
    assert total == "1 problem with 1 test: 0 errors, 1 warning"
    bad = {**GOOD, "task_id": "own/two", "prompt": "def one():", "reference": "def one(): return 2"}
    path.write_text(f"{json.dumps(GOOD)}\n{json.dumps(bad)}\n")
    assert run(["problems", "validate", str(path)]) == 1
    *findings, total = capsys.readouterr().out.splitlines()
    assert any(f"{path}, line 2: error [{kind}]" in line for line in findings)
    assert "1 error," in total

    assert run(["problems", "validate", str(path), "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert kind in [finding["kind"] for finding in report["findings"]]
    assert report["tried"]["constant"] == {"programs": 1, "passed": 1}


# codea1 sandbox doctor


def test_doctor_says_what_the_sandbox_uses_here(capsys, sandbox):
    assert run(["sandbox", "doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["default"] == sandbox.level
    levels = {level["level"]: level for level in found["levels"]}
    assert levels[sandbox.level]["works"] is True
    assert levels[sandbox.level]["found"]["open a socket"].startswith("denied")

    assert run(["sandbox", "doctor"]) == 0
    out = capsys.readouterr().out
    assert f"Sandbox() uses the level {sandbox.level!r} here." in out
    assert "open a socket" in out


@pytest.mark.slow
def test_a_weaker_level_is_a_warning_in_one_line_also_where_streams_are_closed() -> None:
    words = "play --json --sandbox-level process >&- <&-"
    command = f"{sys.executable} -m codea1_env.cli {words}"
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("codea1: warning: the sandbox runs at level 'process'")


ROWS = [["name", *(f"figure {n}" for n in range(5))], ["mine", *["0.500 [0.400, 0.600]"] * 5]]


def test_long_work_says_how_much_of_it_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    shown = progress.WorkProgress(Console(file=out))
    shown.begin("runs", 60, known=20)
    for done, seconds in ((20, 0), (21, 4), (22, 15), (40, 40), (41, 40.5), (60, 80), (60, 81)):
        now[0] = 100.0 + seconds
        shown.tell(done, f"{done} of 60", lambda: "so far 0.5")
    assert out.getvalue().splitlines() == [
        "20 of 60, so far 0.5",  # what was known took no time
        "22 of 60, about 4:45 left, so far 0.5",
        "40 of 60, about 0:40 left, so far 0.5",
        "60 of 60, so far 0.5",
    ]


@pytest.mark.parametrize("width", [60, 120])
def test_nothing_is_cut_off_on_a_narrow_screen(width: int):
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, no_color=True)
    print_sheet(Sheet.of(ROWS), console)
    print_markdown(REPORT, console)
    text = out.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "\u2026" not in text
    assert text.count("0.500 [0.400, 0.600]") == 5, "figures are whole"
    assert text.count("0.406 [0.188, 0.625]") == 4
    for n in range(5):
        assert f"figure {n}" in text


@pytest.mark.slow
def test_a_reader_who_goes_away_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "codea1_env.cli", "problems", "list", "--json"]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


NAMES = ["mylearn.py:LongerNameOfAnAlgorithm", "mylearn.py:LongerNameOfAnother"]
HEADINGS = ["", "coder: pass rate, IQM", "mean", "P", "tester: kill rate, IQM", "mean", "P", "runs"]
CELLS = ["0.334 [0.312, 0.422]", "0.383", "0.406 [0.188, 0.625]"] * 2 + ["2"]
TABLE = [HEADINGS, ["---"] * len(HEADINGS), *([name, *CELLS] for name in NAMES)]
REPORT = "\n".join([*(f"| {' | '.join(row)} |" for row in TABLE), "", "![scores](scores.png)"])


def test_names_are_whole_in_a_pipe():
    out = io.StringIO()
    print_markdown(REPORT, Console(file=out, width=80))
    for name in NAMES:
        (line,) = [line for line in out.getvalue().splitlines() if name in line]
        assert line.count("0.334 [0.312, 0.422]") == 2
