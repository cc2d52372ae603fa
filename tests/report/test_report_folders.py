"""Benchmarks and evaluations in a report, and folders that hold nothing of it."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from codea1_env.baselines.bench.results import TABLE, Result, open_folder
from codea1_env.baselines.bench.suite import BenchConfig
from codea1_env.baselines.diagnose.experiments import EXPERIMENTS, find_row
from codea1_env.baselines.diagnose.running import RowRun
from codea1_env.baselines.diagnose.scores import SCORES, content_of
from codea1_env.cli.app import run
from codea1_env.evaluation.statistics import Estimate
from codea1_env.report.benchmarks import benchmark_sheets
from codea1_env.report.diagnostics import diagnosed_section
from codea1_env.report.document import document, headline
from codea1_env.report.episode_log import EpisodeSample
from codea1_env.report.evaluations import add_answers, evaluation_sheets
from codea1_env.report.folders import read_folders
from codea1_env.report.sheet import Bar, bar_cell
from codea1_env.suite.running import run_all
from codea1_env.suite.tasks import RecordKey
from codea1_env.support.jobs import DIAGNOSTICS, FolderError, Jobs
from codea1_env.training import RunError

ONE = {"coder": 1.0, "tester": 1.0}


@pytest.fixture(autouse=True)
def ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three steps are enough here."""
    monkeypatch.setattr(BenchConfig, "ranks", True)


def benchmark(folder: Path, entries: dict[str, list[float]], *, seeds: int = 2) -> Path:
    """Write a benchmark whose runs end with these pass rates, seed by seed."""
    config = BenchConfig(tuple(entries), seeds=seeds, max_problems=4, max_steps=3, sweep=(1.0,))
    nothing = dict.fromkeys(("new_kill_rate", "only_book", "past_pass_rate"))
    measures = {"kill_rate": 0.5, "copier_kill_rate": 0.25, **nothing}
    with open_folder(folder, config, resume=False) as jobs:
        for entry, rates in entries.items():
            for seed, rate in enumerate(rates):
                start, end = ({"own/one": {**measures, "pass_rate": each}} for each in (0.25, rate))
                curves = [{"step": s, "held_out/pass_rate": rate if s else 0.25} for s in range(4)]
                row = Result(entry, seed, "ok", "", 1.0, start, end, curves, ONE)
                jobs.append(TABLE, [dataclasses.asdict(row)])
    return folder


def test_a_leaderboard_has_ranks_claims_and_the_command_of_each_row(tmp_path: Path) -> None:
    rates = {"code-a1": [0.8, 0.81], "golden-tests": [0.5, 0.5], "self-play": []}
    found = read_folders([benchmark(tmp_path / "bench", rates)])
    (bench,) = found.benchmarks
    assert (len(bench.results), bench.wanted) == (4, 6)
    coders, testers, claims = benchmark_sheets(bench)
    first, second, start = ([cell.text for cell in row] for row in coders.rows)
    assert first[:3] == ["code-a1", "1", "0.805 [0.741, 0.869]"]
    assert first[-2:] == ["2", "codea1 bench algorithms --algorithms code-a1 --problems starter-medium --seeds 2 --max-problems 4 --max-steps 3 --num-iterations 4 --sweep 1 --sweep-seeds 2"]  # fmt: skip
    assert second[:2] == ["golden-tests", "2"]
    assert (start[0], testers.rows[-1][0].text) == ("start (control)", "copier (control)")
    told = [[cell.text for cell in row] for row in claims.rows]
    assert told[0][:2] == ["Code-A1 trains a better coder than golden tests", "holds"]
    subject, _ = headline(found, [])
    assert subject.title == "Benchmark: bench, not finished: 4 of 6 runs"
    assert subject.figures[1] == ("0.805 [0.741, 0.869]", "coder: pass rate: code-a1")
    assert subject.warning == ""
    assert all(heading for sheet in (coders, testers, claims) for heading in sheet.headings)


