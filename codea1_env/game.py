"""The game: turns, observations and rewards.

`Game` knows nothing of PettingZoo; `codea1_env.code_a1_v1` shows it through both of PettingZoo's
interfaces. It scores nothing either: `codea1_env.referee` does. `judge` asks it without a game.
"""

from __future__ import annotations

import ast
import copy
import difflib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded

from codea1_env.judging.feedback import explain
from codea1_env.judging.verdicts import AttackAnswers, Round, Verdict
from codea1_env.mistake_book import MistakeBook
from codea1_env.problems import Problem, check_playable, load_problems
from codea1_env.reading.syntax import parsed
from codea1_env.referee import Referee, RefereeConfig
from codea1_env.responses import Program, read_programs
from codea1_env.rewards import RewardFunction
from codea1_env.rounds import PlayedRound, enter_into_book, situation
from codea1_env.sandbox import Sandbox, default_sandbox
from codea1_env.spaces import AGENTS, CODER, MAX_TEXT_CHARS, TESTER, Observation
from codea1_env.support.extras import NAMED


@dataclass(frozen=True)
class Episode:
    """An episode so far, complete enough to render it."""

    problem: Problem
    max_rounds: int
    rounds: tuple[PlayedRound, ...] = ()
    program: Program | None = None
    """The program that awaits its tests; None while the coder is to act and when all is over."""
    row: tuple[int, int] | None = None
    """The last seed and the number of episodes since: what an opponent inside draws by. None without a seed."""

    @property
    def actor(self) -> str | None:
        """The agent whose turn it is; None when the episode is over."""
        if len(self.rounds) >= self.max_rounds:
            return None
        return CODER if self.program is None else TESTER


