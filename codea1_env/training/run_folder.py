"""The folder of a run: its configuration, and logs that a killed run can be resumed from.

config.toml       the configuration; enough to repeat the run
metrics.jsonl     one row per step: the same bytes for the same configuration, also after a resume
episodes.jsonl    what was played, one row per problem and step, or more (`logged_programs`): the same holds
held_out.jsonl    what was measured, one row per problem and measurement: the same holds
unseen.jsonl      likewise, of problems that are not trained on; only with language models
panel.jsonl       what a language model that tests, and scripts, did on each row of the panel: counts
own_files.jsonl   which files of the user's it was run with, one row for the beginning, and one for each change
timings.jsonl     seconds of each phase, which differ from run to run
checkpoints/      see `codea1_env.training.checkpoints`
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from codea1_env.support.jobs import results_in
from codea1_env.support.logs import LogFolder, read_rows, truncate, write_whole
from codea1_env.support.plugins import digest_of
from codea1_env.training import settings
from codea1_env.training.config import RunError, TrainConfig

METRICS, EPISODES, TIMINGS = "metrics.jsonl", "episodes.jsonl", "timings.jsonl"
HELD_OUT, UNSEEN, PANEL = "held_out.jsonl", "unseen.jsonl", "panel.jsonl"
OWN_FILES = "own_files.jsonl"
_LOGS = (METRICS, EPISODES, HELD_OUT, UNSEEN, PANEL, TIMINGS)

_MAY_CHANGE = {
    "output_dir", "workers", "logged_programs", "max_steps", "max_minutes", "save_steps", "save_total_limit", "threads",
    "vllm_gpu_share", "tracker", "engine", "address", "coder.devices", "coder.writers", "tester.devices", "tester.writers",
}  # fmt: skip
"""Settings that a resumed run may change: they have no influence on what a step does, or (threads) on no more than
the last bits of it, and another machine may have fewer."""
MACHINE = ("dtype", "threads")
"""Settings that the first machine decided, if they were left open."""
_NAMED = 3
"""Runs of a folder that `_no_run` names."""


def decided(config: TrainConfig) -> TrainConfig:
    """Fill in what a run has decided that goes on, where the configuration leaves it open.

    Raises a RunError if the folder's config.toml cannot be read.
    """
    folder = config.output_dir or Path()
    if not (folder / "config.toml").is_file():
        return config  # it had not begun
    begun = read_config(folder)
    names = [name for name in MACHINE if getattr(config, name) in (None, "auto")]
    return dataclasses.replace(config, **{name: getattr(begun, name) for name in names})


class RunFolder(LogFolder):
    """An open run. Only one process at a time can have a run open.

    Use `create` or `reopen`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, RunError, allow_nan=False)

    @classmethod
    def create(cls, config: TrainConfig) -> RunFolder:
        """Begin a new run. Raises a RunError if the folder already holds a run."""
        path = config.output_dir or _new_folder()
        if (path / "config.toml").exists():
            raise RunError(
                f"Expect {path} to be a new folder, actually: it holds a run. Resume that run, or choose "
                "another output_dir."
            )
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"Expect {path} to be a folder for the run, actually: {error}"
            ) from error
        folder = cls(path)
        folder.write_config(config)
        return folder

    @classmethod
    def reopen(cls, config: TrainConfig) -> RunFolder:
        """Open the run that `config.output_dir` holds, to go on with it.

        Raises a RunError if there is none, it is in use, or it was begun with another configuration.
        """
        path = config.output_dir
        if path is None:
            raise RunError("Expect output_dir to name the run to resume, actually: None.")
        begun = read_config(path)
        before, now = settings.flat(begun), settings.flat(config)
        differences = [
            f"{name} was {before[name]!r}, now {now[name]!r}"
            for name in sorted(now.keys() - _MAY_CHANGE)
            if before[name] != now[name]
        ]
        if differences:
            raise RunError(
                f"Expect the configuration that {path} was begun with, actually: "
                f"{'; '.join(differences)}. Resume with the run's own config.toml, or start a new run."
            )
        return cls(path)

    def write_config(self, config: TrainConfig) -> None:
        """Write config.toml, all or nothing."""
        # The folder may be moved.
        table = settings.to_toml(dataclasses.replace(config, output_dir=None))
        write_whole(self.path / "config.toml", f"version = {settings.VERSION}\n{table}")

    def truncate(self, step: int) -> None:
        """Drop the rows of later steps, which will be played again, and a row that was cut off.

        Raises a RunError if rows up to the step are missing.
        """
        for name in _LOGS:
            truncate(self.path / name, up_to(step))
        last = max((row["step"] for row in read_rows(self.path / METRICS)), default=-1)
        if step >= 0 and last != step:
            raise RunError(
                f"Expect {self.path / METRICS} to reach to step {step}, where the checkpoint is, actually: "
                f"to {last}. The file was changed; start a new run."
            )

    def discard(self) -> None:
        """Close the run, and remove it: it has not begun."""
        self.close()
        for name in ("config.toml", *_LOGS, OWN_FILES, ".lock"):
            (self.path / name).unlink(missing_ok=True)
        with suppress(OSError):  # something else lies in it
            self.path.rmdir()


