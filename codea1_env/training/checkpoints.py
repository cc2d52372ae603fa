"""Checkpoints: one folder each, which is complete or not there.

    checkpoints/step_30/
        state.json       the step
        coder/, tester/  what the players saved
        book.jsonl       the Mistake Book
        past.jsonl       tests that once broke programs, for measuring
        opponents.json   what is known of opponents from the past, in runs that have them
        manifest.json    SHA-256 of every file above

A checkpoint is written to a hidden folder, flushed to the disk, and renamed. Equal state gives equal bytes:
nothing here knows the time or the machine. The problems of a step follow from the seed and the step, so the
step is all that must be remembered of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from codea1_env.agents import Learner
from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.policy import AlgorithmError
from codea1_env.agents.state import StateError, read_json, write_json
from codea1_env.evaluation import hold_out
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem
from codea1_env.rewards import RewardError
from codea1_env.rollout import AnswerError
from codea1_env.sandbox import InfraError, Sandbox
from codea1_env.support.logs import read_rows
from codea1_env.support.plugins import exit_of
from codea1_env.training.config import PlayerError, RunError, TrainConfig
from codea1_env.training.language_models import LanguageModels
from codea1_env.training.measuring import PAST_TESTS
from codea1_env.training.players import Players, make_players
from codea1_env.training.problems_of_run import problems_of_run
from codea1_env.training.run_folder import METRICS, RunFolder, read_config
from codea1_env.training.trackers import forget


class SaveError(RuntimeError):
    """A checkpoint cannot be written, as where the disk is full."""


class Books(NamedTuple):
    """What a run remembers beside its players."""

    book: MistakeBook
    """What is replayed."""
    past: MistakeBook
    """What forgetting is measured by."""


def save_checkpoint(
    run: Path,
    step: int,
    coder: Learner,
    tester: Learner,
    books: Books,
    *,
    keep: int,
    past: object = None,
) -> Path:
    """Write the checkpoint of a step, and delete all but the last `keep`; `past` is what opponents.json says, if anything."""
    folder = run / "checkpoints"
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob(".step_*.part"):  # what a killed run left behind
        shutil.rmtree(path)
    part = folder / f".step_{step}.part"
    try:
        for name, learner in (("coder", coder), ("tester", tester)):
            (part / name).mkdir(parents=True)
            learner.save(part / name)
        books.book.save(part / "book.jsonl")
        books.past.save(part / "past.jsonl")
        if past is not None:
            write_json(part / "opponents.json", past)
        write_json(part / "state.json", {"step": step})
        write_json(part / "manifest.json", _digests(part))
        for path in [*part.rglob("*"), part]:
            _flush(path)
    except OSError as error:
        shutil.rmtree(part, ignore_errors=True)  # a full disk has room again for logs
        raise SaveError(f"Expect {folder} to take a checkpoint, actually: {error}") from error
    final = folder / f"step_{step}"
    if final.exists():
        shutil.rmtree(final)
    part.rename(final)
    _flush(folder)
    for old in checkpoints(run)[:-keep]:
        shutil.rmtree(old)
    return final


def checkpoints(run: Path) -> list[Path]:
    """All checkpoints of a run, the oldest first."""
    found = (run / "checkpoints").glob("step_*")
    return sorted((path for path in found if path.name[5:].isdecimal()), key=step_of)


def step_of(checkpoint: Path) -> int:
    """Return the step of a checkpoint, from its name."""
    return int(checkpoint.name.removeprefix("step_"))


def load_checkpoint(
    checkpoint: Path, coder: Learner, tester: Learner, config: TrainConfig
) -> Books:
    """Restore the players in place, and return the books. Raises a RunError if a file is missing, damaged or of other players."""
    verify(checkpoint)
    try:
        coder.load(checkpoint / "coder")
        tester.load(checkpoint / "tester")
        book = MistakeBook.load(
            checkpoint / "book.jsonl",
            config.page_size,
            decay=config.decay,
            stale_after=config.stale_steps,
            replay=config.book_replay,
        )
        return Books(book, MistakeBook.load(checkpoint / "past.jsonl", PAST_TESTS))
    except (FileNotFoundError, ValueError) as error:
        raise RunError(f"Cannot resume from {checkpoint}: {error}") from error


def verify(checkpoint: Path) -> None:
    """Check every file against the manifest. Raises a RunError if a file is missing, new or changed."""
    try:
        wanted = dict(read_json(checkpoint / "manifest.json"))
    except (ValueError, TypeError) as error:
        raise _damaged(checkpoint, f"manifest.json: {error}") from error
    actual = _digests(checkpoint)
    for name in sorted(wanted.keys() | actual.keys()):
        if name not in actual:
            raise _damaged(checkpoint, f"{name} is missing")
        if actual[name] != wanted.get(name):
            raise _damaged(checkpoint, f"{name} was changed")
    step = read_json(checkpoint / "state.json")["step"]
    if step != step_of(checkpoint):
        raise _damaged(checkpoint, f"it is that of step {step}")


def _damaged(checkpoint: Path, what: str) -> RunError:
    return RunError(
        f"Expect {checkpoint} to be a complete checkpoint, actually: {what}. Delete that folder to resume from "
        "the checkpoint before it, or from the start if there is none."
    )


def _digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "manifest.json"
    }


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class TrainedOn:
    """What a run was trained with."""

    config: TrainConfig
    problems: tuple[Problem, ...]
    """Tabular players know no others."""


@dataclass(frozen=True)
class SavedRun(TrainedOn):
    """A run's players as they were at its last checkpoint."""

    players: Players


