"""`codea1 eval` with a language model in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import tiny_model, tiny_tokenizer

from codea1_env.cli.app import run


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    tiny_model(max_position_embeddings=8192).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.mark.parametrize("what", [["code"], ["tests", "--protocol", "rounds"]])
def test_a_model_goes_on_after_a_kill(
    what: list[str], model_folder: Path, tmp_path: Path, capsys, monkeypatch
) -> None:
    asked = ["--agent", str(model_folder), "--max-problems", "3", "-n", "2", "--batch-size", "2"]
    options = ["eval", *what, *asked, "--max-completion-length", "12"]
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run([*options, "--output-dir", str(whole), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["samples"] == 6
    assert report["settings"]["max_completion_length"] == 12
    answers = [json.loads(line) for line in (whole / "samples.jsonl").open()]
    assert len({json.dumps(answer) for answer in answers}) > 3  # each batch has draws of its own

    parts.mkdir()
    (parts / "eval.json").write_bytes((whole / "eval.json").read_bytes())
    lines = (whole / "samples.jsonl").read_bytes().splitlines(keepends=True)
    (parts / "samples.jsonl").write_bytes(b"".join(lines[:3]))
    used = (whole / "usage.jsonl").read_bytes().splitlines(keepends=True)
    (parts / "usage.jsonl").write_bytes(b"".join(used[:2]))  # of a batch with half of its samples
    assert report["usage"]["answers"] == (30 if "rounds" in what else 6)
    assert 0 < report["usage"]["completion_tokens"] <= 12 * report["usage"]["answers"]
    assert report["usage"]["prompt_tokens"] > 0
    monkeypatch.setattr("codea1_env.cli.eval_display._PAUSE", 0.0)
    assert run([*options, "--output-dir", str(parts), "--resume"]) == 0
    shown = capsys.readouterr().out
    assert f"waiting for 2 answers of {model_folder}" in shown
    assert f"% of 2 answers of {model_folder} in " in shown
    for name in ("samples.jsonl", "verdicts.jsonl", "usage.jsonl", "report.json"):
        assert (parts / name).read_bytes() == (whole / name).read_bytes()
