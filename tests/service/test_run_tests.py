"""Our own route, and what operators ask."""

from __future__ import annotations

import dataclasses
import json
import re
import urllib.error
from pathlib import Path
from typing import Any

import httpx
import pytest

from codea1_env.sandbox import Sandbox

CODE = "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\ndef add(a, b): return a - b"
TESTS = [
    "assert add(1, 0) == 1",
    "assert add(1, 1) == 2",
    "s = Stack()\ns.push(1)\nassert s.items == [1]",
    "assert True",
    "(",
    "import nothing_here\nadd(1, 1)",
]


@pytest.mark.slow
def test_results_are_those_of_the_sandbox(url: str, sandbox: Sandbox) -> None:
    answer = httpx.post(f"{url}/run_tests", json={"code": CODE, "tests": TESTS}, timeout=60)
    assert answer.status_code == 200

    def but_for_measurements(row: dict[str, object]) -> dict[str, object]:
        return {**row, "cpu_time": None}

    here = [dataclasses.asdict(each) for each in sandbox.run_tests(CODE, TESTS)]
    there = answer.json()
    assert there["load"]["outcome"] == "pass"
    assert [but_for_measurements(row) for row in there["tests"]] == [
        but_for_measurements(row) for row in json.loads(json.dumps(here))
    ]
    assert len({row["outcome"] for row in there["tests"]}) > 3
    marks = [row["judged"] for row in there["tests"]]
    assert marks == ["outside", "outside", "inside", "inside", "outside", "inside"]
    assert there["judged"] == {"outside": 3, "inside": 3}


def test_the_reward_of_the_tutorial(url: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "service.md"
    if not page.is_file():
        pytest.skip("needs the repository")
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(blocks[0].replace("http://127.0.0.1:8080", url), names)
    assert names["reward"](CODE, TESTS[:2]) == 0.5
    with pytest.raises(urllib.error.HTTPError):
        names["reward"](CODE, [7])


def test_words_of_a_job_reach_it(url: str) -> None:
    body = {
        "code": "def f(): pass\ndef g():\n    while True: pass",
        "tests": ["f()", "g()"],
        "entry_point": "f",
        "limits": {"call_cpu_time": 0.2, "memory": 1 << 30},
    }
    first, second = httpx.post(f"{url}/run_tests", json=body, timeout=60).json()["tests"]
    assert first["outcome"] == "pass"
    assert second["outcome"] == "error"  # g is not the entry point
    body["entry_point"] = None
    second = httpx.post(f"{url}/run_tests", json=body, timeout=60).json()["tests"][1]
    assert (second["outcome"], second["limit"]) == ("timeout", "cpu_time")


@pytest.mark.parametrize(
    "words",
    [
        {"entrypoint": "f"},
        {"limits": {"cpu": 1}},
        {"limits": {"call_cpu_time": 1e9}},
        {"limits": {"memory": "much"}},
        {"tests": [1] * 1_000_000},
        {"tests": [""] * 10_001},
    ],
    ids=lambda words: repr(words)[:40],
)
def test_mistakes_are_422_in_one_line(url: str, words: dict[str, object]) -> None:
    answer = httpx.post(f"{url}/run_tests", json={"code": "", "tests": [], **words})
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert len(detail.splitlines()) == 1
    assert detail.count("valid string") <= 1  # of a million mistakes one is reported


def test_health_and_metrics(url: str) -> None:
    health = httpx.get(f"{url}/health").json()
    assert health["status"] == "ok"

    def counted(name: str) -> float:
        lines = httpx.get(f"{url}/metrics").text.splitlines()
        (value,) = (line.split()[-1] for line in lines if line.startswith(f"{name} "))
        return float(value)

    name = 'codea1_outcomes_total{outcome="fail"}'
    before = counted(name)
    httpx.post(f"{url}/run_tests", json={"code": "def f(): return 1", "tests": ["assert f() == 2"]})
    assert counted(name) == before + 1
    assert counted("codea1_queue_used") == 0


def test_what_is_not_there(url: str) -> None:
    for answer in (httpx.get(f"{url}/nothing"), httpx.post(f"{url}/submit", json={})):
        assert answer.status_code == 404
        assert "/run_code" in answer.json()["detail"]
    assert httpx.get(f"{url}/run_code").status_code == 405