def checkpoint_of(run: Path, step: int | None = None) -> Path:
    """Return the checkpoint of a step, or the last one. Raises a RunError if there is none, or it is damaged."""
    found = {step_of(checkpoint): checkpoint for checkpoint in checkpoints(run)}
    if not found:
        raise RunError(
            f"Expect {run} to have a checkpoint, actually: none. Train it, or name another run."
        )
    wanted = max(found) if step is None else step
    if wanted not in found:
        steps = ", ".join(map(str, sorted(found)))
        raise RunError(f"expect step to be one of {steps}, actually: {wanted}")
    verify(found[wanted])
    return found[wanted]


def find_weights(run: Path, role: str, step: int | None) -> Path:
    """Return the folder of a checkpoint that holds a player's weights.

    Raises a RunError if there is no such checkpoint, it is damaged, or the player is no language model.
    """
    saved = checkpoint_of(run, step)
    for kind in ("adapter", "model"):
        if (saved / role / kind).is_dir():
            return saved / role / kind
    raise RunError(
        f"expect the {role} of {run} to be a language model that learned, actually: it is not. "
        "Choose the other role, or another run"
    )


def trained_on(path: Path) -> TrainedOn:
    """Read what a run was trained with, without its players. Raises a RunError if it is not the folder of a run."""
    config = read_config(path)
    return TrainedOn(config, tuple(problems_of_run(config)))


def load_run(path: Path, sandbox: Sandbox, stack: ExitStack, step: int | None = None) -> SavedRun:
    """Load the players of a run from its last checkpoint, or from that of a step.

    Raises a RunError if it is not the folder of a run, or it has no checkpoint that can be loaded.
    """
    saved = checkpoint_of(path, step)
    known = trained_on(path)
    config, problems = known.config, known.problems
    splits = cache(lambda: hold_out(problems, sandbox, config.seed))
    models = LanguageModels(config, len(problems))
    stack.callback(models.close)
    players = make_players(config, problems, splits, sandbox, models=models)
    load_checkpoint(saved, players.coder, players.tester, config)
    return SavedRun(config, problems, players)


_LOWER = (
    "The GPU's memory is full. Lower generation_batch (answers that are written together), per_device_train_batch_size of the "
    "player's trainer (answers that are learned from together), or max_completion_length; lora_rank = 64 trains adapters "
    "instead of all weights."
)
_OF_A_STEP = (AnswerError, UpdateError, AlgorithmError)
_FAILURES = (*_OF_A_STEP, BackendError, InfraError, RewardError, StateError, SaveError)
"""Of code of the user's, of a language model or its engine, of what judges, or of the disk."""


def leave_nothing(folder: RunFolder, _: object, error: BaseException | None, *__: object) -> None:
    """Leave no folder of a run that failed before its first step was done, or was stopped before it began."""
    measured = bool(checkpoints(folder.path))
    kept = _has_steps(folder.path) if isinstance(error, Exception) else measured
    if error is None or kept:
        return
    saved = folder.path / "checkpoints"
    for name in ("step_0", ".step_0.part"):
        shutil.rmtree(saved / name, ignore_errors=True)
    with suppress(OSError):  # there is none, or something else lies in it
        saved.rmdir()
    forget(folder.path)
    folder.discard()


@contextmanager
def explained_failures(path: Path) -> Iterator[None]:
    """Tell where a run can be resumed when code of the user's fails, a language model or its engine, or what judges."""
    try:
        yield
    except (*_FAILURES, SystemExit, RuntimeError) as error:
        full = _memory_is_full(error)
        if not full and not isinstance(error, (*_FAILURES, SystemExit)):
            raise
        said = exit_of(error) if isinstance(error, SystemExit) else str(error)
        if full:
            said = f"{_LOWER} ({said.partition(chr(10))[0]})"
        if isinstance(error, _OF_A_STEP) and not re.search(r"\bstep \d", said):
            done = max((row["step"] for row in read_rows(path / METRICS)), default=None)
            said += f" It was {'before the first step' if done is None else f'in step {done + 1}'}."
        said = said.rstrip(".") + "."
        if not _has_steps(path):
            raise PlayerError(said) from error
        raise PlayerError(
            f"{said} The run is saved after step {step_of(checkpoints(path)[-1])}. Once the cause is removed: "
            f"codea1 train --resume --output-dir {path}"
        ) from error


def _memory_is_full(error: BaseException) -> bool:
    """Whether a GPU's memory was full, here or in what caused this. torch need not be there to ask."""
    seen: BaseException | None = error
    while seen is not None:
        if any(kind.__name__ == "OutOfMemoryError" for kind in type(seen).__mro__):
            return True
        seen = seen.__cause__
    return False


def _has_steps(run: Path) -> bool:
    return any(row["step"] > 0 for row in read_rows(run / METRICS))
