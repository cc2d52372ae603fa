"""Files of the user's that a run depends on: looked for when it begins, and whether they change while it goes on.

own_files.jsonl in a run's folder has one row for the beginning and one for each time that a run went on with others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from codea1_env.support.logs import read_rows
from codea1_env.support.plugins import digest_of, find
from codea1_env.training.algorithms import check_algorithms
from codea1_env.training.config import TrainConfig

OWN_FILES = "own_files.jsonl"


def check_own_code(config: TrainConfig) -> None:
    """Load the players and algorithms of the user's that a run names, to be thrown away.

    Raises:
        ValueError: There is no such file or name, or it is no algorithm. The message names the setting.
    """
    for role in ("coder", "tester"):
        if ":" in config.player(role).player:
            try:
                find(config.player(role).player, "player")
            except ValueError as error:
                raise ValueError(f"{role}.player: {error}") from error
    check_algorithms(config, files=True)


def digests(config: TrainConfig) -> dict[str, str]:
    """Name of what is of the user's -> the digest of its file."""
    names = [config.problems, config.rewards, config.algorithm]
    for role in ("coder", "tester"):
        names += [config.player(role).player, config.player(role).algorithm or ""]
    found = {name: digest_of(name) for name in names}
    return {name: digest for name, digest in found.items() if digest is not None}


def note_own_files(folder: Path, config: TrainConfig, step: int = 0) -> str:
    """Write down which files of the user's are used from this step on, if others were before.

    Returns:
        What has changed, for people; empty if nothing has.
    """
    now, rows = digests(config), list(read_rows(folder / OWN_FILES))
    before: Mapping[str, str] = rows[-1]["sha256"] if rows else now
    changed = [name for name, digest in now.items() if before.get(name, digest) != digest]
    if now and (not rows or changed):
        with (folder / OWN_FILES).open("a", encoding="utf-8") as log:
            log.write(json.dumps({"step": step, "sha256": now}) + "\n")
    if not changed:
        return ""
    return f" Not the same as before: {', '.join(changed)}. Steps from here on are of the new file."