def up_to(step: int) -> Callable[[Mapping[str, Any]], bool]:
    """Whether a row is one of a step up to this one."""
    return lambda row: type(row.get("step")) is int and row["step"] <= step


def _no_run(folder: Path) -> str:
    if not folder.exists():
        return "there is no such folder. Name one that `codea1 train` wrote"
    if not folder.is_dir():
        return "it is a file. Name the folder that `codea1 train` wrote"
    files = sorted(folder.glob("*/config.toml"), key=lambda file: file.stat().st_mtime)
    named = " or ".join(str(file.parent) for file in files[: -1 - _NAMED : -1])
    holds = results_in(folder)
    return f"it {f'holds {holds}' if holds else 'has no config.toml'}. " + (
        f"It holds runs: name {named}" if named else "Name one that `codea1 train` wrote"
    )


def read_config(folder: Path) -> TrainConfig:
    """Return the configuration of a run, as it was written. Raises a RunError if there is no run, or one of another version."""
    path = folder / "config.toml"
    if not path.is_file():
        raise RunError(f"Expect {folder} to be the folder of a run, actually: {_no_run(folder)}")
    try:
        table = settings.read_toml(path)
        settings.check_version(path, table.pop("version", None))
        config = settings.apply_table(TrainConfig(), table, str(path))
    except settings.SettingsError as error:
        raise RunError(str(error)) from error
    return dataclasses.replace(config, output_dir=folder)


def _new_folder() -> Path:
    name = time.strftime("%Y%m%d-%H%M%S")
    for suffix in ["", *(f"-{number}" for number in range(2, 1000))]:
        path = Path("runs") / f"{name}{suffix}"
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        return path
    raise RunError(f"runs/{name} to runs/{name}-999 exist. Give --output-dir.")


def note_own_files(folder: Path, config: TrainConfig, step: int = 0) -> str:
    """Write down which files of the user's are used from this step on; returns what has changed, for people."""
    names = [config.problems, config.rewards, config.algorithm, config.prompts]
    for block in (config.coder, config.tester):
        names += [block.player, block.algorithm or ""]
    now = {name: found for name in names if (found := digest_of(name)) is not None}
    rows = list(read_rows(folder / OWN_FILES))
    before: Mapping[str, str] = rows[-1]["sha256"] if rows else now
    changed = [name for name, digest in now.items() if before.get(name, digest) != digest]
    if now and (not rows or changed):
        with (folder / OWN_FILES).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"step": step, "sha256": now}) + "\n")
    if not changed:
        return ""
    return f" Not the same as before: {', '.join(changed)}. Steps from here on are of the new file."
