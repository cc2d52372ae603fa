r"""One side of the game with the opponent inside: what all adapters are made of.

    side = OneSide("tester", "mutant", problems="starter")
    [question] = side.questions(["starter/add_numbers"])     # the chat, and the program under attack
    [score] = side.judge([SideAnswer(question.task_id, "assert add_numbers(1, 2) == 3", question.code)])

`questions` and `judge` are episodes of one round without a Mistake Book: equal answers get equal rewards, whatever was
judged before. `game`, `begin` and `step` are whole episodes, as in `codea1_env.parallel_env`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeVar, get_args

import numpy as np

from codea1_env.agents.llm.completions import Message
from codea1_env.agents.llm.prompts import WORDINGS
from codea1_env.agents.opponents import Opponent
from codea1_env.agents.scripted import ScriptedAgent
from codea1_env.game import Game, act_together, did_you_mean
from codea1_env.integrations.opponents import find_opponent
from codea1_env.judging.feedback import explain
from codea1_env.problems import Problem
from codea1_env.responses import Program
from codea1_env.rollout import ask
from codea1_env.rounds import situation
from codea1_env.spaces import CODER, TESTER, Observation

Side = Literal["coder", "tester"]
OPPONENTS: Mapping[Side, str] = {"coder": "golden", "tester": "mutant"}
"""Who plays the other side unless said otherwise."""
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class SideQuestion:
    """What the player of a side is asked."""

    task_id: str
    messages: list[Message]
    code: str = ""
    """The opponent's program, which a tester attacks; "" for a coder."""


@dataclass(frozen=True)
class SideAnswer:
    """An answer to a question."""

    task_id: str
    text: str
    code: str = ""
    """The program under attack, as in the question."""


@dataclass(frozen=True)
class SideScore:
    """What an answer earned."""

    reward: float | None
    """None: nothing could score it. Leave it out of its group; it is no 0."""
    parts: Mapping[str, float]
    """Other measures by name: executes, passed, valid, validity, adversarial."""
    info: Mapping[str, Any] = field(repr=False)
    """What became of the program and of each test, as in the environment's infos."""


