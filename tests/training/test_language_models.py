"""The whole loop with two language models: tiny ones, with random weights."""

from __future__ import annotations

import io
import json
import runpy
import sys
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from runs_here import run_here

from codea1_env import Problem, Sandbox
from codea1_env.agents.llm import openai_backend
from codea1_env.agents.llm.completions import BackendError, SamplingConfig
from codea1_env.agents.llm.computing import Computing
from codea1_env.agents.llm.engines import load_player
from codea1_env.agents.llm.trainer_drive import TrainerDrive
from codea1_env.cli.app import run as codea1
from codea1_env.cli.bench_algorithms import run as run_algorithms
from codea1_env.cli.errors import InputError
from codea1_env.spaces import observe
from codea1_env.support.logs import read_rows
from codea1_env.training import (
    PlayerConfig,
    PlayerError,
    RunError,
    TesterConfig,
    TrainConfig,
    language_models,
    train,
)
from codea1_env.training import run as steps
from codea1_env.training.run_folder import EPISODES, METRICS, TIMINGS
from codea1_env.training.settings import replaced, to_toml

pytest.importorskip("trl")
sys.path.insert(0, str(Path(__file__).parents[1] / "agents" / "llm"))
from tiny import save_tiny

SHORT = SamplingConfig(max_prompt_length=1000, max_completion_length=8)
TRAINER = {"gradient_checkpointing": False, "lr_scheduler_type": "constant"}
SGD = {"gradient_checkpointing": False, "optim": "sgd", "beta": 0.1}
SMALL = TrainConfig(
    max_problems=2,
    problems_per_step=2,
    num_generations=2,
    num_suites=2,
    coder=PlayerConfig("llm", learning_rate=1e-3, sampling=SHORT, trainer=TRAINER),
    tester=TesterConfig("llm", learning_rate=1e-3, sampling=SHORT, trainer=SGD),
    lora_rank=2,
    dtype="float32",
    threads=1,
    max_steps=3,
    eval_steps=3,
    eval_samples=1,
    eval_problems=0,
    panel_size=0,
    save_steps=2,
)
LONGER = SamplingConfig(max_prompt_length=1000, max_completion_length=12)
SELF_PLAY = {"self_play": True, "oracle": "coder", "tester.sampling": LONGER}
EXAMPLE = f"{Path(__file__).parents[2] / 'examples' / 'custom_algorithm.py'}:RankGradient"
COOLER = {"self_play": True, "tester.sampling": SamplingConfig(temperature=0.5)}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_tiny(tmp_path_factory.mktemp("model"))


def run(folder: Path, sandbox: Sandbox, model: str, *, resume: bool = False, **changes: Any) -> str:
    out = io.StringIO()
    train(
        replaced(SMALL, {"output_dir": folder, "model": model, **changes}),
        resume=resume,
        sandbox=sandbox,
        console=Console(file=out, width=120),
    )
    return out.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (TIMINGS, ".lock", "config.toml")
    }


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox, model: str) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    output = run(folder, sandbox, model, eval_problems=1)
    assert "where the time went" in output
    assert "learn_tester" in output
    return folder


def test_metrics_timings_and_samples(finished: Path) -> None:
    rows = list(read_rows(finished / METRICS))
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    for row in rows[1:]:
        assert row["coder/tokens/completion"] <= 4 * 8
        assert {"coder/loss", "tester/loss", "tester/kl", "coder/grad_norm"} <= row.keys()
        assert row["coder/learning_rate"] == 1e-3
    for row in read_rows(finished / TIMINGS):
        phases = ("coder", "tester", "judge", "learn_coder", "learn_tester")
        assert all(row[f"seconds/{phase}"] > 0 for phase in phases)
    logged = list(read_rows(finished / EPISODES))
    assert len(logged) == 3 * 2 * 2, "all programs of language models"
    episode = logged[0]
    assert episode["problem"].startswith("def ")
    name = episode["problem"].removeprefix("def ").partition("(")[0]
    assert name in episode["prompt"][-1]["content"]
    assert episode["code"] in episode["test_prompt"][-1]["content"]


@pytest.mark.parametrize("changes", [{}, {"self_play": True, "beta": 0.1}])
def test_what_is_measured_changes_nothing_that_is_trained(
    tmp_path: Path, sandbox: Sandbox, model: str, changes: dict[str, Any]
) -> None:
    found = []
    measured = {"eval_problems": 1, "eval_samples": 2, "eval_steps": 1}
    for name, more in (("a", {}), ("b", measured)):
        run(tmp_path / name, sandbox, model, max_steps=2, **changes, **more)
        weights = (tmp_path / name / "checkpoints" / "step_2").rglob("adapter_model.safetensors")
        rows = (tmp_path / name / EPISODES).read_bytes()
        found.append([rows, *(path.read_bytes() for path in sorted(weights))])
    assert len(found[0]) > 1
    assert found[0] == found[1]


