"""Diagnostics in a report: what was expected beside what came, and curves."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from codea1_env.baselines.diagnose.experiments import EXPERIMENTS, expectations
from codea1_env.baselines.diagnose.running import RowRun
from codea1_env.baselines.diagnose.scores import COMMAND, SCORES, write_scores
from codea1_env.report.diagnostics import diagnosed_section
from codea1_env.report.document import document, headline
from codea1_env.report.folders import ReportError, read_folders

NAMES = ("rare-faults", "collusion", "cycling")


def written(folder: Path, error: str = "") -> Path:
    """Write the scores of made runs, in which code-a1 is 0.1 ahead of each control."""
    experiments, runs = [], []
    for name in NAMES:
        each = EXPERIMENTS[name]
        each = dataclasses.replace(each, rows=("code-a1", each.control))
        experiments.append(each)
        for setting in each.quick:
            for row in each.rows:
                for seed in (0, 1):
                    value = 0.5 + 0.1 * (row == "code-a1")
                    failed = error if (setting, row) == (each.quick[-1], "code-a1") else ""
                    runs.append(RowRun(name, setting, row, seed, 0, 1.0, {each.measure: value}, failed))  # fmt: skip
    write_scores(folder, experiments, runs, expectations())
    return folder


def test_an_interrupted_folder_shows_the_runs_that_are_done(tmp_path: Path) -> None:
    each = EXPERIMENTS["cycling"]
    for row in ("code-a1", each.control):
        for seed in (0, 1):
            run = RowRun("cycling", "0", row, seed, 0, 1.0, {each.measure: 0.5 + 0.1 * seed})
            with (tmp_path / "results.jsonl").open("a") as file:
                file.write(json.dumps(dataclasses.asdict(run)) + "\n")
    (found,) = read_folders([tmp_path]).diagnostics
    assert "interrupted" in found.name
    assert [row["row"] for row in found.experiments[0]["rows"]] == ["code-a1", each.control]
    diagnosed_section([found])


def test_the_top_says_how_many_signs_came_and_the_command(tmp_path: Path) -> None:
    signs = [
        {"setting": str(number), "expected": expected, "came": came}
        for number, (expected, came) in enumerate([("+", "+"), ("0", "-"), ("+", None)])
    ]
    path = written(tmp_path)
    content = json.loads((path / SCORES).read_text())
    for each in content["experiments"]:
        each["signs"] = signs
    (path / SCORES).write_text(json.dumps(content))
    (path / COMMAND).write_text('{"command": "codea1 bench diagnose rare-faults"}')
    subject, contents = headline(read_folders([path]), [])
    assert contents is None
    assert [value for value, _ in subject.figures] == ["3 of 9"] * 3
    assert subject.command == "codea1 bench diagnose rare-faults"
    (path / COMMAND).unlink()
    assert headline(read_folders([path]), [])[0].command == ""


@pytest.mark.slow
def test_the_page_shows_expectation_result_and_refutation(tmp_path: Path) -> None:
    found = read_folders([written(tmp_path, "ZeroDivisionError: <b>oh</b>")])
    sheets, charts = diagnosed_section(found.diagnostics)
    told = [cell.text for cell in sheets[0].rows[0]]
    expected = expectations()["rare-faults"]
    assert told[0] == "rare-faults"
    assert told[2][:40] == expected.expected[:40]
    assert told[4][:40] == expected.refuted_by[:40]
    assert [cell.text for cell in sheets[1].rows[0]][3:5] == ["failed", "-"]
    assert sheets[1].rows[1][0].text == "random-tests (control)"
    assert sheets[1].rows[1][-3].text == "control"
    left = "carries-none, carries-half, black-box, frozen-tester, fixed-tests, other-programs, oracle-tester"
    assert told[4].endswith(f"Not in this run: {left}.")
    assert len(charts) == 3
    page = document(found)
    assert "<b>oh</b>" not in page
    assert 'id="diagnostics"' in page


@pytest.mark.parametrize(
    "content",
    ['{"version": 2}', '{"version": 1, "scores": [3], "experiments": [{}]}', "["],
)
def test_scores_of_another_form(tmp_path: Path, content: str) -> None:
    (tmp_path / SCORES).write_text(content)
    with pytest.raises(ReportError) as caught:
        document(read_folders([tmp_path]))
    assert "\n" not in str(caught.value)