class Together(Generic[T, R]):
    """A function of batches that many threads call with one item each.

    While one batch is worked on, the calls that come in make up the next.

    Example:
        >>> double = Together(lambda numbers: [2 * n for n in numbers])
        >>> double(4)
        8
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]]) -> None:
        self._work = work
        self._working, self._changing = threading.Lock(), threading.Lock()
        self._waiting: list[tuple[T, Future[R]]] = []

    def __call__(self, item: T) -> R:
        """Return the result for one item; an exception of the work is raised in all calls of the batch."""
        future: Future[R] = Future()
        with self._changing:
            self._waiting.append((item, future))
        with self._working:
            if not future.done():
                with self._changing:
                    batch, self._waiting = self._waiting, []
                try:
                    results = self._work([each for each, _ in batch])
                except BaseException as error:
                    for _, waiting in batch:
                        waiting.set_exception(error)
                    raise
                for (_, waiting), result in zip(batch, results, strict=True):
                    waiting.set_result(result)
        return future.result()


class OneSide:
    """The game seen from one side. Threads may share it.

    Args:
        side: The side that is played from outside, "coder" or "tester".
        opponent: The player of the other side: see `codea1_env.integrations.opponents.find_opponent`. None is "golden"
            against a coder, "mutant" against a tester.
        wording: How a chat is worded, "few-shot" for small models or "detailed".
        **settings: The arguments of `codea1_env.game.Game`: problems, split, max_rounds, referee, rewards, mistake_book
            and sandbox.

    Raises:
        ValueError: There is no such side, opponent or wording, or no problem to play.

    Example:
        >>> side = OneSide("coder", "copier")
        >>> answer = SideAnswer("starter/add_numbers", "def add_numbers(a, b): return a + b")
        >>> side.judge([answer])[0].reward
        1.0
    """

    def __init__(
        self,
        side: Side = "coder",
        opponent: Opponent | None = None,
        *,
        wording: str = "few-shot",
        **settings: Any,
    ) -> None:
        if side not in get_args(Side):
            raise ValueError(f'Expect side to be "coder" or "tester", actually: {side!r}')
        if wording not in WORDINGS:
            raise ValueError(
                f"Expect wording to be one of {', '.join(WORDINGS)}, actually: {wording!r}"
            )
        opponent = OPPONENTS[side] if opponent is None else opponent
        kept = {**settings, "sandbox": None, "mistake_book": None}
        self._remade = partial(OneSide, side, opponent, wording=wording, **kept)
        self._first = Game(**settings)
        self.side: Side = side
        self.agent = CODER if side == "coder" else TESTER
        self.role: Side = "tester" if side == "coder" else "coder"
        self.problems: Mapping[str, Problem] = self._first.problems
        known, tests = list(self.problems.values()), self._first.config.rewards.num_tests
        self.opponent = find_opponent(
            opponent, self.role, known, self._first.sandbox, num_tests=tests
        )
        self.messages = WORDINGS[wording](num_tests=tests)
        """Turns an observation into a chat."""
        self._seeded = isinstance(opponent, str)
        self._asking = threading.Lock()
        self.judge_one = Together(self.judge)
        """`judge` for one answer, from any thread; those of all threads are judged together."""
        self._step_one = Together(self._step_pairs)
        self._begin_one = Together(self._begin_all)

    def __reduce__(self) -> Any:
        # A copy in another process has a sandbox, a book and an opponent of its own.
        return self._remade, ()

    # Single answers

    def questions(self, task_ids: Sequence[str] | None = None) -> list[SideQuestion]:
        """Return what is asked about problems, all of them for None; a tester sees programs that the opponent writes now.

        Raises:
            ValueError: There is no such problem.
        """
        problems = [self._problem(name) for name in (task_ids or self.problems)]
        seen = [situation(problem, 0) for problem in problems]
        programs: Sequence[Program | None] = [None] * len(seen)
        if self.side == "tester":
            programs = self._first.referee.read_programs(problems, self._ask(seen))
            seen = list(map(situation, problems, [0] * len(seen), programs))
        return [
            SideQuestion(problem.task_id, self.messages(each), program.code if program else "")
            for problem, each, program in zip(problems, seen, programs, strict=True)
        ]

    def judge(self, answers: Sequence[SideAnswer]) -> list[SideScore]:
        """Judge answers, all together, each as the only round of an episode with an empty Mistake Book.

        Raises:
            ValueError: There is no such problem.
            InfraError: The sandbox failed, so that there is no verdict.
        """
        order = sorted(range(len(answers)), key=lambda i: answers[i].task_id)
        sorted_answers = [answers[i] for i in order]
        problems = [self._problem(each.task_id) for each in sorted_answers]
        texts, referee = [each.text for each in sorted_answers], self._first.referee
        if self.side == "coder":
            programs = referee.read_programs(problems, texts)
            attacks = self._ask(
                [situation(problem, 0, each) for problem, each in zip(problems, programs, strict=True)]
            )  # fmt: skip
        else:
            programs, attacks = [Program(each.code) for each in sorted_answers], texts
        judged = referee.judge_answers(problems, programs, attacks, {})
        scores: list[SideScore | None] = [None] * len(order)
        for i, program, ([suite], verdict) in zip(order, programs, judged, strict=True):
            scores[i] = self._score(explain(program, verdict, suite.dropped))
        return [score for score in scores if score is not None]

    def read_program(self, problem: Problem, answer: str) -> Program:
        """Find the program in an answer."""
        return self._first.referee.read_programs([problem], [answer])[0]

    def _score(self, info: Mapping[str, Any]) -> SideScore:
        rewards = info["rewards"]
        outcomes = [test["outcome"] for test in info["tests"] if test["outcome"]]
        parts = {
            "executes": float(info["program"]["executes"]),
            "passed": outcomes.count("pass") / max(1, len(outcomes)),
            "valid": float(sum(test["status"] == "kept" for test in info["tests"])),
            "validity": rewards["validity"],
            "adversarial": rewards["adversarial"],
        }
        return SideScore(self.paid(info), parts, info)

    def _problem(self, task_id: str) -> Problem:
        if task_id not in self.problems:
            raise ValueError(
                f"Expect a task_id of one of the {len(self.problems)} problems, actually: {task_id!r}"
                + did_you_mean(task_id, self.problems)
            )
        return self.problems[task_id]

    def _ask(self, seen: Sequence[Observation]) -> list[str]:
        if not seen:
            return []
        with self._asking:
            return ask(self.opponent, self.role, seen)

    # Whole episodes

    def game(self, *, own_book: bool = False) -> Game:
        """Make a game. It shares problems and referee with the others, and the Mistake Book unless it has its own."""
        first = self._first
        book = type(first.book)(stale_after=first.book.stale_after) if own_book else first.book
        known = list(self.problems.values())
        return Game(
            problems=known, max_rounds=first.max_rounds, referee=first.referee, mistake_book=book
        )

    def begin(
        self, games: Sequence[Game], seeds: Sequence[int | None], options: Mapping[str, Any] | None
    ) -> None:
        """Start episodes, up to the first turn of the outside player.

        A seed starts the choices of a scripted opponent anew, too.
        """
        for game, seed in zip(games, seeds, strict=True):
            game.reset(seed, options)
        given = next((seed for seed in seeds if seed is not None), None)
        if given is not None and self._seeded and isinstance(self.opponent, ScriptedAgent):
            self.opponent.rng = np.random.default_rng(given)
        self._answer(games)

    def step(self, games: Sequence[Game], actions: Sequence[str]) -> list[float]:
        """Play a turn of every game and the opponent's turns after it; return the rewards."""
        act_together(games, actions)
        if self.side == "coder":
            self._answer(games)
        rewards = [game.rewards[self.agent] for game in games]
        if self.side == "tester":
            self._answer(games)
        return rewards

    def begin_one(
        self, game: Game, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Start an episode from any thread; the opponent is asked for the games of all threads together."""
        game.reset(seed, options)
        self._begin_one(game)

    def last_score(self, game: Game) -> SideScore:
        """Return what the last turn of a game earned."""
        last = game.running().rounds[-1]
        return self._score(explain(last.program, last.verdict, last.dropped))

    def step_one(self, game: Game, action: str) -> float | None:
        """`step` for one game, from any thread. None where nothing could score the turn.

        Raises:
            ResetNeeded: The episode is over.
            InfraError: The sandbox failed.
        """
        game.check(action)
        self._step_one((game, action))
        return self.last_score(game).reward

    def paid(self, info: Mapping[str, Any]) -> float | None:
        """Return what the infos say that this side earned; None where nothing could score it."""
        reward: float | None = info["rewards"]["code" if self.side == "coder" else "test"]
        return reward

    def _step_pairs(self, pairs: Sequence[tuple[Game, str]]) -> list[float]:
        return self.step([game for game, _ in pairs], [action for _, action in pairs])

    def _begin_all(self, games: Sequence[Game]) -> list[None]:
        self._answer(games)
        return [None] * len(games)

    def _answer(self, games: Sequence[Game]) -> None:
        """Let the opponent play the games that wait for it."""
        waiting = [game for game in games if game.actor not in (None, self.agent)]
        if waiting:
            act_together(waiting, self._ask([game.observation() for game in waiting]))
