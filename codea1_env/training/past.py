"""Opponents from the past: in some steps one side is played by an earlier version of itself (fictitious self-play).

Who only meets the newest opponent may learn to beat it and forget how to beat the ones before; against a mixture of all
of them the average of both players' strategies approaches an equilibrium (Brown 1951; Heinrich et al. 2015). In such a
step the side from the past does not learn: it wrote nothing.

    past/step_20/{coder,tester}/    what each player was after step 20: tables, or the weights of a language model
"""

from __future__ import annotations

import copy
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np

from codea1_env.agents import FixedAgent
from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.agents.state import read_json
from codea1_env.rollout import Agent, Rollouts
from codea1_env.training.config import RunError, TrainConfig
from codea1_env.training.language_models import Models
from codea1_env.training.metrics import Row, mean
from codea1_env.training.players import Players
from codea1_env.training.trainer_arguments import Role

_STREAM = 4
"""Of random numbers, beside those of players, demonstrations and replaced problems."""
_FOLDER = "past"


@dataclass(frozen=True)
class PastSide:
    """Which side an earlier version plays in a step; no side has the role ""."""

    role: Literal["coder", "tester", ""] = ""
    step: int = 0
    """After which step it was saved."""

    def metrics(self) -> Row:
        """Step of the version that plays each role, as a row of metrics names it; None for the present player."""
        return {
            f"past/{role}_of": self.step if self.role == role else None
            for role in ("coder", "tester")
        }


NOBODY = PastSide()


class PastOpponents:
    """Keeps earlier versions of both players, and says who plays against which."""

    def __init__(self, config: TrainConfig, run: Path, models: Models) -> None:
        self._config, self._folder, self._models = config, run / _FOLDER, models
        self._writers: dict[str, Any] = {}
        self._results: dict[str, list[float]] = {}
        """`ROLE/STEP` -> number of steps it played, and the sum of its mean rewards in them."""

    @property
    def active(self) -> bool:
        """Whether earlier versions play at all."""
        return self._config.opponents == "past"

    def kept(self, step: int) -> list[int]:
        """Return the steps whose players may play after a step, the oldest first: it follows from the settings.

        Where there are more than `past_limit`, every second one goes, and the oldest and the newest stay.
        """
        found: list[int] = []
        for each in range(0, step + 1, self._config.past_steps) if self.active else ():
            found.append(each)
            if len(found) > self._config.past_limit:
                del found[1:-1:2]
        return found

    def keep(self, step: int, players: Players) -> None:
        """Keep both players as they are after a step, every `past_steps` steps."""
        if not self.active or step % self._config.past_steps:
            return
        final = self._folder / f"step_{step}"
        part = self._folder / f".step_{step}.part"
        shutil.rmtree(part, ignore_errors=True)
        for role, player in (("coder", players.coder), ("tester", players.tester)):
            (part / role).mkdir(parents=True)
            save = getattr(player, "save_weights", player.save)
            save(part / role)
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)

    def of_step(self, step: int) -> PastSide:
        """Decide who plays a step (counted from 0). It follows from the seed, the step, and what is known of wins."""
        kept = self.kept(step)
        rng = np.random.default_rng([self._config.seed, step, _STREAM])
        if not kept or rng.random() >= self._config.past_share:
            return NOBODY
        role: Literal["coder", "tester"] = "coder" if rng.random() < 0.5 else "tester"
        return PastSide(role, self._drawn(role, kept, rng))

    def _drawn(self, role: str, kept: Sequence[int], rng: np.random.Generator) -> int:
        if self._config.past_sampling == "latest":
            return kept[-1]
        weights = np.ones(len(kept))
        if self._config.past_sampling == "win-rate":
            # One that has not played yet counts as one that wins, so that it does.
            weights = np.array([self._win_rate(role, step) for step in kept]) + 1e-3
        return kept[int(rng.choice(len(kept), p=weights / weights.sum()))]

    def _win_rate(self, role: str, step: int) -> float:
        number, total = self._results.get(f"{role}/{step}", (0, 0.0))
        return float(np.clip(total / number, 0.0, 1.0)) if number else 1.0

    def seat(self, past: PastSide, players: Players, step: int) -> Mapping[str, Agent]:
        """Return who takes the seat of the side from the past; nothing where everybody is of now."""
        if not past.role:
            return {}
        player = players.coder if past.role == "coder" else players.tester
        folder = self._folder / f"step_{past.step}" / past.role
        if isinstance(player, LanguagePlayer) and not isinstance(player, FixedAgent):
            return {past.role: self._writer(past.role, folder)}
        twin = copy.deepcopy(player)
        twin.load(folder)
        if hasattr(twin, "rng"):  # else the same old draws would come in every step
            twin.rng = np.random.default_rng([self._config.seed, step, _STREAM, 1])
        return {past.role: twin}

    def _writer(self, role: Role, folder: Path) -> Agent:
        if role not in self._writers:
            self._writers[role] = self._models.writer(role, self._config.seed)
        player, give = self._writers[role]
        [weights] = folder.iterdir()  # of an adapter, or of a whole model
        give(weights)
        return cast("Agent", player)

    def note(self, past: PastSide, played: Rollouts) -> None:
        """Remember how well the side from the past did."""
        if past.role == "coder":
            earned = mean(episode.verdict.code_reward for episode in played.episodes)
        elif past.role == "tester":
            earned = mean(reward for each in played.episodes for reward in each.test_rewards)
        else:
            return
        if earned is not None:
            entry = self._results.setdefault(f"{past.role}/{past.step}", [0, 0.0])
            entry[0] += 1
            entry[1] += earned

    def state(self) -> dict[str, Any] | None:
        """State for a checkpoint; None for a run without opponents from the past."""
        return {"results": self._results} if self.active else None

    def prune(self, step: int) -> None:
        """Delete what no step after this one plays. Called once the checkpoint is written: a run may go back to it."""
        kept = self.kept(step)
        for path in self._folder.glob("step_*") if self.active else ():
            if int(path.name[5:]) not in kept:
                shutil.rmtree(path)

    def truncate(self, step: int, checkpoint: Path | None) -> None:
        """Forget what came after a step, and restore what its checkpoint remembers.

        Raises a RunError if the checkpoint is of a run without opponents from the past.
        """
        if not self.active:
            return
        for path in self._folder.glob("step_*"):
            if int(path.name[5:]) > step:
                shutil.rmtree(path)
        if checkpoint is not None:
            try:
                self._results = dict(read_json(checkpoint / "opponents.json")["results"])
            except (KeyError, ValueError) as error:
                raise RunError(f"Cannot resume from {checkpoint}: {error}") from error
