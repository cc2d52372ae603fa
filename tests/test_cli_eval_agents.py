"""Who can write programs for `codea1 eval code`. Language models in this process: tests/agents/llm."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from codea1_env.cli.app import run
from codea1_env.problems import load_problems

PROBLEMS = load_problems("starter")[:2]
FEW = ["--max-problems", "2", "-n", "3"]


class Server(ThreadingHTTPServer):
    """A model that knows one answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.reply({"data": [{"id": "first-model"}]})

    def do_POST(self) -> None:
        self.server.seen.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        text = f"Sure:\n```python\n{PROBLEMS[0].reference}```\n"
        self.reply({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    def reply(self, content: Any) -> None:
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def evaluate(arguments: list[str], capsys) -> dict[str, Any]:
    assert run(["eval", "code", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_server_is_asked_with_the_settings_of_the_paper(server, tmp_path, capsys):
    report = evaluate([*FEW, "--agent", server.url, "--output-dir", str(tmp_path)], capsys)
    assert [each["passed"] for each in report["results"].values()] == [3, 0]
    assert len(server.seen) == 6
    assert {body["temperature"] for body in server.seen} == {0.7}
    assert {body["top_p"] for body in server.seen} == {0.95}
    assert {body["model"] for body in server.seen} == {"first-model"}
    assert len({body["seed"] for body in server.seen}) == 6
    assert report["settings"]["temperature"] == 0.7
    row = json.loads((tmp_path / "samples.jsonl").read_text().splitlines()[0])
    assert row["solution"] == PROBLEMS[0].reference
    assert row["answer"].startswith("Sure:")


def test_a_server_that_is_gone(server, tmp_path, capsys):
    server.shutdown()
    server.server_close()
    arguments = [*FEW, "--agent", server.url, "--model", "m", "--output-dir", str(tmp_path)]
    assert run(["eval", "code", *arguments]) == 1
    assert "To go on, add: --resume --output-dir" in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()


def test_an_agent_from_a_file(tmp_path, capsys):
    path = tmp_path / "own.py"
    path.write_text(
        "class Same:\n    def act(self, observations):\n"
        "        return [f'def {o[\"entry_point\"]}(a, b): return a + b' for o in observations]\n"
    )
    arguments = [*FEW, "--agent", f"{path}:Same", "--output-dir", str(tmp_path / "r")]
    report = evaluate(arguments, capsys)
    assert report["results"][PROBLEMS[0].task_id]["passed"] == 3
    assert report["repeated"] == 4
    assert "temperature" not in report["settings"]


def test_the_tables_of_a_run(tmp_path, capsys):
    trained = tmp_path / "run"
    options = ["--preset", "tabular", "--max-problems", "2", "--max-steps", "1"]
    assert run(["train", *options, "--output-dir", str(trained)]) == 0
    capsys.readouterr()
    few = ["--agent", str(trained), "-n", "8", "--split", "train"]
    reports = [
        evaluate([*few, "--max-problems", "2", "--output-dir", str(tmp_path / name)], capsys)
        for name in "ab"
    ]
    assert reports[0] == reports[1]
    assert reports[0]["samples"] == 16
    other = [*few, "--max-problems", "3", "--output-dir", str(tmp_path / "c")]
    assert run(["eval", "code", *other]) == 2
    error = capsys.readouterr().err
    assert "a tabular player knows no others" in error
    assert "--problems starter --split train --max-problems 2" in error


def test_a_folder_that_is_nothing(tmp_path: Path, capsys):
    arguments = [*FEW, "--agent", str(tmp_path), "--output-dir", str(tmp_path / "r")]
    assert run(["eval", "code", *arguments]) == 2
    assert "which has no config.json" in capsys.readouterr().err
