"""examples/tests_for_a_function.py: the printed file passes for the function, and fails for a changed one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "tests_for_a_function.py"
FUNCTION = '''
import math

UNITS = {"h": 3600, "m": 60, "s": 1}


def seconds(text: str, least: int = 0) -> float:
    """Return the seconds of "1h 2m 3s", at least so many.

    >>> seconds("1m 5s")
    65
    >>> seconds("2s", 7)
    7
    """
    found = sum(int(part[:-1]) * UNITS[part[-1]] for part in text.split())
    return max(found, least) if found else math.nan


def half(x):
    return x / 2
'''
TESTER = """
class Wrong:
    text = "assert seconds('1h') == 1\\nassert seconds('x') == 2"
    def act(self, observations):
        return [self.text for _ in observations]

class NotANumber(Wrong):
    text = "assert half(float('nan')) == 1.0"
"""


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "durations.py").write_text(FUNCTION, encoding="utf-8")
    (tmp_path / "tester.py").write_text(TESTER, encoding="utf-8")
    return tmp_path


def test_the_printed_file_notices_a_change(folder: Path) -> None:
    done = python(folder, str(EXAMPLE), "durations.py:seconds")
    assert done.returncode == 0, done.stderr
    first, imported, *_ = done.stdout.split("\n")
    noticed, of, *_ = [int(word) for word in first.split() if word.isdecimal()]
    assert 0 < noticed <= of
    assert imported == "from durations import seconds"
    (folder / "test_durations.py").write_text(done.stdout, encoding="utf-8")
    assert python(folder, "-m", "pytest", "-q", "test_durations.py").returncode == 0
    changed = FUNCTION.replace("max(found, least)", "min(found, least)")
    (folder / "durations.py").write_text(changed, encoding="utf-8")
    assert python(folder, "-m", "pytest", "-q", "test_durations.py").returncode == 1


def test_wrong_values_are_corrected_and_what_says_nothing_is_left_out(folder: Path) -> None:
    done = python(folder, str(EXAMPLE), "durations.py:seconds", "--tester", "tester.py:Wrong")
    assert done.returncode == 0, done.stderr
    assert "    assert seconds('1h') == 3600\n" in done.stdout
    assert "seconds('x')" not in done.stdout, "the function raises"
    done = python(folder, str(EXAMPLE), "durations.py:half", "--tester", "tester.py:NotANumber")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# 0 of "), "nan equals nothing"


def test_a_function_that_is_not_there(folder: Path) -> None:
    done = python(folder, str(EXAMPLE), "durations.py:minutes")
    assert done.returncode == 1
    assert "Expect a function minutes at the top of durations.py" in done.stderr


def test_it_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 80
