"""Diagnostics: runs in worlds of cells are those of the real game, rows and controls do what they say, and folders go on."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from codea1_env.agents import GRPO, Pool, TabularAgent
from codea1_env.baselines.diagnose.experiments import (
    EXPERIMENTS,
    ROWS,
    expectations,
    row_changes,
    with_rows,
)
from codea1_env.baselines.diagnose.play_config import PlayConfig
from codea1_env.baselines.diagnose.playing import play
from codea1_env.baselines.diagnose.remembering import Noise, RememberingReferee
from codea1_env.baselines.diagnose.running import (
    RowRun,
    _Left,
    play_rows,
    wanted,
)
from codea1_env.baselines.diagnose.scores import content_of, score_rows
from codea1_env.baselines.diagnose.testers import (
    FixedCells,
    GoldenCells,
    OracleTester,
    RandomTester,
)
from codea1_env.cli.app import run as main
from codea1_env.mistake_book import MistakeBook
from codea1_env.problem_sets.cells import CellsConfig, cells, pools_of
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.report.diagnostics import diagnosis
from codea1_env.report.folders import Diagnosed
from codea1_env.rewards import RewardConfig
from codea1_env.rollout import RolloutConfig, rollout
from codea1_env.spaces import observe
from codea1_env.support.jobs import read_table

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")

WORLD = CellsConfig(C=16, faults=Fraction(1, 8), families=3, problems=2, valid=Fraction(3, 4))
SMALL = PlayConfig(world=WORLD, steps=3, num_generations=4, num_suites=2)


@pytest.mark.parametrize("oracle", ["reference", "coder"])
def test_what_is_remembered_is_what_the_sandbox_says(sandbox, oracle):
    """Verdicts, rewards and book, step by step, are those of the referee that asks the sandbox each time."""
    problems = cells(WORLD)
    pools = [pools_of(problem) for problem in problems]
    config = RefereeConfig(RewardConfig(num_tests=2))
    told = []
    for kind in (Referee, RememberingReferee):
        rng = np.random.default_rng
        coder = TabularAgent([Pool(p, q.programs) for p, q in zip(problems, pools, strict=True)], GRPO(), rng(0))  # fmt: skip
        tester = TabularAgent([Pool(p, q.tests) for p, q in zip(problems, pools, strict=True)], GRPO(16.0), rng(1), 2)  # fmt: skip
        referee, book, found = kind(sandbox, config), MistakeBook(), []
        for _ in range(4):
            played = rollout(problems, coder, tester, referee, book, RolloutConfig(4, 2, oracle=oracle))  # fmt: skip
            coder.learn(played.coder_experience())
            tester.learn(played.tester_experience())
            found.append([(e.verdict.code_reward, e.test_rewards, e.verdict.history_passed) for e in played.episodes])  # fmt: skip
        told.append((found, book.state_dict(), coder.policy.state_dict()))
    assert told[0] == told[1]
    assert any(passed for step in told[0][0] for _, _, passed in step), "tests were replayed"


class Plays(FixedCells):
    """Gives its answers in turn."""

    def __init__(self, texts):
        self._texts = texts

    def act(self, observations):
        return [self._texts[i % len(self._texts)] for i in range(len(observations))]


def test_what_is_in_no_pool_is_asked_of_the_sandbox(sandbox):
    problem = cells(WORLD)[0]
    referee = RememberingReferee(sandbox)

    for code, test, broke in (
        ("def f(x): return 99", pools_of(problem).tests[3], True),
        (problem.reference, "assert f(2 + 1) == 99", False),
    ):
        played = rollout([problem], Plays([code]), Plays([test]), referee, MistakeBook(), RolloutConfig(1, 1))  # fmt: skip
        assert bool(played.episodes[0].verdict.failed) is broke


@pytest.fixture(scope="module")
def memory(sandbox) -> RememberingReferee:
    """What the sandbox says of the worlds here, asked once."""
    return RememberingReferee(sandbox)


@pytest.mark.parametrize("row", sorted(set(ROWS) - {"golden-tests", "golden-fresh"}))
def test_every_row_can_be_played_and_repeated(row, sandbox, memory):
    config = dataclasses.replace(SMALL, **row_changes(row), steps=2, wrong=0.2)
    first, second = play(config, sandbox, memory), play(config, sandbox, memory)
    assert first == second
    assert 0 <= first["solved"] <= first["correctness"] <= 1


def test_scripted_testers_are_what_they_are_called():
    problem = cells(WORLD)[0]
    pools = pools_of(problem)
    seen = observe(problem, code=pools.programs[1], turn=1)
    worlds, rng = {seen["task_id"]: pools}, np.random.default_rng(0)
    fault = {pools.tests[cell] for cell in pools.faults[1]}
    suites = [set(each.split("\n\n")) for each in RandomTester(worlds, 2, 4, rng).act([seen] * 4)]
    assert len(set().union(*suites)) == 8, "random tests against one program are all different"
    for suite in OracleTester(worlds, 2, rng).act([seen] * 8):
        assert fault & set(suite.split("\n\n"))
    fixed = FixedCells(worlds, 2, rng)
    assert len(set(fixed.act([seen] * 5))) == 1
    hidden = {pools.tests[cell] for cell in pools.families[2]}
    golden, fresh = (GoldenCells(worlds, 1, rng, fresh=fresh) for fresh in (False, True))
    assert not any(hidden & set(suite.split("\n\n")) for suite in golden.act([seen] * 20))
    assert any(hidden & set(suite.split("\n\n")) for suite in fresh.act([seen] * 20))


@pytest.mark.parametrize("kind", ["independent", "pair", "program"])
def test_noise_has_its_rate_and_its_kind(kind, sandbox):
    world = CellsConfig(C=64, faults=Fraction(1, 2), families=20, disjoint=False, problems=1)
    problem = cells(world)[0]
    pools = pools_of(problem)
    noisy = RememberingReferee(sandbox, noise=Noise(kind, false_pass=0.3, false_fail=0.2))

    verdicts = []
    for _ in range(2):
        every = Plays(["\n\n".join(pools.tests[i : i + 32]) for i in (0, 32)])
        played = rollout([problem], Plays(pools.programs), every, noisy, MistakeBook(), RolloutConfig(21, 2))  # fmt: skip
        verdicts.append([[t.broke for s in e.verdict.suites for t in s.tests] for e in played.episodes])  # fmt: skip
    truth = np.array([[cell in faults for cell in range(64)] for faults in pools.faults])
    first, second = map(np.array, verdicts)
    assert (first == second).all() == (kind != "independent")
    wrong = first != truth
    assert wrong[truth].mean() == pytest.approx(0.3, abs=0.05 if kind != "program" else 0.25)
    assert wrong[~truth].mean() == pytest.approx(0.2, abs=0.05 if kind != "program" else 0.25)
    if kind == "program":  # all failures of a program are called passes, or none
        assert all(len(set(row[t])) <= 1 for row, t in zip(wrong, truth, strict=True))


def test_experiments_and_expectations_belong_together():
    expected = expectations()
    assert set(expected) == set(EXPERIMENTS)
    for name, each in EXPERIMENTS.items():
        assert len(expected[name].signs) == len(each.settings)
        assert each.control in each.rows
        assert set(each.quick) <= set(each.settings)
        for setting in each.settings:
            for row in each.rows:
                assert each.config(setting, row, 3).world.seed == 3


def text_of(experiment, runs, expected):
    content = content_of([experiment], runs, expected)
    return diagnosis(Diagnosed("", content["scores"], content["experiments"]))


def run_of(row, setting, seed, value, error=""):
    return RowRun("cycling", setting, row, seed, 0, 1.0, {"solved/area": value}, error)


def test_scores_by_hand():
    experiment = dataclasses.replace(EXPERIMENTS["cycling"], rows=("code-a1", "iid-tests"))
    values = {"code-a1": {"0": (0.5, 0.7), "2": (0.9, 0.9)}, "iid-tests": {"0": (0.4, 0.4), "2": (0.5, 0.5)}}  # fmt: skip
    runs = [
        run_of(row, setting, seed, value)
        for row, settings in values.items()
        for setting, seeds in settings.items()
        for seed, value in enumerate(seeds)
    ]
    row, control = score_rows(experiment, runs)
    assert row.means == pytest.approx({"0": 0.6, "2": 0.9})
    assert row.differences["0"].value == pytest.approx(0.2)
    assert row.area is not None
    assert row.area.value == pytest.approx((0.25 + 0.35) / 2)
    assert control.differences == {}
    text = text_of(experiment, runs, expectations())
    assert "| iid-tests (control) | 0.400 | 0.500 | control |" in text
    assert "2: expected +, came +" in text


def test_a_column_in_which_a_faulty_learner_wins_tells_nothing():
    rows = ("code-a1", "iid-tests", "negated-rewards")
    experiment = dataclasses.replace(EXPERIMENTS["cycling"], rows=rows)
    values = {"code-a1": (0.5, 0.6), "iid-tests": (0.4, 0.4), "negated-rewards": (0.7, 0.1)}
    runs = [
        run_of(row, setting, seed, value + seed / 100)
        for row, both in values.items()
        for setting, value in zip(("0", "2"), both, strict=True)
        for seed in (0, 1)
    ]
    assert "| 0 (tells nothing) | 2 |" in text_of(experiment, runs, {})


def test_areas_of_two_signs_are_not_summed():
    experiment = dataclasses.replace(EXPERIMENTS["kinds"], rows=("code-a1", "random-half"))
    runs = [
        dataclasses.replace(
            run_of(row, setting, seed, 0.0), experiment="kinds", measures={"killed/out": value}
        )
        for row, both in {"code-a1": (0.9, 0.1), "random-half": (0.5, 0.5)}.items()
        for setting, value in zip(("4/4", "0/4"), both, strict=True)
        for seed in (0, 1)
    ]
    flat = content_of([experiment], runs, {})["scores"]
    assert [each["area"] for each in flat] == [None, None]


def test_a_row_that_fails_is_named_and_the_rest_is_shown(sandbox, tmp_path):
    own, update = f"{tmp_path}/own.py:Own", "    def update(self, policy, samples): 1 / 0\n"
    (tmp_path / "own.py").write_text(f"class Own:\n    learning_rate = 1.0\n{update}")
    base = {**EXPERIMENTS["cycling"].base, "steps": 2, "world.problems": 1}
    experiment = dataclasses.replace(with_rows(EXPERIMENTS["cycling"], [own]), base=base)
    rows = ("code-a1", "iid-tests", own)
    experiment = dataclasses.replace(
        experiment, rows=rows, settings={"2": experiment.settings["2"]}
    )
    jobs = wanted([experiment], (0, 1), quick=False)
    runs: list[RowRun] = []
    for job in jobs:
        play_rows(job, runs.append)
    assert [bool(run.error) for run in runs] == [False, False, True] * 2
    assert "by zero" in runs[2].error
    text = text_of(experiment, runs, {})
    assert "| failed |" in text
    assert "2, seed 0: " in text


def test_the_command_goes_on_where_it_was(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cycling = EXPERIMENTS["cycling"]
    base = {**cycling.base, "steps": 2, "world.problems": 1}
    rows = ("code-a1", cycling.control)
    short = dataclasses.replace(cycling, base=base, rows=rows, quick=("0", "4"))
    monkeypatch.setitem(EXPERIMENTS, "cycling", short)
    arguments = ["bench", "diagnose", "cycling", "--quick", "--seeds", "1", "--processes", "1", "--output-dir", "out"]  # fmt: skip
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "the last run" in out
    experiment = with_rows(EXPERIMENTS["cycling"], quick=True)
    keys = {key for world in wanted([experiment], range(1), quick=True) for key in world.runs}
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines()
    assert len(lines) == len(keys)
    failed = json.dumps(json.loads(lines[-3]) | {"error": "x", "measures": {}})  # it is made again
    rest = [*lines[:-3], failed, '{"experiment": "cyc']
    (tmp_path / "out" / "results.jsonl").write_text("\n".join(rest))
    assert main([*arguments, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)["runs"]
    before = {tuple(RowRun(**json.loads(line)).key): json.loads(line)["measures"] for line in lines}
    assert {tuple(RowRun(**each).key): each["measures"] for each in runs} == before
    table = read_table(tmp_path / "out" / "results.jsonl", RowRun.of)
    assert set(table) == keys
    assert not any(each.error for each in table.values())
    typed = json.loads((tmp_path / "out" / "diagnose.json").read_text())["command"]
    assert typed == f"codea1 {' '.join(arguments)} --json"


def test_a_signal_to_all_processes_ends_soon_and_loses_no_finished_run(tmp_path):
    arguments = ["bench", "diagnose", "cycling", "--quick", "--output-dir", "out"]
    process = subprocess.Popen(
        [sys.executable, "-m", "codea1_env.cli", *arguments],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path.cwd())},
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    results, until = tmp_path / "out" / "results.jsonl", time.monotonic() + 120
    while not (results.exists() and results.read_text()) and time.monotonic() < until:
        time.sleep(0.1)
    began = time.monotonic()
    os.killpg(process.pid, signal.SIGTERM)
    text, _ = process.communicate(timeout=60)
    assert time.monotonic() - began < 10
    assert process.returncode == 130
    *told, last = text.strip().splitlines()  # runs that were told of before
    assert last == "To go on, say the same with --output-dir out"
    assert all("runs left" in line for line in told)
    assert read_table(results, RowRun.of), "a run of a world that is still being played is kept"


def test_bad_input_is_one_line_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments, message in (
        (["rare-fault"], "Did you mean rare-faults"),
        (["cycling", "--rows", "ppp"], "no row 'ppp'. Did you mean ppo"),
        (["cycling", "--seeds", "0"], "--seeds"),
    ):
        assert main(["bench", "diagnose", *arguments]) == 2
        err = capsys.readouterr().err
        assert message in err
        assert len(err.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


PLAYERS = """
from codea1_env.agents import GRPO, FixedAgent, TabularAgent

