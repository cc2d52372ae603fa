"""`codea1 eval held-out`: what training measures of the same answers."""

from __future__ import annotations

import json

import pytest

from codea1_env.agents import CopierTester, FixedAgent, GoldenTester
from codea1_env.cli.app import run
from codea1_env.evaluation import hold_out
from codea1_env.evaluation.report import build_report
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.runner import EvaluationPlan, EvaluationRun
from codea1_env.evaluation.statistics import Estimate
from codea1_env.mistake_book import MistakeBook
from codea1_env.mutation import generate_mutants
from codea1_env.problems import load_problems
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.training.config import TrainConfig
from codea1_env.training.held_out_evaluation import HeldOutEvaluation
from codea1_env.training.measuring import HeldBack, new_past
from codea1_env.training.players import Players

SEED = 5
PROBLEMS = load_problems("starter", "train")[30:36]


class Often(FixedAgent):
    """Writes the reference, and every third time a mutant."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.wrong = {p.prompt: generate_mutants(p.reference, sandbox)[-1].code for p in PROBLEMS}
        self.right = {p.prompt: p.reference for p in PROBLEMS}

    def act(self, observations):
        return [
            (self.wrong if i % 3 == 0 else self.right)[seen["problem"]]
            for i, seen in enumerate(observations)
        ]


def evaluated(folder, sandbox, player, role, samples):
    own = HeldOutEvaluation(role=role, held_out_seed=SEED)
    own.load(PROBLEMS)
    own.begin(sandbox)
    with ResultFolder(folder, {}, resume=False) as results:
        at_work = EvaluationRun(own, results)
        at_work.check()
        at_work.judge_agent(lambda _: player, EvaluationPlan(samples, 64, 0), own.add)
    return build_report(own, {}, {})


@pytest.mark.parametrize("tester", [CopierTester(None), GoldenTester(PROBLEMS, None)])
def test_the_numbers_are_those_of_training(tmp_path, tester):
    with Sandbox(2, HeldOutEvaluation.limits) as sandbox:
        config = TrainConfig(seed=SEED, use_book=False, eval_samples=3)
        referee = Referee(sandbox, RefereeConfig(limits=Limits(call_cpu_time=config.time_limit)))
        held_back = HeldBack(hold_out(PROBLEMS, sandbox, SEED), referee, config)
        coder = Often(sandbox)
        players = Players(coder, tester, False, False)
        known, rows = held_back.measure(players, MistakeBook(), new_past())
        reports = [
            evaluated(tmp_path / "coder", sandbox, coder, "coder", 3),
            evaluated(tmp_path / "tester", sandbox, tester, "tester", 3),
        ]
    names = [("pass_rate", "pass@1", "pass@3"), ("kill_rate", "copier_kill_rate", "new_kill_rate")]
    for report, expected in zip(reports, names, strict=True):
        found = {name: each and each["value"] for name, each in report["figures"].items()}
        assert found == pytest.approx({name: known[f"held_out/{name}"] for name in expected})
        for row in rows:
            values = report["results"][row["task_id"]]["values"]
            shared = row.keys() & values.keys()
            assert {name: values[name] for name in shared} == pytest.approx(
                {name: row[name] for name in shared}
            )
    assert 0 < known["held_out/pass_rate"] < 1
    assert known["held_out/kill_rate"] > 0


def test_a_run_is_measured_and_goes_on(tmp_path, capsys):
    trained = ["train", "--preset", "shortest", "--max-problems", "2", "--eval-steps", "9"]
    assert run([*trained, "--output-dir", str(tmp_path / "run")]) == 0
    played = ["--agent", str(tmp_path / "run"), "--split", "train"]
    played += ["--max-problems", "2", "-n", "2"]
    for role in ("coder", "tester"):
        folder = tmp_path / role
        command = ["eval", "held-out", "--role", role, *played, "--output-dir", str(folder)]
        capsys.readouterr()
        assert run([*command, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["scored"] == 2
        rate = report["figures"]["pass_rate" if role == "coder" else "kill_rate"]
        assert 0 <= rate["value"] <= 1
        before = (folder / "report.json").read_bytes()
        verdicts = (folder / "verdicts.jsonl").read_text().splitlines(keepends=True)
        (folder / "verdicts.jsonl").write_text("".join(verdicts[:1]))
        assert run([*command, "--resume"]) == 0
        assert (folder / "report.json").read_bytes() == before


def test_a_run_is_measured_on_its_own_problems_unless_others_are_named(
    tmp_path, capsys, monkeypatch
):
    trained = ["train", "--preset", "shortest", "--max-problems", "3", "--difficulty", "medium"]
    made, folder = str(tmp_path / "run"), tmp_path / "eval"
    assert run([*trained, "--seed", "7", "--eval-steps", "9", "--output-dir", made]) == 0
    command = ["eval", "held-out", "--role", "tester", "--agent", made, "-n", "1", "--json"]
    command += ["--output-dir", str(folder)]
    assert run([*command, "--problems", "starter"]) == 2
    assert "Give --problems starter --split train --max-problems 3" in capsys.readouterr().err
    assert not folder.exists()
    monkeypatch.chdir(tmp_path)  # with the folder of a run in it
    assert run(["eval", "held-out", "--agent", str(tmp_path / "nosuch")]) == 2
    assert "actually there is no" in capsys.readouterr().err
    assert run(command) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["scored"] == 3
    assert report["settings"].items() >= {
        "problems": "starter", "split": "train", "difficulty": "medium", "max_problems": 3, "held_out_seed": 7,
    }.items()  # fmt: skip


def test_what_is_shown_at_the_end_is_the_first_figure(tmp_path, capsys):
    command = ["eval", "held-out", "--role", "tester", "--agent", "boundary", "--max-problems", "5"]
    assert run([*command, "--json", "--output-dir", str(tmp_path / "eval")]) == 0
    told = capsys.readouterr()
    found = Estimate(**json.loads(told.out)["figures"]["kill_rate"])
    assert 0 < found.value < 1
    assert f"5 of 5 problems, kill_rate so far {found}\n" in told.err


def test_whom_to_measure_must_be_said(capsys):
    assert run(["eval", "held-out"]) == 2
    assert "expect --agent NAME" in capsys.readouterr().err
    assert run(["eval", "held-out", "--agent", "boundary"]) == 2
    assert "unknown player 'boundary' among those who are a coder: it is a tester" in (
        told := capsys.readouterr().err
    )
    assert "--role tester" in told


def test_a_refused_evaluation_leaves_its_folder_free(tmp_path, capsys):
    player = tmp_path / "mine.py"
    player.write_text("class Mine:\n    def __init__(self, *_):\n        raise ValueError('no')\n")
    command = ["eval", "held-out", "--max-problems", "1", "--output-dir", str(tmp_path / "eval")]
    assert run([*command, "--agent", f"{player}:Mine"]) == 2
    capsys.readouterr()
    assert run([*command, "--agent", "reference", "-n", "1"]) == 0
