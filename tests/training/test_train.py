from __future__ import annotations

import io
import json
import os
import signal

import numpy as np
import pytest
from rich.console import Console

from codea1_env import Sandbox
from codea1_env.agents import FixedAgent, GoldenTester
from codea1_env.problems import load_problems
from codea1_env.support.logs import read_rows
from codea1_env.training import RunError, TrainConfig, train
from codea1_env.training.run_folder import EPISODES, HELD_OUT, METRICS, TIMINGS
from codea1_env.training.settings import replaced

SMALL = TrainConfig(
    max_problems=3,
    problems_per_step=2,
    num_generations=4,
    num_suites=2,
    max_steps=5,
    eval_steps=2,
    eval_samples=1,
    save_steps=2,
)


def run(folder, sandbox, *, resume=False, player=None, **changes):
    out = io.StringIO()
    result = train(
        replaced(SMALL, {"output_dir": folder, **changes}),
        resume=resume,
        sandbox=sandbox,
        tester=player,
        console=Console(file=out, width=120),
    )
    return result, out.getvalue()


def contents(folder, *, without=(TIMINGS, ".lock")):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in without
    }


def test_the_run_folder(finished):
    folder, result, output = finished
    assert (result.output_dir, result.step, result.finished) == (folder, 5, True)
    names = {path.name for path in folder.iterdir()}
    assert names == {"config.toml", METRICS, EPISODES, HELD_OUT, TIMINGS, "checkpoints", ".lock"}
    assert sorted(path.name for path in (folder / "checkpoints").iterdir()) == ["step_4", "step_5"]
    assert "5 steps" in output
    assert str(folder) in output


def test_measurements_problem_by_problem(finished):
    folder = finished[0]
    rows = list(read_rows(folder / HELD_OUT))
    assert [row["step"] for row in rows] == [step for step in (0, 2, 4, 5) for _ in range(3)]
    last, means = rows[-3:], list(read_rows(folder / METRICS))[-1]
    assert sum(row["pass_rate"] for row in last) / 3 == pytest.approx(means["held_out/pass_rate"])
    assert all(row["past_pass_rate"] is None for row in rows[:3]), "nothing has been broken yet"
    assert means["past/size"] == sum(row["past_tests"] for row in last) > 0
    assert 0 <= means["past/pass_rate"] <= 1
    assert 0 <= means["held_out/only_book"] <= 1


def test_metrics(finished):
    rows = list(read_rows(finished[0] / METRICS))
    assert [row["step"] for row in rows] == [0, 1, 2, 3, 4, 5]
    assert [row["step"] for row in rows if "held_out/pass_rate" in row] == [0, 2, 4, 5]
    for row in rows[1:]:
        assert 0 <= row["reward/coder/mean"] <= 1
    assert not any("seconds" in name for row in rows for name in row)
    assert rows[-1]["book/size"] == sum(row["book/added"] - row["book/removed"] for row in rows[1:])


def test_one_worker_or_two_give_the_same_bytes(finished, tmp_path):
    with Sandbox(workers=1) as one:
        run(tmp_path / "run", one)
    assert contents(tmp_path / "run") == contents(finished[0])


class Interrupting(FixedAgent):
    """A golden tester that sends a signal to its own process when it has acted a number of times."""

    def __init__(self, number: int, after: int) -> None:
        self._golden = GoldenTester(load_problems("starter", "train"), 4)
        self._number = number
        self._left = after

    def act(self, observations):
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), self._number)
        return self._golden.act(observations)

    def save(self, path):
        self._golden.save(path)

    def load(self, path):
        self._golden.load(path)


def test_an_interrupted_run_goes_on_to_the_same_bytes(sandbox, tmp_path):
    whole, parts, number = tmp_path / "whole", tmp_path / "parts", signal.SIGTERM
    run(whole, sandbox, player=Interrupting(number, after=-1))
    # It acts before step 1, in steps 1 and 2, in the measurement after step 2, and then in step 3.
    result, output = run(parts, sandbox, player=Interrupting(number, after=5))
    assert (result.step, result.finished) == (3, False)
    assert "codea1 train --resume --output-dir" in output
    assert (parts / "checkpoints" / "step_3").is_dir()
    result, output = run(parts, sandbox, resume=True, player=Interrupting(number, after=-1))
    assert result.finished
    assert "after step 3" in output
    for name, data in contents(whole).items():
        if "step_4" not in name:  # it left one more checkpoint, so step 4 was dropped later
            assert contents(parts)[name] == data, name


def test_a_finished_run_is_not_resumed(finished, sandbox, tmp_path):
    with pytest.raises(RunError, match=r"not finished, actually: .* has done 5 of 5 steps"):
        run(finished[0], sandbox, resume=True)
    assert len(list(read_rows(finished[0] / METRICS))) == 6, "nothing was lost"


def test_a_run_without_a_checkpoint_starts_again(finished, sandbox, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.toml").write_bytes((finished[0] / "config.toml").read_bytes())
    (folder / METRICS).write_text('{"step": 0, "held_out/pass')
    run(folder, sandbox, resume=True)
    assert contents(folder) == contents(finished[0])


def test_bad_problems_leave_no_folder(sandbox, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        run(tmp_path / "run", sandbox, problems="nowhere.jsonl")
    with pytest.raises(ValueError, match="nosplit"):
        run(tmp_path / "run", sandbox, split="nosplit")
    assert not (tmp_path / "run").exists()


def test_a_launcher_that_starts_the_whole_program_several_times_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RunError, match=r"Expect one process.* WORLD_SIZE=2\. .*engine='ray'"):
        train(TrainConfig(output_dir=tmp_path / "run"))
    assert list(tmp_path.iterdir()) == []


def test_frozen_players_do_not_learn(sandbox, tmp_path):
    run(tmp_path / "run", sandbox, max_steps=2, **{"coder.freeze": True})
    saved = tmp_path / "run" / "checkpoints" / "step_2"
    coder = json.loads((saved / "coder" / "tabular.json").read_text())
    tester = json.loads((saved / "tester" / "tabular.json").read_text())
    assert not any(map(any, coder["tables"]["questions"].values()))
    assert any(map(any, tester["tables"]["questions"].values()))
    assert tester["tables"]["shown"]


@pytest.mark.parametrize(
    "changes",
    [
        {"tester.player": "golden"},
        {"coder.player": "reference", "tester.player": "boundary", "black_box": True},
        {"suite_selection": "all", "beta": 0.1, "num_iterations": 3, "loss_type": "dr_grpo"},
        {"wrong_oracle": "drop", "strict_paper": True, "decay": "per-step"},
    ],
)
def test_settings_of_the_loop(changes, sandbox, tmp_path):
    result, _ = run(tmp_path / "run", sandbox, max_steps=1, **changes)
    assert result.finished


class Draws:
    """A tester of the user's, with a generator of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def act(self, observations):
        return [f"assert f({self.rng.random()})" for _ in observations]


@pytest.mark.parametrize(
    ("changes", "player"),
    [({}, None), ({"self_play": True}, None), ({"coder.player": "mutant"}, Draws)],
)
def test_what_is_measured_changes_nothing_that_is_trained(tmp_path, sandbox, changes, player):
    changes = {"max_steps": 2, **changes}
    measured = [{"eval_samples": 1, "eval_steps": 1}, {"eval_samples": 2, "eval_trained": 1}]
    rows = []
    for number, more in enumerate(measured):
        run(tmp_path / f"{number}", sandbox, player=player and player(), **changes, **more)
        rows.append((tmp_path / f"{number}" / EPISODES).read_bytes())
    assert rows[0] == rows[1]