def killed_and_resumed(
    folder: Path, sandbox: Sandbox, model: str, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> dict[str, bytes]:
    """What is in the folder of a run that is killed in its third step, and then resumed."""
    logged = steps.episode_rows

    def killed_in_step_3(played: Any, step: int, *more: Any) -> Any:
        if step == 3:
            raise SystemError("killed")
        return logged(played, step, *more)

    monkeypatch.setattr(steps, "episode_rows", killed_in_step_3)
    with pytest.raises(SystemError):
        run(folder, sandbox, model, **changes)
    monkeypatch.undo()
    assert "after step 2" in run(folder, sandbox, model, resume=True, **changes)
    return contents(folder)


def test_a_resumed_run_has_the_same_bytes(finished, tmp_path, sandbox, model, monkeypatch) -> None:
    unseen = {"eval_problems": 1}
    resumed = killed_and_resumed(tmp_path / "run", sandbox, model, monkeypatch, **unseen)
    assert resumed == contents(finished)


def test_what_is_exported_loads_elsewhere(finished: Path, tmp_path: Path, model: str) -> None:
    from peft import AutoPeftModelForCausalLM
    from transformers import AutoTokenizer

    for role in ("coder", "tester"):
        folder = tmp_path / role
        assert codea1(["export", str(finished), "--role", role, "--output-dir", str(folder)]) == 0
        AutoPeftModelForCausalLM.from_pretrained(folder)  # it names its base
        assert AutoTokenizer.from_pretrained(folder).chat_template
        config = json.loads((folder / "adapter_config.json").read_text())
        assert config["base_model_name_or_path"] == model
        card = (folder / "README.md").read_text("utf-8")
        assert f"# {role.capitalize()} of a Code-A1 run" in card


def test_an_example_takes_the_tester_of_a_run(finished, sandbox, monkeypatch) -> None:
    path = Path(__file__).parents[2] / "examples" / "tests_for_a_function.py"
    tester_of = runpy.run_path(str(path))["tester_of"]
    same = Computing("float32", 1)
    short = partial(load_player, sampling=SHORT, computing=same)
    monkeypatch.setitem(tester_of.__globals__, "load_player", short)
    problem = Problem("half", "def half(n):", "half", "def half(n): return n // 2")
    tester = tester_of(str(finished), problem, sandbox)
    [answer] = tester.act([observe(problem, code=problem.reference, turn=1)])
    assert tester.adapter is not None
    assert isinstance(answer, str)


def test_export_of_what_is_not_there(finished, tmp_path, capsys) -> None:
    for arguments, message in (
        (["--step", "7"], "expect --step to be one of 2, 3, actually: 7"),
        (["--output-dir", "."], "to be a new folder, actually: it exists"),
    ):
        given = ["export", str(finished), "--output-dir", str(tmp_path / "new"), *arguments]
        assert codea1(given) == 2
        assert message in capsys.readouterr().err


def test_one_frozen_and_all_weights(tmp_path: Path, sandbox: Sandbox, model: str) -> None:
    short = {"tester.freeze": True, "lora_rank": 0, "max_steps": 1, "eval_steps": 2, "overlap": 2}
    run(tmp_path / "run", sandbox, model, **short)
    row = list(read_rows(tmp_path / "run" / METRICS))[-1]
    assert "coder/loss" in row
    assert "tester/loss" not in row
    assert row["tester/tokens/completion"] > 0
    saved = tmp_path / "run" / "checkpoints" / "step_1"
    assert (saved / "coder" / "model" / "model.safetensors").is_file()
    assert [path.name for path in (saved / "tester").iterdir()] == ["agent.json"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "no such model"}, "Cannot make the coder: .*no such model"),
        ({"backend": "server", "server_url": "http://127.0.0.1:1/v1"}, "Cannot make the coder: Expect an answer from .* Start the server"),
        ({"trainer_cls": "trl:NoTrainer"}, "trainer_cls to be module:class"),
        ({"trainer_cls": "trl:SFTTrainer"}, "trl.GRPOTrainer or a subclass"),
        (COOLER, r"one temperature for both roles .* 1.0 and 0.5"),
        ({"algorithm": EXAMPLE, "coder.trainer": {"loss_type": "grpo"}}, "loss_type not to be set .* the loss of RankGradient"),
        ({"algorithm": "json:JSONDecoder"}, "Expect an algorithm for language models: grpo, dapo"),
    ],
)  # fmt: skip
def test_bad_settings(tmp_path, sandbox, model, changes, message, monkeypatch) -> None:
    monkeypatch.setattr(openai_backend, "FIRST_DELAY", 0.01)
    with pytest.raises(RunError, match=message):
        run(tmp_path / "run", sandbox, **{"model": model, **changes})
    assert not (tmp_path / "run").exists()  # which can be used again


