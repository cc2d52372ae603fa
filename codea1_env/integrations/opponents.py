"""Opponents by name: scripted ones, models behind a server, and players of training runs, also of earlier steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from inspect import signature
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import numpy as np

from codea1_env.agents.llm.agent import LLMAgent
from codea1_env.agents.llm.engines import SAMPLING, is_model, load_player
from codea1_env.agents.llm.openai_backend import OpenAIBackend
from codea1_env.agents.llm.prompts import FewShot
from codea1_env.agents.opponents import SCRIPTED, Opponent, Role, make_opponent
from codea1_env.game import did_you_mean
from codea1_env.problems import Problem
from codea1_env.rollout import Agent, AnswerError, ask
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation
from codea1_env.support.plugins import explained
from codea1_env.training.checkpoints import checkpoints, find_weights, load_run, step_of
from codea1_env.training.config import RunError

Row = tuple[int, int] | None
"""What an opponent draws by, beside the task: as `codea1_env.game.Episode.row`."""
_GIVEN_UP = 3
"""After so many failures in a row an opponent is not asked again."""
_REMEMBERED = 1024
"""Programs of an opponent that are kept."""


def find_opponent(
    player: Opponent,
    role: Role,
    problems: Sequence[Problem],
    sandbox: Sandbox,
    *,
    seed: int = 0,
    num_tests: int = 8,
) -> Agent:
    """Make the player that a name stands for.

    Args:
        player: What `codea1_env.agents.opponents.make_opponent` takes; the address of an OpenAI-compatible server, with
            the model's name behind "#" if it has several; a language model's name or folder; the folder of a training
            run (its latest checkpoint), ``RUN/checkpoints/step_N`` (that one), or ``RUN/checkpoints``: all of them,
            one drawn for each answer.
        role: What it plays.
        problems: The problems of the game.
        sandbox: Where it runs what it must.
        seed: Seed of its random choices.
        num_tests: Tests of an answer of a tester.

    Raises:
        ValueError: There is no such player, or it cannot be loaded.
        BackendError: The server does not answer.
    """
    if not isinstance(player, str) or player in SCRIPTED[role]:
        return make_opponent(player, role, problems, sandbox, seed, num_tests)
    check_name(player, role)
    if player.startswith(("http://", "https://")):
        address, _, model = player.partition("#")
        backend = OpenAIBackend(
            address, model or None, context_length=2 * SAMPLING.max_prompt_length
        )
        if model:
            backend.check_reached()
        return LLMAgent(backend, SAMPLING, seed, write=FewShot(num_tests))
    path = Path(player).expanduser()
    if (path / "config.toml").is_file():
        return _of_run(path, None, role, problems, sandbox, seed)
    if path.name == "checkpoints" and path.is_dir():
        steps = [step_of(each) for each in checkpoints(path.parent)]
        players = [_of_run(path.parent, step, role, problems, sandbox, seed) for step in steps]
        if not players:
            raise RunError(f"Expect {path} to hold checkpoints, actually: none")
        return PastPlayers(players, role, seed)
    if path.parent.name == "checkpoints" and path.name[5:].isdecimal():
        return _of_run(path.parents[1], step_of(path), role, problems, sandbox, seed)
    if ":" not in player and not player.endswith(".py"):
        return load_player(player, seed, write=FewShot(num_tests))
    return make_opponent(player, role, problems, sandbox, seed, num_tests)


class OpponentSeat:
    """Asks an opponent so that the row decides: what it was asked before changes nothing, and its programs stay.

    Language models are asked together. Others that have a `reset`, `seed` or `rng` are asked one by one, each time anew.
    """

    def __init__(self, player: Agent, role: Role) -> None:
        self.player, self.role = player, role
        inner = getattr(player, "agent", player)
        seeded = any(hasattr(inner, name) for name in ("reset", "seed", "rng"))
        self._one_by_one = seeded and not isinstance(inner, LLMAgent)
        self._asking = threading.RLock()
        self._known: dict[object, str] = {}

    def programs(
        self,
        seen: Sequence[Observation],
        rows: Sequence[Row],
        asking: Callable[[Sequence[Observation], Sequence[Row]], Sequence[str | Exception]],
    ) -> list[str | Exception]:
        """Return a coder's programs. That of a task and a row is asked for once."""
        pairs = enumerate(zip(seen, rows, strict=True))
        keys: list[object] = [(each["task_id"], row) if row else i for i, (each, row) in pairs]
        with self._asking:
            new = {key: i for i, key in reversed([*enumerate(keys)]) if key not in self._known}
            answers = asking([seen[i] for i in new.values()], [rows[i] for i in new.values()])
            given = self._known | dict(zip(new, answers, strict=True))
            written = [key for key in new if not isinstance(key, int)]
            self._known |= {key: text for key in written if isinstance(text := given[key], str)}
            for key in list(self._known)[:-_REMEMBERED]:
                del self._known[key]
        return [given[key] for key in keys]

    def ask(self, seen: Sequence[Observation], rows: Sequence[Row]) -> list[str]:
        """Let it answer."""
        if not seen:
            return []
        if not self._one_by_one or not any(rows):
            return self._ask(seen, rows[0])
        pairs = zip(seen, rows, strict=True)
        return [text for each, row in pairs for text in self._ask([each], row)]

    def ask_apart(self, seen: Sequence[Observation], rows: Sequence[Row]) -> list[str | Exception]:
        """Ask together; if that fails, one by one, so that each has its own answer or failure."""
        try:
            return list(self.ask(seen, rows))
        except Exception as error:
            if len(seen) == 1:
                return [error]
        answers: list[str | Exception] = []
        for each, row in zip(seen, rows, strict=True):
            last = answers[-_GIVEN_UP:]
            if len(last) == _GIVEN_UP and all(isinstance(one, Exception) for one in last):
                answers.append(last[-1])  # it is not there at all
                continue
            try:
                answers += self._ask([each], row)
            except Exception as error:
                answers.append(error)
        return answers

    def _ask(self, seen: Sequence[Observation], row: Row) -> list[str]:
        player: Any = self.player
        with self._asking:
            going_on = getattr(player, "rng", None)
            try:
                if row is not None:
                    first = seen[0]
                    about = [*row, crc32(first["task_id"].encode()), first["round"]]
                    reseed(player, int(np.random.SeedSequence(about).generate_state(1)[0]))
                return ask(player, self.role, seen)
            finally:
                if going_on is not None:
                    player.rng = going_on  # it may learn elsewhere


