"""`codea1 report` and `codea1 export`: a page, a model with its card, and one line for what a user gets wrong."""

from __future__ import annotations

import hashlib
import json
import socket
import sys
from pathlib import Path

import pytest
from run_logs import episode, write_run

from codea1_env.cli.app import run
from codea1_env.cli.serve import open_address
from codea1_env.training import PlayerConfig, TesterConfig


def test_a_page_is_written_once_unless_forced(tmp_path, capsys):
    folder, page = write_run(tmp_path / "run", [episode(1)]), tmp_path / "page.html"
    assert run(["report", str(folder), "-o", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "All 1 logged episodes" in text
    assert "http://" not in text.partition("<script>")[0]
    assert run(["report", str(folder), "-o", str(page)]) == 2
    assert "add --force" in capsys.readouterr().err
    assert run(["report", str(folder), "-o", str(page), "--force"]) == 0
    assert page.read_text("utf-8") == text


@pytest.mark.parametrize("words", [["none"], [], [".", "-o", "."], [".", "-o", "no/page.html"]])
def test_bad_input_is_one_line(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(["report", *words]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_run_that_has_only_begun_has_no_empty_tables(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", [])
    for log in folder.glob("*.jsonl"):
        log.unlink()
    assert run(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "steps so far" in text
    assert "damaged lines" not in text
    assert "Time and tokens" not in text


def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "altair", None)
    folder = write_run(tmp_path / "run", [])
    assert run(["report", str(folder), "-o", str(tmp_path / "page.html")]) == 2
    error = capsys.readouterr().err
    assert "codea1-env[report]" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("model", "base"),
    [("smollm2-135m", "HuggingFaceTB/SmolLM2-135M-Instruct"), ("owner/name", "owner/name"), ("my`model", None)],
)  # fmt: skip
def test_an_exported_model_says_what_it_was_made_from(model, base, tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    monkeypatch.chdir(tmp_path)
    Path("my`model").mkdir()
    players = {"coder": PlayerConfig("llm", learning_rate=1e-5), "tester": TesterConfig("boundary")}
    write_run(Path("run"), [], problems="mbpp+", model=model, **players)
    saved = Path("run/checkpoints/step_2")
    (saved / "coder/adapter").mkdir(parents=True)
    settings = json.dumps({"base_model_name_or_path": base or "/models/here"})
    files = {
        "state.json": '{"step": 2}',
        "coder/adapter/weights": "w",
        "coder/adapter/adapter_config.json": settings,
    }
    for name, text in files.items():
        (saved / name).write_text(text)
        (saved / name).chmod(0o600)
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in files.items()}
    (saved / "manifest.json").write_text(json.dumps(digests))
    assert run(["export", "run", "--output-dir", "out"]) == 0
    assert Path("out/weights").read_text() == "w"
    named = json.loads(Path("out/adapter_config.json").read_text())["base_model_name_or_path"]
    assert named == (base or "/models/here")
    plain = tmp_path / "plain"
    plain.touch()
    assert {each.stat().st_mode for each in Path("out").iterdir()} == {plain.stat().st_mode}
    card = hub.ModelCard.load("out/README.md")
    assert (card.data.base_model, card.data.library_name) == (base, "peft")
    shown = base or "`` my`model ``"
    for line in (
        "# Coder of a Code-A1 run",
        f"- Base model: {f'`{shown}`' if base else shown}",
        "- Weights: a LoRA adapter, after step 2 of 3, seed 0",
        "- Problems: `mbpp+`",
        "- Opponent: `codea1/boundary`",
    ):
        assert line in card.text.splitlines()


@pytest.mark.parametrize(
    ("host", "port", "match"),
    [("0.0.0.0", 0, "--allow-others"), ("::", 0, "--allow-others"), ("127.0.0.1", 99_999, "65535")],
)
def test_addresses_that_are_refused(host: str, port: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        open_address(host, port, others=False)


def test_others_are_let_in_where_that_is_said() -> None:
    with open_address("0.0.0.0", 0, others=True) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"


def test_an_address_that_is_taken_is_said_in_one_line() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ValueError, match=r"The address .* cannot be used: Address already in use$"),
    ):
        open_address("127.0.0.1", taken.getsockname()[1], others=False)


def test_only_the_game_is_served(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve"]) == 2
    assert "  serve env " in capsys.readouterr().err
    assert run(["serve", "evn"]) == 2
    assert "Did you mean 'serve env'?" in capsys.readouterr().err
