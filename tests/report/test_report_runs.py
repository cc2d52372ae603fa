"""Groups of runs, their curves and tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from run_logs import write_run

from codea1_env.report.charts import BOOK, HELD_OUT, REWARDS, curve, measures
from codea1_env.report.folders import RunGroup, differing_settings, grouped, read_run
from codea1_env.report.tables import health_signs, overview, side_by_side
from codea1_env.training.run_folder import METRICS
from codea1_env.training.setting_groups import PlayerConfig


def groups_of(tmp_path: Path) -> list[RunGroup]:
    for seed in range(2):
        write_run(tmp_path / f"book{seed}", [], seed=seed)
    write_run(tmp_path / "none", [], use_book=False)
    return grouped([read_run(tmp_path / name, name) for name in ("book0", "none", "book1")])


def test_runs_that_differ_by_their_seed_are_one_group(tmp_path: Path) -> None:
    groups = groups_of(tmp_path)
    assert [(group.name, len(group.runs)) for group in groups] == [("book0 and 1 more", 2), ("none", 1)]  # fmt: skip
    assert differing_settings(groups) == {"use_book": ["True", "False"]}
    both, alone = (curve(group, "held_out/pass_rate")[0] for group in groups)
    assert (both["step"], round(both["value"], 6)) == (0, 0.505)
    assert "low" not in both
    assert "low" not in alone
    # Two runs are two thin lines; the lone one is the line of its group.
    drawn = str(next(measures(groups, HELD_OUT)).spec)
    assert drawn.count("'line': 'run'") == 2 * len(groups[0].runs[0].metrics)


def test_five_runs_have_a_band_inside_the_range(tmp_path: Path) -> None:
    for seed in range(5):
        write_run(tmp_path / f"{seed}", [], seed=seed)
    (group,) = grouped([read_run(tmp_path / f"{seed}", f"{seed}") for seed in range(5)])
    points = curve(group, "held_out/pass_rate")
    assert points[0]["low"] < points[0]["value"] < points[0]["high"]
    clipped = curve(group, "held_out/pass_rate", share=True)
    assert all(0 <= each["low"] <= each["high"] <= 1 for each in clipped)
    assert "'line': 'run'" not in str(next(measures([group], HELD_OUT)).spec)


def test_a_second_run_of_a_seed_makes_no_interval_narrower(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("again", 0), ("b", 1)):
        write_run(tmp_path / name, [], seed=seed)
    groups = grouped([read_run(tmp_path / name, name) for name in ("a", "again", "b")])
    assert [[run.name for run in group.runs] for group in groups] == [["a", "b"], ["again"]]
    assert differing_settings(groups) == {}


def test_a_measure_stands_beside_its_control(tmp_path: Path) -> None:
    groups = groups_of(tmp_path)
    passes, kills, new = measures(groups, HELD_OUT)
    rows = kills.spec["datasets"] if "datasets" in kills.spec else kills.spec["layer"][0]["data"]
    assert "0.6" in str(rows)
    assert [chart.title.partition(":")[0] for chart in (passes, kills, new)] == ["Coder", "Tester", "Tester"]  # fmt: skip
    table = side_by_side(groups)
    labels = [row[0].text for row in table.rows]
    at = labels.index("held-out mutants that the tester kills")
    assert labels[at + 1] == "↳ that copying the examples kills"
    assert table.rows[at][2].text == "0.400 → 0.700"
    assert table.rows[at + 1][2].text == "0.600 → 0.600"


def test_a_run_that_goes_on_and_damaged_lines_are_told(tmp_path: Path) -> None:
    path = write_run(tmp_path / "run", [], max_steps=90)
    with (path / METRICS).open("a") as log:
        log.write('nothing\n{"step": 4, "reward/coder/mean": NaN, "book/size": "<b>"}\n{"step": 5')
    run = read_run(path, "run")
    assert run.damaged == {METRICS: 2}
    assert run.metrics[-1] == {"step": 4}
    sheet = overview(grouped([run]), {path: run.damaged})
    assert [cell.text for cell in sheet.rows[0]] == ["run", "run", "0", "4 of 90 steps so far", "metrics.jsonl: 2"]  # fmt: skip


def test_signs_of_weak_learning_of_language_models(tmp_path: Path) -> None:
    tables, models = write_run(tmp_path / "tables", []), tmp_path / "models"
    write_run(models, [], coder=PlayerConfig(player="llm", learning_rate=1e-4))
    for path in (tables, models):
        with (path / METRICS).open("a") as log:
            log.writelines(f'{{"step": {step}, "coder/truncated": 0.8}}\n' for step in range(4, 8))
    sheet = health_signs(grouped([read_run(path, path.name) for path in (tables, models)]))
    [[run, sign]] = sheet.rows
    assert run.text == "models"
    assert sign.text.startswith("Step 6: 80% of the coder's answers are cut off")


def test_what_is_drawn_are_metrics_that_runs_have() -> None:
    page = Path(__file__).parents[2] / "docs" / "training.md"
    if not page.is_file():
        pytest.skip("needs the repository")
    documented = set(re.findall(r"`([a-z_]+/[^` ]+)`", page.read_text("utf-8")))
    documented |= (
        {"reward/coder/mean", "reward/tester/mean"} if "reward/ROLE/mean" in documented else set()
    )
    drawn = {measure.metric for measure in (*REWARDS, *HELD_OUT, *BOOK)}
    drawn |= {measure.control for measure in HELD_OUT} - {"start"}
    assert drawn <= documented
