"""The configuration of a training run: one flat dataclass, from which the command line is made."""

from __future__ import annotations

import dataclasses
import math
import numbers
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from codea1_env.agents import ALGORITHMS
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.rewards import find_reward
from codea1_env.support.plugins import name_of

CODERS = ("tabular", "llm", "reference", "mutant")
TESTERS = ("tabular", "llm", "golden", "boundary")


@dataclass(frozen=True)
class TrainConfig:
    """Everything that decides what a training run does. Names follow TRL and the paper.

    Raises:
        ValueError: A value is out of its range.

    Example:
        >>> TrainConfig(max_steps=10, seed=3).num_generations
        8
    """

    problems: str = "starter"
    """Where the problems come from: a name, a hub id or a file that `load_problems` reads."""
    split: str | None = "train"
    """The split to train on; None for all problems of the source."""
    max_problems: int | None = None
    """Train on the first so many problems of the split only."""

    coder: str = "tabular"
    """Who writes programs: a learning player ("tabular", a table of answers, or "llm", a language model), a script that
    submits the "reference" or a "mutant" of it, or a player of yours (FILE.py:NAME)."""
    tester: str = "tabular"
    """Who writes tests: a learning player ("tabular", "llm"), a script that submits "golden" or "boundary" tests, or a
    player of yours (FILE.py:NAME)."""
    freeze_coder: bool = False
    """The coder plays but does not learn."""
    freeze_tester: bool = False
    """The tester plays but does not learn."""
    self_play: bool = False
    """One model in both roles: what it learns as one player changes the other. Of a language model `coder`,
    `learning_rate` and `coder_trainer` count."""
    golden_tests: int | None = None
    """Golden tests of each problem that the tester "golden" knows; None for all that are not held back."""
    tester_objective: Literal["rewards", "golden-tests"] = "rewards"
    """What the tester learns from: what its suites earn, or golden tests that it imitates (supervised
    fine-tuning)."""
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

    overlap: int = 1
    """Parts that the problems of a step are divided into: while the tester attacks one part, the sandbox judges
    the part before. Pays where a GPU generates, and processors are idle meanwhile."""

    rewards: str = "code-a1"
    """What both players are paid: a name in `codea1_env.rewards.REWARDS` ("code-a1", "execution-first",
    "mutation-score"), module:NAME, or FILE.py:NAME. In Python also the function itself, by whose name it is kept."""
    alpha: float = 0.5
    """Weight of validity in the tester's reward; the rest is adversarial."""
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
    max_tests_per_problem: int = 64
    """Tests of one problem that the Mistake Book remembers at most."""
    decay: Literal["per-program", "per-step"] = "per-program"
    """A replayed test loses one count per program that passes it, or one per step."""

    model: str = "smollm2-135m"
    """Language model of the players: a name that comes with the package, an id of the hub, or a folder."""
    tester_model: str | None = None
    """Another model for the tester; None for the coder's."""
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    """Number format that language models compute in (what is trained is kept in float32): the faster one on this
    processor, which is measured, or one by name. A run's config.toml has what was chosen."""
    generation_dtype: Literal["float32", "bfloat16", "float16"] | None = None
    """Another one for writing; None for the same, or for the faster one where that is measured."""
    threads: int | None = None
    """Threads that language models compute with on a processor; None measures which number is fastest."""
    generation_threads: int | None = None
    """Another number for writing; None for the same, or for the fastest."""
    backend: Literal["transformers", "vllm", "server"] = "transformers"
    """What generates the answers of language models: the trained model itself; vLLM in this process; or the
    OpenAI-compatible server at `server_url`."""
    server_url: str = "http://127.0.0.1:8000/v1"
    """Where the server answers."""
    generation_batch: int = 64
    """transformers: answers that are generated at the same time."""
    prompts: Literal["few-shot", "detailed"] = "few-shot"
    """Wording of the prompts: with a worked example, for small models; or with detailed instructions."""
    lora_rank: int = 16
    """Train adapters of this rank on one base model; 0 to train all weights of a model for each player."""
    lora_alpha: int = 32
    """Scale of the adapters: what they add is multiplied by alpha / rank."""
    coder_sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """How a language model's programs are drawn."""
    tester_sampling: SamplingConfig = field(default_factory=SamplingConfig)
    """How a language model's tests are drawn."""
    coder_trainer: dict[str, Any] = field(default_factory=dict)
    """More fields of TRL's GRPOConfig for the coder. They win over the settings below."""
    tester_trainer: dict[str, Any] = field(default_factory=dict)
    """More fields of TRL's GRPOConfig for the tester, or of SFTConfig if it imitates. They win over the settings
    below."""
    trainer_cls: str = "trl:GRPOTrainer"
    """Trainer of language models, as module:class: TRL's, or a subclass of it."""

    algorithm: str = "grpo"
    """How tabular players learn: a name in `codea1_env.agents.ALGORITHMS`, or module:Class or FILE.py:Class."""
    learning_rate: float = 1.0
    """Step size of the coder. A table of logits wants one near 1, a language model one near 1e-6."""
    tester_learning_rate: float = 16.0
    """Step size of the tester. Larger, because the loss of an answer is the mean over its draws: a tester that
    draws K tests moves each of them K times less than a coder moves its one program."""
    epsilon: float = 0.2
    """GRPO: lower clipping bound of the probability ratio."""
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
    save_steps: int = 10
    """Write a checkpoint every so many steps, and after the last."""
    save_total_limit: int = 2
    """Checkpoints to keep."""
    seed: int = 0
    """Decides every random choice of the run."""

    time_limit: float = 0.5
    """CPU seconds for one test."""
    workers: int = 2
    """Sandbox processes that work at the same time. Has no influence on the results."""
    output_dir: Path | None = None
    """Folder of the run; None for a new one in runs/, named after the time."""

    def __post_init__(self) -> None:
        self._check_types()
        if isinstance(self.output_dir, str):  # what most callers write
            object.__setattr__(self, "output_dir", Path(self.output_dir))
        for name in _POSITIVE:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"Expect {name} to be greater than 0, actually: {value!r}")
        for name in ("num_generations", "num_suites"):
            if getattr(self, name) < 2:
                raise ValueError(
                    f"Expect {name} to be at least 2 (answers of a group are compared with each "
                    f"other), actually: {getattr(self, name)!r}"
                )
        for name in ("seed", "beta", "epsilon", "epsilon_high"):
            if getattr(self, name) < 0:
                raise ValueError(
                    f"Expect {name} not to be negative, actually: {getattr(self, name)!r}"
                )
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"Expect alpha to be between 0 and 1, actually: {self.alpha!r}")
        for name, known in (("coder", CODERS), ("tester", TESTERS)):
            player = getattr(self, name)
            if player not in known and ":" not in player:
                raise ValueError(
                    f"Expect {name} to be one of {', '.join(map(repr, known))}, or FILE.py:NAME, actually: {player!r}"
                )
        if callable(self.rewards):
            object.__setattr__(self, "rewards", name_of(self.rewards))
        find_reward(self.rewards)
        self._check_language_models()
        self._check_self_play()
        if self.algorithm not in ALGORITHMS and ":" not in self.algorithm:
            raise ValueError(
                f"Expect algorithm to be one of {', '.join(ALGORITHMS)}, or module:Class, actually: "
                f"{self.algorithm!r}"
            )
        hints = typing.get_type_hints(TrainConfig)
        for name in (each.name for each in dataclasses.fields(self)):
            choices = typing.get_args(hints[name])
            literal = typing.get_origin(hints[name]) is Literal
            if literal and getattr(self, name) not in choices:
                raise ValueError(
                    f"Expect {name} to be one of {', '.join(map(repr, choices))}, "
                    f"actually: {getattr(self, name)!r}"
                )

    def _check_types(self) -> None:
        """Says of which type a value must be, where Python would only say that it cannot compare it."""
        hints = typing.get_type_hints(TrainConfig)
        for each in dataclasses.fields(self):
            value, hint = getattr(self, each.name), hints[each.name]
            kinds = set(typing.get_args(hint)) if isinstance(hint, types.UnionType) else {hint}
            if not kinds <= _CHECKED.keys() or (each.name == "rewards" and callable(value)):
                continue
            is_bool = isinstance(value, bool)
            if not any(
                isinstance(value, _CHECKED[kind]) and is_bool is (kind is bool) for kind in kinds
            ):
                wanted = " or ".join(sorted(_NAMES[kind] for kind in kinds))
                hint_at = "; hand players of yours to train(config, coder=..., tester=...)"
                raise TypeError(
                    f"Expect {each.name} to be {wanted}, actually: {value!r:.200}"
                    + (hint_at if each.name in ("coder", "tester") else "")
                )

    def _check_self_play(self) -> None:
        if self.self_play and (
            self.coder != self.tester or self.freeze_coder or self.freeze_tester
        ):
            raise ValueError(
                f"Expect self_play with the same kind of learning player in both roles, actually: coder="
                f"{self.coder!r}, tester={self.tester!r}, freeze_coder={self.freeze_coder}, "
                f"freeze_tester={self.freeze_tester}. Change these, or leave self_play out."
            )
        if self.self_play and self.tester_objective != "rewards":
            raise ValueError(
                f"Expect tester_objective='rewards' with self_play, actually: {self.tester_objective!r}. One "
                "model learns from what both roles earn; leave one of the two settings out."
            )
        # A trainer has one size of groups for all that it learns from.
        one_size = self.num_generations == self.num_suites
        if self.self_play and self.coder == "llm" and not (one_size and self.tester_model is None):
            raise ValueError(
                f"Expect one model and groups of one size for self_play of a language model, actually: "
                f"num_generations={self.num_generations}, num_suites={self.num_suites}, tester_model="
                f"{self.tester_model!r}. Set num_suites to num_generations, and no tester_model."
            )

    def _check_language_models(self) -> None:
        if self.time_budget == math.inf:
            raise ValueError(
                "Expect time_budget to be a number of minutes, actually: inf. Set max_steps instead."
            )
        if self.time_budget is not None and (
            "llm" not in (self.coder, self.tester) or self.backend != "transformers"
        ):
            raise ValueError(
                "Expect time_budget with language models and backend='transformers', whose speed can be measured "
                f"before the run, actually: coder={self.coder!r}, tester={self.tester!r}, backend="
                f"{self.backend!r}. Set max_steps instead."
            )
        if self.lora_rank < 0:
            raise ValueError(f"Expect lora_rank not to be negative, actually: {self.lora_rank!r}")
        if self.backend != "transformers" and self.lora_rank == 0:
            raise ValueError(
                f"Expect backend to be 'transformers' if all weights are trained (lora_rank = 0), actually: "
                f"{self.backend!r}: an engine has one model, and swaps the players' adapters."
            )
        for role, rate in (("coder", self.learning_rate), ("tester", self.tester_learning_rate)):
            if getattr(self, role) == "llm" and rate > 0.1:
                name = "learning_rate" if role == "coder" else "tester_learning_rate"
                raise ValueError(
                    f"Expect {name} to be far below 0.1 for a language model (1e-6 for all weights, 1e-4 "
                    f"for adapters), actually: {rate!r}. A preset such as smollm2-cpu sets what it needs."
                )


_CHECKED: dict[Any, type] = {
    int: numbers.Integral, float: numbers.Real, str: str, bool: bool, type(None): type(None),
}  # fmt: skip
_NAMES = {
    int: "an integer",
    float: "a number",
    str: "a str",
    bool: "True or False",
    type(None): "None",
}

_POSITIVE = (
    "max_problems", "golden_tests", "threads", "generation_threads", "time_budget", "pool_size", "generation_batch", "lora_alpha", "problems_per_step", "num_tests", "max_tests_per_problem",
    "learning_rate", "tester_learning_rate", "num_iterations", "max_steps", "eval_steps",
    "eval_samples", "overlap", "save_steps", "save_total_limit", "time_limit", "workers",
)  # fmt: skip