def test_what_the_machine_decided_is_kept(tmp_path, sandbox, model) -> None:
    folder = tmp_path / "run"
    output = run(folder, sandbox, model, dtype="auto", threads=None, max_steps=1)
    assert "Computing in" in output
    settings = tomllib.loads((folder / "config.toml").read_text())
    assert settings["dtype"] in ("float32", "bfloat16")
    assert settings["threads"] >= 1


def test_little_memory_is_spared(tmp_path, sandbox, model, monkeypatch) -> None:
    again, given_back, made = [], [], TrainerDrive.__init__

    def remembered(self: TrainerDrive, *args: Any, **more: Any) -> None:
        made(self, *args, **more)
        again.append(self.trainer.args.gradient_checkpointing)

    monkeypatch.setattr(TrainerDrive, "__init__", remembered)
    monkeypatch.setattr(language_models, "available_memory", lambda: int(5.9e9))
    monkeypatch.setattr(language_models, "give_back_at_once", lambda: given_back.append(True))
    output = run(tmp_path / "run", sandbox, model, max_steps=1)
    assert "5.9 GB of memory are free, which is little: layers are computed again" in output
    assert (again, given_back) == ([True, True], [True])
    # With more memory the run goes on as its settings say.
    monkeypatch.setattr(language_models, "available_memory", lambda: int(6.1e9))
    run(tmp_path / "run", sandbox, model, max_steps=2, resume=True)
    assert (again, given_back) == ([True, True, False, False], [True])


def test_an_engine_that_fails_leaves_a_checkpoint(tmp_path, sandbox, model, monkeypatch) -> None:
    from codea1_env.agents.llm.transformers_backend import TransformersBackend

    answered = TransformersBackend.generate
    calls = []

    def generate(self: Any, *args: Any) -> Any:
        calls.append(args)
        if len(calls) > 5:  # two measurements, both players of step 1, and the coder of step 2
            raise BackendError("The engine is gone.")
        return answered(self, *args)

    monkeypatch.setattr(TransformersBackend, "generate", generate)
    with pytest.raises(PlayerError, match=r"engine is gone\. The run is saved after step 1\."):
        run(tmp_path / "run", sandbox, model, max_steps=2)
    monkeypatch.undo()
    output = run(tmp_path / "run", sandbox, model, max_steps=2, resume=True)
    assert "after step 1" in output
    run(tmp_path / "whole", sandbox, model, max_steps=2)  # in which the coder drew once
    rows = [list(read_rows(tmp_path / each / METRICS)) for each in ("run", "whole")]
    assert rows[0] == rows[1]


def test_a_loss_that_is_no_number_ends_the_run_and_names_trainer_and_step(
    tmp_path: Path, sandbox: Sandbox, model: str
) -> None:
    changes = {"trainer_cls": "test_trainer_drive:NaNLater", "save_steps": 1}
    said = "the loss of NaNLater .* in step 2 of the coder: nan.* The run is saved after step 1"
    with pytest.raises(PlayerError, match=said):
        run(tmp_path / "run", sandbox, model, **changes)


def test_self_play_of_one_model(tmp_path: Path, sandbox: Sandbox, model: str) -> None:
    whole = tmp_path / "whole"
    assert "learn_model" in run(whole, sandbox, model, **SELF_PLAY, max_steps=1, eval_steps=9)
    rows = list(read_rows(whole / METRICS))
    assert [row["step"] for row in rows] == [0, 1]
    # 2 problems with 2 programs each, and 2 suites for each program: all are answers of the one model.
    assert all(8 < row["model/tokens/completion"] <= 4 * 8 + 8 * 12 for row in rows[1:])
    assert all("model/grad_norm" in row and "tester/loss" not in row for row in rows[1:])
    saved = whole / "checkpoints" / "step_1"
    weights = "adapter/adapter_model.safetensors"
    both = [(saved / role / weights).read_bytes() for role in ("coder", "tester")]
    assert both[0] == both[1]


def test_an_algorithm_of_ones_own_for_a_model_and_a_table(tmp_path, sandbox, model) -> None:
    own = {"algorithm": EXAMPLE, "tester.player": "tabular", "tester.learning_rate": 4.0}
    run(tmp_path / "run", sandbox, model, max_steps=1, **own)
    last = list(read_rows(tmp_path / "run" / METRICS))[-1]
    assert {"coder/loss", "tester/entropy"} <= last.keys()
    assert not any("clip_ratio" in name for name in last), "there is none in its loss"


OWN_PROMPTS = """
from pathlib import Path

def chat(seen):
    with open(Path(__file__).with_name("asked"), "a") as file:
        file.write(f"{seen['turn']}\\n")
    return [{"role": "user", "content": seen["problem"] + seen["code"]}]

def no_chat(seen):
    return seen["problem"]
"""


