"""The game as an environment of verifiers (0.4, `verifiers.v1`), which its `vf-eval` and prime-rl load as `code-a1`.

    vf-eval code-a1 --env.side tester --env.opponent mutant -m MODEL --client.base-url http://127.0.0.1:8000/v1

The rubric is the referee. With `side="both"` both seats are played by models, each with a reward of its own. Importing
this module needs the extra `verifiers`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import cached_property
from itertools import product
from typing import Any, Literal, Self

from codea1_env.integrations.opponents import check_name
from codea1_env.integrations.side import OneSide, Side, SideAnswer
from codea1_env.problems import load_problems
from codea1_env.rounds import situation
from codea1_env.support.extras import check_version

check_version("verifiers", "0.4", "verifiers")

import httpx  # noqa: E402
import verifiers.v1 as vf  # noqa: E402
from pydantic import Field, model_validator  # noqa: E402
from verifiers.v1.dialects.chat import message_to_wire  # noqa: E402

TASKSET = "code-a1"


class CodeA1Data(vf.TaskData):  # type: ignore[misc]
    """A problem, as one player sees it."""

    task_id: str
    seed: int = 0
    """With the task it decides the program that a tester attacks."""
    code: str = ""
    """That program."""


class CodeA1Task(vf.Task[CodeA1Data]):  # type: ignore[misc]
    """A problem. Both players are judged together, when the episode is over."""


class CodeA1TasksetConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which problems are played."""

    problems: str = "starter"
    """A source for `codea1_env.load_problems`."""
    split: str | None = None
    """"train" or "eval"; None for all."""
    seeds: int = Field(1, ge=1)
    """Rows of each problem: a tester attacks another program in each."""


class CodeA1Taskset(vf.Taskset[CodeA1Task, CodeA1TasksetConfig]):  # type: ignore[misc]
    """The problems, a task for each and each seed."""

    def load(self) -> Iterator[CodeA1Task]:
        """Give the tasks."""
        problems = load_problems(self.config.problems, self.config.split)
        for seed, problem in product(range(self.config.seeds), problems):
            name = problem.task_id
            row = f"{name}#{seed}" if seed else name
            data = CodeA1Data(id=row, name=row, task_id=name, prompt=problem.prompt, seed=seed)
            yield CodeA1Task(data, self.config.task)


class SeatConfig(vf.AgentConfig):  # type: ignore[misc]
    """A seat: asked once, in a process of this machine. With a model of its own it is not trained."""

    runtime: vf.RuntimeConfig = Field({"type": "subprocess"}, validate_default=True)
    max_turns: int | None = 1


class CodeA1EnvConfig(vf.EnvConfig):  # type: ignore[misc]
    """Who plays."""

    coder: SeatConfig = SeatConfig()
    tester: SeatConfig = SeatConfig()
    side: Literal["coder", "tester", "both"] = "coder"
    """The seats that models play."""
    opponent: str | None = None
    """Who plays the other seat: see `codea1_env.integrations.opponents.find_opponent`."""
    prompts: str = "detailed"
    """How players are asked: "detailed", "few-shot" for small models, or ``FILE.py:NAME``."""

    @model_validator(mode="after")
    def _named(self) -> Self:
        if self.side != "both" and self.opponent is not None:
            check_name(self.opponent, "tester" if self.side == "coder" else "coder")
        return self


