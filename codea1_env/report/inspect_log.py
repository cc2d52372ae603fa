"""Episodes of a run as a log of inspect_ai, which `inspect view` shows and `inspect_ai.analysis` makes tables of.

inspect_ai's own classes and its own writer make the file. Whatever players wrote stands in blocks of code: its viewer
reads messages and explanations as Markdown.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import codea1_env
from codea1_env.rendering.display import fenced, in_line
from codea1_env.report.episode_log import (
    PAID,
    TEST,
    EpisodeLog,
    drawing_order,
    outcome_of,
    scan,
    shortened,
)
from codea1_env.report.runs import LoggedRun, is_number, player_name
from codea1_env.support.extras import require
from codea1_env.training.metrics import Row, mean
from codea1_env.training.run_folder import EPISODES, METRICS
from codea1_env.training.settings import flat

_WINNERS = {"coder": "C", "tester": "I", "nobody": "N"}
"""Marks of inspect_ai: correct, incorrect, no answer."""


class Written(NamedTuple):
    """A log that was written."""

    path: Path
    episodes: int
    total: int


def write_inspect_log(run: LoggedRun, folder: Path, max_episodes: int) -> Written:
    """Write episodes of a run as a log of inspect_ai, which must not be there yet.

    Of more than `max_episodes` so many are drawn from all steps alike, the same ones each time.
    """
    inspect_log = _inspect("log")
    found = scan(run)
    drawn = sorted(drawing_order(found.places)[:max_episodes])
    step, place = len(str(run.step)), len(str(len(found.places)))
    samples = []
    for index in drawn:
        row = found.episode(index)  # sorted by their names, samples are in the order of the run
        name = f"{row['step']:0{step}}-{index:0{place}}-{_plain(row['task_id'])}"
        samples.append(_sample(row, name, run))
    key = hashlib.sha256(f"{run.path.resolve()} {run.config!r}".encode()).hexdigest()[:22]
    created = datetime.fromtimestamp((run.path / "config.toml").stat().st_mtime, UTC)
    path = folder / f"{created:%Y-%m-%dT%H-%M-%S}+00-00_{_plain(run.name)}_{key}.eval"
    if path.exists():
        raise FileExistsError(
            f"Expect a new log, actually: {path} exists. Name another folder, or delete the file"
        )
    files = [run.path / name for name in ("config.toml", METRICS, EPISODES)]
    last = max(file.stat().st_mtime for file in files if file.is_file())
    log = inspect_log.EvalLog(
        status="success",
        eval=_spec(run, found, samples, key, created),
        results=_results(samples),
        stats=inspect_log.EvalStats(
            started_at=created.isoformat(),
            completed_at=datetime.fromtimestamp(last, UTC).isoformat(),
        ),
        samples=samples,
    )
    folder.mkdir(parents=True, exist_ok=True)
    inspect_log.write_eval_log(log, str(path), format="eval")
    return Written(path, len(samples), len(found.places))


def _spec(
    run: LoggedRun, found: EpisodeLog, samples: Sequence[Any], key: str, created: datetime
) -> Any:
    inspect_log, total = _inspect("log"), len(found.places)
    return inspect_log.EvalSpec(
        eval_id=key,
        run_id=key,
        task_id=key,
        created=created.isoformat(),
        task=_plain(run.name),
        task_args={
            name: value if isinstance(value, str | int | float | bool | None) else str(value)
            for name, value in flat(run.config).items()
        },
        dataset=inspect_log.EvalDataset(
            name=run.config.problems,
            samples=len(samples),
            sample_ids=[sample.id for sample in samples],
            shuffled=False,
        ),
        model=player_name(run, "coder"),
        config=inspect_log.EvalConfig(epochs=1),
        packages={"codea1_env": codea1_env.__version__},
        metadata={
            "run": run.name,
            "state": run.state,
            "tester": player_name(run, "tester"),
            "episodes": f"{len(samples)} of {total}"
            + (", drawn from all steps alike" if len(samples) < total else ""),
            "damaged_lines": {**run.damaged, EPISODES: found.damaged},
        },
    )


def _inspect(part: str) -> Any:
    return require(f"inspect_ai.{part}", "inspect")


def _sample(row: Row, identifier: str, run: LoggedRun) -> Any:
    """Return an episode: what both players saw and wrote, and what came of it."""
    model = _inspect("model")
    outcome, winner = outcome_of(row)
    code = shortened(row["code"])
    answer = shortened(row["answer"] if "answer" in row else row["code"])
    seen = _chat(row.get("prompt")) or [
        model.ChatMessageUser(content=fenced(shortened(row["problem"]), "python"))
    ]
    messages = [*seen, model.ChatMessageAssistant(content=_as_code(answer), model="coder")]
    read = f"\n\n{fenced(code, 'python')}" if code != answer else ""
    tests = _chat(row.get("test_prompt")) or [
        model.ChatMessageUser(content=f"The tester attacks this program.{read}")
    ]
    for number, suite in enumerate(row["suites"]):
        if "answer" in suite:
            messages += tests if number == 0 else []
            text = _as_code(shortened(suite["answer"]))
            messages.append(model.ChatMessageAssistant(content=text, model="tester"))
    output = model.ModelOutput.from_content(player_name(run, "coder"), _as_code(answer))
    return _inspect("log").EvalSample(
        id=identifier,
        epoch=1,
        input=fenced(shortened(row["problem"])),
        target="",
        messages=messages,
        output=output,
        scores=_scores(row, outcome, winner),
        metadata={
            "step": row["step"],
            "task_id": shortened(row["task_id"], TEST),
            "program": row["program"] if is_number(row.get("program")) else None,
            "outcome": outcome,
            "winner": winner,
            "code": code,
            "replayed": [_test(test) for test in row["history"]],
            "suites": [
                {**_paid(suite), "tests": [_test(test) for test in suite["tests"]]}
                for suite in row["suites"]
            ],
        },
    )


def _scores(row: Row, outcome: str, winner: str) -> dict[str, Any]:
    """Who won, with every test that decided it; and the rewards."""
    score = _inspect("scorer").Score
    paid = [_paid(suite) for suite in row["suites"]]
    parts = [f"The program: {outcome}."]
    if row["history"]:
        parts += _listed("Replayed from the Mistake Book", row["history"])
    for number, (suite, values) in enumerate(zip(row["suites"], paid, strict=True), 1):
        about = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
        parts += _listed(f"Suite {number}: {about or 'not paid'}", suite["tests"])
    rewards = {
        "coder_reward": row["reward"] if is_number(row.get("reward")) else None,
        "tester_reward": mean(each.get("reward") for each in paid),
        **{name: mean(each.get(name) for each in paid) for name in PAID[1:]},
    }
    won = score(value=_WINNERS[winner], answer=outcome, explanation="\n\n".join(parts))
    known = {name: score(value=round(v, 4)) for name, v in rewards.items() if v is not None}
    return {"coder_wins": won, **known}


def _results(samples: Sequence[Any]) -> Any:
    inspect_log = _inspect("log")
    scores, number = [], len(samples)
    for name in ("coder_wins", "coder_reward", "tester_reward", *PAID[1:]):
        values = [sample.scores[name].value for sample in samples if name in sample.scores]
        numbers = [float(each == "C") if isinstance(each, str) else each for each in values]
        if numbers:
            metric = inspect_log.EvalMetric(name="mean", value=sum(numbers) / len(numbers))
            counts = {"scored_samples": len(values), "unscored_samples": number - len(values)}
            scores.append(
                inspect_log.EvalScore(name=name, scorer=name, metrics={"mean": metric}, **counts)
            )
    return inspect_log.EvalResults(total_samples=number, completed_samples=number, scores=scores)


def _listed(title: str, tests: Sequence[Row]) -> list[str]:
    """Return tests with their verdicts, as a list in Markdown."""
    lines = []
    for row in map(_test, tests):
        reason = f": {in_line(row['reason'])}" if row["reason"] else ""
        lines.append(f"- **{row['verdict']}** {in_line(row['test'])}{reason}")
    return [f"**{title}**", "\n".join(lines) or "No tests."]


def _test(test: Row) -> dict[str, str]:
    """Return a test, what became of it, and why it is not as it was written."""
    status, outcome = test["status"], test.get("outcome")
    counts = status in ("kept", "corrected") and outcome is not None
    reason = test.get("reason", "")
    return {
        "test": shortened(test["test"], TEST),
        "verdict": str(outcome if counts else status).replace("_", " "),
        "reason": shortened(f"corrected: {reason}" if status == "corrected" else reason, TEST),
    }


def _paid(suite: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(suite[name]) for name in PAID if is_number(suite.get(name))}


def _chat(messages: Any) -> list[Any]:
    """Return what a language model was shown, as far as it is a chat."""
    model = _inspect("model")
    kinds = {
        "system": model.ChatMessageSystem,
        "user": model.ChatMessageUser,
        "assistant": model.ChatMessageAssistant,
    }
    found = []
    for message in messages if isinstance(messages, list) else []:
        match message:
            case {"role": str(role), "content": str(content)} if role in kinds:
                found.append(kinds[role](content=_as_code(shortened(content))))
    return found


def _as_code(text: str) -> str:
    """Return an answer as it stands; the blocks of code in it would else be read."""
    return fenced(text, "markdown" if "```" in text else "python")


def _plain(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII)[:80].strip("-") or "unnamed"
