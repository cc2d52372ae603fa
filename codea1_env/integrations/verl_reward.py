"""A reward function for verl, and rows for its parquet files.

    python -m verl.trainer.main_ppo custom_reward_function.path=FILE custom_reward_function.name=compute_score ...

FILE is this file (`python -c "import codea1_env.integrations.verl_reward as f; print(f.__file__)"`). Without an address, each
of verl's workers judges with a sandbox of its own; with
`custom_reward_function.reward_kwargs.url=http://HOST:8080` the programs of coders run on a server of
`codea1 sandbox serve`. None of this imports verl.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import Any

from codea1_env.integrations.side import PARTS, OneSide, SideAnswer
from codea1_env.support.extras import require

DATA_SOURCE = "codea1"
_TIMEOUT = 120.0


@lru_cache(4)
def _game(side: Any, opponent: str, problems: str) -> OneSide:
    return OneSide(side, opponent, problems=problems)


def verl_rows(
    side: OneSide, opponent: str | None = None, problems: str | None = None
) -> list[dict[str, Any]]:
    """Return rows of verl's format: prompt, data_source, ability, reward_model and extra_info.

    Args:
        side: Whose questions these are.
        opponent: Who is to attack a coder's programs when they are paid: a name as `find_opponent` takes it; None for the
            side's own.
        problems: The source of the problems, which the workers load again; None for the side's own.

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
    for question in side.questions():
        problem = side.problems[question.task_id]
        truth = {
            "side": side.side,
            "task_id": question.task_id,
            "code": question.code,
            "tests": list(problem.tests),
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
    url: str | None = None,
    **_: Any,
) -> dict[str, float]:
    """Pay an answer, in verl's own signature.

    Args:
        data_source: As in the row.
        solution_str: The answer.
        ground_truth: As in the row.
        extra_info: As in the row; not needed.
        url: A server of `codea1 sandbox serve`: then a program is paid the share of the golden tests that it passes. Its
            token is read from the environment variable CODEA1_SERVICE_TOKEN.

    Returns:
        "score", which is 0 where nothing could score the answer, "scorable", and other measures by name.

    Raises:
        ValueError: The row is of another data source, or the server is asked to pay a tester.
    """
    if data_source != DATA_SOURCE:
        raise ValueError(f"Expect data_source to be {DATA_SOURCE!r}, actually: {data_source!r}")
    truth = json.loads(ground_truth)
    game = _game(truth["side"], truth["opponent"], truth["problems"])
    if url is None:
        found = game.judge_one(SideAnswer(truth["task_id"], solution_str, truth["code"]))
        return {
            "score": found.reward or 0.0,
            "scorable": float(found.reward is not None),
            **dict.fromkeys(PARTS, 0.0),
            **found.parts,
        }
    if truth["side"] != "coder":
        raise ValueError(
            "Expect a coder's answer with url, actually a tester's: tests need the oracle. Leave url out"
        )
    problem = game.problem(truth["task_id"])
    program = game.read_program(problem, solution_str)
    if program.problem:
        return {"score": 0.0, "scorable": 1.0, "passed": 0.0}
    body = {"code": program.code, "entry_point": problem.entry_point, "tests": truth["tests"]}
    outcomes = _outcomes(url, body)
    passed = outcomes.count("pass") / max(1, len(outcomes))
    return {"score": passed, "scorable": float(bool(outcomes)), "passed": passed}


def _outcomes(url: str, body: dict[str, Any]) -> list[str]:
    httpx: Any = require("httpx", "evaluation")
    token = os.environ.get("CODEA1_SERVICE_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    headers["Content-Type"] = "application/json"
    try:
        answer = httpx.post(
            f"{url.rstrip('/')}/run_tests",
            content=json.dumps(body),  # in ASCII: what a model wrote may be no UTF-8
            headers=headers,
            timeout=_TIMEOUT,
        )
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise RuntimeError(f"Expect verdicts from {url}, actually: {error}") from error
    if not answer.is_success:
        raise RuntimeError(
            f"Expect verdicts from {url}, actually: {answer.status_code} {answer.text:.300}"
        )
    return [test["outcome"] for test in answer.json()["tests"]]
