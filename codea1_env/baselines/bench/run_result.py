"""What one run of a benchmark left in its folder, checked: files get cut off and edited.

result.json    status, error and seconds; written last
run/           the run folder, as of `codea1 train`
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.support.logs import read_rows
from codea1_env.training.metrics import Row, mean
from codea1_env.training.run_folder import HELD_OUT, METRICS, UNSEEN, up_to

RESULT = "result.json"

Scores = dict[str, dict[str, float | None]]
"""Problem -> measure -> value."""

_MEASURES = (
    "pass_rate", "kill_rate", "copier_kill_rate", "new_kill_rate", "only_book", "past_pass_rate",
)  # fmt: skip
_UNSEEN_MEASURES = _MEASURES[:4]
UNSEEN_PREFIX = "unseen/"
"""Begins the measures of problems that are not trained on."""


class DamagedRunError(ValueError):
    """A file of a run does not hold what runs write. The message says which, and what is wrong with it."""


@dataclass(frozen=True)
class Ending:
    """How a run ended: result.json."""

    status: str
    """"ok" or "failed"."""
    error: str
    seconds: float


@dataclass(frozen=True)
class Logs:
    """What a run measured."""

    start: Scores
    end: Scores
    metrics: list[Row]
    """Rows of metrics.jsonl."""


def read_ending(folder: Path) -> Ending:
    """Read the result.json of a run's folder.

    Raises:
        DamagedRunError: It is something else.
    """
    path = folder / RESULT
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DamagedRunError(f"Expect {path} to be a JSON file, actually: {error}") from error
    match content:
        case {"status": "ok" | "failed" as status, "error": str(message), "seconds": seconds} if (
            _is_number(seconds)
        ):
            return Ending(status, message, seconds)
    raise DamagedRunError(
        f'Expect {path} to hold a status ("ok" or "failed"), an error and seconds, actually: {content!r:.80}'
    )


def read_logs(run: Path, step: int) -> Logs:
    """Read what a run measured up to a step.

    Args:
        run: The run folder.
        step: The last step to read.

    Raises:
        DamagedRunError: Rows are missing, or hold something else.
    """
    metrics = list(read_rows(run / METRICS, up_to(step)))
    if [row["step"] for row in metrics] != list(range(step + 1)):
        raise DamagedRunError(
            f"Expect {run / METRICS} to have one row for each step from 0 to {step}, actually its whole rows "
            f"are those of {_listed([row['step'] for row in metrics])}."
        )
    for row in metrics:
        _check_values(run / METRICS, row, list(row))
    measured = [row for row in metrics if "held_out/pass_rate" in row]
    if not measured or measured[0]["step"] != 0:
        raise DamagedRunError(
            f"Expect {run / METRICS} to have measures of step 0, actually: there are none."
        )
    trained = _read_scores(run / HELD_OUT, measured, "held_out/", _MEASURES)
    others = _read_scores(run / UNSEEN, measured, UNSEEN_PREFIX, _UNSEEN_MEASURES)
    start, end = (
        trained[step]
        | {
            task: {f"{UNSEEN_PREFIX}{name}": value for name, value in row.items()}
            for task, row in others.get(step, {}).items()
        }
        for step in (0, measured[-1]["step"])
    )
    forgotten = forgetting([trained[row["step"]] for row in measured])
    end = {task: row | ({"forgetting": forgotten[task]} if task in forgotten else {}) for task, row in end.items()}  # fmt: skip
    return Logs(start, end, metrics)


def _read_scores(
    path: Path, measured: list[Row], kind: str, measures: tuple[str, ...]
) -> dict[int, Scores]:
    """Step -> scores; empty if no problems of this kind were measured."""
    rows_of = [row for row in measured if f"{kind}pass_rate" in row]
    scores: dict[int, Scores] = {}
    for row in read_rows(path, up_to(measured[-1]["step"])):
        _check_values(path, row, measures)
        values = {name: row[name] for name in measures}
        scores.setdefault(row["step"], {})[str(row.get("task_id"))] = values
    for row in rows_of:
        found = scores.get(row["step"], {})
        rate = mean(values["pass_rate"] for values in found.values())
        if found.keys() != scores.get(0, {}).keys() or rate != row[f"{kind}pass_rate"]:
            raise DamagedRunError(
                f"Expect {path} to have the rows whose means are in {METRICS}, actually those of "
                f"step {row['step']} are others, or incomplete."
            )
    return {row["step"]: scores.get(row["step"], {}) for row in rows_of}


def forgetting(measured: list[Scores]) -> dict[str, float]:
    """Problem -> how much more of its held-back tests was passed at the best earlier time than at the end.

    That is the forgetting of Chaudhry et al. 2018 (arXiv 1801.10112, equation 3) with problems as tasks, but that one which is
    better at the end than ever before has forgotten nothing.

    Args:
        measured: Scores at each measurement, in order.
    """
    times = {
        task: [row[task]["pass_rate"] for row in measured if task in row] for task in measured[-1]
    }
    known = {task: [rate for rate in rates if rate is not None] for task, rates in times.items()}
    return {
        task: max(0.0, max(rates[:-1]) - rates[-1])
        for task, rates in known.items()
        if len(rates) > 1
    }


def _check_values(path: Path, row: Row, names: list[str] | tuple[str, ...]) -> None:
    for name in names:
        if name not in row or not (row[name] is None or _is_number(row[name])):
            raise DamagedRunError(
                f"Expect {path} to have a number or null for {name} of step {row['step']}, actually: "
                f"{row.get(name, 'nothing')!r:.80}"
            )


def _is_number(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


def _listed(steps: list[int]) -> str:
    return f"steps {', '.join(map(str, steps))}" if steps else "none"
