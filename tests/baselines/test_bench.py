"""The benchmark of algorithms: names, folders, dying workers, broken learners, the table."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest
from runs_here import run_here

from codea1_env.baselines.bench.results import (
    Result,
    RunTable,
    TrainingJob,
    open_folder,
    read_settings,
    results_of,
)
from codea1_env.baselines.bench.results import jobs_of as jobs_with
from codea1_env.baselines.bench.schedule import check_files, machine_of, run_all
from codea1_env.baselines.bench.score_table import Table
from codea1_env.baselines.bench.suite import (
    BenchConfig,
    Rates,
    find_entry,
)
from codea1_env.baselines.bench.sweep import Swept
from codea1_env.baselines.bench.worker import regular_checkpoints
from codea1_env.report.benchmarks import leaderboard
from codea1_env.support.jobs import FolderError
from codea1_env.training import TrainConfig
from codea1_env.training.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

SMALL = BenchConfig(
    ("code-a1",),
    problems="starter",
    seeds=1,
    max_problems=1,
    max_steps=1,
    sweep=(1.0,),
    processes=2,
)

LEARNERS = """
from codea1_env.agents import GRPO, FixedAgent, TabularAgent

class Good(TabularAgent):
    def __init__(self, setting):
        super().__init__(setting.pools, GRPO(setting.learning_rate), setting.rng, setting.draws)

class TooFew(Good):
    def act(self, observations):
        return super().act(observations)[1:]

class Dies(Good):
    def act(self, observations):
        import os
        os._exit(3)

class Neither:
    pass
"""


@pytest.fixture
def learners(tmp_path: Path) -> Path:
    path = tmp_path / "learners.py"
    path.write_text(LEARNERS)
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("golden-test", "no baseline or algorithm 'golden-test'. Did you mean 'golden-tests'"),
        ("nowhere.at_all:Thing", "can be imported, actually: No module named 'nowhere'"),
        ("codea1_env.agents:TabularAgnt", "Did you mean TabularAgent"),
        ("ppo(entrpy=1)", "Did you mean entropy"),
        ("no-book(x=1)", "Expect an algorithm before the hyperparameters, actually: 'no-book'"),
        ("ppo(entropy)", "expect settings such as"),
        ("{file}:Neither", "actually: Neither has no act, learn, save, load"),
    ],
)
def test_unknown_names(name: str, message: str, learners: Path):
    with pytest.raises(ValueError, match=re.escape(message)):
        find_entry(name.format(file=learners))


def test_an_algorithm_with_hyperparameters_of_its_own():
    entry = find_entry("ppo(entropy=0.02)")
    config = entry.apply(BenchConfig().base(0))
    assert (config.algorithm, config.algorithm_args) == ("ppo", {"entropy": 0.02})
    assert entry.folder != find_entry("ppo(entropy=0.2)").folder


def jobs_of(config: BenchConfig, *names: str) -> list[TrainingJob]:
    entries = [find_entry(name) for name in names]
    return jobs_with(config, entries, {entry.name: Rates() for entry in entries})


def run(folder: Path, *names: str, **changes) -> list[Result]:
    config = dataclasses.replace(SMALL, algorithms=names, **changes)
    jobs = jobs_of(config, *names)
    with open_folder(folder, config, resume=(folder / "bench.json").exists()) as opened:
        table = RunTable(opened)
        check_files(config, jobs, table)
        run_all(config, jobs, table)
        return results_of(table.rows, jobs)


def test_a_broken_learner_is_named_and_runs_again_when_it_is_mended(
    tmp_path: Path, learners: Path, monkeypatch
):
    folder = tmp_path / "results"
    names = [f"{learners}:{name}" for name in ("TooFew", "Dies")]
    results = {r.entry.rpartition(":")[2]: r for r in run(folder, *names)}
    for name, error in (
        ("TooFew", "(TooFew) to return one answer per observation"),
        ("Dies", "died with exit code 3, twice; see runs/"),
    ):
        assert results[name].status == "failed"
        assert error in results[name].error

    text = leaderboard(SMALL, list(results.values()), [], "a machine", [])
    assert "Dies, seed 0: `its process died with exit code 3" in text

    # A failed run is run again when its cause is removed: a mend is no other row.
    learners.write_text(LEARNERS.replace("[1:]", ""))
    run_here(monkeypatch)
    assert run(folder, names[0])[0].status == "ok"


def test_the_exact_game_of_tables_is_measured_once_for_equal_pools(tmp_path: Path, monkeypatch):
    run_here(monkeypatch)
    small = {"max_problems": 2, "max_steps": 1}
    results = run(tmp_path, "code-a1", "black-box", "golden-tests", **small)
    ends = {each.entry: each.end for each in results}
    for name in ("code-a1", "black-box"):
        for row in ends[name].values():
            assert 0 < row["exploitability"] <= 2
            assert 0 <= row["cyclic_share"] <= 1
    assert not any("exploitability" in row for row in ends["golden-tests"].values())
    assert len(list((tmp_path / "payoffs").iterdir())) == 2  # problems, not runs
    for path in (tmp_path / "runs").glob("*/*/seed_0/run/checkpoints"):
        assert len(list(path.iterdir())) == 1
    game = rows_of(leaderboard(SMALL, results, [], "a machine", []), "The game itself")
    assert game["golden-tests"] == ["-"] * 3


def test_a_worker_that_dies_once_goes_on_and_nothing_is_lost(tmp_path: Path, monkeypatch):
    own = tmp_path / "own.py"
    own.write_text(LEARNERS)
    (whole,) = run(tmp_path / "a", f"{own}:Good", max_steps=3)
    # In its third step the process is killed, once.
    death = f"""
