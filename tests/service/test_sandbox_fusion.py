"""SandboxFusion's own client against our server."""

from __future__ import annotations

import base64
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import sandbox_fusion as fusion
from sandbox_fusion.models import RunCodeRequest, RunCodeResponse, RunStatus, SummaryMapping

MAPPING = SummaryMapping(RunFailed="failed", RunTimeout="timeout")


def ask(url: str, code: str, **words: object) -> RunCodeResponse:
    request = RunCodeRequest(code=code, language="python", **words)
    return fusion.run_code(request, endpoint=url, max_attempts=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "summary", "stdout"),
    [
        ("print(int(input()) + 1)", "Success", "42\n"),
        ("import sys\nprint(1)\nsys.exit(3)", "failed", "1\n"),
        ("print(1, flush=True)\nwhile True: pass", "timeout", "1\n"),
        ("print(", "failed", ""),
        ("open('written', 'w')", "failed", ""),
    ],
)
def test_how_a_program_ends(url: str, code: str, summary: str, stdout: str) -> None:
    answer = ask(url, code, stdin="41", run_timeout=0.5)
    assert fusion.summary_run_code_result(answer, MAPPING) == summary
    assert answer.run_result.stdout == stdout
    assert answer.compile_result is None
    assert (answer.status is RunStatus.Success) == (summary == "Success")


def test_what_the_interpreter_would_say_is_in_stderr(url: str) -> None:
    answer = ask(url, "import sys\nsys.stderr.write('note')\n{}['key']")
    assert answer.run_result.stderr == "note\nKeyError: 'key'\n"
    assert answer.message == "KeyError: 'key'"


def test_endless_output_is_cut_and_failed(url: str) -> None:
    answer = ask(url, "while True: print('x' * 999)")
    assert answer.run_result.status.value == "Error"
    assert fusion.summary_run_code_result(answer, MAPPING) == "failed"
    assert 0 < len(answer.run_result.stdout) <= 1 << 20


def test_files_go_in(url: str) -> None:
    data = bytes(range(256)) * 4000
    code = "import os\nprint(len(open('in/a.bin', 'rb').read()), os.listdir())\n1 / 0"
    files = {"in/a.bin": base64.b64encode(data).decode(), "left/out": None}
    answer = ask(url, code, files=files)
    assert answer.run_result.stdout == f"{len(data)} ['in']\n"
    assert answer.message == "ZeroDivisionError: division by zero"
    assert ask(url, "if __name__ == '__main__': print(1)", files={"a": ""}).status == "Success"


@pytest.mark.parametrize(
    "words",
    [
        {"files": {"../a": ""}},
        {"files": {"/etc/passwd": ""}},
        {"files": {"a": "", "a/b": ""}},
        {"files": {"a": "no base64!"}},
        {"files": {"a": "A" * (2 << 20)}},
        {"files": {f"f{number}": "A" * 1_300_000 for number in range(9)}},
        {"files": {f"f{number}": "" for number in range(101)}},
        {"files": {"a" * 201: ""}},
        {"fetch_files": ["out"]},
        {"language": "cpp"},
        {"run_timeout": 1e9},
        {"memory_limit_MB": 1e9},
        {"stdin": "x" * ((16 << 20) + 1)},
        {"code": None},
    ],
    ids=lambda words: repr(words)[:40],
)
def test_bad_requests_are_422_in_one_line(url: str, words: dict[str, object]) -> None:
    body = {"code": "print(1)", "language": "python", **words}
    answer = httpx.post(f"{url}/run_code", json=body, timeout=60)
    assert answer.status_code == 422
    detail = answer.json()["detail"]
    assert detail
    assert len(detail.splitlines()) == 1
    assert len(detail) <= 1000


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b'{"code": "', 422),
        (b"[" * 500_000, 400),
        (b'{"code": "\xff", "language": "python"}', 400),
        (b'{"code": "1", "language": "\\ud800"}', 422),
        (b'{"code": "1", "language": "python", "run_timeout": NaN}', 422),
        (b'{"code": "1", "language": "python", "run_timeout": ' + b"9" * 5000 + b"}", 422),
        (b"", 422),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_hostile_bodies(url: str, content: bytes, status: int) -> None:
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{url}/run_code", content=content, headers=headers, timeout=60)
    assert answer.status_code in (status, 400)
    assert isinstance(answer.json()["detail"], str)


def test_text_that_is_no_unicode(url: str) -> None:
    content = b'{"code": "print(ascii(input()))", "language": "python", "stdin": "\\ud800"}'
    headers = {"content-type": "application/json"}
    answer = httpx.post(f"{url}/run_code", content=content, headers=headers).json()
    assert answer["run_result"]["stdout"].startswith("'\\ud")
    content = b'{"code": "\\ud800", "language": "python"}'
    answer = httpx.post(f"{url}/run_code", content=content, headers=headers).json()
    assert answer["status"] == "Failed"


def test_the_content_is_said_to_be_json(url: str) -> None:
    content = b'{"code": "print(1)", "language": "python"}'
    answer = httpx.post(f"{url}/run_code", content=content, headers={"content-type": "text/plain"})
    assert answer.status_code == 422  # a page in a browser may send this
    assert "application/json" in answer.json()["detail"]


@pytest.mark.slow
def test_16_clients_at_a_time(url: str) -> None:
    def one(number: int) -> bool:
        answer = ask(url, "print(int(input()) ** 2)", stdin=str(number))
        return answer.run_result.stdout == f"{number**2}\n"

    with ThreadPoolExecutor(16) as clients:
        assert all(clients.map(one, range(64)))