def test_a_benchmark_that_tells_nothing_names_no_winner(tmp_path: Path) -> None:
    found = read_folders(
        [benchmark(tmp_path / "b", {"code-a1": [0.1, 0.9], "no-book": [0.6, 0.2]})]
    )
    coders = next(benchmark_sheets(found.benchmarks[0]))
    assert [row[1].text for row in coders.rows] == ["1-2", "1-2", "-"]
    subject, _ = headline(found, [])
    value, what = subject.figures[1]
    assert (value, "no winner" in what) == ("0.400 to 0.500", True)
    assert not any(name in what for name in ("code-a1", "no-book"))
    assert subject.warning.startswith("No coder here is clearly above the players before training.")


def test_a_benchmark_shows_the_exact_game_and_what_failed_runs_said(tmp_path: Path) -> None:
    folder = benchmark(tmp_path / "b", {"code-a1": [0.1, 0.9], "no-book": [0.6, 0.2]})
    figures = {"exploitability": 0.5, "exploitability/average": 0.25, "cyclic_share": 0.125}
    rows = [json.loads(line) for line in (folder / TABLE).open()]
    for row in rows[:2]:
        row["end"]["own/one"] |= figures
    rows[3] |= {"status": "failed", "error": "ValueError: <b>no</b>", "end": {}}
    (folder / TABLE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    sheets = {each.title: each for each in benchmark_sheets(read_folders([folder]).benchmarks[0])}
    game = [[cell.text for cell in row] for row in sheets["The game itself: b"].rows]
    assert [each[:1] + [text[:5] for text in each[1:]] for each in game] == [
        ["code-a1", "0.500", "0.250", "0.125"],
        ["no-book", "-", "-", "-"],
    ]
    failed = [[cell.text for cell in row] for row in sheets["Failed runs of b"].rows]
    assert failed == [["no-book", "1", "ValueError: <b>no</b>"]]


def test_a_swept_benchmark_shows_the_runs_with_the_rates_that_were_chosen(tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    config = BenchConfig(("code-a1", "no-book"), seeds=1, max_problems=4, max_steps=3)
    swept = [
        {"entry": "code-a1", "player": "coder", "best": 4.0},
        {"entry": "code-a1", "player": "tester", "best": 0.25},
        {"entry": "no-book", "player": "coder", "best": 64.0},
    ]
    chosen = {"coder": 4.0, "tester": 0.25}
    with open_folder(bench, config, resume=False) as jobs:
        jobs.write_lines("sweep.jsonl", swept)
        for entry, rates in (("code-a1", chosen), ("no-book", ONE)):
            row = Result(entry, 0, "failed", "e", rates=rates)
            jobs.append(TABLE, [dataclasses.asdict(row)])
    (found,) = read_folders([bench]).benchmarks
    # The run of no-book has the rates of an earlier sweep.
    assert [result.entry for result in found.results] == ["code-a1"]


@pytest.mark.slow
def test_evaluations_of_a_kind_stand_in_one_table(tmp_path: Path) -> None:
    figure = {"value": 0.5, "low": 0.25, "high": 0.75}
    settings = {"agent": "mutant", "problems": "starter", "num_samples": 4, "seed": 0}
    for name, report in (("whole", {"figures": {"all": {"pass@1": figure}}}), ("half", None)):
        with Jobs(tmp_path / name, settings, resume=False, command="codea1 x") as folder:
            folder.append("verdicts.jsonl", [{"task_id": "a"}])
            if report:
                folder.write("report.json", report)
    with (tmp_path / "half" / "verdicts.jsonl").open("a") as log:
        log.write('{"task')
    found = read_folders([tmp_path / "whole", tmp_path / "half"])
    figures, whole, half = evaluation_sheets(found.evaluations)
    assert figures.headings == ["figure", "whole"]
    assert [[cell.text for cell in row] for row in figures.rows] == [
        ["pass@1", "0.500 [0.250, 0.750]"]
    ]
    told = [cell.text for cell in whole.rows[0]]
    assert told[1:] == ["mutant", "starter", "1 verdict", "codea1 x"]
    assert whole.rows[0][-1].folded
    assert half.rows[0][-2].text == "1 verdict so far, not finished, 1 damaged line"
    assert figures.rows[0][1].bar == Bar(0, 50, 25, 50)
    assert bar_cell(Estimate(0.1, -0.5, 0.5), -1.0).bar == Bar(50, 5, 25, 50)
    assert bar_cell(Estimate(12.0, 10.0, 13.0), 0.0).bar is None
    page = document(found)
    assert "<h1>Report of 2 results: Evaluation</h1>" in page
    assert "0.500 [0.250, 0.750] pass@1" in page


@pytest.mark.slow
def test_suites_of_tests_are_shown_as_codea1_eval_tests_writes_them(tmp_path: Path) -> None:
    name = "add_numbers"
    tests = [f"assert {name}(1, 2) == {value}" for value in (3, 4)]
    suites = tmp_path / "suites.jsonl"
    suites.write_text(json.dumps({"task_id": f"starter/{name}", "tests": tests}))
    arguments = ["eval", "tests", "--samples", str(suites), "--max-problems", "1"]
    assert run([*arguments, "--num-tests", "3", "--output-dir", str(tmp_path / "e")]) == 0
    (evaluation,) = read_folders([tmp_path / "e"]).evaluations
    assert evaluation.command.startswith(f"codea1 eval tests --samples {suites} ")
    verdicts = [json.loads(line) for line in (tmp_path / "e" / "verdicts.jsonl").open()]
    right = [test["fault"] == "" for verdict in verdicts for test in verdict["tests"]]
    assert 0 < sum(right) < len(right)
    page = EpisodeSample()
    add_answers(page, evaluation, 0, 100_000)
    tests = page.tests.all()
    shown = [tests[number] for row in page.rows for number in row["tests"]]
    assert sum(test[1:3] == ("kept", "pass") for test in shown) == sum(right)
    assert len(shown) == len(right)
    *_, failed = evaluation_sheets([evaluation])
    assert sum(row[1].order or 0 for row in failed.rows) > 0


def test_wrong_answers_are_listed_and_shown_first(tmp_path: Path) -> None:
    samples = [{"task_id": f"own/{i % 4}", "solution": f"def f(): return {i}"} for i in range(8)]
    outcomes = ["pass", "fail", "pass", "pass", "pass", "timeout", "pass", "fail"]
    with Jobs(tmp_path / "e", {"agent": "a"}, resume=False) as folder:
        folder.append("samples.jsonl", samples)
        verdicts = [
            {"task_id": row["task_id"], "sample": i // 4, "outcome": outcome, "message": f"m{i}"}
            for i, (row, outcome) in enumerate(zip(samples, outcomes, strict=True))
        ]
        folder.append("verdicts.jsonl", verdicts)
        folder.append("samples.jsonl", [{"task_id": "own/4", "solution": 3}])
        odd = {"task_id": "own/4", "sample": "x", "outcome": "fail", "tests": 0}
        folder.append("verdicts.jsonl", [odd, {"task_id": "own/9", "odd": 1}, {"tests": "none"}])
    with (tmp_path / "e" / "samples.jsonl").open("a") as log:
        log.write("damaged\n")
    (evaluation,) = read_folders([tmp_path / "e"]).evaluations
    *_, failed = evaluation_sheets([evaluation])
    assert failed.title == "Problems with wrong answers: 3 of 5"
    assert [[cell.text for cell in row] for row in failed.rows] == [
        ["own/1", "0.000", "2", "e"],
        ["own/4", "0.000", "1", "e"],
        ["own/3", "0.500", "2", "e"],
    ]
    page = EpisodeSample()
    add_answers(page, evaluation, 0, 100_000)
    texts = page.texts.all()
    shown = [(texts[row["task"]], row["step"], row["outcome"]) for row in page.rows]
    assert shown[:2] == [("own/1", 0, "fail"), ("own/4", 0, "fail")]
    assert shown[2:4] == [("own/1", 1, "timeout"), ("own/3", 1, "fail")]
    assert [row["winner"] for row in page.rows] == ["wrong"] * 4 + ["right"] * 5
    assert texts[page.rows[2]["code"]] == "def f(): return 5"
    assert texts[page.rows[2]["message"]] == "m5"
    few = EpisodeSample()
    add_answers(few, evaluation, 0, 400)
    assert 0 < len(few.rows) < few.total == 9


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("nothing.txt", "", "none of config.toml"),
        ("config.toml", "version = 2\nno_such_setting = 1\n", "unknown key 'no_such_setting'"),
        ("config.toml", "learning_rate = 1\n", "of version 2, actually: None"),
        ("bench.json", '{"version": 2}', "a benchmark of version 3, actually .* has version 2"),
    ],
)
def test_what_cannot_be_reported_is_named(tmp_path: Path, file: str, text: str, says: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises((FolderError, RunError), match=says) as error:
        read_folders([tmp_path])
    assert "\n" not in str(error.value)
    shutil.rmtree(tmp_path)
    with pytest.raises(FolderError, match="Expect"):
        read_folders([tmp_path])


NAMES = ("rare-faults", "collusion", "cycling")


def written(folder: Path, error: str = "") -> Path:
    """Write the scores of made runs, in which the first row is 0.1 ahead of each control."""
    experiments, runs = [], []
    for name in NAMES:
        each = EXPERIMENTS[name]
        each = dataclasses.replace(each, rows=(each.rows[0], each.control, "random", "oracle"))
        experiments.append(each)
        for setting in each.quick:
            for row, value in zip(each.rows, (0.6, 0.5, 0.0, 1.0), strict=True):
                for seed in (0, 1):
                    failed = error if (setting, row) == (each.quick[-1], each.rows[0]) else ""
                    runs.append(RowRun(name, setting, row, seed, None if failed else value, failed))
    (folder / SCORES).write_text(json.dumps(content_of(experiments, runs)))
    return folder


def test_an_interrupted_folder_shows_the_records_that_are_whole(tmp_path: Path) -> None:
    each = EXPERIMENTS["cycling"]
    Jobs(tmp_path, {}, DIAGNOSTICS, resume=False).close()
    for name in ("grpo", each.control, "random", "oracle"):
        row = find_row(name)
        task = each.settings[each.quick[0]]
        keys = [RecordKey("both", task, seed) for seed in (0, 1)]
        run_all(tmp_path / row.folder, row.algorithm, {}, keys, rates=row.rates, processes=2)
    (found,) = read_folders([tmp_path]).diagnostics
    assert "interrupted" in found.name
    rows = [row["row"] for row in found.experiments[0]["rows"]]
    assert rows == ["grpo", each.control, "random", "oracle"]
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
    (path / DIAGNOSTICS.manifest).write_text('{"command": "codea1 bench diagnose rare-faults"}')
    subject, contents = headline(read_folders([path]), [])
    assert contents is None
    assert [value for value, _ in subject.figures] == ["3 of 9"] * 3
    assert subject.command == "codea1 bench diagnose rare-faults"
    (path / DIAGNOSTICS.manifest).unlink()
    assert headline(read_folders([path]), [])[0].command == ""


@pytest.mark.slow
def test_the_page_shows_expectation_result_and_refutation(tmp_path: Path) -> None:
    found = read_folders([written(tmp_path, "ZeroDivisionError: <b>oh</b>")])
    sheets, charts = diagnosed_section(found.diagnostics)
    told = [cell.text for cell in sheets[0].rows[0]]
    expected = EXPERIMENTS["rare-faults"]
    assert told[0] == "rare-faults"
    assert told[2][:40] == expected.expected[:40]
    assert told[4][:40] == expected.refuted_by[:40]
    assert [cell.text for cell in sheets[1].rows[0]][3:5] == ["failed", "-"]
    assert sheets[1].rows[1][0].text == "random-tests (control)"
    assert sheets[1].rows[1][-2].text == "control"
    left = "blind, memory, pool-tests, fixed-tests, oracle-tests, negated-rewards, ignored-rewards, hundredfold-rate"  # fmt: skip
    assert told[4].endswith(f"Not in this run: {left}.")
    assert len(charts) == 4  # of three experiments, and the radar
    page = document(found)
    assert "<b>oh</b>" not in page
    assert 'id="diagnostics"' in page


@pytest.mark.parametrize(
    "content",
    ['{"version": 2}', '{"version": 1, "scores": [3], "experiments": [{}]}', "["],
)
def test_scores_of_another_form(tmp_path: Path, content: str) -> None:
    (tmp_path / SCORES).write_text(content)
    with pytest.raises(FolderError) as caught:
        document(read_folders([tmp_path]))
    assert "\n" not in str(caught.value)