class Good(Good):
    def learn(self, experience):
        import os, pathlib
        flag = pathlib.Path({str(tmp_path / "died")!r})
        if not flag.exists() and list(pathlib.Path({str(tmp_path / "b")!r}).glob("runs/*/*/*/run/checkpoints/step_2")):
            flag.touch()
            os.kill(os.getpid(), 9)
        return super().learn(experience)
"""
    own.write_text(LEARNERS + death)
    (result,) = run(tmp_path / "b", f"{own}:Good", max_steps=3)
    assert (tmp_path / "died").exists()
    assert (result.status, result.end, result.curves) == ("ok", whole.end, whole.curves)


def test_a_row_is_never_of_two_versions_of_a_file(tmp_path: Path, monkeypatch):
    run_here(monkeypatch)
    settings = tmp_path / "own.toml"
    settings.write_text("strict_paper = true\n")
    (first,) = run(tmp_path / "results", str(settings))
    assert run(tmp_path / "results", str(settings)) == [first], "it is not run again"
    settings.write_text("strict_paper = false\n")
    with pytest.raises(FolderError, match=r"own.toml to be what it was .* it has changed"):
        run(tmp_path / "results", str(settings))


def test_a_folder_goes_on_with_more_seeds_but_no_other_steps(tmp_path: Path):
    open_folder(tmp_path, SMALL, resume=False).close()
    open_folder(tmp_path, dataclasses.replace(SMALL, processes=7, seeds=9), resume=True).close()
    assert read_settings(tmp_path).seeds == 9, "what was asked for last is gone on with"
    with pytest.raises(FolderError, match="max_steps was 1, now 3"):
        open_folder(tmp_path, dataclasses.replace(SMALL, max_steps=3), resume=True)
    old = json.loads((tmp_path / "bench.json").read_text()) | {"version": 2}
    (tmp_path / "bench.json").write_text(json.dumps(old))
    for read in (read_settings, lambda path: open_folder(path, SMALL, resume=True)):
        with pytest.raises(FolderError, match="has version 2"):
            read(tmp_path)


def made_up(entry: str, seed: int, level: float) -> Result:
    fixed = {"kill_rate": 0.5, "copier_kill_rate": 0.6, "new_kill_rate": 0.5, "only_book": None}
    fixed["past_pass_rate"] = level
    scores = {f"p{i}": {"pass_rate": level + 0.01 * i, **fixed} for i in range(4)}
    start = {task: dict.fromkeys(row, 0.0) for task, row in scores.items()}
    curve = {"held_out/kill_rate": 0.5, "held_out/new_kill_rate": 0.5, "tester/validity": 1.0}
    curve |= dict.fromkeys(("reward/coder/mean", "past/pass_rate"), level)
    curves = [curve | {"step": s, "held_out/pass_rate": level * s} for s in (0, 1)]
    return Result(entry, seed, "ok", "", 1.0, start, scores, curves)


def rows_of(text: str, title: str) -> dict[str, list[str]]:
    """The rows of the first table of LEADERBOARD.md with this title: entry -> its other cells."""
    section = text.split(f"## {title}")[1].split("\n## ")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line[:2] == "| "]
    return {
        row[0].removeprefix("| "): [cell.removesuffix(" |") for cell in row[1:]] for row in rows
    }


def test_the_table_says_what_holds():
    levels = {"golden-tests": 0.8, "code-a1": 0.6, "self-play": 0.6, "no-book": 0.6}
    results = [made_up(name, seed, level) for name, level in levels.items() for seed in range(3)]
    config = dataclasses.replace(SMALL, algorithms=tuple(levels), sweep=(0.25, 4.0), max_steps=32)
    scores = {"0.25": [0.5, 0.75], "4": [0.25, None]}
    swept = [Swept("code-a1", "coder", scores, 0.25, 0.5, at_edge=True)]
    text = leaderboard(config, results, swept, "a machine", ["curves.png"])
    coders, testers = rows_of(text, "Coders of"), rows_of(text, "Testers of")
    controls = ["start (control)", "copier (control)"]
    assert list(coders)[1:] == [*levels, controls[0]], "the best coder first"
    assert list(testers)[1:] == [*levels, *controls]
    assert coders["golden-tests"][:2] == ["1", "0.815 (all equal)"]
    assert coders["self-play"][0] == "2-4"
    assert coders[controls[0]][1] == "0.000 (all equal)"
    assert testers[controls[1]][1:3] == ["0.600 (all equal)", "0.100 (all equal)"]
    claims = rows_of(text, "What holds at this scale")
    for said, verdict in (
        ("a better tester than one that copies", "does not hold: it is the other way round"),
        ("testers to find what copies do not", "holds"),
        ("Code-A1 trains a better coder than golden tests", "does not hold"),
        ("Golden tests train a better coder than self-play", "holds"),
        ("Code-A1 trains a better coder than self-play", "cannot be told"),
    ):
        [found] = [cells[0] for claim, cells in claims.items() if said in claim]
        assert found.startswith(verdict)
    for said in (
        "above that of copies: golden-tests, code-a1, self-play, no-book.",
        "| code-a1 | coder | **0.625** | - | 0.5, *edge* |",
    ):
        assert said in text
    short = leaderboard(dataclasses.replace(config, max_steps=8), results, swept, "", [])
    assert ("| rank |" in text, "| rank |" in short) == (True, False), "too few steps for that"
    assert "Not all that was measured" not in text
    more = leaderboard(config, results, swept, "", [], not_shown=2)
    assert "**Not all that was measured**: 2 finished" in more
    assert "alpha" not in text.split("## What")[1], "nothing was said of what was not run"


def test_intervals_stay_within_what_a_difference_of_shares_can_be():
    levels = [("a", (0.0, 0.9)), ("b", (0.9, 0.0))]
    results = [made_up(name, n, level) for name, both in levels for n, level in enumerate(both)]
    difference = Table(results).difference("a", "b", "pass_rate")
    assert difference is not None
    assert (difference.low, difference.high) == (-1.0, 1.0)
    text = leaderboard(SMALL, results, [], "", [])
    assert "| pass rate | pass rate less a |" in text
    assert "| kill rate | kill rate less a | new kill rate |" in text


def test_a_seed_whose_mutants_all_die_by_copies_ends_nothing():
    results = [made_up("code-a1", seed, 0.9) for seed in range(3)]
    none = {task: row | {"new_kill_rate": None} for task, row in results[0].end.items()}
    less = [dataclasses.replace(each, start=none, end=none) for each in results[1:]]
    table = Table([results[0], *less])
    assert table.mean("code-a1", "new_kill_rate") == 0.5
    assert isinstance(table.estimate("code-a1", "new_kill_rate"), float), "one seed has no interval"


def with_unseen(result: Result, level: float) -> Result:
    def others(rate: float) -> dict[str, dict[str, float | None]]:
        rates = dict.fromkeys(
            ("unseen/pass_rate", "unseen/kill_rate", "unseen/new_kill_rate"), rate
        )
        found = {f"u{i}": {"unseen/copier_kill_rate": 0.25, **rates} for i in range(3)}
        found["u0"]["unseen/new_kill_rate"] = None
        return found

    start, end = result.start | others(0.0), result.end | others(level)
    return dataclasses.replace(result, start=start, end=end)


def test_problems_that_are_not_trained_on_come_first_and_seeds_are_paired():
    levels = {"code-a1": 0.5, "golden-tests": 0.375}
    each = [(name, level, seed) for name, level in levels.items() for seed in range(3)]
    results = [with_unseen(made_up(name, i, 0.6), level + i / 8) for name, level, i in each]
    longer = dataclasses.replace(SMALL, max_steps=32)
    text = leaderboard(longer, results, [], "a machine", [])
    unseen = "of this benchmark, on problems that are not trained on"
    coders, testers = rows_of(text, f"Coders {unseen}"), rows_of(text, f"Testers {unseen}")
    assert coders["code-a1"][1:3] == ["0.625 [0.314, 0.936]", "-"], "seeds differ"
    assert coders["golden-tests"][2] == "-0.125 (all equal)", "but all in the same way"
    copier = testers["copier (control)"]
    assert copier[1:3] == ["0.250 (all equal)", "-0.375 [-0.686, -0.064]"]
    section = text.split(f"## Testers {unseen}")[1]
    assert "Of 2 problems" in section, "one has no mutants that copies leave alive"
    assert "| holds | unseen/pass rate | 0.625 | 0.500 | 0.125 (all equal) |" in text


def test_settings_in_files_are_rows(tmp_path: Path):
    path = tmp_path / "own.toml"
    path.write_text("strict_paper = true\n[coder]\nlearning_rate = 3.0\n")
    entry = find_entry(str(path))
    config = entry.apply(BenchConfig().base(0))
    assert (config.strict_paper, config.coder.learning_rate, config.max_problems) == (True, 3.0, 24)
    assert entry.folder != find_entry(str(path)).name
    path.write_text("max_steps = 3")
    with pytest.raises(ValueError, match="which all runs share"):
        find_entry(str(path))


def test_all_runs_compute_as_the_first_one_measured(tmp_path: Path):
    jobs = jobs_of(SMALL, "code-a1", "no-book")
    with open_folder(tmp_path, SMALL, resume=False) as opened:
        table = RunTable(opened)
        assert machine_of(jobs, table) == {}
        run = tmp_path / jobs[0].place / "run"
        begun = TrainConfig(dtype="bfloat16", threads=3, output_dir=run)
        RunFolder.create(begun).close()
        assert machine_of(jobs, table) == {}, "it is not done"
        rates = dataclasses.asdict(Rates())
        table.note(jobs[0], Result("code-a1", 0, "ok", rates=rates))
        assert machine_of(jobs, table) == {"dtype": "bfloat16", "threads": 3}


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("a\n# b\r\n\n- c | d\u2028\x1b[1me", "`a # b - c | d\\u2028\\x1b[1me`"),
        ("x" * 9999, f"`{'x' * 497}...`"),
    ],
)
def test_any_error_is_one_line_of_the_table_of_failures(error: str, shown: str):
    failed = Result("a.py:Mine", 0, "failed", error, 1.0, {}, {}, [])
    text = leaderboard(SMALL, [failed], [], "a machine", [])
    assert text.split("## Failed runs\n\n")[1].startswith(f"- a.py:Mine, seed 0: {shown}\n\n## ")


def test_plots(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from codea1_env.baselines.bench.plots import plot_all

    names = ("code-a1", "self-collusion", "no-book")
    results = [made_up(name, seed, 0.5) for name in names for seed in (0, 1)]
    made = plot_all(tmp_path, results)
    assert made == ["scores.png", "curves.png", "collusion.png", "forgetting.png"]
    assert all((tmp_path / name).read_bytes()[:4] == b"\x89PNG" for name in made)


@pytest.mark.parametrize("change", [{"seeds": 0}, {"sweep": (1.0, 1.0)}, {"eval_problems": -1}])
def test_bad_settings(change):
    with pytest.raises(ValueError, match=f"Expect {next(iter(change))} to"):
        dataclasses.replace(SMALL, **change)


def test_the_checkpoint_of_an_interruption_is_not_measured(tmp_path: Path) -> None:
    for step in (0, 2, 3, 4, 5, 7):
        (tmp_path / "checkpoints" / f"step_{step}").mkdir(parents=True)
    found = regular_checkpoints(tmp_path, TrainConfig(max_steps=7, save_steps=2))
    assert [path.name for path in found] == ["step_0", "step_2", "step_4", "step_7"]
