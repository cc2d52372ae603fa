"""The settings of a training run by what they are about, with their ranges. `TrainConfig` checks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.judging.verdicts import GAME_LIMITS
from codea1_env.mistake_book import MAX_TESTS, STALE_AFTER
from codea1_env.support.plugins import name_of

TrackerName = Literal["trackio", "tensorboard", "wandb"]
"""A tracker; its package and the extra that installs it have the same name."""
# More is a slip of the hand, which would seem to hang or be out of memory at once.
Count = Annotated[int, Field(gt=0, le=65_536)]
Group = Annotated[int, Field(ge=2, le=65_536)]
"""Answers that are compared with each other."""
Share = Annotated[float, Field(ge=0, le=1)]
NonNegativeFinite = Annotated[float, Field(ge=0, allow_inf_nan=False)]
PositiveFinite = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _name_of(rewards: Any) -> Any:
    return name_of(rewards) if callable(rewards) else rewards


@dataclass(frozen=True)
class PlayerConfig:
    """Who plays a role, and how they learn. `TrainConfig` checks the values, and knows what both players share.

    Example:
        >>> PlayerConfig("llm", learning_rate=1e-5).freeze
        False
    """

    player: str = "tabular"
    """Who plays; `--coder NAME` and `--tester NAME` are short for it. A learning player ("tabular", a table of
    answers, or "llm", a language model), a script (coders: "reference", or a "mutant" of it, or with a "planted" fault; testers:
    "golden" or "boundary" tests, "copier" of the examples, "numbers" of the program), or a player of yours (FILE.py:NAME)."""
    freeze: bool = False
    """The player plays but does not learn."""
    learning_rate: float = 1.0
    """Step size. A table of logits wants one near 1, a language model one near 1e-6."""
    algorithm: str | None = None
    """Another algorithm for this player; None for the one of both."""
    model: str | None = None
    """Another language model for this player; None for the one of both."""
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """How a language model's answers are drawn."""
    devices: Count = 1
    """Ray: devices of a language model, with a process each: GPUs where the cluster has any, else processors."""
    writers: Annotated[int, Field(ge=0, le=65_536)] | None = None
    """Ray: devices of these that only write answers; the others learn. 0 if those that learn write, too. None for half of
    them with vLLM, else 0."""
    trainer: dict[str, Any] = field(default_factory=dict)
    """More fields of TRL's GRPOConfig. They win over the settings that both players share, and over those of the
    algorithm."""


@dataclass(frozen=True)
class TesterConfig(PlayerConfig):
    """The settings of the tester.

    Example:
        >>> TesterConfig("golden").learning_rate
        16.0
    """

    __test__ = False  # pytest would collect a class of this name

    learning_rate: float = 16.0
    """Step size. Larger than the coder's, because the loss of an answer is the mean over its draws: a tester that
    draws K tests moves each of them K times less than a coder moves its one program."""
    objective: Literal["rewards", "golden-tests"] = "rewards"
    """What the tester learns from: what its suites earn, or golden tests that a table imitates (supervised
    fine-tuning)."""


