"""A reward function for verl, and rows for its parquet files.

    python -m verl.trainer.main_ppo custom_reward_function.path=FILE custom_reward_function.name=compute_score ...

FILE is this file (`python -c "import codea1_env.integrations.verl_reward as f; print(f.__file__)"`). Each of verl's workers
judges with a sandbox of its own. None of this imports verl.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from codea1_env.integrations.side import PARTS, OneSide, SideAnswer

DATA_SOURCE = "codea1"


@lru_cache(4)
def _game(side: Any, opponent: str, problems: str) -> OneSide:
    return OneSide(side, opponent, problems=problems)


def verl_rows(
    side: OneSide,
    opponent: str | None = None,
    problems: str | None = None,
    seeds: Iterable[int] = (0,),
) -> list[dict[str, Any]]:
    """Return rows of verl's format: prompt, data_source, ability, reward_model and extra_info.

    Args:
        side: Whose questions these are.
        opponent: Who is to attack a coder's programs when they are paid: a name as `find_opponent` takes it; None for the
            side's own.
        problems: The source of the problems, which the workers load again; None for the side's own.
        seeds: A tester attacks another program in the rows of another seed.

    Raises:
        ValueError: The side was made from objects that have no name.
    """
    opponent, problems = opponent or side.opponent_name, problems or side.source
    if opponent is None or problems is None:
        raise ValueError(
            "Expect a side that was made with the names of an opponent and of a source, or these names here: verl's "
            "workers make it again. Actually: objects"
        )
    rows = []
    for question in side.questions(seeds=seeds):
        truth = {
            "side": side.side,
            "task_id": question.task_id,
            "code": question.code,
            "opponent": opponent,
            "problems": problems,
        }
        rows.append(
            {
                "data_source": DATA_SOURCE,
                "prompt": question.messages,
                "ability": "code",
                "reward_model": {"style": "rule", "ground_truth": json.dumps(truth)},
                "extra_info": {"task_id": question.task_id, "side": side.side},
            }
        )
    return rows


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Any = None,
    **_: Any,
) -> dict[str, float]:
    """Pay an answer, in verl's own signature.

    Args:
        data_source: As in the row.
        solution_str: The answer.
        ground_truth: As in the row.
        extra_info: As in the row; not needed.

    Returns:
        "score", which is 0 where nothing could score the answer, "scorable", and other measures by name.

    Raises:
        ValueError: The row is of another data source.
    """
    if data_source != DATA_SOURCE:
        raise ValueError(f"Expect data_source to be {DATA_SOURCE!r}, actually: {data_source!r}")
    truth = json.loads(ground_truth)
    game = _game(truth["side"], truth["opponent"], truth["problems"])
    found = game.judge_one(SideAnswer(truth["task_id"], solution_str, truth["code"]))
    return {
        "score": found.reward or 0.0,
        "scorable": float(found.reward is not None),
        **dict.fromkeys(PARTS, 0.0),
        **found.parts,
    }
