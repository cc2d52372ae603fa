"""What is left of a run that ends before its time, and what is said of a failure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from codea1_env.agents.llm.completions import BackendError
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.policy import AlgorithmError
from codea1_env.agents.state import StateError
from codea1_env.rewards import RewardError
from codea1_env.rollout import AnswerError
from codea1_env.support.logs import read_rows
from codea1_env.support.plugins import exit_of
from codea1_env.training.checkpoints import SaveError, checkpoints, remove_start, step_of
from codea1_env.training.config import PlayerError
from codea1_env.training.run_folder import METRICS, RunFolder
from codea1_env.training.trackers import forget

_LOWER = (
    "The GPU's memory is full. Lower generation_batch (answers that are written together), per_device_train_batch_size of the "
    "player's trainer (answers that are learned from together), or max_completion_length; lora_rank = 64 trains adapters "
    "instead of all weights."
)
_OF_A_STEP = (AnswerError, UpdateError, AlgorithmError)
_FAILURES = (*_OF_A_STEP, BackendError, RewardError, StateError, SaveError)
"""Of code of the user's, of a language model or its engine, or of the disk."""


def leave_nothing(folder: RunFolder, _: object, error: BaseException | None, *__: object) -> None:
    """Leave no folder of a run that failed before its first step was done, or was stopped before it began."""
    measured = bool(checkpoints(folder.path))
    kept = _has_steps(folder.path) if isinstance(error, Exception) else measured
    if error is not None and not kept:
        remove_start(folder.path)
        forget(folder.path)
        folder.discard()


@contextmanager
def explained_failures(path: Path) -> Iterator[None]:
    """Tell where a run can be resumed when code of the user's fails, or a language model or its engine."""
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
