"""The configuration of a training run: what both players share, and a block for each of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.judging.verdicts import GAME_LIMITS
from codea1_env.mistake_book import STALE_AFTER
from codea1_env.rewards import find_reward
from codea1_env.support.plugins import name_of
from codea1_env.training.config_checks import check_combinations, check_types, check_values
from codea1_env.training.reward_model import find_reward_model
from codea1_env.training.settings import moved_names

TrackerName = Literal["trackio", "tensorboard", "wandb"]
"""A tracker; its package and the extra that installs it have the same name."""


class RunError(ValueError):
    """A run cannot be started or resumed as asked. The message says what to do instead."""


class PlayerError(RuntimeError):
    """A player failed in the middle of a run. The message says why, and where the run can be resumed."""


@dataclass(frozen=True)
class PlayerConfig:
    """Who plays a role, and how they learn. `TrainConfig` checks the values, and knows what both players share.

    Example:
        >>> PlayerConfig("llm", learning_rate=1e-5).freeze
        False
    """

    player: str = "tabular"
    """Who plays; `--coder NAME` and `--tester NAME` are short for it. A learning player ("tabular", a table of
    answers, or "llm", a language model), a script (coders: "reference", or a "mutant" of it; testers: "golden" or
    "boundary" tests, or "copier", which submits the examples of the problem's text), or a player of yours (FILE.py:NAME)."""
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
    trainer: dict[str, Any] = field(default_factory=dict)
    """More fields of TRL's GRPOConfig, or of SFTConfig for a tester that imitates. They win over the settings that
    both players share, and over those of the algorithm."""


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
    """What the tester learns from: what its suites earn, or golden tests that it imitates (supervised
    fine-tuning)."""


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides what a training run does. Names follow TRL and the paper.

    Raises:
        ValueError: A value is out of its range.

    Example:
        >>> TrainConfig(max_steps=10, tester=TesterConfig("golden")).tester.learning_rate
        16.0
    """

    problems: str = "starter"
    """Where the problems come from: a name, a hub id or a file that `load_problems` reads."""
    split: str | None = "train"
    """The split to train on; None for all problems of the source."""
    difficulty: str | None = None
    """Train only on problems that their source calls so hard ("easy", "medium", "hard"); None for all."""
    max_problems: int | None = None
    """Train on the first so many problems of the split only."""

    coder: PlayerConfig = field(default_factory=PlayerConfig)
    """The player who writes programs."""
    tester: TesterConfig = field(default_factory=TesterConfig)
    """The player who writes tests."""
    self_play: bool = False
    """One model in both roles: what it learns as one player changes the other. Of a language model the settings of
    the coder count, and the tester's sampling."""
    golden_tests: int | None = None
    """Golden tests of each problem that the tester "golden" knows; None for all that are not held back."""
    pool_size: int = 16
    """Programs and tests that a tabular player chooses from, per problem (up to twice as many tests)."""

    problems_per_step: int = 12
    """Problems of one step. An epoch visits every problem once, in a new order."""
    num_generations: int = 8
    """Programs per problem: the coder's group."""
    num_suites: int = 8
    """Suites per program: the tester's group."""
    num_tests: int = 4
    """Tests of a suite that count, and old tests that are replayed (K in the paper, which uses 8)."""
    suite_selection: Literal["max-variance", "all"] = "max-variance"
    """Programs whose suites the tester learns from: of every problem the one whose suites' rewards differ
    most, or all."""
    black_box: bool = False
    """The tester does not see the program."""

    max_rounds: int = 1
    """Rounds of an episode. From the second on the coder sees what broke its program and may repair it."""
    tester_rounds: Literal["every", "first"] = "every"
    """Rounds in which the tester answers. "first": its suites of the first round attack the repaired programs, too, and
    are paid once."""
    opponents: Literal["current", "past"] = "current"
    """Who is met. "past": in some steps one side, drawn at random, is played by an earlier version of itself, and does
    not learn then."""
    past_share: float = 0.5
    """With opponents = "past": share of the steps in which an earlier version plays."""
    past_sampling: Literal["uniform", "latest", "win-rate"] = "uniform"
    """Which earlier version: any, the newest, or the likelier the more it earned."""
    past_steps: int = 5
    """Keep both players every so many steps, the untrained ones first."""
    past_limit: int = 16
    """Versions that are kept; of more, every second one goes."""

    overlap: int = 1
    """Parts that the problems of a step are divided into: while the tester attacks one part, the sandbox judges
    the part before. Pays where a GPU generates, and processors are idle meanwhile."""

    rewards: str = "code-a1"
    """What both players are paid: "code-a1" (the paper's), "execution-first", "mutation-score", "rltf", "utrl", "incremental",
    "solve-rate", "learnability", "prediction-accuracy", "difficulty-weighted", module:NAME, or FILE.py:NAME. In Python also the function itself,
    by whose name it is kept."""
    alpha: float = 0.5
    """Weight of validity in the tester's reward; the rest is adversarial."""
    reward_model: str | None = None
    """What pays the coder instead of verdicts: "ngrams" for a small regression on the text of programs, module:NAME or
    FILE.py:NAME for a model of your own (`codea1_env.training.reward_model`). None for verdicts."""
    reward_model_after: int = 4
    """Steps that are judged as usual, and that the reward model is fitted on. A run of no more steps never asks it."""
    wrong_oracle: Literal["correct", "drop"] = "correct"
    """What becomes of a test that predicts a wrong value: it attacks with the right one, or not at all.
    It counts as invalid either way."""
    oracle: Literal["reference", "coder"] = "reference"
    """Who says what is right: the reference of the problem; or, as in self-play without ground truth, a program
    of the coder itself, the first of each group that runs."""
    strict_paper: bool = False
    """The rules of the released implementation: tests may use any arguments, floats are compared exactly, and a program
    that no test could judge is paid 0 instead of being left out."""

    use_book: bool = True
    """Remember tests that broke programs, and replay them."""
    book_replay: Literal["frequency", "quality", "uniform"] = "frequency"
    """Which tests are replayed: the most frequent ones, or drawn ones; by quality a test is the likelier the more
    programs it broke."""
    max_tests_per_problem: int = 64
    """Tests of one problem that the Mistake Book remembers at most."""
    decay: Literal["per-program", "per-step"] = "per-program"
    """A replayed test loses one count per program that passes it, or one per step."""
    stale_after: int = STALE_AFTER
    """Steps in a row in which a replayed test fails every program of its problem, before other tests that wait go
    first. Under `strict_paper` never."""

    model: str = "smollm2-135m"
    """Language model of both players: a name that comes with the package, an id of the hub, or a folder."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format that language models compute in (what is trained is kept in float32): the faster one on this
    processor, which is measured, or one by name. A run's config.toml has what was chosen."""
    generation_dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """Another one for writing; None for the same, or for the faster one where that is measured."""
    threads: int | None = None
    """Threads that language models compute with on a processor; None measures which number is fastest."""
    generation_threads: int | None = None
    """Another number for writing with `backend = "transformers"`; None for the same, or for the fastest. vLLM takes OMP_NUM_THREADS."""
    backend: Literal["transformers", "vllm", "server"] = "transformers"
    """What generates the answers of language models: the trained model itself; vLLM in this process; or the
    OpenAI-compatible server at `server_url`."""
    server_url: str = "http://127.0.0.1:8000/v1"
    """Where the server answers."""
    generation_batch: int = 64
    """transformers: answers that are generated at the same time."""
    prompts: Literal["few-shot", "detailed"] = "few-shot"
    """Wording of the prompts: with a worked example, for small models; or with detailed instructions."""
    tester_examples: Literal["shown", "hidden"] = "shown"
    """Whether a language model that tests sees the examples of the problem's text, which it could copy."""
    lora_rank: int = 16
    """Train adapters of this rank on one base model; 0 to train all weights of a model for each player."""
    lora_alpha: int = 32
    """Scale of the adapters: what they add is multiplied by alpha / rank."""
    trainer_cls: str = "trl:GRPOTrainer"
    """Trainer of language models, as module:class: TRL's, or a subclass of it."""

    algorithm: str = "grpo"
    """How both players learn from rewards, tables and language models: a name in `codea1_env.agents.ALGORITHMS`, or
    module:Class or FILE.py:Class."""
    algorithm_args: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters of the algorithm's own, as in "entropy = 0.02"."""
    epsilon: float = 0.2
    """GRPO: lower clipping bound of the probability ratio. Other algorithms have bounds of their own."""
    epsilon_high: float = 0.28
    """GRPO: upper clipping bound of the probability ratio."""
    beta: float = 0.0
    """GRPO: weight of the KL divergence from the policy at the start."""
    loss_type: Literal["grpo", "dapo", "dr_grpo"] = "dapo"
    """GRPO: how the draws of an answer are averaged."""
    num_iterations: int = 1
    """GRPO: gradient steps per batch."""

    time_budget: float | None = None
    """Minutes that a run of language models may take, from start to end. The speed of this machine is measured, and
    steps, problems and the length of answers follow: problems per step, problems and lengths given are upper
    bounds. --max-steps on the command line overrides it. None for no such limit."""
    max_steps: int = 90
    """Steps of the whole run."""
    eval_steps: int = 30
    """Measure on held-back tests and mutants every so many steps, and before the first and after the last."""
    eval_samples: int = 4
    """Answers per problem and player in such a measurement."""
    eval_trained: int = 256
    """Measure on so many of the problems that are trained on: a sample of larger sets, always the same one."""
    eval_problems: int = 4
    """Language models: measure on so many problems that are not trained on, too; 0 for none."""
    save_steps: int = 10
    """Write a checkpoint every so many steps, and after the last."""
    save_total_limit: int = 2
    """Checkpoints to keep."""
    seed: int = 0
    """Decides every random choice of the run."""

    time_limit: float = GAME_LIMITS.call_cpu_time
    """CPU seconds for one test."""
    workers: int = 2
    """Sandbox processes that work at the same time; with Ray on each node. Has no influence on the results."""
    engine: Literal["local", "ray"] = "local"
    """Where the run computes: in this process, or on the nodes of a Ray cluster. Has no influence on the results."""
    address: str = "auto"
    """Ray: "auto" for the cluster that this machine belongs to, HOST:PORT, or "local" for one on this machine alone."""
    learner_processes: int = 1
    """Ray: processes that each language model answers and learns with."""
    max_staleness: int = 0
    """Ray: updates that the weights which wrote an answer may lag behind those that learn from it. 0 for none; with 1
    the next step is played while this one is learned from, by processes of their own."""
    learner_gpus: float | None = None
    """Ray: GPUs of each such process, or a share of one; None for one where the cluster has any."""
    tracker: tuple[TrackerName, ...] = ()
    """Where the run is shown while it goes on, beside its own files: trackio, tensorboard, wandb. Has no influence on
    the results."""
    output_dir: Path | None = None
    """Folder of the run; None for a new one in runs/, named after the time."""

    def __new__(cls, *_: object, **settings: object) -> Self:
        """Say what a setting of an older version is called now."""
        if moved := moved_names(settings):
            raise TypeError(
                f"{moved}: TrainConfig(coder=PlayerConfig(...), tester=TesterConfig(...))"
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_types(self)
        if isinstance(self.output_dir, str):  # what most callers write
            object.__setattr__(self, "output_dir", Path(self.output_dir))
        if isinstance(self.tracker, list):
            object.__setattr__(self, "tracker", tuple(self.tracker))
        if callable(self.rewards):
            object.__setattr__(self, "rewards", name_of(self.rewards))
        check_values(self)
        find_reward(self.rewards)
        if self.reward_model is not None:
            find_reward_model(self.reward_model)
        check_combinations(self)

    @property
    def stale_steps(self) -> int | None:
        """What the Mistake Book takes for `stale_after`."""
        return None if self.strict_paper else self.stale_after

    def player(self, role: str) -> PlayerConfig:
        """Return the block of a role; that of the coder for one model in both ("model")."""
        return self.tester if role == "tester" else self.coder

    def model_of(self, role: str) -> str:
        """Return the language model of a role."""
        return self.player(role).model or self.model

    def algorithm_of(self, role: str) -> str:
        """Return the name of a player's algorithm."""
        return self.player(role).algorithm or self.algorithm

    @property
    def has_language_model(self) -> bool:
        """Whether a language model plays."""
        return "llm" in (self.coder.player, self.tester.player)