@dataclass(frozen=True)
class GameSettings:
    """What is played, and what it pays."""

    problems: str = "starter"
    """Where the problems come from: a name, a hub id or a file that `load_problems` reads."""
    split: str | None = "train"
    """The split to train on; None for all problems of the source."""
    difficulty: str | None = None
    """Train only on problems that their source calls so hard ("easy", "medium", "hard"); None for all."""
    max_problems: PositiveInt | None = None
    """Train on the first so many problems of the split only."""
    problems_per_step: PositiveInt = 12
    """Problems of one step. An epoch visits every problem once, in a new order."""
    num_generations: Group = 8
    """Programs per problem: the coder's group."""
    num_suites: Group = 8
    """Suites per program: the tester's group."""
    num_tests: Count = 8
    """Tests of a suite that count, and old tests that are replayed (K in the paper)."""
    suite_selection: Literal["max-variance", "all"] = "max-variance"
    """Programs whose suites the tester learns from: of every problem the one whose suites' rewards differ
    most, or all."""
    black_box: bool = False
    """The tester does not see the program."""
    sparring: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Language models that test: share of the groups they learn from that meet planted faults, beside those of the coder."""
    max_rounds: Count = 1
    """Rounds of an episode. From the second on the coder sees what broke its program and may repair it."""
    tester_rounds: Literal["every", "first"] = "every"
    """Rounds in which the tester answers. "first": its suites of the first round attack the repaired programs, too, and
    are paid once."""
    opponents: Literal["current", "past"] = "current"
    """Who is met. "past": in some steps one side, drawn at random, is played by an earlier version of itself, and does
    not learn then."""
    past_share: Share = 0.5
    """With opponents = "past": share of the steps in which an earlier version plays."""
    past_sampling: Literal["uniform", "latest", "win-rate"] = "uniform"
    """Which earlier version: any, the newest, or the likelier the more it earned."""
    past_steps: PositiveInt = 5
    """Keep both players every so many steps, the untrained ones first."""
    past_limit: Annotated[int, Field(ge=2)] = 16
    """Versions that are kept; of more, every second one goes."""
    rewards: Annotated[str, BeforeValidator(_name_of)] = "code-a1"
    """What both players are paid: "code-a1" (the paper's), "execution-first", "mutation-score", "rltf", "utrl", "incremental",
    "solve-rate", "learnability", "prediction-accuracy", "difficulty-weighted", module:NAME, or FILE.py:NAME. In Python also the function itself,
    by whose name it is kept."""
    alpha: Share = 0.5
    """Weight of validity in the tester's reward; the rest is adversarial."""
    wrong_oracle: Literal["correct", "drop"] = "correct"
    """What becomes of a test that predicts a wrong value: it attacks with the right one, or not at all.
    It counts as invalid either way."""
    oracle: Literal["reference", "coder"] = "reference"
    """Who says what is right: the reference of the problem; or, as in self-play without ground truth, a program
    of the coder itself, the first of each group that runs."""
    strict_paper: bool = False
    """The rules of the released implementation: tests may use any arguments, floats are compared exactly, and a program
    that no test could judge is paid 0 instead of being left out; see docs/environment.md, "As in the paper"."""
    use_book: bool = True
    """Remember tests that broke programs, and replay them."""
    book_replay: Literal["frequency", "quality", "uniform"] = "frequency"
    """Which tests are replayed: the most frequent ones, or drawn ones; by quality a test is the likelier the more
    programs it broke."""
    max_tests_per_problem: PositiveInt | None = MAX_TESTS
    """Tests of one problem that the Mistake Book remembers at most; None for no bound. Under `strict_paper` the default is
    no bound."""
    decay: Literal["per-program", "per-step"] = "per-program"
    """A replayed test loses one count per program that passes it, or one per step."""
    stale_after: PositiveInt = STALE_AFTER
    """Steps in a row in which a replayed test fails every program of its problem, before other tests that wait go
    first. Under `strict_paper` never."""


@dataclass(frozen=True)
class LearningSettings:
    """How both players learn."""

    self_play: bool = False
    """One model in both roles: what it learns as one player changes the other. Of a language model the settings of
    the coder count, and the tester's sampling."""
    golden_tests: PositiveInt | None = None
    """Golden tests of each problem that the tester "golden" knows; None for all that are not held back."""
    pool_size: Count = 16
    """Programs and tests that a tabular player chooses from, per problem (up to twice as many tests)."""
    algorithm: str = "grpo"
    """How both players learn from rewards, tables and language models: a name in `codea1_env.agents.ALGORITHMS`, or
    module:Class or FILE.py:Class."""
    algorithm_args: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters of the algorithm's own, as in "entropy = 0.02"."""
    epsilon: NonNegativeFinite = 0.2
    """GRPO: lower clipping bound of the probability ratio. Other algorithms have bounds of their own."""
    epsilon_high: NonNegativeFloat = 0.28
    """GRPO: upper clipping bound of the probability ratio."""
    beta: NonNegativeFinite = 0.0
    """GRPO: weight of the KL divergence from the policy at the start."""
    loss_type: Literal["grpo", "dapo", "dr_grpo"] = "dapo"
    """GRPO: how the draws of an answer are averaged."""
    num_iterations: Annotated[int, Field(gt=0, le=1024)] = 1
    """GRPO: gradient steps per batch."""


@dataclass(frozen=True)
class MeasuringSettings:
    """How long the run goes on, what is measured and what is kept."""

    max_steps: PositiveInt = 90
    """Steps of the whole run. Schedules of the learning rate end with the last."""
    max_minutes: PositiveFinite | None = None
    """Minutes after which the run ends at a checkpoint, if it has not done all steps; counted anew when it is resumed.
    None for no such limit."""
    eval_steps: PositiveInt = 30
    """Measure on held-out tests and mutants every so many steps, and before the first and after the last."""
    eval_samples: Count = 4
    """Answers per problem and player in such a measurement."""
    eval_trained: PositiveInt = 256
    """Measure on so many of the problems that are trained on: a sample of larger sets, always the same one."""
    eval_problems: NonNegativeInt = 4
    """Language models: measure on so many problems that are not trained on, too; 0 for none."""
    panel_size: NonNegativeInt = 24
    """Language models that test: measure on so many programs of each row of the panel; 0 for no panel."""
    save_steps: PositiveInt = 10
    """Write a checkpoint every so many steps, and after the last."""
    save_total_limit: PositiveInt = 2
    """Checkpoints to keep."""
    logged_programs: PositiveInt | None = None
    """Programs of each problem and step that episodes.jsonl keeps, with all suites against them: those whose suites'
    rewards differ most. None for all where a language model plays, and for one of tables."""
    seed: NonNegativeInt = 0
    """Decides every random choice of the run."""


@dataclass(frozen=True)
class EngineSettings:
    """Where the run computes, and where it is shown."""

    time_limit: Annotated[float, Field(gt=0, le=86_400)] = GAME_LIMITS.call_cpu_time
    """CPU seconds for one test."""
    workers: Annotated[int, Field(gt=0, le=1024)] = 2
    """Sandbox processes that work at the same time. Has no influence on the results."""
    overlap: Count = 1
    """Parts that the problems of a step are divided into: while the tester attacks one part, the sandbox judges
    the part before, and with engine = "ray" a language model that codes writes the next one. Pays where GPUs generate."""
    tracker: Annotated[tuple[TrackerName, ...], Field(strict=False)] = ()
    """Where the run is shown while it goes on, beside its own files: trackio, tensorboard, wandb. Has no influence on
    the results."""
    output_dir: Annotated[Path | None, Field(strict=False)] = None
    """Folder of the run; None for a new one in runs/, named after the time."""
    engine: Literal["local", "ray"] = "local"
    """Where language models compute and programs are judged: in this process and on this machine, or on the nodes of a Ray cluster.
    Has no influence on the results, but that with overlap two language models draw other answers."""
    address: str = "local"
    """Ray: "local" for a cluster of this run on this machine, "auto" for one that this machine belongs to, or HOST:PORT."""


@dataclass(frozen=True)
class LanguageModelSettings:
    """Language models: which ones play, and how they compute. Tables ignore these."""

    model: str = "smollm2-135m"
    """Language model of both players: a name that comes with the package, an id of the hub, or a folder."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format that language models compute in (what is trained is kept in float32). auto: bfloat16 where the GPU, or the
    processor by its flags, multiplies it, else float32. A run's config.toml has what was chosen."""
    threads: PositiveInt | None = None
    """Threads that language models compute with on a processor; None for all cores. vLLM takes OMP_NUM_THREADS."""
    backend: Literal["transformers", "vllm", "server"] = "transformers"
    """What generates the answers of language models: the trained model itself; vLLM in this process; or the
    OpenAI-compatible server at `server_url`."""
    server_url: str = "http://127.0.0.1:8000/v1"
    """Where the server answers."""
    vllm_gpu_share: Annotated[float, Field(gt=0, lt=1)] = 0.4
    """vllm: share of a GPU's memory for all engines together; the learners want the rest."""
    generation_batch: PositiveInt = 64
    """transformers: answers that are generated at the same time."""
    prompts: str = "few-shot"
    """Wording of the prompts: "few-shot", with a worked example, for small models; "detailed"; or FILE.py:NAME."""
    tester_examples: Literal["shown", "hidden"] = "shown"
    """Whether a language model that tests sees the examples of the problem's text, which it could copy."""
    lora_rank: Annotated[int, Field(ge=0, le=65_536)] = 16
    """Train adapters of this rank on one base model; 0 to train all weights of a model for each player."""
    lora_alpha: PositiveInt = 32
    """Scale of the adapters: what they add is multiplied by alpha / rank."""
    trainer_cls: str = "trl:GRPOTrainer"
    """Trainer of language models, as module:class: TRL's, or a subclass of it."""
