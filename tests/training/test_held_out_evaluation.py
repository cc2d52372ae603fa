"""Measuring: `codea1 eval held-out` as training does it, problems that nobody is trained on, and pass@k."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from codea1_env.training.held_out_evaluation import HeldOutEvaluation

from codea1_env.agents import CopierTester, FixedAgent, GoldenTester, ReferenceCoder
from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.cli.app import run
from codea1_env.evaluation import HeldOut, hold_out, pass_rates
from codea1_env.evaluation.report import build_report
from codea1_env.evaluation.result_folder import ResultFolder
from codea1_env.evaluation.runner import EvaluationPlan, EvaluationRun
from codea1_env.mistake_book import MistakeBook
from codea1_env.mutation import generate_mutants
from codea1_env.problems import load_problems
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.rollout import Agent
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.spaces import Observation
from codea1_env.training import PlayerConfig, TesterConfig
from codea1_env.training.config import TrainConfig
from codea1_env.training.measuring import HeldBack, Unseen, _solved, new_past, unseen_problems
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


def test_a_run_is_measured_on_its_own_problems_and_goes_on(tmp_path, capsys, monkeypatch):
    own = {"split": "train", "difficulty": "medium", "max_problems": 2, "held_out_seed": 7}
    trained = ["train", "--preset", "shortest", "--max-problems", "2", "--difficulty", "medium"]
    made = str(tmp_path / "run")
    assert run([*trained, "--seed", "7", "--eval-steps", "9", "--output-dir", made]) == 0
    for role, name in (("coder", "pass_rate"), ("tester", "kill_rate")):
        folder = tmp_path / role
        command = ["eval", "held-out", "--role", role, "--agent", made, "-n", "2"]
        command += ["--output-dir", str(folder)]
        assert run([*command, "--problems", "starter"]) == 2
        assert "Give --problems starter --split train --max-pro" in capsys.readouterr().err
        assert not folder.exists()
        assert run([*command, "--json"]) == 0
        report = json.loads(capsys.readouterr().out)
        assert report["scored"] == 2
        assert report["settings"].items() >= own.items()
        assert 0 <= report["figures"][name]["value"] <= 1
        before = (folder / "report.json").read_bytes()
        verdicts = (folder / "verdicts.jsonl").read_text().splitlines(keepends=True)
        (folder / "verdicts.jsonl").write_text("".join(verdicts[:1]))
        assert run([*command, "--resume"]) == 0
        assert (folder / "report.json").read_bytes() == before
        capsys.readouterr()
    monkeypatch.chdir(tmp_path)  # with the folder of a run in it
    assert run(["eval", "held-out", "--agent", str(tmp_path / "nosuch")]) == 2
    assert "actually there is no" in capsys.readouterr().err


def test_whom_to_measure_must_be_said(capsys):
    assert run(["eval", "held-out"]) == 2
    assert "expect --agent NAME" in capsys.readouterr().err
    assert run(["eval", "held-out", "--agent", "boundary"]) == 2
    assert "unknown player 'boundary' among those who are a coder" in capsys.readouterr().err


TRAINED = load_problems("starter", "train")[30:50]


def config(**changes: Any) -> TrainConfig:
    models = {
        "coder": PlayerConfig("llm", learning_rate=1e-5),
        "tester": TesterConfig("llm", learning_rate=1e-5),
    }
    return TrainConfig(**({"eval_problems": 5, "eval_samples": 3} | models | changes))


class StandIn(LanguagePlayer):
    """A stand-in for a language model: another player's answers."""

    def __init__(self, player: Agent) -> None:
        self._player = player

    def act(self, observations: Sequence[Observation]) -> list[str]:
        return list(self._player.act(observations))


def players(coder: Any, tester: Any) -> Players:
    return Players(coder, tester, coder_learns=False, tester_learns=False)


def test_they_are_others_as_hard_and_bounded_in_number() -> None:
    found = unseen_problems(config(), TRAINED)
    assert len(found) == 5
    assert {problem.metadata["split"] for problem in found} == {"eval"}
    levels = {problem.metadata["difficulty"] for problem in TRAINED}
    assert {problem.metadata["difficulty"] for problem in found} <= levels
    assert found == unseen_problems(config(seed=1), TRAINED), "seeds have the same problems"
    assert unseen_problems(config(eval_problems=0), TRAINED) == []
    assert unseen_problems(TrainConfig(eval_problems=5), TRAINED) == []  # tables answer no others


def test_without_a_split_they_are_what_is_left() -> None:
    everything = load_problems("starter")
    found = unseen_problems(config(split=None, eval_problems=200), everything[:10])
    assert found
    assert not {each.task_id for each in found} & {each.task_id for each in everything[:10]}


def test_who_knows_everything_gets_everything(sandbox: Sandbox) -> None:
    settings = config()
    problems = unseen_problems(settings, TRAINED)
    unseen = Unseen(problems, Referee(sandbox), settings)
    golden = StandIn(GoldenTester(problems, None))
    row, rows = unseen.measure(players(StandIn(ReferenceCoder(problems)), golden))
    assert [each["task_id"] for each in rows] == [problem.task_id for problem in problems]
    assert {each["pass_rate"] for each in rows} == {1.0}
    assert {each["kill_rate"] for each in rows} - {None} == {1.0}, "None: it has no mutants"
    for name in ("pass_rate", "kill_rate", "new_kill_rate"):
        assert row[f"unseen/{name}"] == 1.0
    assert row["unseen/copier_kill_rate"] < 1.0


def test_a_copier_gets_nothing_beyond_itself(sandbox: Sandbox) -> None:
    settings = config()
    problems = unseen_problems(settings, TRAINED)
    unseen = Unseen(problems, Referee(sandbox), settings)
    row, _ = unseen.measure(players(ReferenceCoder(problems), StandIn(CopierTester(None))))
    assert row["unseen/kill_rate"] == row["unseen/copier_kill_rate"]
    assert row["unseen/new_kill_rate"] == 0.0
    assert row["unseen/pass_rate"] is None  # no language model


@pytest.fixture(scope="module")
def held_out(sandbox: Sandbox) -> list[HeldOut]:
    return hold_out(load_problems("starter", "train")[:3], sandbox)


class Sometimes(FixedAgent):
    """Answers right so many times of four for each problem."""

    def __init__(self, held_out: Sequence[HeldOut], right: Sequence[int]) -> None:
        self.answers = [
            f"```python\n{item.problem.reference if number < times else 'def nothing(): pass'}\n```"
            for item, times in zip(held_out, right, strict=True)
            for number in range(4)
        ]

    def act(self, observations: Sequence[Observation]) -> Any:
        return self.answers


def test_pass_at_k(held_out: list[HeldOut], sandbox: Sandbox) -> None:
    rates = pass_rates(Sometimes(held_out, [4, 1, 0]), held_out, sandbox, 4)
    assert [each.held_out for each in rates.values()] == [1.0, 0.25, 0.0]
    assert _solved(rates.values(), 4) == {
        "held_out/pass@1": pytest.approx(5 / 12),
        "held_out/pass@4": pytest.approx(2 / 3),
    }
