"""Episodes of a run as data sets that trainers load: demonstrations for fine-tuning, or pairs of answers.

A run logs `logged_programs` programs of each problem and step, and all suites against them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

from codea1_env.agents.llm.prompts import DEFAULT
from codea1_env.problems import Problem
from codea1_env.rendering.display import fenced
from codea1_env.report.episode_log import is_episode
from codea1_env.report.folders import LoggedRun, player_name
from codea1_env.responses import Program
from codea1_env.rounds import situation
from codea1_env.support.extras import require
from codea1_env.support.logs import every_line
from codea1_env.training.config import RunError
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.run_folder import EPISODES

DataKind = Literal["sft", "preference"]
FileKind = Literal["jsonl", "parquet"]


class LoggedAnswer(NamedTuple):
    """An answer of a player."""

    role: str
    group: str
    """Answers of one group are answers to the same prompt."""
    task_id: str
    step: int
    prompt: list[dict[str, str]]
    text: str
    reward: float
    good: bool
    """A program that passed all tests it met; a suite without an invalid test that broke its program."""


def write_rollouts(run: LoggedRun, kind: DataKind, folder: Path, file: FileKind) -> tuple[int, str]:
    """Write a data set of a run into a new folder, with a card. Returns the number of rows, and a remark on what is left out.

    Raises a RunError if the run has no log of episodes, or nothing for such a data set.
    """
    found, remark = _answers(run)
    rows = list(_demonstrations(found) if kind == "sft" else _pairs(found))
    if not rows:
        wanted = "did its work" if kind == "sft" else "earned more than another to the same prompt"
        raise RunError(
            f"Expect an answer that {wanted}, actually: none of {len(found)} in {run.path}"
        )
    folder.mkdir(parents=True)
    if file == "jsonl":
        (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), folder / "train.parquet")
    (folder / "README.md").write_text(_card(run, kind, file, rows))
    return len(rows), remark


def _answers(run: LoggedRun) -> tuple[list[LoggedAnswer], str]:
    """Return the answers of episodes whose problems are known, and a remark on lines that are left out."""
    problems = {problem.task_id: problem for problem in problems_of_run(run.config)}
    log = run.path / EPISODES
    if not log.is_file():
        raise RunError(f"Expect {run.path} to hold {EPISODES}, actually: it does not")
    found: list[LoggedAnswer] = []
    kept = left_out = 0
    for row, _ in every_line(log):
        if row is None or not is_episode(row) or row["task_id"] not in problems:
            left_out += 1
            continue
        # What a repair was asked is only known where the chat was logged.
        if not row.get("round") or "prompt" in row:
            found += _of_episode(row, kept, problems[row["task_id"]])
        kept += 1
    if not left_out:
        return found, ""
    return (
        found,
        f"{left_out} lines of {log} are left out: damaged, or of problems that config.toml does not have.",
    )


def _of_episode(row: Mapping[str, Any], number: int, problem: Problem) -> Iterator[LoggedAnswer]:
    about = (problem.task_id, row["step"])
    tests = [test for suite in row["suites"] for test in suite["tests"]] + row["history"]
    outcomes = [test.get("outcome") for test in tests if test.get("outcome")]
    reward = row.get("reward")
    if reward is not None:
        prompt = _text_only(row.get("prompt") or DEFAULT(situation(problem, 0)))
        right = bool(row.get("executes")) and bool(outcomes) and set(outcomes) == {"pass"}
        answer = _answer(row.get("answer", row["code"]), "prompt" in row)
        yield LoggedAnswer("coder", json.dumps(prompt), *about, prompt, answer, reward, right)
    seen = situation(problem, 0, Program(row["code"]))
    prompt = _text_only(row.get("test_prompt") or DEFAULT(seen))
    for suite in row["suites"]:
        if suite.get("reward") is None or "answer" not in suite:
            continue
        breaks = any(test.get("outcome") not in (None, "pass") for test in suite["tests"])
        good = bool(row.get("executes")) and breaks and not suite.get("invalid")
        text = _answer(suite["answer"], "test_prompt" in row)
        yield LoggedAnswer(
            "tester", f"suites of {number}", *about, prompt, text, suite["reward"], good
        )


def _demonstrations(found: Sequence[LoggedAnswer]) -> Iterator[dict[str, Any]]:
    seen = set()
    for each in found:
        if each.good and (each.group, each.text) not in seen:
            seen.add((each.group, each.text))
            messages = [*each.prompt, {"role": "assistant", "content": each.text}]
            yield {"messages": messages, **_about(each), "reward": each.reward}


def _pairs(found: Sequence[LoggedAnswer]) -> Iterator[dict[str, Any]]:
    ordered = sorted(found, key=lambda each: (each.role, each.group))
    for _, group in groupby(ordered, key=lambda each: (each.role, each.group)):
        ranked = sorted(group, key=lambda each: each.reward)
        worst, best = ranked[0], ranked[-1]
        if best.reward > worst.reward:
            yield {
                "prompt": best.prompt,
                "chosen": [{"role": "assistant", "content": best.text}],
                "rejected": [{"role": "assistant", "content": worst.text}],
                **_about(best),
                "reward_chosen": best.reward,
                "reward_rejected": worst.reward,
            }


def _about(each: LoggedAnswer) -> dict[str, Any]:
    return {"player": each.role, "task_id": each.task_id, "step": each.step}


def _text_only(chat: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [{"role": str(each["role"]), "content": _clean(str(each["content"]))} for each in chat]


def _answer(text: str, chatted: bool) -> str:
    """Return an answer as its prompt asks for it: a player without a chat, such as a table, writes no fence."""
    text = _clean(text)
    return text if chatted or "```" in text else fenced(text.strip("\n"), "python")


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # models write lone surrogates


def _card(run: LoggedRun, kind: DataKind, file: FileKind, rows: Sequence[Mapping[str, Any]]) -> str:
    count = {role: sum(row["player"] == role for row in rows) for role in ("coder", "tester")}
    what = {
        "sft": "Chats whose answer did its work: programs that passed all tests they met, and suites without an invalid "
        "test that broke their program. A program that met few tests may still be wrong.",
        "preference": "Of each group of answers to one prompt the best and the worst by reward. The suites of a pair attack "
        "the same program. The programs of a pair may be of different steps, and then met different tests.",
    }[kind]
    return f"""\
---
configs:
- config_name: default
  data_files: train.{file}
---

# Rollouts of a run of codea1_env

{what}

| | |
|---|---|
| rows of the coder | {count["coder"]} |
| rows of the tester | {count["tester"]} |
| problems | {run.config.problems} |
| steps | {run.step} |
| coder, tester | {player_name(run, "coder")}, {player_name(run, "tester")} |
| rewards | {run.config.rewards} |
"""