def reseed(player: Any, seed: int) -> None:
    """Start a player's random choices anew: by its method `reset` or `seed`, or else its `rng` or its number `seed`."""
    player = getattr(player, "agent", player)
    for name in ("reset", "seed"):
        method = getattr(player, name, None)
        if callable(method):
            takes = signature(method).parameters
            with explained(type(player), name, AnswerError):
                method(seed=seed) if "seed" in takes else method(*[seed][: len(takes)])
            return
    if isinstance(getattr(player, "rng", None), (np.random.Generator, Random)):
        numpys = isinstance(player.rng, np.random.Generator)
        player.rng = np.random.default_rng(seed) if numpys else Random(seed)
    elif isinstance(getattr(player, "seed", None), int):
        player.seed = seed


def check_name(player: str, role: Role) -> None:
    """Raise a ValueError for what is no name of a player, without loading one."""
    own = ":" in player or player.endswith(".py")
    if not (own or player in SCRIPTED[role] or is_model(player)):
        raise ValueError(
            f"Expect the {role} to be one of {', '.join(SCRIPTED[role])}, the address of a server (http://HOST:PORT/v1), "
            "a language model's folder, the folder of a training run, FILE.py:NAME or an agent, actually: "
            f"{player!r}{did_you_mean(player, SCRIPTED[role])}"
        )


class PastPlayers:
    """Players of several steps of a run. Each answer is of one of them, drawn at random."""

    def __init__(self, players: Sequence[Agent], role: Role, seed: int) -> None:
        self.players, self.role = list(players), role
        self.rng = np.random.default_rng(seed)

    def reset(self, seed: int) -> None:
        """Start all choices anew, those of the players, too."""
        self.rng = np.random.default_rng(seed)
        for player in self.players:
            reseed(player, seed)

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Answer each observation."""
        drawn = self.rng.integers(len(self.players), size=len(observations)).tolist()
        answers = [""] * len(observations)
        for number in sorted(set(drawn)):
            places = [place for place, each in enumerate(drawn) if each == number]
            given = ask(self.players[number], self.role, [observations[place] for place in places])
            for place, text in zip(places, given, strict=True):
                answers[place] = text
        return answers


def _of_run(
    run: Path,
    step: int | None,
    role: Role,
    problems: Sequence[Problem],
    sandbox: Sandbox,
    seed: int,
) -> Agent:
    """Return a player of a run, after a step or its last."""
    weights = None
    with suppress(RunError):
        weights = find_weights(run, role, step)
    if weights is not None:
        return load_player(str(weights), seed)
    with ExitStack() as stack:
        saved = load_run(run, sandbox, stack, step)
    known = {problem.prompt for problem in saved.problems}
    strange = [problem.task_id for problem in problems if problem.prompt not in known]
    if strange:
        raise RunError(
            f"Expect problems that {run} was trained on, actually {strange[0]} is not one: a tabular player knows no "
            f"others. Play those of {saved.config.problems!r}, split {saved.config.split!r}"
        )
    return saved.players.coder if role == "coder" else saved.players.tester
