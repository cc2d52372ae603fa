"""`codea1 testgen` from the command line."""

from __future__ import annotations

import json

import pytest

from codea1_env.cli.app import run

TEXT = """\
def half(n: int) -> int:
    return n // 2


def apply(f: "Socket", n: int) -> int:
    return f(n)


class Counter:
    def __init__(self, start: int = 0) -> None:
        self.value = start

    def add(self, n: int) -> int:
        self.value += n
        return self.value
"""
AGENT = """
class Tester:
    def act(self, observations):
        seen.extend(each["code"] for each in observations)
        return ["```python\\nassert half(100) == 50\\n```"] * len(observations)

seen = []
tester = Tester()
"""


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_function(own, capsys):
    assert run(["testgen", "own.py::half", "--timeout", "4"]) == 0
    assert "Wrote test_own_half.py" in capsys.readouterr().out
    text = (own / "test_own_half.py").read_text()
    assert "from own import half" in text
    assert run(["testgen", "own.py::half", "--timeout", "4"]) == 0
    assert "test_own_half.py exists, --overwrite" in capsys.readouterr().out
    (own / "test_own_half.py").write_text("mine")
    assert run(["testgen", "own.py::half", "--timeout", "4"]) == 0
    assert (own / "test_own_half.py").read_text() == "mine"
    assert run(["testgen", "own.py::half", "--overwrite"]) == 2


def test_a_file_has_a_test_file_for_each_name_and_goes_on_where_it_was_stopped(own, capsys):
    assert run(["testgen", "own.py", "--json", "--timeout", "4"]) == 0
    report = json.loads(capsys.readouterr().out)
    rows = {row["target"]: row for row in report["results"]}
    assert report["written"] == 2
    assert rows["own::Counter"]["file"] == "tests/generated/test_own_counter.py"
    assert rows["own::apply"]["reason"]
    before = (own / "tests/generated/test_own_half.py").stat().st_mtime_ns
    (own / "tests/generated/test_own_counter.py").unlink()
    assert run(["testgen", "own.py", "--timeout", "4"]) == 0
    assert (own / "tests/generated/test_own_counter.py").exists()
    assert (own / "tests/generated/test_own_half.py").stat().st_mtime_ns == before


def test_an_agent_proposes_calls(own, capsys):
    (own / "agent.py").write_text(AGENT)
    arguments = ["--agent", "agent.py:tester", "-n", "1", "--json", "--timeout", "0.000001"]
    assert run(["testgen", "own.py::half", *arguments]) == 0
    text = (own / "test_own_half.py").read_text()
    assert "half(100) == 50" in text or json.loads(capsys.readouterr().out)["results"][0]["killed"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["own.py::nothing"], "does not"),
        (["nowhere.py::f"], "no such file"),
        (["own.py::half", "--agent", "golden"], "golden"),
        (["own.py::apply"], "no arguments"),
    ],
)
def test_bad_input(capsys, arguments, message):
    assert run(["testgen", *arguments, "--timeout", "8"]) == 2
    assert message in capsys.readouterr().err
