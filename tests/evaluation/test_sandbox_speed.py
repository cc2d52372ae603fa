"""The measurements of the sandbox, at sizes at which only their shape means something: no times."""

from __future__ import annotations

import json

import pytest
import speed_of_sandbox
from sandbox_speed import endurance
from sandbox_speed.baselines import BareFork
from sandbox_speed.config import SpeedConfig, SpeedFigure
from speed_of_sandbox import SpeedReport, main, measure

from codea1_env.support.machine import this_machine


@pytest.mark.parametrize(
    ("ours", "met"), [({"baseline": 5.0}, True), ({"baseline": 4.0}, False), ({}, False)]
)
def test_figure_compares_the_ratio_or_else_the_value(ours, met):
    assert SpeedFigure("s", "w", 6.0, at_most=1.4, **ours).met is met


def test_bare_fork_survives_its_children() -> None:
    with BareFork() as bare:
        assert bare.call("import os\nos._exit(3)", "f", []).found is None
        hanging = bare.check("", "while True: pass", seconds=0.2)
        assert hanging.found is None
        assert not hanging.passed
        assert bare.check("", "").passed


def test_every_section_gives_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endurance, "_HANGS_EVERY", 20)
    config = SpeedConfig(limit=2, repeats=1, questions=1, batch=1, jobs=6, workers=1)
    report = measure(config)
    sections = [figure.section for figure in report.figures]
    assert list(dict.fromkeys(sections)) == list(config.sections)
    assert all(figure.ours is not None for figure in report.figures)
    timed = [figure for figure in report.figures if figure.unit in ("ms", "jobs/s", "verdicts/s")]
    assert len(timed) >= 10
    assert all("DIFFER" not in figure.note for figure in report.figures)
    by_name = {figure.what: figure for figure in report.figures}
    assert by_name["growth: zombies"].ours == 0
    assert json.loads(json.dumps(report.to_dict()))["level"] == report.level


def test_missed_aims_are_named_and_give_exit_code_1(capsys, monkeypatch):
    missed = SpeedFigure("overhead", "5 calls", 6.0, "ms", baseline=2.0, at_most=1.4)
    report = SpeedReport(this_machine(), "kernel", SpeedConfig(), (missed,))
    monkeypatch.setattr(speed_of_sandbox, "measure", lambda *arguments: report)
    assert main(["--sections", "overhead"]) == 1
    assert "Expect 5 calls: <= 1.4x, actually: 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--limit", "0"], "Expect --limit to be at least 1"),
        (["--problems", "nowhere.jsonl"], "there is no nowhere.jsonl"),
    ],
)
def test_wrong_arguments_give_exit_code_2(arguments, message, capsys):
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