class Tables(TabularAgent):
    def __init__(self, setting):
        super().__init__(setting.pools, GRPO(setting.learning_rate), setting.rng, setting.draws)

class First(FixedAgent):
    def __init__(self, setting):
        self.items = {pool.problem.task_id: pool.items for pool in setting.pools}
    def act(self, observations):
        return [self.items[each["task_id"]][0] for each in observations]
"""


def test_players_of_ones_own_are_rows(sandbox, memory, tmp_path):
    file = tmp_path / "players.py"
    file.write_text(PLAYERS)
    found = {}
    for name in ("Tables", "First"):
        config = dataclasses.replace(SMALL, **row_changes(f"{file}:{name}"))
        found[name] = play(config, sandbox, memory)
    assert 0 < found["Tables"]["exploitability"] <= 2
    assert found["First"]["solved"] == 1.0  # the first program is right
    assert "exploitability" not in found["First"]
    with pytest.raises(ValueError, match="Nothing"):
        row_changes(f"{file}:Nothing")


def test_first_runs_of_worlds_take_longer(monkeypatch):
    cycling = dataclasses.replace(EXPERIMENTS["cycling"], rows=("code-a1", "no-book"), quick=("0",))
    worlds = wanted([cycling], (0, 1), quick=True)
    now = iter([0.0, 11.0])
    monkeypatch.setattr(
        "codea1_env.baselines.diagnose.running.time.perf_counter", lambda: next(now)
    )
    left = _Left(worlds)
    runs = [
        RowRun(*key, seconds, {}) for key, seconds in zip(worlds[0].runs, (10.0, 1.0), strict=True)
    ]
    assert left.after(runs[0]) == (3, None)
    # One first run and one other.
    assert left.after(runs[1]) == (2, 11.0)
