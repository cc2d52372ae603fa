"""verl's own reward function against our server. Its file is loaded alone: verl itself needs GPUs' packages.

Skipped where verl is not installed; `pip download --no-deps verl`, unzipped into a folder of PYTHONPATH, is enough.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import threading
from pathlib import Path
from typing import Any

import pytest


def _reward_function() -> Any:
    found = importlib.util.find_spec("verl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("verl is not installed", allow_module_level=True)
    folder = Path(found.submodule_search_locations[0], "utils/reward_score/sandbox_fusion")
    spec = importlib.util.spec_from_file_location(
        "verl_sandbox_fusion", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verl = _reward_function()

DOUBLE = "```python\nprint(2 * int(input()))\n```"


def score(
    url: str, completion: str, cases: dict[str, Any], **words: Any
) -> tuple[float, list[Any]]:
    found = verl.compute_score(
        f"{url}/run_code", threading.Semaphore(4), 1024, completion, json.dumps(cases), **words
    )
    return float(found[0]), [each["status"] for each in found[1]]


def test_programs_that_read_and_print(url: str) -> None:
    inputs = [f"{number}\n" for number in range(12)]
    right = {"inputs": inputs, "outputs": [f"{2 * number}" for number in range(12)]}
    assert score(url, DOUBLE, right) == (1.0, ["success"] * 12)
    half = {"inputs": inputs, "outputs": [f"{number + 5}\n" for number in range(12)]}
    assert score(url, DOUBLE, half, continuous=True) == (
        0.1,  # of the first ten
        ["wrong_answer"] * 5 + ["success"] + ["wrong_answer"] * 6,
    )


def test_functions_and_methods(url: str) -> None:
    cases = {"inputs": ["3\n4", "[1]\n[2]"], "outputs": ["7", "[1, 2]"], "fn_name": "combine"}
    assert score(url, "```python\ndef combine(a, b):\n    return a + b\n```", cases)[0] == 1.0
    method = "```python\nclass Solution:\n    def combine(self, a, b):\n        return b + a\n```"
    assert score(url, method, cases) == (0.5, ["success", "wrong_answer"])


def test_asserts(url: str) -> None:
    code = "```python\ndef f(n):\n    return n * n\n```"
    cases = {"assert_case": ["assert f(3) == 9", "assert f(2) == 5", "assert f(-1) == 1"]}
    assert score(url, code, cases) == (2 / 3, ["success", "runtime_error", "success"])


@pytest.mark.parametrize(
    ("code", "result", "status"),
    [
        ("print(int(input()) // 0)", -2, "runtime_error"),
        ("import os\nos.kill(os.getpid(), 9)", -2, "runtime_error"),
        ("import time\ntime.sleep(60)", -3, "timeout"),
    ],
)
def test_programs_that_fail(url: str, code: str, result: int, status: str) -> None:
    cases = {"inputs": ["1"], "outputs": ["1"]}
    results, told = verl.check_correctness(f"{url}/run_code", cases, code, timeout=1)
    assert (results, told[0]["status"]) == ([result], status)


def test_a_token_in_the_address() -> None:
    from servers import serving

    token = "0123456789abcdef"
    with serving("--workers", "1", CODEA1_SERVICE_TOKEN=token) as server:
        url = server.url.replace("//", f"//any:{token}@")
        assert score(url, DOUBLE, {"inputs": ["4"], "outputs": ["8"]})[0] == 1.0
        wrong = score(server.url, DOUBLE, {"inputs": ["4"], "outputs": ["8"]})
        assert wrong == (0.0, ["api_error"])