class Game:
    """A coder writes a program, a tester writes tests to break it, a referee pays both.

    The arguments are those of `codea1_env.code_a1_v1.GameView`.
    """

    def __init__(
        self,
        *,
        problems: str | Sequence[Problem] = "starter",
        split: str | None = None,
        max_rounds: int = 1,
        referee: RefereeConfig | Referee | None = None,
        rewards: str | RewardFunction | None = None,
        mistake_book: MistakeBook | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        shared = referee if isinstance(referee, Referee) else None
        if shared is not None:
            referee, sandbox = shared.config, shared.sandbox
        if max_rounds < 1:
            raise ValueError(
                f"Expect max_rounds to be a positive integer, actually: {max_rounds!r}"
            )
        self.problems = collect_problems(problems, split)
        self.max_rounds = max_rounds
        self.config = referee if isinstance(referee, RefereeConfig) else RefereeConfig()
        if rewards is not None:
            paying = replace(self.config.rewards, function=rewards)
            self.config = replace(self.config, rewards=paying)
        paper = self.config.rewards.strict_paper
        new = MistakeBook(None, stale_after=None) if paper else MistakeBook()
        self.book = new if mistake_book is None else mistake_book
        self.rng = np.random.default_rng()
        self.episode: Episode | None = None
        self._cleared = False
        self._sandbox = sandbox
        self._referee = shared if rewards is None else None

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start an episode.

        Args:
            seed: Starts the choice of problems anew and clears the Mistake Book, so that the same seed
                and the same actions give the same episodes. None goes on with both.
            options: ``"problem_id"``: the problem to play instead of a random one, named as `find_problem`
                takes it. ``"mistake_book"``: a
                `MistakeBook` to use from now on, ``"keep"`` or ``"clear"``; it goes before what the
                seed does to the book.

        Raises:
            ValueError: The problem is not known, the seed is negative, or an option does not exist.
            TypeError: The seed or an option has a wrong type.
        """
        chosen = check_options(options)
        rng = self.rng if seed is None else new_generator(seed)
        if "problem_id" in chosen:
            problem = find_problem(chosen["problem_id"], self.problems)
        else:
            problem = list(self.problems.values())[int(rng.integers(len(self.problems)))]
        book = chosen.get("mistake_book", "keep" if seed is None else "clear")
        # Nothing has changed up to here, so that a wrong argument leaves the running episode alone.
        if isinstance(book, MistakeBook):
            self.book = book
        self._cleared = book == "clear" and len(self.book) > 0
        if book == "clear":
            self.book.clear()
        self.rng = rng
        row = self.episode.row if self.episode else None
        row = (row[0], row[1] + 1) if row and seed is None else None
        row = row if seed is None else (int(seed), 0)
        self.episode = Episode(problem, self.max_rounds, row=row)

    def act(self, action: str) -> None:
        """Play the turn of the agent whose turn it is.

        Any text is a legal action. What cannot be read as a program or as tests is scored as that, and
        `info` says why.

        Raises:
            TypeError: The action is not a string.
            ResetNeeded: There is no episode, or it is over.
        """
        act_together([self], [action])

    def check(self, action: str) -> None:
        """Check that the episode is running and that this is an action. Raises as `act` does."""
        episode = self.running()
        if episode.actor is None:
            raise ResetNeeded(
                f"Expect step() only while an episode is running, actually: all of its "
                f"{self.max_rounds} round(s) are played. Call reset() to start the next one."
            )
        if not isinstance(action, str):
            raise TypeError(
                f"Expect the action of {episode.actor} to be a str (the text of its answer), "
                f"actually: {type(action)}"
            )

    def running(self) -> Episode:
        """Return the episode, finished or not."""
        if self.episode is None:
            raise ResetNeeded(
                "Expect reset() before anything else, actually: no episode was started. Call "
                "reset(seed=...) first."
            )
        return self.episode

    @property
    def actor(self) -> str | None:
        """The agent whose turn it is; None when the episode is over."""
        return self.running().actor

    @property
    def rewards(self) -> dict[str, float]:
        """Rewards of the latest turn: 0 for a program that waits for its tests."""
        episode = self.running()
        if episode.program is None and episode.rounds:
            return dict(episode.rounds[-1].rewards)
        return dict.fromkeys(AGENTS, 0.0)

    def observation(self) -> Observation:
        """Return the observation that both agents share."""
        episode = self.running()
        last = episode.rounds[-1] if episode.rounds else None
        return situation(episode.problem, len(episode.rounds), episode.program, last)

    def info(self) -> dict[str, Any]:
        """Return the infos of the latest action as plain data without times; see docs/environment.md."""
        episode = self.running()
        task_id = episode.problem.task_id
        info: dict[str, Any] = {"active_agent": episode.actor, "task_id": task_id}
        if episode.program is not None:
            info["program"] = {"problem": episode.program.problem}
        elif episode.rounds:
            played = episode.rounds[-1]
            info |= explain(played.program, played.verdict, played.dropped)
        info["book"] = {
            "size": len(self.book),
            "problem_size": len(self.book.tests(task_id)),
            "cleared": self._cleared,
        }
        return info

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox of programs and tests. The shared one is looked up at its first use."""
        if self._sandbox is None:
            self._sandbox = default_sandbox()
        return self._sandbox

    @property
    def referee(self) -> Referee:
        """The referee. It keeps the reference's values, so all episodes use one."""
        if self._referee is None:
            self._referee = Referee(self.sandbox, self.config)
        return self._referee

    def __getstate__(self) -> dict[str, Any]:
        # Processes and caches stay behind: whoever unpickles uses the sandbox of its own process.
        return self.__dict__ | {"_sandbox": None, "_referee": None}

    def __deepcopy__(self, memo: dict[int, Any]) -> Game:
        # Problems are frozen, and sandbox and referee are shared services, so a copy shares them.
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        shared = {"problems", "config", "_sandbox", "_referee"}
        for name, value in self.__dict__.items():
            setattr(twin, name, value if name in shared else copy.deepcopy(value, memo))
        return twin


def act_together(games: Sequence[Game], actions: Sequence[str]) -> None:
    """Play one turn of several games, whose programs and tests go to the sandbox together."""
    for game, action in zip(games, actions, strict=True):
        game.check(action)
    actions = list(map(str, actions))  # without the notes of an `Answer`
    episodes = [game.running() for game in games]
    coding = [i for i, episode in enumerate(episodes) if episode.program is None]
    programs = read_programs(
        [episodes[i].problem for i in coding],
        [actions[i] for i in coding],
        games[0].sandbox,
        first_block=games[0].config.rewards.strict_paper,
    )
    for i, program in zip(coding, programs, strict=True):
        if episodes[i].rounds:
            program = replace(program, shown=episodes[i].rounds[-1].shown)
        games[i].episode = replace(episodes[i], program=program)
        games[i]._cleared = False
    _judge_together(games, actions, [i for i, each in enumerate(episodes) if each.program])


def _judge_together(games: Sequence[Game], actions: Sequence[str], which: Sequence[int]) -> None:
    """Judge a round of several games. Those of one problem that replay the same tests go to the referee as one part."""
    parts: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for i in which:
        name, size = games[i].running().problem.task_id, games[i].config.rewards.num_tests
        parts.setdefault((name, tuple(games[i].book.tests(name, size))), []).append(i)
    asked = [
        AttackAnswers(
            games[members[0]].running().problem,
            [program for i in members if (program := games[i].running().program)],
            [actions[i] for i in members],
            history,
        )
        for (_, history), members in parts.items()
    ]
    judged = iter(games[0].referee.judge_parts(asked) if asked else ())
    books: dict[int, tuple[MistakeBook, list[Verdict]]] = {}
    for part, members in zip(asked, parts.values(), strict=True):
        for i, program in zip(members, part.programs, strict=True):
            suites, verdict = next(judged)
            played = PlayedRound(program, tuple(suites), verdict)
            episode = games[i].running()
            games[i].episode = replace(episode, program=None, rounds=(*episode.rounds, played))
            book = games[i].book
            books.setdefault(id(book), (book, []))[1].append(verdict)
    for book, verdicts in books.values():
        enter_into_book(book, verdicts)


ToJudge = tuple[Problem | str | tuple[str, str], str, str | Sequence[str]]
"""Problem, program and tests, as `judge` takes them."""
_referee: Referee | None = None


def judge(
    problem: Problem | str | tuple[str, str],
    program: str,
    tests: str | Sequence[str],
    entry_point: str | None = None,
) -> Verdict:
    """Judge one program by tests, on a sandbox that the process shares, with the referee's usual rules.

    Args:
        problem: A problem; the task id of a starter problem; or the text of a reference, alone or with its entry point.
        program: The program, or an answer with it in a block of code.
        tests: The tests, as one text or several. One that predicts a wrong value attacks with the reference's.
        entry_point: The function that is tested, where a reference defines several; "" where it is a program that reads and prints.

    Returns:
        The verdict: `code_reward`, and for each test what became of it. A reward is None where the sandbox could not tell.

    Raises:
        ValueError: There is no such problem, or the reference defines several functions, or none.
        BrokenReferenceError: The reference does not run.

    Example:
        >>> verdict = judge("def inc(n): return n + 1", "def inc(n): return 2", ["assert inc(1) == 2", "assert inc(2) == 3"])
        >>> verdict.code_reward, verdict.suites[0].rewards.test
        (0.5, 0.1875)
    """
    named = problem
    if isinstance(problem, str) and entry_point is not None:
        named = (problem, entry_point)
    return judge_many([(named, program, tests)])[0]


def judge_many(items: Iterable[ToJudge]) -> list[Verdict]:
    """Judge many programs together, each as `judge` does."""
    global _referee
    asked = [(_problem(problem), program, tests) for problem, program, tests in items]
    sandbox = default_sandbox()
    if _referee is None or _referee.sandbox is not sandbox:
        _referee = Referee(sandbox)
    programs = _referee.read_programs(
        [each for each, _, _ in asked], [text for _, text, _ in asked]
    )
    return _referee.judge(
        [
            Round(problem, program, [[tests] if isinstance(tests, str) else list(tests)])
            for (problem, _, tests), program in zip(asked, programs, strict=True)
        ]
    )


def _problem(given: Problem | str | tuple[str, str]) -> Problem:
    if isinstance(given, Problem):
        return given
    reference, entry_point = (given, None) if isinstance(given, str) else given
    if entry_point is None and not {"\n", " "} & set(reference):
        return find_problem(reference, _starter())
    return _of_reference(reference, entry_point)


@lru_cache(1)
def _starter() -> dict[str, Problem]:
    return collect_problems("starter") | collect_problems("starter-programs")


@lru_cache(1024)
def _of_reference(reference: str, entry_point: str | None) -> Problem:
    if entry_point == "":
        return Problem("program", "A program that reads and prints.", "", reference)
    found = [node.name for node in parsed(reference) or () if isinstance(node, ast.FunctionDef)]
    if entry_point is None and len(found) != 1:
        raise ValueError(
            "Expect a reference that defines one function, or its entry_point beside it, actually the functions: "
            f"{', '.join(found[:NAMED]) or 'none'}"
        )
    name = entry_point or found[0]
    return Problem(name, name, name, reference)


OPTIONS = ("problem_id", "mistake_book")


def collect_problems(
    problems: str | Sequence[Problem], split: str | None = None
) -> dict[str, Problem]:
    """Return the problems by their task_id, in their order."""
    if isinstance(problems, str):
        found = load_problems(problems, split)
    else:
        several = [problems] if isinstance(problems, Problem) else problems
        found = [each for each in several if split in (None, each.metadata.get("split"))]
    if not found:
        raise ValueError(
            f"Expect at least one problem to play, actually: none with split={split!r}. Use "
            "split=None for all."
        )
    for task_id, count in Counter(problem.task_id for problem in found).items():
        if count > 1:
            raise ValueError(
                f"Expect the task_id of problems to be unique, actually {count} times: {task_id!r}"
            )
    for problem in found:
        if len(problem.prompt) > MAX_TEXT_CHARS:
            raise ValueError(
                f"Expect a prompt of at most {MAX_TEXT_CHARS} characters, actually: "
                f"{len(problem.prompt)} in {problem.task_id!r}. Leave this problem out."
            )
    check_playable(found)
    return {problem.task_id: problem for problem in found}


def new_generator(seed: int) -> np.random.Generator:
    """Return a random generator of its own for one environment."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"Expect seed to be an integer or None, actually: {type(seed)}")
    if seed < 0:
        raise ValueError(f"Expect seed to be 0 or greater, actually: {seed}")
    return np.random.default_rng(int(seed))


def did_you_mean(actual: object, known: Sequence[str] | Mapping[str, Any]) -> str:
    """Return the suggestion at the end of an error about a wrong name.

    Example:
        >>> print(did_you_mean("starter/ad", ["starter/add", "starter/is_even"]))
        . Did you mean 'starter/add'?
        >>> print(did_you_mean("is_evn", ["starter/add", "starter/is_even"]))
        . Did you mean 'starter/is_even'?
    """
    names = {name: name for name in known}
    if isinstance(actual, str) and "/" not in actual:
        names = {name.rpartition("/")[2]: name for name in known}
    near = difflib.get_close_matches(str(actual), list(names), n=3, cutoff=0.7)
    if near:
        return ". Did you mean " + " or ".join(repr(names[name]) for name in near) + "?"
    return f". Known are for example {', '.join(repr(name) for name in list(known)[:3])}."


def find_problem(name: object, problems: Mapping[str, Problem]) -> Problem:
    """Return the problem of a task, which may be named by what stands behind its last "/" if no other is named so.

    Raises a ValueError if there is none, or several have this name.
    """
    if isinstance(name, str) and name in problems:
        return problems[name]
    found = [task_id for task_id in problems if task_id.rpartition("/")[2] == name]
    if len(found) > 1:
        raise ValueError(
            f"Expect the name of one problem, actually {name!r} is that of: {', '.join(found[:NAMED])}"
        )
    if not found:
        raise ValueError(
            f"Expect the task_id of one of the {len(problems)} problems, actually: {name!r}"
            + did_you_mean(name, problems)
        )
    return problems[found[0]]


def check_options(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the options of a reset, none as an empty mapping; `find_problem` looks at the problem's name."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise TypeError(
            f'Expect options to be a dict such as {{"problem_id": "is_even"}}, actually: {options!r:.100}'
        )
    for key in options:
        # PettingZoo's own tests reset every environment with {"options": 1}.
        if key not in (*OPTIONS, "options"):
            raise ValueError(
                f"Expect the keys of options to be among {OPTIONS}, actually: {key!r}"
                + did_you_mean(key, OPTIONS)
            )
    book = options.get("mistake_book", "keep")
    if not isinstance(book, MistakeBook) and book not in ("keep", "clear"):
        raise ValueError(
            f'Expect options["mistake_book"] to be a MistakeBook, "keep" or "clear", '
            f"actually: {book!r:.100}"
        )
    return options
