"""The benchmark of algorithms: names, folders, dying workers, broken learners, the table."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from codea1_env.baselines.bench.ranking import leaderboard
from codea1_env.baselines.bench.results import (
    Result,
    TrainingJob,
    collect,
    open_folder,
    read_settings,
    write_results,
)
from codea1_env.baselines.bench.results import jobs_of as jobs_with
from codea1_env.baselines.bench.schedule import check_files, forget_unusable, machine_of, run_all
from codea1_env.baselines.bench.score_table import Table
from codea1_env.baselines.bench.suite import (
    DEFAULT_ENTRIES,
    QUICK,
    BenchConfig,
    Entry,
    EntryError,
    Rates,
    find_entry,
    with_preset,
)
from codea1_env.baselines.bench.sweep import Swept
from codea1_env.evaluation.result_folder import FolderError
from codea1_env.training import TrainConfig
from codea1_env.training.run_folder import RunFolder

SMALL = BenchConfig(("code-a1",), seeds=1, max_problems=4, max_steps=2, sweep=(1.0,), processes=2)

LEARNERS = """
from codea1_env.agents import GRPO, FixedAgent, TabularAgent

class Good(TabularAgent):
    def __init__(self, setting):
        super().__init__(setting.pools, GRPO(setting.learning_rate), setting.rng, setting.draws)

class TooFew(Good):
    def act(self, observations):
        return super().act(observations)[1:]

class NotANumber(Good):
    def learn(self, experience):
        return {"loss": float("nan")}

class Dies(Good):
    def act(self, observations):
        import os
        os._exit(3)

class Mean:
    def __init__(self, learning_rate):
        self.learning_rate = learning_rate
    def update(self, policy, samples):
        return {}

class Neither:
    pass