def test_prompts_of_ones_own(tmp_path: Path, sandbox: Sandbox, model: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN_PROMPTS)
    with pytest.raises(RunError, match=r"Expect .*mine.py:no_chat to return a chat"):
        run(tmp_path / "run", sandbox, model, prompts=f"{file}:no_chat")
    run(tmp_path / "run", sandbox, model, max_steps=1, prompts=f"{file}:chat")
    assert set((tmp_path / "asked").read_text().split()) == {"0", "1"}
    assert f'prompts = "{file}:chat"' in (tmp_path / "run" / "config.toml").read_text()
    [noted] = read_rows(tmp_path / "run" / "own_files.jsonl")
    assert list(noted["sha256"]) == [f"{file}:chat"]


def test_the_benchmark_of_a_language_model(tmp_path, model, monkeypatch, capsys) -> None:
    run_here(monkeypatch)
    monkeypatch.chdir(tmp_path)
    settings = replaced(SMALL, {"model": model, "eval_problems": 0, "max_problems": 1})
    Path("mine.toml").write_text(to_toml(settings))
    names = ["--algorithms", "rloo", "--seeds", "1", "--max-steps", "1"]
    names += ["--preset", "mine.toml", "--output-dir", "out", "--json"]
    assert codea1(["bench", "algorithms", *names]) == 0
    text = json.loads(capsys.readouterr().out)["leaderboard"]
    assert f"--algorithms rloo --preset {tmp_path / 'mine.toml'} --problems starter" in text
    made = tomllib.loads(Path("out/runs/rloo/x1.0-x1.0/seed_0/run/config.toml").read_text())
    assert (made["algorithm"], made["coder"]["player"], made["max_steps"]) == ("rloo", "llm", 1)


@pytest.mark.parametrize("lora_rank", [4, 0])
def test_earlier_weights_play_against_those_of_now(tmp_path, sandbox, model, lora_rank) -> None:
    past = {"opponents": "past", "past_steps": 1, "past_share": 1.0}
    run(tmp_path / "run", sandbox, model, lora_rank=lora_rank, **past)
    rows = list(read_rows(tmp_path / "run" / METRICS))[1:]
    met = {(role, row[f"past/{role}_of"]) for row in rows for role in ("coder", "tester")}
    assert {role for role, step in met if step is not None} == {"coder", "tester"}
    for row in rows:
        for role in ("coder", "tester"):
            # Who is of the past wrote nothing and learns nothing.
            assert (f"{role}/loss" in row) == (row[f"past/{role}_of"] is None)


def test_programs_are_repaired_in_a_second_round(tmp_path, sandbox, model) -> None:
    run(tmp_path / "run", sandbox, model, max_rounds=2, max_steps=1)
    rows = list(read_rows(tmp_path / "run" / METRICS))[1:]
    assert all("reward/coder/round_2" in row and "coder/loss" in row for row in rows)


OF_ONES_OWN = """
class Moving:
    mean = 0.0

    def advantages(self, rewards):
        # One more, so that it is not 0 where a tiny model earns nothing.
        self.mean = 0.5 * self.mean + 0.5 * (1 + float(rewards.mean()))
        return rewards - self.mean

    def state_dict(self):
        return {"mean": self.mean}

    def load_state_dict(self, state):
        self.mean = state["mean"]
"""


def test_what_an_algorithm_remembers_is_resumed(
    tmp_path: Path, sandbox: Sandbox, model: str
) -> None:
    own = tmp_path / "own.py"
    own.write_text(OF_ONES_OWN)
    changes = {"coder.algorithm": f"{own}:Moving", "tester.player": "golden"}
    changes |= {"eval_steps": 1, "save_steps": 1}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(whole, sandbox, model, max_steps=2, **changes)
    run(parts, sandbox, model, max_steps=1, **changes)
    run(parts, sandbox, model, max_steps=2, resume=True, **changes)
    assert contents(parts) == contents(whole)
    saved = json.loads((whole / "checkpoints" / "step_2" / "coder" / "trainer.json").read_text())
    assert saved["algorithm"]["mean"] > 0


def test_rows_are_looked_at_before_any_run(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(language_models, "resolve", lambda name, say=None: Path())
    monkeypatch.setattr(language_models, "load_tokenizer", lambda folder: None)
    path = tmp_path / "row.toml"
    path.write_text("[coder.trainer]\nnope = 1")
    folder = tmp_path / "results"
    command = ["--preset", "smollm2-cpu", "--output-dir", str(folder)]
    with pytest.raises(InputError, match=r"row\.toml: Cannot make the coder: GRPOConfig refuses"):
        run_algorithms([*command, "--algorithms", "grpo", str(path)])
    assert not folder.exists()
