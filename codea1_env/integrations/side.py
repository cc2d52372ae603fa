r"""One side of the game with the opponent inside: what all adapters are made of.

    side = OneSide("tester", "mutant", problems="starter")
    [question] = side.questions(["starter/add_numbers"])     # the chat, and the program under attack
    [score] = side.judge([SideAnswer(question.task_id, "assert add_numbers(1, 2) == 3", question.code)])

`questions` and `judge` are episodes of one round without a Mistake Book: equal answers get equal rewards, whatever was
judged before. `game`, `begin` and `step` are whole episodes, as in `codea1_env.parallel_env`.

The row decides: what the opponent does follows from task and seed, so all members of a group answer the same prompt. A
program is asked for once, so that it stays also where a model wrote it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Literal, TypeVar, get_args

from codea1_env.agents.llm.completions import Message
from codea1_env.agents.llm.prompts import make_wording
from codea1_env.agents.opponents import Opponent
from codea1_env.game import Episode, Game, act_together, find_problem
from codea1_env.integrations.opponents import OpponentSeat, Row, find_opponent
from codea1_env.judging.feedback import explain
from codea1_env.problems import Problem
from codea1_env.responses import Program
from codea1_env.rounds import situation
from codea1_env.spaces import CODER, TESTER, Observation

Side = Literal["coder", "tester"]
OPPONENTS: Mapping[Side, str] = {"coder": "golden", "tester": "mutant"}
"""Who plays the other side unless said otherwise."""
PARTS = ("executes", "passed", "valid", "validity", "adversarial")
"""Other measures than the reward."""
_Asking = Callable[[Sequence[Observation], Sequence[Row]], Sequence[str | Exception]]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class SideQuestion:
    """What the player of a side is asked."""

    task_id: str
    messages: list[Message]
    code: str = ""
    """The opponent's program, which a tester attacks; "" for a coder."""
    seed: int = 0
    """With the task it decides the program."""


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
    """`PARTS` by name; none where nothing could score it."""
    info: Mapping[str, Any] = field(repr=False)
    """What became of the program and of each test, as in the environment's infos."""