"""


@pytest.fixture
def learners(tmp_path: Path) -> Path:
    path = tmp_path / "learners.py"
    path.write_text(LEARNERS)
    return path


def test_default_entries_exist_and_differ():
    config = BenchConfig().base(0)
    settings = [find_entry(name).apply(config) for name in DEFAULT_ENTRIES]
    assert all(a != b for i, a in enumerate(settings) for b in settings[:i])
    assert set(DEFAULT_ENTRIES) >= {"code-a1", "self-play", "golden-tests", "frozen-tester"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("golden-test", "no baseline or algorithm 'golden-test'. Did you mean 'golden-tests'"),
        ("rlo", "Did you mean 'rloo'"),
        ("zzzz", "Known: code-a1, "),
        ("nowhere.at_all:Thing", "can be imported, actually: No module named 'nowhere'"),
        ("nothere.py:Thing", "nothere.py to be a Python file, actually: there is no such file"),
        ("codea1_env.agents:TabularAgnt", "Did you mean TabularAgent"),
        ("{file}:Neither", "actually: Neither has no act, learn, save, load"),
        ("{file}:God", "Did you mean Good"),
    ],
)
def test_unknown_names(name: str, message: str, learners: Path):
    with pytest.raises(EntryError) as caught:
        find_entry(name.format(file=learners))
    assert message in str(caught.value)


def test_an_algorithm_with_hyperparameters_of_its_own():
    entry = find_entry("ppo(entropy=0.02)")
    config = entry.apply(BenchConfig().base(0))
    assert (config.algorithm, config.algorithm_args) == ("ppo", {"entropy": 0.02})
    assert entry.folder != find_entry("ppo(entropy=0.2)").folder
    for name, message in (
        ("ppo(entrpy=1)", "Did you mean entropy"),
        ("no-book(x=1)", "Expect an algorithm before the hyperparameters, actually: 'no-book'"),
        ("ppo(entropy)", "expect settings such as"),
    ):
        with pytest.raises(EntryError, match=re.escape(message)):
            find_entry(name)


def test_entries_have_folders_of_their_own():
    names = ["a/b.py:Mine", "a_b.py:Mine", "c/b.py:Mine", "b.py:Mine", "code-a1", "alpha=0.5"]
    folders = {Entry(name, "algorithm").folder for name in names}
    assert len(folders) == len(names)
    assert {"code-a1", "alpha=0.5"} <= folders
    assert not any(set(folder) & set("/: ") for folder in folders)


def jobs_of(config: BenchConfig, entries: list[Entry], folder: Path) -> list[TrainingJob]:
    return jobs_with(config, entries, folder, {entry.name: Rates() for entry in entries})


def run(folder: Path, *names: str, **changes) -> list[Result]:
    config = dataclasses.replace(SMALL, algorithms=names, **changes)
    with open_folder(folder, config, resume=(folder / "bench.json").exists()):
        jobs = jobs_of(config, [find_entry(name) for name in names], folder)
        run_all(config, jobs)
        return collect(jobs)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> tuple[Path, Result]:
    """The folder of a benchmark with one run, and its result."""
    folder = tmp_path_factory.mktemp("finished") / "results"
    (result,) = run(folder, "golden-tests")
    return folder, result


def test_a_broken_learner_is_named_and_the_others_complete(tmp_path: Path, learners: Path):
    folder = tmp_path / "results"
    names = [f"{learners}:{name}" for name in ("TooFew", "NotANumber", "Dies", "Mean")]
    results = {r.entry.rpartition(":")[2]: r for r in run(folder, "rloo", *names)}
    assert {name: r.status for name, r in results.items()} == {
        "rloo": "ok", "TooFew": "failed", "NotANumber": "failed", "Dies": "failed", "Mean": "ok",
    }  # fmt: skip
    assert "(TooFew) to return one answer per observation" in results["TooFew"].error
    assert "NotANumber.learn to return finite numbers" in results["NotANumber"].error
    assert "'loss': nan" in results["NotANumber"].error
    assert "died with exit code 3, twice; see runs/" in results["Dies"].error

    text = leaderboard(SMALL, list(results.values()), [], "a machine", [])
    assert "3 failed" in text
    assert "Dies, seed 0: `its process died with exit code 3" in text
    assert "| Mean" not in text.split("## Failed")[1]

    with open_folder(folder, SMALL, resume=True) as opened:
        write_results(opened, list(results.values()))
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert len(rows) == 5
    assert len(rows[0]["end"]) == 4
    assert all(0 <= each["pass_rate"] <= 1 for each in rows[0]["end"].values())

    # A failed run is run again when its cause is removed.
    learners.write_text(LEARNERS.replace("[1:]", ""))
    jobs = jobs_of(SMALL, [find_entry(names[0])], folder)
    assert collect(jobs) == [results["TooFew"]], "it has a result"
    check_files(SMALL, jobs)  # a mend is no other row
    forget_unusable(jobs)
    assert run(folder, names[0])[0].status == "ok"


def test_the_exact_game_of_tables_is_measured_once_for_equal_pools(tmp_path: Path):
    small = {"max_problems": 2, "max_steps": 1}
    results = run(tmp_path, "code-a1", "black-box", "golden-tests", **small)
    ends = {each.entry: each.end for each in results}
    for name in ("code-a1", "black-box"):
        for row in ends[name].values():
            assert 0 < row["exploitability"] <= 2
            assert 0 <= row["cyclic_share"] <= 1
    assert not any("exploitability" in row for row in ends["golden-tests"].values())
    assert len(list((tmp_path / "payoffs").iterdir())) == 2  # problems, not runs
    for path in (tmp_path / "runs").glob("*/seed_0/run/checkpoints"):
        assert len(list(path.iterdir())) == 1
    section = leaderboard(SMALL, results, [], "a machine", []).split("## The game itself")[1]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert rows[3].count("| - ") == 3
    (tmp_path / "runs" / "code-a1" / "seed_0" / "game.json").write_text("{")
    assert [r.status for r in run(tmp_path, "code-a1", **small)] == ["failed"]
    jobs = jobs_of(dataclasses.replace(SMALL, **small), [find_entry("code-a1")], tmp_path)
    assert "game.json" in forget_unusable(jobs)[0]
    assert run(tmp_path, "code-a1", **small)[0].end == ends["code-a1"]


def test_a_worker_that_dies_once_goes_on_and_nothing_is_lost(finished, tmp_path: Path):
    # A Python that dies at its first start, as a killed process would.
    flag = tmp_path / "died"
    python = (
        "import os, runpy, sys\n"
        f"flag = {str(flag)!r}\n"
        "if not os.path.exists(flag):\n"
        "    open(flag, 'w').close()\n"
        "    os.kill(os.getpid(), 9)\n"
        "sys.argv = ['worker', sys.argv[-1]]\n"
        "runpy.run_module('codea1_env.baselines.bench.worker', run_name='__main__')\n"
    )
    config = dataclasses.replace(SMALL, processes=1)
    jobs = jobs_of(config, [find_entry("golden-tests")], tmp_path / "a")
    run_all(config, jobs, python=(sys.executable, "-c", python))
    (result,) = collect(jobs)
    assert flag.exists()
    assert (result.status, result.end) == ("ok", finished[1].end)


def test_finished_runs_are_not_run_again_and_more_may_be_added(finished, tmp_path: Path):
    folder, first = tmp_path / "results", finished[1]
    shutil.copytree(finished[0], folder)
    again = run(folder, "golden-tests", "code-a1")
    assert again[0] == first
    assert [each.entry for each in again] == ["golden-tests", "code-a1"]
    next(
        folder.rglob("golden-tests/**/result.json")
    ).unlink()  # it lacks its result only, and gets it
    (again,) = run(folder, "golden-tests")
    assert (again.status, again.end) == ("ok", first.end)


def test_a_row_is_never_of_two_versions_of_a_file(tmp_path: Path):
    settings = tmp_path / "own.toml"
    settings.write_text("strict_paper = true\n")
    jobs = jobs_of(SMALL, [find_entry(str(settings))], tmp_path / "results")
    check_files(SMALL, jobs)
    run_all(SMALL, jobs)
    check_files(SMALL, jobs)
    settings.write_text("strict_paper = false\n")
    with pytest.raises(FolderError, match=r"own.toml to be what it was .* it has changed"):
        check_files(SMALL, jobs)
    settings.write_text("strict_paper = true\n")
    check_files(SMALL, jobs)


def test_folders_of_others_are_refused(tmp_path: Path):
    folder = tmp_path / "results"
    with pytest.raises(FolderError, match="a benchmark to resume"):
        open_folder(folder, SMALL, resume=True)
    with (
        open_folder(folder, SMALL, resume=False),
        pytest.raises(FolderError, match="another process does"),
    ):
        open_folder(folder, SMALL, resume=True)
    with open_folder(folder, dataclasses.replace(SMALL, processes=7, seeds=9), resume=True):
        pass
    assert read_settings(folder).seeds == 9, "what was asked for last is gone on with"
    with pytest.raises(FolderError, match="Add --resume to go on"):
        open_folder(folder, SMALL, resume=False)
    with pytest.raises(FolderError, match="max_steps was 2, now 3"):
        open_folder(folder, dataclasses.replace(SMALL, max_steps=3), resume=True)
    content = json.loads((folder / "bench.json").read_text()) | {"version": 1}
    (folder / "bench.json").write_text(json.dumps(content))
    with pytest.raises(FolderError, match=r"a benchmark of version 2, actually .* has version 1"):
        open_folder(folder, SMALL, resume=True)
    (folder / "bench.json").write_text("{")
    with pytest.raises(FolderError, match="to be a JSON file"):
        open_folder(folder, SMALL, resume=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("")
    with pytest.raises(FolderError, match="to be a new or an empty folder"):
        open_folder(other, SMALL, resume=False)
    with pytest.raises(FolderError, match="to be a new or an empty folder"):
        open_folder(other / "mine.txt", SMALL, resume=False)


def made_up(entry: str, seed: int, level: float) -> Result:
    scores = {
        f"p{i}": {"pass_rate": level + 0.01 * i, "kill_rate": 0.5, "copier_kill_rate": 0.6, "new_kill_rate": 0.5, "only_book": None, "past_pass_rate": level}
        for i in range(4)
    }  # fmt: skip
    start = {task: dict.fromkeys(row, 0.0) for task, row in scores.items()}
    curves = [{"step": s, "held_out/pass_rate": level * s, "held_out/kill_rate": 0.5, "held_out/new_kill_rate": 0.5, "reward/coder/mean": level, "tester/validity": 1.0, "past/pass_rate": level} for s in (0, 1)]  # fmt: skip
    return Result(entry, seed, "ok", "", 1.0, start, scores, curves)


def test_the_table_says_what_holds():
    levels = {"golden-tests": 0.8, "code-a1": 0.6, "self-play": 0.6, "no-book": 0.6}
    results = [made_up(name, seed, level) for name, level in levels.items() for seed in range(3)]
    config = dataclasses.replace(SMALL, algorithms=tuple(levels), sweep=(0.25, 4.0))
    swept = [
        Swept("code-a1", "coder", {"0.25": [0.5, 0.75], "4": [0.25, None]}, 0.25, 0.5, at_edge=True)
    ]
    text = leaderboard(config, results, swept, "a machine", ["curves.png"])
    lines: dict[str, str] = {}
    for line in text.splitlines():
        if line[:2] == "| ":  # of the first table: that of ranks names the same rows
            lines.setdefault(line.split("|")[1].strip(), line)
    controls = ["*start (control)*", "*copier (control)*"]
    assert list(lines)[1:] == [*levels, *controls], "the best coder first"
    assert "0.815 [0.815, 0.815]" in lines["golden-tests"]
    assert "0.000 [0.000, 0.000]" in lines[controls[0]]
    assert lines[controls[1]].startswith(
        "| *copier (control)* | - | - | 0.600 [0.600, 0.600] | 0.100 [0.100, 0.100] |"
    )
    assert "| 0.000 [0.000, 0.000] | -0.500 [-0.500, -0.500] | - | - | - |" in lines[controls[1]]
    assert "above that of copies: golden-tests, code-a1, self-play, no-book." in text
    assert "Not all that was measured" not in text
    assert "**Not all that was measured**: 2 finished" in leaderboard(
        config, results, swept, "", [], not_shown=2
    )
    assert (
        "(code-a1 over copied examples, kill_rate): **does not hold**: it is the other way round"
        in text
    )
    assert "(code-a1 over start, new_kill_rate): **holds**" in text
    assert "| code-a1 | coder | **0.625** | - | 0.5, *edge* |" in text.splitlines()
    assert "Not swept" in leaderboard(QUICK, results, [], "a machine", [])
    assert "(code-a1 over golden-tests, pass_rate): **does not hold**" in text
    assert "(golden-tests over self-play, pass_rate): **holds**" in text
    assert "(code-a1 over self-play, pass_rate): **cannot be told**" in text
    assert "(code-a1 over no-book, past_pass_rate): **cannot be told**" in text
    assert "alpha" not in text.split("## What")[1], "nothing was said of what was not run"
    assert "![curves](curves.png)" in text


def test_one_seed_is_told_from_no_control():
    text = leaderboard(SMALL, [made_up("code-a1", 0, 0.9)], [], "a machine", [])
    assert "**No coder here is clearly above the players before training.**" in text
    assert "not clearly above that of copies: code-a1." in text
    two = leaderboard(SMALL, [made_up("code-a1", seed, 0.9) for seed in (0, 1)], [], "", [])
    assert "No coder here" not in two


def test_a_seed_whose_mutants_all_die_by_copies_ends_nothing():
    results = [made_up("code-a1", seed, 0.9) for seed in range(3)]
    none = {task: row | {"new_kill_rate": None} for task, row in results[0].end.items()}
    less = [dataclasses.replace(each, start=none, end=none) for each in results[1:]]
    table = Table([results[0], *less])
    assert table.mean("code-a1", "new_kill_rate") == 0.5
    assert isinstance(table.estimate("code-a1", "new_kill_rate"), float), "one seed has no interval"


def with_unseen(result: Result, level: float) -> Result:
    def others(rate: float) -> dict[str, dict[str, float | None]]:
        return {
            f"u{i}": {"unseen/pass_rate": rate, "unseen/kill_rate": rate, "unseen/copier_kill_rate": 0.25, "unseen/new_kill_rate": rate if i else None}
            for i in range(3)
        }  # fmt: skip

    return dataclasses.replace(
        result, start=result.start | others(0.0), end=result.end | others(level)
    )


def test_problems_that_are_not_trained_on_come_first_and_seeds_are_paired():
    levels = {"code-a1": 0.5, "golden-tests": 0.375}
    results = [
        with_unseen(made_up(name, seed, 0.6), level + seed / 8)
        for name, level in levels.items()
        for seed in range(3)
    ]
    text = leaderboard(SMALL, results, [], "a machine", [])
    section = text.split("## Problems that are not trained on")[1].split("## Problems that are tr")[
        0
    ]
    lines = {line.split("|")[1].strip(): line for line in section.splitlines() if line[:2] == "| "}
    assert "| 0.625 [0.314, 0.936] | - |" in lines["code-a1"], "seeds differ"
    assert "| -0.125 [-0.125, -0.125] |" in lines["golden-tests"], "but all in the same way"
    assert "| 0.250 [0.250, 0.250] | -0.375 [-0.686, -0.064] |" in lines["*copier (control)*"]
    assert lines["*start (control)*"].startswith(
        "| *start (control)* | 0.000 [0.000, 0.000] | -0.625"
    )
    assert "of 2 problems" in section, "one has no mutants that copies leave alive"
    assert (
        "(code-a1 over golden-tests, unseen/pass_rate): **holds**; means 0.625 and 0.500, difference 0.125"
        in text
    )
    one = leaderboard(SMALL, results[:1], [], "a machine", [])
    assert "| code-a1 | 0.500 | - |" in one


def test_settings_in_files_are_rows(tmp_path: Path):
    path = tmp_path / "own.toml"
    path.write_text("strict_paper = true\n[coder]\nlearning_rate = 3.0\n")
    entry = find_entry(str(path))
    config = entry.apply(BenchConfig().base(0))
    assert (config.strict_paper, config.coder.learning_rate, config.max_problems) == (True, 3.0, 24)
    assert entry.folder != find_entry(str(path)).name
    for text, said in [
        ("max_steps = 3", "which all runs share"),
        ("alpa = 3", "Did you mean 'alpha'"),
        ("alpha = ", "to be a TOML file"),
    ]:
        path.write_text(text)
        with pytest.raises(EntryError, match=said):
            find_entry(str(path))
    with pytest.raises(EntryError, match="cannot read"):
        find_entry("nowhere.toml")


def test_models_play_one_at_a_time_after_an_interruption_too(tmp_path: Path):
    config = with_preset(BenchConfig(), "smollm2-cpu")
    with open_folder(tmp_path / "results", config, resume=False):
        pass
    assert config.processes == read_settings(tmp_path / "results").processes == 1
    assert config.base(0).tester_examples == "hidden"
    assert config.base(0).eval_problems == 12


def test_all_runs_compute_as_the_first_one_measured(tmp_path: Path):
    jobs = jobs_of(SMALL, [find_entry("code-a1"), find_entry("no-book")], tmp_path)
    assert machine_of(jobs) == {}
    begun = TrainConfig(dtype="bfloat16", threads=3, output_dir=jobs[0].folder / "run")
    RunFolder.create(begun).close()
    assert machine_of(jobs) == {}, "it is not done"
    (jobs[0].folder / "result.json").write_text("{}")
    assert machine_of(jobs) == {"dtype": "bfloat16", "generation_dtype": None, "threads": 3, "generation_threads": None}  # fmt: skip


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("a\n# b\r\n\n- c | d\u2028\x1b[1me", "`a # b - c | d\\u2028\\x1b[1me`"),
        ("say `x` or ``y``", "``` say `x` or ``y`` ```"),
        ("x" * 9999, f"`{'x' * 497}...`"),
    ],
)
def test_any_error_is_one_line_of_the_table_of_failures(error: str, shown: str):
    failed = Result("a.py:Mine", 0, "failed", error, 1.0, {}, {}, [])
    text = leaderboard(SMALL, [failed], [], "a machine", [])
    assert text.split("## Failed runs\n\n")[1].startswith(f"- a.py:Mine, seed 0: {shown}\n\n## ")


def test_files_of_the_same_name_are_told_apart():
    results = [made_up(f"/home/{who}/mine.py:Mine", 0, 0.5) for who in ("me", "you")]
    failed = Result("/home/you/mine.py:Other", 0, "failed", "E: no", 1.0, {}, {}, [])
    text = leaderboard(SMALL, [*results, failed], [], "a machine", [])
    rows = [line.split(" | ")[0] for line in text.splitlines() if "mine.py:" in line[:30]]
    assert rows[:2] == ["| me/mine.py:Mine", "| you/mine.py:Mine"]
    assert "differences to me/mine.py:Mine are paired by seed" in " ".join(text.split())
    assert "- mine.py:Other, seed 0: `E: no`" in text


def test_plots(tmp_path: Path):
    pytest.importorskip("matplotlib")
    from codea1_env.baselines.bench.plots import plot_all

    names = ("code-a1", "self-collusion", "no-book")
    results = [made_up(name, seed, 0.5) for name in names for seed in (0, 1)]
    made = plot_all(tmp_path, results)
    assert made == ["scores.png", "curves.png", "collusion.png", "forgetting.png"]
    assert all((tmp_path / name).read_bytes()[:4] == b"\x89PNG" for name in made)


@pytest.mark.parametrize(
    "change",
    [
        {"seeds": 0},
        {"seeds": 1001},
        {"algorithms": ()},
        {"processes": 0},
        {"sweep": ()},
        {"sweep": (1.0, 1.0)},
        {"sweep": (float("nan"),)},
        {"eval_problems": -1},
    ],
)
def test_bad_settings(change):
    with pytest.raises(ValueError, match=f"Expect {next(iter(change))} to"):
        dataclasses.replace(SMALL, **change)
