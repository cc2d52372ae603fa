"""A task of inspect_ai for each side of the game; the scorer is the referee.

    inspect eval codea1_env/code_a1 -T side=tester -T opponent=mutant --model openai/MODEL

No sandbox of inspect_ai is needed: programs run in the project's own. Importing this module needs the extra `inspect`.
"""

from __future__ import annotations

from typing import Any

from codea1_env.integrations.side import OneSide, Side, SideAnswer
from codea1_env.support.extras import check_version

check_version("inspect_ai", "0.3.200", "inspect")

from anyio import to_thread  # noqa: E402
from inspect_ai import Task, task  # noqa: E402
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.model import ChatMessageAssistant, ChatMessageUser  # noqa: E402
from inspect_ai.scorer import Score, mean, scorer, stderr  # noqa: E402
from inspect_ai.solver import generate  # noqa: E402

_KINDS = {"user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task  # type: ignore[untyped-decorator]
def code_a1(
    side: Side = "coder",
    opponent: str | None = None,
    problems: str = "starter",
    split: str | None = "eval",
    prompts: str = "detailed",
    seed: int = 0,
) -> Task:
    """Play one side of the game.

    Args:
        side: "coder" or "tester".
        opponent: Who plays the other side: see `codea1_env.integrations.opponents.find_opponent`. A tester's opponent writes
            its programs when the task is made.
        problems: A source for `codea1_env.load_problems`.
        split: "train" or "eval"; None for all.
        prompts: How the player is asked: "detailed", "few-shot" for small models, or ``FILE.py:NAME``.
        seed: Decides the programs that a tester attacks.
    """
    game = OneSide(side, opponent, prompts=prompts, problems=problems, split=split)
    samples = [
        Sample(
            id=question.task_id,
            input=[_KINDS[each["role"]](content=each["content"]) for each in question.messages],
            metadata={"task_id": question.task_id, "code": question.code},
        )
        for question in game.questions(seeds=[seed])
    ]
    return Task(MemoryDataset(samples, name=problems), solver=generate(), scorer=referee(game))


@scorer(metrics=[mean(), stderr()])  # type: ignore[untyped-decorator]
def referee(game: OneSide) -> Any:
    """Pay an answer as the game does; what nothing could score stays unscored."""

    async def score(state: Any, target: Any) -> Score:
        about = state.metadata
        answer = SideAnswer(about["task_id"], state.output.completion, about["code"])
        found = await to_thread.run_sync(game.judge_one, answer)
        said = {"explanation": _explained(found.info), "metadata": dict(found.parts)}
        if found.reward is None:
            return Score.unscored(reason="scoring_failed", **said)
        return Score(value=found.reward, **said)

    return score


def _explained(info: Any) -> str:
    program = info["program"]["problem"] or info["program"]["message"] or "The program runs."
    tests = [
        f"{test['status']}, {test['outcome'] or 'not run'}: {test['text']}"
        for test in info["tests"]
    ]
    # As code: the viewer reads Markdown, and a player wrote this.
    return "\n".join(f"    {line}" for text in (program, *tests) for line in text.splitlines())