class CodeA1Env(vf.Env[CodeA1EnvConfig]):  # type: ignore[misc]
    """An episode: a program, tests that attack it, and the referee."""

    @cached_property
    def game(self) -> OneSide:
        """The game; with two models both sides of it."""
        config = self.config
        side: Side = "coder" if config.side == "coder" else "tester"
        both = "reference" if config.side == "both" else None  # who is never asked
        return OneSide(
            side,
            config.opponent or both,
            prompts=config.prompts,
            problems=config.taskset.problems,
            split=config.taskset.split,
        )

    async def start(self) -> None:
        """Make the game before the first episode, so that a wrong name ends the command."""
        await asyncio.to_thread(lambda: self.game)

    async def setup(self, agents: Any) -> None:
        """Leave out of training what a model of its own plays."""
        for seat in ("coder", "tester"):
            if getattr(self.config, seat).model is not None:
                getattr(agents, seat).trainable = False

    async def run(self, task: Any, agents: Any) -> None:
        """Let the seats play."""
        name, side = task.data.task_id, self.config.side
        if side == "both":
            seen = situation(self.game.problems[name], 0)
            trace = await agents.coder.run(_asked(task, self.game.messages(seen)))
            if trace.has_error:
                return
            task = await asyncio.to_thread(self._attacking, task, trace.last_reply)
            await agents.tester.run(task)
        else:
            question = await asyncio.to_thread(self.game.question_one, name, task.data.seed)
            await getattr(agents, side).run(_asked(task, question.messages, question.code))

    def _attacking(self, task: Any, answer: str) -> Any:
        problem = self.game.problems[task.data.task_id]
        program = self.game.read_program(problem, answer)
        seen = situation(problem, 0, program)
        return _asked(task, self.game.messages(seen), program.code)

    async def finalize(self, task: Any, episode: Any) -> None:
        """Judge what was played. What nothing could score is marked as not to be trained on."""
        last = episode.traces[-1]
        if last.has_error:
            for trace in episode.traces:  # nothing was judged, also not what came before
                trace.agent.trainable = False
            return
        answer = SideAnswer(task.data.task_id, last.last_reply, last.task.data.code)
        try:
            score = await asyncio.to_thread(self.game.judge_one, answer)
        except Exception:
            for trace in episode.traces:
                trace.agent.trainable = False
            raise
        for trace in episode.traces:
            paid = score.info["rewards"]["code" if trace.agent.name == "coder" else "test"]
            trace.record_reward("reward", paid or 0.0)
            trace.record_metrics({**score.parts, "scorable": float(paid is not None)})
            trace.agent.trainable = trace.agent.trainable and paid is not None


def _asked(task: Any, messages: Any, code: str = "") -> Any:
    """Return the task as one player is asked it."""
    kinds = {"user": vf.UserMessage, "assistant": vf.AssistantMessage}
    prompt = [kinds[each["role"]](content=each["content"]) for each in messages]
    return task.with_data(prompt=prompt, code=code)


class OneCall(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]
    """Asks the model once, in this process: the game needs no tools and no machine for its players."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: Any
    ) -> Any:  # fmt: skip
        """Send the chat."""
        system, prompt = self.resolve_prompt(data)
        chat = [{"role": "system", "content": system}] if system else []
        chat += (
            [{"role": "user", "content": prompt}]
            if isinstance(prompt, str)
            else list(map(message_to_wire, prompt))
        )
        async with httpx.AsyncClient(timeout=None, trust_env=False) as client:
            answer = await client.post(
                f"{endpoint}/chat/completions",
                json={"model": ctx.model, "messages": chat},
                headers={"Authorization": f"Bearer {secret}"},
            )
        return vf.ProgramResult(0 if answer.is_success else 1, "", answer.text[:2000])


def load_environment(
    side: Literal["coder", "tester", "both"] = "coder",
    opponent: str | None = None,
    problems: str = "starter",
    split: str | None = None,
    prompts: str = "detailed",
    seeds: int = 1,
) -> CodeA1Env:
    """Make the environment without a command line.

    Args:
        side: Who is a model; "both" for two seats with a reward each.
        opponent: Who plays the other side: see `codea1_env.integrations.opponents.find_opponent`.
        problems: A source for `codea1_env.load_problems`.
        split: "train" or "eval"; None for all.
        prompts: How players are asked: "detailed", "few-shot" for small models, or ``FILE.py:NAME``.
        seeds: Rows of each problem: a tester attacks another program in each.
    """
    taskset = CodeA1TasksetConfig(id=TASKSET, problems=problems, split=split, seeds=seeds)
    config = CodeA1EnvConfig(taskset=taskset, side=side, opponent=opponent, prompts=prompts)
    env = CodeA1Env(config)
    _ = env.game  # a wrong name is told now
    return env


__all__ = ["CodeA1Env", "CodeA1Taskset", "OneCall", "load_environment"]
