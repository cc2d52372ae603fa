"""Plays the next step while the present one is learned from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from codea1_env.agents.llm.agent import Usage
from codea1_env.agents.llm.language_player import LanguagePlayer
from codea1_env.rollout import Rollouts
from codea1_env.training.config import RunError
from codea1_env.training.players import Players
from codea1_env.training.problems_of_run import Replacements


@dataclass(frozen=True)
class PlayedStep:
    """A step that was played, and has not been learned from. The book does not know of it yet."""

    players: Players
    """Who played: what they learn from is of this step."""
    problems: int
    """Number of its problems, without those that took the place of others."""
    chosen: Replacements
    """Tells what is learned from."""
    played: Rollouts
    usages: Mapping[str, Usage]
    """Role -> what the answers of a language model took."""
    ahead: bool
    """Whether it was played while the step before was learned from."""


class Ahead:
    """Context manager that plays one step in a thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "ahead")
        self._future: Future[PlayedStep] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # Not waited for: who ends the run ends what is played with, too.
        self._thread.shutdown(wait=False)

    def begin(self, play: Callable[[], PlayedStep]) -> None:
        """Play a step now."""
        self._future = self._thread.submit(play)

    def wait(self) -> None:
        """Wait until the step is played, if there is one. If it failed, `taken` says so."""
        if self._future is not None:
            with suppress(Exception):
                self._future.result()

    def taken(self) -> PlayedStep | None:
        """Return the step that was played, if there is one.

        Raises:
            Exception: What went wrong.
        """
        future, self._future = self._future, None
        return None if future is None else future.result()


def check_ahead(players: Players) -> None:
    """Check that nobody learns in this process, who could not answer meanwhile.

    Raises:
        RunError: Somebody does.
    """
    learning = {
        "coder": players.coder if players.coder_learns else None,
        "tester": players.tester if players.tester_learns else None,
    }
    for role, player in learning.items():
        if not (player is None or isinstance(player, LanguagePlayer)):
            raise RunError(
                f"Expect max_staleness=1 where language models alone learn, actually: the {role} is a "
                f"{type(player).__name__}, which cannot answer while it learns. Set max_staleness to 0, or freeze the {role}."
            )
