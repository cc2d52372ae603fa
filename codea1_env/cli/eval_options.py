"""Options that evaluations of programs and of tests share, and what surrounds both: folder, errors, report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

import codea1_env
from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.computing import Computing
from codea1_env.agents.llm.engines import Engine, computing_for
from codea1_env.agents.llm.prompts import PromptTemplate
from codea1_env.cli.errors import user_input
from codea1_env.cli.eval_agents import (
    Role,
    SamplingOptions,
    is_language_model,
    is_server,
    served_model,
    weights_of,
)
from codea1_env.cli.parsing import ComputingOptions, Packages, SandboxLevel, check_packages
from codea1_env.evaluation.samples import digest_of_file
from codea1_env.sandbox import Limits, Sandbox
from codea1_env.sandbox.packages import versions
from codea1_env.support.plugins import digest_of


@dataclass(frozen=True, kw_only=True)
class AskingOptions(ComputingOptions):
    """Whom to ask, and how."""

    agent: Annotated[str | None, tyro.conf.arg(metavar="NAME_OR_PATH")] = None
    """Who writes the samples."""
    backend: Engine = "transformers"
    """What language models generate with in this process, on a GPU where there is one. "vllm" needs the extra vllm,
    and is many times faster on a GPU."""
    model: str | None = None
    """The server's name for the model; None for its first."""
    request: dict[str, Any] = field(default_factory=dict)
    """More fields of what a server is asked, such as 'reasoning_effort = "low", max_completion_tokens = 2048, max_tokens =
    "None"': None leaves a field out."""
    headers: dict[str, Any] = field(default_factory=dict)
    """More headers of what a server is asked, such as 'X-Team = "a"'. They are in no file."""
    num_samples: Annotated[int, tyro.conf.arg(aliases=["-n"], metavar="N")]
    """Samples per problem that an agent writes."""
    temperature: float = 0.7
    """Of language models."""
    top_p: float = 0.95
    """Of language models."""
    max_completion_length: int = 1024
    """Tokens of an answer of a language model."""
    prompts: Literal["few-shot", "detailed"] = "few-shot"
    """Wording for language models: with a worked example, for small ones; or with detailed instructions."""
    seed: int = 0
    """Of the agent's draws."""
    workers: int | None = None
    """Sandbox processes that work at the same time; None for one per core. Has no influence on the results."""
    packages: Packages = ()
    sandbox_level: SandboxLevel = None
    json: bool = False
    """Print the report as one JSON object; the progress display goes to stderr."""

    def __post_init__(self) -> None:
        self.require_positive("num_samples", "workers")
        if self.seed < 0:
            raise ValueError(f"Expect --seed to be at least 0, actually: {self.seed}")
        check_packages(self.packages)

    def require_positive(self, *names: str) -> None:
        """Raise a ValueError if one of these numbers is given and below 1."""
        for name in names:
            value = getattr(self, name)
            if value is not None and value < 1:
                option = name.replace("_", "-")
                raise ValueError(f"Expect --{option} to be at least 1, actually: {value}")

    @property
    def cores(self) -> int:
        """Sandbox processes."""
        return self.workers or len(os.sched_getaffinity(0))

    def sandbox(self, limits: Limits | None = None) -> Sandbox:
        """Return a new sandbox."""
        packages = ("numpy", *self.packages)
        return Sandbox(self.cores, limits, level=self.sandbox_level, packages=packages)

    def asking(self, wording: PromptTemplate, num_tests: int = 8) -> SamplingOptions:
        """How the agent is asked: in this wording, and a scripted tester for so many tests."""
        return SamplingOptions(
            self.sampling(),
            wording,
            self.model,
            self.backend,
            num_tests,
            self.computing(),
            self.request,
            {name: str(value) for name, value in self.headers.items()},
        )

    def computing(self, recorded: Mapping[str, Any] | None = None) -> Computing | None:
        """How the agent computes; None if it is no language model of this process. Measured once."""
        known: list[Computing | None] = self.__dict__.setdefault("_computing", [])
        if not known:
            weights = None if self.agent is None else weights_of(self.agent)
            before = recorded if isinstance(recorded, dict) else {}
            if weights is None or self.backend != "transformers":
                known.append(None)
            else:
                dtype = self.asked_dtype or before.get("dtype")
                threads = self.threads or before.get("threads")
                with user_input():
                    known.append(computing_for(weights, dtype, threads))
        return known[0]

    def sampling(self) -> SamplingConfig:
        """How language models draw."""
        with user_input():
            return SamplingConfig(
                temperature=self.temperature,
                top_p=self.top_p,
                max_prompt_length=4096,
                max_completion_length=self.max_completion_length,
                stop=("\n```\n",),
            )


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(AskingOptions):
    """What an evaluation reads, whom it asks, and where it writes."""

    problems: Annotated[str, tyro.conf.arg(metavar="SOURCE")] = "starter"
    """"starter", humaneval+, mbpp+, mbpp, bigcodebench[-hard][-instruct], livecodebench, ult, a data set of the
    Hugging Face hub, a .jsonl, .jsonl.gz or .parquet file, or FILE.py:NAME (a function of yours)."""
    split: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """Only this split."""
    max_problems: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Only the first N problems."""
    samples: Annotated[Path | None, tyro.conf.arg(metavar="FILE.jsonl")] = None
    """Samples made elsewhere."""
    batch_size: int = 64
    """Samples that an agent is asked for at a time. A kill loses one batch at most."""
    output_dir: Path | None = None
    """Result folder; None for a new one in runs/, named after the time."""
    resume: bool = False
    """Go on with the evaluation in --output-dir; the other options must be the same."""
    partial: bool = False
    """Accept a file that has no samples for some problems: they are left out of the figures, and listed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_positive("max_problems", "batch_size")

    def settings(self, role: Role) -> dict[str, Any]:
        """All that the samples depend on, and with them the verdicts."""
        source = Path(self.problems)
        settings: dict[str, Any] = {
            "codea1_env": codea1_env.__version__,
            # `eval best-of-n` loads them again, perhaps from another folder.
            "problems": str(source.resolve()) if source.is_file() else self.problems,
            "split": self.split,
            "max_problems": self.max_problems,
        }
        if self.packages:
            settings["packages"] = versions(sorted(self.packages))
        if self.samples is not None:
            settings["samples"] = str(self.samples)
            settings["samples_sha256"] = digest_of_file(self.samples)
            return settings
        settings["agent"] = self.agent
        if digest := digest_of(self.agent or ""):
            settings["agent_sha256"] = digest[:16]
        settings["num_samples"] = self.num_samples
        settings["batch_size"] = self.batch_size
        settings["seed"] = self.seed
        if is_language_model(role, self.agent or ""):
            if is_server(self.agent or "") and self.model is None:
                # Of two models behind one address the answers are not to be mixed.
                model = served_model(self.agent or "", {k: str(v) for k, v in self.headers.items()})
                object.__setattr__(self, "model", model)
            settings["model"] = self.model
            if self.request:
                settings["request"] = self.request
            settings["backend"] = "server" if is_server(self.agent or "") else self.backend
            settings["prompts"] = self.prompts
            computing = self.computing()
            if computing is not None:
                settings["dtype"] = computing.generation_dtype
                settings["threads"] = computing.generation_threads
            settings |= asdict(self.sampling())
        return settings
