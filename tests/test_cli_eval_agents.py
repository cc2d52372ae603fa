"""Who can write programs and tests for `codea1 eval`. Language models in this process: tests/agents/llm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from chat_server import ChatServer, chat_server

from codea1_env.agents.llm.prompts import FewShot
from codea1_env.cli.app import run
from codea1_env.cli.errors import InputError
from codea1_env.cli.players import AskingOptions, Role, player_of
from codea1_env.cli.train import SourcesAndFolder, base_settings
from codea1_env.evaluation.panel import draw_panel
from codea1_env.integrations.side import OneSide
from codea1_env.problems import Problem, load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import observe
from codea1_env.training import checkpoints, train
from codea1_env.training.settings import replaced, to_toml

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

PROBLEMS = load_problems("starter")[:2]
FEW = ["--max-problems", "2", "-n", "3"]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A model that knows one answer."""
    with chat_server(lambda _: f"Sure:\n```python\n{PROBLEMS[0].reference}```\n") as server:
        server.model, server.usage = "first-model", None
        yield server


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


def test_prompts_of_ones_own(server, tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(
        "class Mine:\n    def __init__(self, num_tests): self.number = num_tests\n"
        "    def __call__(self, seen): return [{'role': 'user', 'content': f'MINE {self.number}'}]\n"
    )
    asked = ["--agent", server.url, "--prompts", f"{file}:Mine"]
    report = evaluate([*FEW, *asked], capsys)
    assert {body["messages"][0]["content"] for body in server.seen} == {"MINE 8"}
    assert report["settings"]["prompts"] == f"{file}:Mine"
    assert len(report["settings"]["prompts_sha256"]) == 16
    side = OneSide("tester", "reference", prompts=f"{file}:Mine", problems=PROBLEMS)
    assert side.questions()[0].messages == [{"role": "user", "content": "MINE 8"}]
    file.write_text("def Mine(seen): return seen['nothing']\n")
    assert run(["eval", "code", *FEW, *asked]) == 2
    assert re.search(
        r"Mine to return a chat, actually it raised KeyError: 'nothing' .*line 1",
        capsys.readouterr().err,
    )


def test_the_model_of_a_server_is_kept_and_empty_answers_are_counted(server, tmp_path, capsys):
    server.answer = lambda _: None
    arguments = [*FEW, "--agent", server.url, "--output-dir", str(tmp_path)]
    arguments += ["--request", 'effort = "low", max_tokens = "None"']
    assert run(["eval", "code", *arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert "no text in 6 of 6 answers" in err
    assert report["empty_answers"] == 6
    assert (report["settings"]["model"], report["settings"]["backend"]) == ("first-model", "server")
    assert server.seen[0]["effort"] == "low"
    assert "max_tokens" not in server.seen[0]
    written = json.loads((tmp_path / "eval.json").read_text())
    assert written["command"].startswith("codea1 eval code --max-problems 2 -n 3 --agent http:")
    assert written["command"].endswith(" --json")
    server.model = "second-model"
    assert run(["eval", "code", *arguments, "--resume"]) == 2
    assert "model was 'first-model', now 'second-model'" in capsys.readouterr().err


def test_tokens_are_counted_as_the_server_says(server, tmp_path, capsys):
    said = {"prompt_tokens": 100, "completion_tokens": 20}
    server.usages = [said, {"prompt_tokens": None}, said, "none", said, said]
    arguments = ["eval", "code", *FEW, "--agent", server.url, "--batch-size", "2"]
    arguments += ["--output-dir", str(tmp_path)]
    assert run(arguments) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "Tokens of 6 answers: 400 of prompts, 80 of answers, 20 each, without 2 answers" in shown
    report = (tmp_path / "report.json").read_bytes()
    counted = {"prompt_tokens": 400, "completion_tokens": 80, "truncated": 0}
    assert json.loads(report)["usage"] == {"answers": 6, "untold": 2, **counted}
    # A kill while the third batch was being written: its tokens were kept, and one of its two samples.
    samples = (tmp_path / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "samples.jsonl").write_bytes(b"".join(samples[:5]))
    server.usages = [said, said]
    assert run([*arguments, "--resume"]) == 0
    assert len(server.seen) == 8
    again = json.loads((tmp_path / "report.json").read_bytes())["usage"]
    last = json.loads((tmp_path / "usage.jsonl").read_text().splitlines()[-1])
    assert last == {
        "batch": 2,
        "answers": 2,
        "untold": 0,
        "prompt_tokens": 200,
        "completion_tokens": 40,
        "truncated": 0,
    }
    assert again["answers"] == 6


def test_a_wrong_name_is_told_before_anything_is_loaded(capsys, monkeypatch):
    monkeypatch.setattr("codea1_env.cli.eval.load_problems", None)
    assert run(["eval", "code", "--agent", "refrence"]) == 2
    assert "refrence" in capsys.readouterr().err


def test_a_server_is_asked_for_one_test_at_a_time(server, tmp_path, capsys):
    asked = ["--agent", server.url, "--protocol", "rounds", "--num-tests", "2"]
    few = ["--max-problems", "1", "--output-dir", str(tmp_path), "--json"]
    assert run(["eval", "tests", *asked, *few]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["tests"] == {"unreadable": 2}  # a program is no test
    assert report["settings"]["temperature"] == 0.7
    first, second = (body["messages"] for body in server.seen)
    assert "Write 1 assert" in first[-1]["content"]
    assert second[:-2] == first
    assert second[-2]["content"] == f"```python\n{PROBLEMS[0].reference.strip()}\n```"
    assert second[-1]["content"].startswith("Write another test of")


def test_a_server_that_is_gone(server, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("codea1_env.agents.llm.openai_backend.FIRST_DELAY", 0.01)
    server.shutdown()
    server.server_close()
    arguments = [*FEW, "--agent", server.url, "--model", "m", "--output-dir", str(tmp_path)]
    assert run(["eval", "code", *arguments]) == 1
    assert "To go on, add: --resume --output-dir" in capsys.readouterr().err
    assert not (tmp_path / "report.json").exists()


TOO_FEW = "class P:\n    def act(self, seen): return ['x'] * (len(seen) - 1)\n"


@pytest.mark.parametrize(
    "command",
    [
        ["eval", "code", "--max-problems", "2", "--agent"],
        ["eval", "tests", "--max-problems", "2", "--agent"],
        ["eval", "cross-play", "--max-problems", "2", "--problems", "starter", "golden"],
        ["play", "--coder"],
    ],
)
def test_a_player_that_gives_too_few_answers_is_one_line(command, tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(TOO_FEW)
    folder = [] if command[1] in ("cross-play", "--coder") else ["--output-dir", f"{tmp_path}/out"]
    assert run([*command, f"{path}:P", *folder]) == 2
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last.startswith("codea1: Expect the ")
    assert "(P) to return one answer per observation (" in last
    assert not (tmp_path / "out").exists()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox) -> str:
    """The folder of a run with tables."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    settings = {"max_problems": 2, "max_steps": 1, "self_play": True, "output_dir": folder}
    config = replaced(base_settings(SourcesAndFolder(preset="tabular")), settings)
    train(config, sandbox=sandbox)
    return str(folder)


def test_what_a_run_does_not_know_is_told_before_it_is_loaded(trained, capsys, monkeypatch):
    monkeypatch.setattr("codea1_env.training.checkpoints.make_players", None)
    for command, told in (
        (["play", "--problem", "starter/none", "--coder"], "know only these 2 problems"),
        (["eval", "cross-play", "--problems", "cells"], "that every run was trained on"),
    ):
        assert run([*command, trained]) == 2
        assert told in capsys.readouterr().err


def asked(role: Role, name: str, problems: list[Problem], sandbox: Sandbox) -> list[list[str]]:
    """What a player answers to the same observations with seeds 1, 1 and 2."""
    options = AskingOptions(agent=name)
    with ExitStack() as stack:
        player = player_of(role, options, problems, sandbox, FewShot(3), 3, stack)
        seen = [observe(each, code=each.reference, turn=int(role == "tester")) for each in problems]
        return [list(player(seed).act(seen)) for seed in (1, 1, 2)]


@pytest.mark.parametrize(
    ("role", "name"), [("coder", "mutant"), ("tester", "golden"), ("tester", "boundary")]
)
def test_scripted_players_depend_on_the_seed_alone(role, name, sandbox):
    first, again, other = asked(role, name, PROBLEMS, sandbox)
    assert first == again != other
    if role == "tester":
        assert {len(answer.split("\n\n")) for answer in first} == {3}


def test_testers_and_coders_have_names_of_their_own(sandbox):
    for role, name in (("tester", "mutant"), ("coder", "golden")):
        with pytest.raises(InputError, match=f"unknown player '{name}'"):
            asked(role, name, PROBLEMS, sandbox)


def test_players_of_runs_with_tables(trained, tmp_path, sandbox, capsys):
    problems = load_problems("starter", "train")[:2]
    first, again, other = asked("tester", trained, problems, sandbox)
    assert first == again != other
    assert all(f"assert {problems[0].entry_point}(" in each[0] for each in (first, other))
    for players, ruled in (
        (["--tester", trained], f"4 tests a suite and rewards as in {trained}\n"),
        (["--coder", trained, "--rewards", "rltf"], f"4 tests a suite as in {trained}\n"),
    ):
        assert run(["play", *players]) == 0
        out = capsys.readouterr().out
        assert ruled in out
        assert "rltf" in players or "of 4 tests broke the program" in out
    few = ["--agent", trained, "-n", "8", "--split", "train"]
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


def test_a_tester_meets_the_panel(tmp_path, capsys):
    """Each program is asked about, killed and resumed or not; tests made elsewhere are refused."""
    asked = ["--panel", "--agent", "numbers", "--panel-size", "2", "--problems", "starter-easy"]
    folder = ["--output-dir", str(tmp_path / "panel")]
    assert run(["eval", "tests", *asked, *folder, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["copied_new"]["hits"] == 2
    assert (
        report["counts"]["worked_out_new"]["hits"] == report["counts"]["shown_blind"]["hits"] == 0
    )
    assert report["figures"]["copied_new"]["value"] == 1.0
    rows = (tmp_path / "panel" / "verdicts.jsonl").read_text().splitlines()
    assert len(rows) == 20
    (tmp_path / "panel" / "verdicts.jsonl").write_text("\n".join(rows[:7]) + "\n" + rows[7][:9])
    assert run(["eval", "tests", *asked, *folder, "--json", "--resume"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert {**again, "usage": None} == {**report, "usage": None}
    assert run(["eval", "tests", "--panel", "--samples", "some.jsonl"]) == 2
    assert "asks about its own programs" in capsys.readouterr().err


def test_a_source_with_names_of_bundled_problems(tmp_path, capsys, monkeypatch):
    """Each program stays beside its own problem; a reference that gives no value is excluded, here and by `eval tests`."""
    rows_drawn = partial(draw_panel, rows=("worked_out_new", "valid"))  # all of them take long
    monkeypatch.setattr("codea1_env.evaluation.panel_evaluation.draw_panel", rows_drawn)
    head = "def f(n):\n"
    rows = [
        {"task_id": "planted/twice", "entry_point": "twice", "prompt": "def twice(n):\n    ...", "reference": "def twice(n):\n    return n * 3", "cases": [{"args": [n], "expected": n * 3} for n in (1, 2)]},
        {"task_id": "raises", "entry_point": "f", "prompt": head, "reference": head + "    raise ValueError", "cases": [{"args": [2]}]},
    ]  # fmt: skip
    source = tmp_path / "rows.jsonl"
    source.write_text("".join(json.dumps({"kind": "function", **row}) + "\n" for row in rows))
    asked = ["--agent", "numbers", "--problems", str(source), "--num-tests", "4", "--json"]
    size = ["--panel-size", "24"]
    folder = tmp_path / "panel"
    assert run(["eval", "tests", "--panel", *size, *asked, "--output-dir", str(folder)]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["counts"]["worked_out_new"] == {"hits": 0, "of": 24, "right": 0}
    assert {"planted/twice", "bundled:planted/twice"} <= report["results"].keys()
    assert "gives no value" in report["excluded"]["raises"]
    assert run(["eval", "compare", str(folder), str(folder)]) == 2
    assert "panels" in capsys.readouterr().err
    assert run(["eval", "tests", "--k", "1", *asked, "--output-dir", str(tmp_path / "own")]) == 1
    assert "gives no value" in json.loads(capsys.readouterr().out)["excluded"]["raises"]


def test_the_agent_of_a_run_is_asked_as_in_its_run(tmp_path):
    """What the options do not say is that of the run; scripts and models have no run."""
    weights = tmp_path / "checkpoints" / "step_1" / "tester" / "adapter"
    weights.mkdir(parents=True)
    (weights / "adapter_config.json").write_text("{}")
    config = replaced(
        base_settings(SourcesAndFolder(preset="smollm2-cpu")), {"output_dir": tmp_path}
    )
    (tmp_path / "config.toml").write_text("version = 2\n" + to_toml(config))
    saved = weights.parents[1]
    (saved / "state.json").write_text('{"step": 1}')
    (saved / "manifest.json").write_text(json.dumps(checkpoints._digests(saved)))
    options = AskingOptions(agent=str(tmp_path), temperature=0.2)
    filled, found = options.as_in_run("tester")
    assert found is not None
    assert (filled.temperature, filled.max_completion_length) == (0.2, 96)
    assert filled.tester_examples == "hidden"
    assert AskingOptions(agent="golden").as_in_run("tester") == (
        AskingOptions(agent="golden"),
        None,
    )