class Together(Generic[T, R]):
    """A function of batches that many threads call with one item each.

    While one batch is worked on, the calls that come in make up the next. A result that is an exception is raised in
    its own call alone.

    Example:
        >>> double = Together(lambda numbers: [2 * n for n in numbers])
        >>> double(4)
        8
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
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
                    if isinstance(result, Exception):
                        waiting.set_exception(result)
                    else:
                        waiting.set_result(result)
        return future.result()


class OneSide:
    """The game seen from one side. Threads may share it.

    Args:
        side: The side that is played from outside, "coder" or "tester".
        opponent: The player of the other side: see `codea1_env.integrations.opponents.find_opponent`. None is "golden"
            against a coder, "mutant" against a tester.
        prompts: How a chat is worded: "few-shot" for small models, "detailed", or ``FILE.py:NAME``.
        **settings: The arguments of `codea1_env.game.Game`: problems, split, max_rounds, referee, rewards, mistake_book
            and sandbox.

    Raises:
        ValueError: There is no such side, opponent or prompts, or no problem to play.

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
        prompts: str = "few-shot",
        **settings: Any,
    ) -> None:
        if side not in get_args(Side):
            raise ValueError(f'Expect side to be "coder" or "tester", actually: {side!r}')
        opponent = OPPONENTS[side] if opponent is None else opponent
        kept = {**settings, "sandbox": None, "mistake_book": None}
        self._remade = partial(OneSide, side, opponent, prompts=prompts, **kept)
        self._first = Game(**settings)
        self.side: Side = side
        self.agent = CODER if side == "coder" else TESTER
        self.role: Side = "tester" if side == "coder" else "coder"
        self.problems: Mapping[str, Problem] = self._first.problems
        known, tests = list(self.problems.values()), self._first.config.rewards.num_tests
        self.opponent = find_opponent(
            opponent, self.role, known, self._first.sandbox, num_tests=tests
        )
        self.messages = make_wording(prompts, tests)
        """Turns an observation into a chat."""
        self._seat = OpponentSeat(self.opponent, self.role)
        source = settings.get("problems", "starter")
        self.opponent_name = opponent if isinstance(opponent, str) else None
        self.source = source if isinstance(source, str) else None
        """Name of the problems; None where they were given themselves."""
        self._question_one = Together(partial(self._questions, asking=self._seat.ask_apart))
        self._judge_one = Together(self._judge_apart)
        self._step_one = Together(self._step_pairs)
        self._begin_one = Together(self._begin_all)

    def __reduce__(self) -> Any:
        # A copy in another process has a sandbox, a book and an opponent of its own.
        return self._remade, ()

    # Single answers

    def questions(
        self, task_ids: Sequence[str] | None = None, seeds: Iterable[int] = (0,)
    ) -> list[SideQuestion]:
        """Ask about problems (None for all), once for each seed. The seed decides which program a tester sees.

        Raises:
            ValueError: There is no such problem.
        """
        names = list(task_ids or self.problems)
        asked = [(self.problem(name), seed) for seed in seeds for name in names]
        return [
            each
            for each in self._questions(asked, self._seat.ask)
            if isinstance(each, SideQuestion)
        ]

    def question_one(self, task_id: str, seed: int = 0) -> SideQuestion:
        """`questions` for one row, from any thread; the opponent is asked for those of all threads together."""
        return self._question_one((self.problem(task_id), seed))

    def _questions(
        self, asked: Sequence[tuple[Problem, int]], asking: _Asking
    ) -> list[SideQuestion | Exception]:
        seen = [situation(problem, 0) for problem, _ in asked]
        found: list[Program | Exception | None] = [None] * len(seen)
        if self.side == "tester":
            answers = self._seat.programs(seen, [(seed, 0) for _, seed in asked], asking)
            texts = ["" if isinstance(each, Exception) else each for each in answers]
            programs = self._first.referee.read_programs([each for each, _ in asked], texts)
            pairs = zip(answers, programs, strict=True)
            found = [one if isinstance(one, Exception) else program for one, program in pairs]
        return [
            program
            if isinstance(program, Exception)
            else SideQuestion(
                problem.task_id,
                self.messages(situation(problem, 0, program)),
                program.code if program else "",
                seed,
            )
            for (problem, seed), program in zip(asked, found, strict=True)
        ]

    def judge(self, answers: Sequence[SideAnswer]) -> list[SideScore]:
        """Judge answers, all together, each as the only round of an episode with an empty Mistake Book.

        An answer at which the opponent fails is not scored, unless it fails at all of them.
        """
        for each in answers:
            self.problem(each.task_id)
        found = self._judge_apart(answers)
        failed = [each for each in found if isinstance(each, Exception)]
        if failed and len(failed) == len(found):
            raise failed[0]
        return [
            SideScore(None, {}, {"error": str(each)}) if isinstance(each, Exception) else each
            for each in found
        ]

    def judge_one(self, answer: SideAnswer) -> SideScore:
        """`judge` for one answer, from any thread; those of all threads are judged together, and fail alone."""
        self.problem(answer.task_id)
        return self._judge_one(answer)

    def _judge_apart(self, answers: Sequence[SideAnswer]) -> list[SideScore | Exception]:
        order = sorted(range(len(answers)), key=lambda i: answers[i].task_id)
        asked = [answers[i] for i in order]
        problems = [self.problem(each.task_id) for each in asked]
        referee = self._first.referee
        attacks: list[str | Exception] = [each.text for each in asked]
        if self.side == "coder":
            programs = referee.read_programs(problems, [each.text for each in asked])
            seen = [situation(of, 0, each) for of, each in zip(problems, programs, strict=True)]
            attacks = list(self._seat.ask_apart(seen, [(0, 0)] * len(seen)))
        else:
            programs = [Program(each.code) for each in asked]
        places = [i for i, each in enumerate(attacks) if isinstance(each, str)]
        judged = referee.judge_answers(
            [problems[i] for i in places],
            [programs[i] for i in places],
            [str(attacks[i]) for i in places],
            {},
        )
        found: dict[int, SideScore | Exception] = {
            order[i]: each for i, each in enumerate(attacks) if isinstance(each, Exception)
        }
        for i, ([suite], verdict) in zip(places, judged, strict=True):
            found[order[i]] = self._score(explain(programs[i], verdict, suite.dropped))
        return [found[i] for i in range(len(answers))]

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

    def problem(self, task_id: str) -> Problem:
        """Return a problem. Raises a ValueError if there is none of this name."""
        return find_problem(task_id, self.problems)

    # Whole episodes

    def game(self, *, own_book: bool = False) -> Game:
        """Make a game. It shares problems and referee with the others, and the Mistake Book unless it has its own."""
        first = self._first
        book = (
            type(first.book)(first.book.max_tests_per_problem, stale_after=first.book.stale_after)
            if own_book
            else first.book
        )
        known = list(self.problems.values())
        return Game(
            problems=known, max_rounds=first.max_rounds, referee=first.referee, mistake_book=book
        )

    def begin(
        self, games: Sequence[Game], seeds: Sequence[int | None], options: Mapping[str, Any] | None
    ) -> None:
        """Start episodes, up to the first turn of the outside player. None is left if the opponent fails.

        A seed decides what the opponent does, too, in this episode and the next ones.
        """
        for game, seed in zip(games, seeds, strict=True):
            game.reset(seed, options)
        self._answered(games, [None] * len(games), self._seat.ask)

    def step(self, games: Sequence[Game], actions: Sequence[str]) -> list[float]:
        """Play a turn of every game and the opponent's turns after it; return the rewards.

        If the opponent of a coder fails, no game has changed and the step can be repeated. If that of a tester fails, which
        writes the next program, the episodes are over: begin them again.
        """
        return self._stepped(games, actions, self._seat.ask)[0]

    def _stepped(
        self, games: Sequence[Game], actions: Sequence[str], asking: _Asking
    ) -> tuple[list[float], list[Exception | None]]:
        before = [game.episode if self.side == "coder" else None for game in games]
        act_together(games, actions)
        rewards = [game.rewards[self.agent] for game in games]
        errors = self._answered(games, before, asking)
        if self.side == "coder":
            rewards = [game.rewards[self.agent] for game in games]
        return rewards, errors

    def begin_one(
        self, game: Game, seed: int | None = None, options: Mapping[str, Any] | None = None
    ) -> None:
        """Start an episode from any thread; the opponent is asked for the games of all threads together.

        Options without a seed mean the seed 0: the row decides.
        """
        game.reset(0 if options and seed is None else seed, options)
        self._begin_one(game)

    def last_score(self, game: Game) -> SideScore:
        """Score of the last turn of a game."""
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
        """Reward of this side by the infos; None where nothing could score it."""
        reward: float | None = info["rewards"]["code" if self.side == "coder" else "test"]
        return reward

    def _step_pairs(self, pairs: Sequence[tuple[Game, str]]) -> list[Exception | None]:
        games = [game for game, _ in pairs]
        return self._stepped(games, [action for _, action in pairs], self._seat.ask_apart)[1]

    def _begin_all(self, games: Sequence[Game]) -> list[Exception | None]:
        asking = partial(self._seat.programs, asking=self._seat.ask_apart)
        return self._answered(games, [None] * len(games), asking)

    def _answered(
        self, games: Sequence[Game], before: Sequence[Episode | None], asking: _Asking
    ) -> list[Exception | None]:
        """Let the opponent play the games that wait for it; a game in which that fails is set to what it was before."""
        waiting = [i for i, game in enumerate(games) if game.actor not in (None, self.agent)]
        errors: list[Exception | None] = [None] * len(games)
        try:
            seen = [games[i].observation() for i in waiting]
            answers = asking(seen, [games[i].running().row for i in waiting]) if waiting else []
            given = []
            for i, answer in zip(waiting, answers, strict=True):
                if isinstance(answer, Exception):
                    errors[i], games[i].episode = answer, before[i]
                else:
                    given.append((games[i], answer))
            if given:
                act_together([game for game, _ in given], [text for _, text in given])
        except BaseException:
            for i in waiting:
                games[i].episode = before[i]
            raise
        return errors
