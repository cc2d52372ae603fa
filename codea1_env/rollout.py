"""Rollouts: many episodes at once, for training.

An environment plays one episode at a time. A training step wants N programs for each problem and M suites
for each program, all asked for and judged together, so that a language model generates one big batch and
the sandbox is always busy. The rules are those of the environment (`codea1_env.rounds`): the same observations, the
same referee, the same Mistake Book. But the book is updated once, after all rounds.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, Protocol, Self

from codea1_env.judging.verdicts import Judged
from codea1_env.mistake_book import BookChange, MistakeBook
from codea1_env.problems import Problem
from codea1_env.referee import Counters, Referee, Verdict
from codea1_env.responses import Program, Suite
from codea1_env.rounds import PlayedRound, enter_into_book, situation
from codea1_env.spaces import Observation
from codea1_env.support.plugins import explained

SuiteSelection = Literal["max-variance", "all"]
Oracle = Literal["reference", "coder"]
TesterRounds = Literal["every", "first"]


class AnswerError(ValueError):
    """A player returned something else than one text for each observation."""


class Agent(Protocol):
    """A player. It answers a whole batch, so that a language model can generate it at once."""

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Return one answer for each observation, in order."""
        ...


class Answer(str):
    """An answer with a note for its player's learning; the game sees the text alone.

    Example:
        >>> answer = Answer("def one(): return 1", note={"log_prob": -0.5})
        >>> Experience({}, answer, 1.0, "g").note
        {'log_prob': -0.5}
    """

    def __new__(cls, text: str, note: Any = None) -> Self:
        """Make one."""
        made = super().__new__(cls, text)
        made.note = note
        return made

    note: Any


@dataclass(frozen=True)
class Experience:
    """An answer of a player, and its reward."""

    observation: Observation
    action: str
    """What the player returned, an `Answer` of its own included."""
    reward: float | None
    """None: the answer could not be scored. It must not count in its group, not even as 0."""
    group: str
    """Answers of one group are answers to the same question, and may be compared with each other."""

    @property
    def note(self) -> Any:
        """The note in the player's answer; None if the answer is a plain text."""
        return self.action.note if isinstance(self.action, Answer) else None


@dataclass(frozen=True)
class RolloutConfig:
    """Number of answers to ask for, and what the tester sees."""

    num_generations: int = 8
    """Programs per problem."""
    num_suites: int = 8
    """Suites per program."""
    use_book: bool = True
    """Replay tests from the Mistake Book, and write new ones into it."""
    black_box: bool = False
    """Hide the program from the tester."""
    max_rounds: int = 1
    """Rounds of an episode. From the second on the coder sees what broke its program and may repair it."""
    tester_rounds: TesterRounds = "every"
    """Rounds in which the tester answers: `"every"`, or only the `"first"`, whose suites then attack the repaired
    programs, too. The tester is paid for its answers only."""
    overlap: int = 1
    """Parts that the problems are divided into: while the tester attacks one part, the sandbox judges the part
    before. 1 judges everything at the end."""
    writes_ahead: bool = False
    """Whether the coder is asked part by part, and writes the next one while the tester attacks: for players that compute
    in different places."""
    oracle: Oracle = "reference"
    """Who says what is right: the problem's reference; or the coder, by the first program of its group that
    runs. Then nothing but the players' agreement decides, and both can be wrong together."""

    def __post_init__(self) -> None:
        for name in ("num_generations", "num_suites", "overlap", "max_rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"Expect {name} to be at least 1, actually: {getattr(self, name)}")


@dataclass(frozen=True)
class RolloutEpisode:
    """A program, the suites that attacked it, and the verdict."""

    problem: Problem
    index: int
    """Number of the program among those of its problem."""
    coder_observation: Observation
    answer: str
    """What the coder wrote."""
    program: Program
    tester_observation: Observation
    suite_answers: tuple[str, ...]
    """What the tester wrote."""
    suites: tuple[Suite, ...]
    verdict: Verdict
    round: int = 0
    """Number of the round: 0 for a first program, above for repairs."""
    tester_answered: bool = True
    """Whether the suites were written for this program. If not, they are those of the first round."""

    @property
    def played(self) -> PlayedRound:
        """The round, as the players see it in the next round."""
        return PlayedRound(self.program, self.suites, self.verdict)

    @property
    def question(self) -> str:
        """The question: programs of one problem and round are one group."""
        task_id = self.problem.task_id
        return f"{task_id}/round-{self.round}" if self.round else task_id

    @property
    def test_rewards(self) -> tuple[float | None, ...]:
        """The tester's reward for each suite; None where the sandbox could not judge it."""
        return tuple(suite.rewards.test for suite in self.verdict.suites)


@dataclass(frozen=True)
class Rollouts:
    """All episodes of one step, problem by problem."""

    episodes: tuple[RolloutEpisode, ...]
    book_change: BookChange
    """What the step did to the Mistake Book."""
    sandbox: Counters = field(compare=False)
    """What the sandbox did."""
    seconds: Mapping[str, float] = field(compare=False)
    """Wall-clock time of each phase: coder, tester, judge."""

    def coder_experience(self) -> list[Experience]:
        """Return the coder's experience. The programs of a problem are one group in each round.

        Each answer is paid for its own round, as in the environment.
        """
        return [
            Experience(
                episode.coder_observation,
                episode.answer,
                episode.verdict.code_reward,
                group=episode.question,
            )
            for episode in self.episodes
        ]

    def tester_experience(self, selection: SuiteSelection = "max-variance") -> list[Experience]:
        """The tester's experience. The suites against one program are one group.

        Args:
            selection: "all" programs, or of each problem the one whose suites' rewards differ most.
                Programs that every suite breaks, or none, say little about suites (as in the paper).
        """
        return [
            Experience(
                episode.tester_observation,
                answer,
                reward,
                group=f"{episode.question}#{episode.index}",
            )
            for episode in (self.episodes if selection == "all" else self.max_variance_episodes())
            if episode.tester_answered
            for answer, reward in zip(episode.suite_answers, episode.test_rewards, strict=True)
        ]

    def max_variance_episodes(self, number: int = 1) -> list[RolloutEpisode]:
        """Episodes whose suites' rewards differ most, for each problem and round (the first of equals)."""
        groups: dict[str, list[RolloutEpisode]] = {}
        for episode in self.episodes:
            groups.setdefault(episode.question, []).append(episode)
        ranked = (sorted(each, key=_spread, reverse=True) for each in groups.values())
        return [episode for each in ranked for episode in each[:number]]


def rollout(
    problems: Sequence[Problem],
    coder: Agent,
    tester: Agent,
    referee: Referee,
    book: MistakeBook,
    config: RolloutConfig = RolloutConfig(),
    more: Callable[[Rollouts], Sequence[Problem]] = lambda _: (),
) -> Rollouts:
    """Play every problem with every combination of answers, and update the book once.

    Args:
        problems: The problems of the step, all different.
        coder: Writes `num_generations` programs for each.
        tester: Writes `num_suites` suites against each program.
        referee: Judges everything in one batch.
        book: Supplies the tests to replay, as they are before the step; it is changed once, after everything was judged.
        config: Numbers of answers, and ablations.
        more: Is shown what was played, and says which other problems are to be played as well, until there are none.

    Raises:
        ValueError: A problem occurs twice, or a player returned the wrong number of answers.
    """
    played = _play(problems, coder, tester, referee, book, config)
    while others := more(played):
        further = _play(others, coder, tester, referee, book, config)
        played = Rollouts(
            played.episodes + further.episodes,
            played.book_change,
            played.sandbox + further.sandbox,
            {phase: played.seconds[phase] + further.seconds[phase] for phase in played.seconds},
        )
    if not config.use_book:
        return played
    change = enter_into_book(book, (episode.verdict for episode in played.episodes))
    return dataclasses.replace(played, book_change=change)


def _play(
    problems: Sequence[Problem],
    coder: Agent,
    tester: Agent,
    referee: Referee,
    book: MistakeBook,
    config: RolloutConfig,
) -> Rollouts:
    """Play problems, and leave the book as it is."""
    twice = [name for name, n in Counter(problem.task_id for problem in problems).items() if n > 1]
    if twice:
        raise ValueError(
            f"Expect the problems of a step to be different, actually twice: {twice[0]!r}. "
            "Raise num_generations for more answers to a problem."
        )
    num_tests = referee.config.rewards.num_tests
    history = {
        problem.task_id: book.tests(problem.task_id, num_tests) if config.use_book else []
        for problem in problems
    }
    before = dataclasses.replace(referee.counters)
    table = _Table(coder, tester, referee, config, history)
    asked = [problem for problem in problems for _ in range(config.num_generations)]
    episodes: list[RolloutEpisode] = []
    last: list[RolloutEpisode] = []
    for _ in range(config.max_rounds):
        last = table.play_round(asked, last)
        episodes += last
    return Rollouts(
        tuple(episodes), BookChange(0, 0, 0), referee.counters - before, dict(table.seconds)
    )


class _Written(NamedTuple):
    """What the coder wrote."""

    answers: list[str]
    programs: list[Program]
    shown: list[Observation]
    """What the tester sees."""


class _Table:
    """A step in play: round after round, all problems at once."""

    def __init__(
        self,
        coder: Agent,
        tester: Agent,
        referee: Referee,
        config: RolloutConfig,
        history: Mapping[str, Sequence[str]],
    ) -> None:
        self.coder, self.tester = coder, tester
        self.referee, self.config, self.history = referee, config, history
        self.seconds = {"coder": 0.0, "tester": 0.0, "judge": 0.0}

    def play_round(
        self, asked: Sequence[Problem], last: Sequence[RolloutEpisode]
    ) -> list[RolloutEpisode]:
        """Play one round of every program."""
        number = last[0].round + 1 if last else 0
        none: list[PlayedRound | None] = [None] * len(asked)
        before = [episode.played for episode in last] or none
        seen = [
            situation(problem, number, before=played)
            for problem, played in zip(asked, before, strict=True)
        ]

        def write(part: slice) -> _Written:
            answers = ask_for_answers(self.coder, "coder", seen[part])
            programs = self.referee.read_programs(asked[part], list(map(str, answers)))
            programs = [
                dataclasses.replace(program, shown=played.shown) if played else program
                for program, played in zip(programs, before[part], strict=True)
            ]
            rows = zip(asked[part], programs, before[part], strict=True)
            hidden = self.config.black_box
            shown = [situation(row[0], number, *row[1:], black_box=hidden) for row in rows]
            return _Written(answers, programs, shown)

        answering = not last or self.config.tester_rounds == "every"
        given = [] if answering else [list(episode.suite_answers) for episode in last]
        written, attacks, judgements = self._attacked(asked, write, given)
        return [
            RolloutEpisode(
                problem=problem,
                index=i % self.config.num_generations,
                coder_observation=seen[i],
                answer=written.answers[i],
                program=written.programs[i],
                tester_observation=written.shown[i],
                suite_answers=tuple(attacks[i]),
                suites=tuple(suites),
                verdict=verdict,
                round=number,
                tester_answered=answering,
            )
            for i, (problem, (suites, verdict)) in enumerate(zip(asked, judgements, strict=True))
        ]

    def _attacked(
        self, asked: Sequence[Problem], write: Callable[[slice], _Written], given: list[list[str]]
    ) -> tuple[_Written, list[list[str]], list[Judged]]:
        """Return what the coder writes, the answers that attack each program, and what the referee says."""
        started, waited = time.perf_counter(), self.seconds["coder"]
        written = _Written([], [], [])
        attacks: list[list[str]] = []
        judging: list[Callable[[], list[Judged]]] = []
        with (
            ThreadPoolExecutor(1, "judge") as thread,
            closing(self._written(write, len(asked))) as parts,
        ):
            for part, new in parts:
                written.answers.extend(new.answers)
                written.programs.extend(new.programs)
                written.shown.extend(new.shown)
                attacks += given[part] or self._suites(new.shown)
                texts = [str(text) for answers in attacks[part] for text in answers]
                problems = asked[part]
                if self.config.oracle == "coder":
                    problems = by_own_program(problems, new.programs, self.referee)
                judge = partial(
                    self.referee.judge_answers, problems, new.programs, texts, self.history
                )
                # The last part is not left to the thread: there is nothing to wait for but itself.
                last = part.stop == len(asked)
                judging.append(judge if last else thread.submit(judge).result)
            tested = time.perf_counter()
            judgements = [item for result in judging for item in result()]
        self.seconds["tester"] += tested - started - (self.seconds["coder"] - waited)
        self.seconds["judge"] += time.perf_counter() - tested
        return written, attacks, judgements

    def _written(
        self, write: Callable[[slice], _Written], count: int
    ) -> Generator[tuple[slice, _Written], None, None]:
        """Yield what the coder writes, part by part. One that writes ahead has begun with the next part by then."""
        parts = _parts(count, self.config.num_generations, self.config.overlap)
        started = time.perf_counter()
        if not (self.config.writes_ahead and len(parts) > 1):
            answers, programs, shown = write(slice(0, count))
            self.seconds["coder"] += time.perf_counter() - started
            for part in parts:
                yield part, _Written(answers[part], programs[part], shown[part])
            return
        thread = ThreadPoolExecutor(1, "coder")
        try:
            writing = thread.submit(write, parts[0])
            for part, following in itertools.zip_longest(parts, parts[1:]):
                new = writing.result()
                self.seconds["coder"] += time.perf_counter() - started
                if following is not None:
                    writing = thread.submit(write, following)
                yield part, new
                started = time.perf_counter()
        finally:
            thread.shutdown(wait=False)  # after a failure: who ends the run ends what it waits for

    def _suites(self, shown: Sequence[Observation]) -> list[list[str]]:
        """Return the tester's answers to each program."""
        repeats = self.config.num_suites
        observed = [seen for seen in shown for _ in range(repeats)]
        answers = ask_for_answers(self.tester, "tester", observed)
        return [answers[i : i + repeats] for i in range(0, len(answers), repeats)]


def _parts(programs: int, group: int, number: int) -> list[slice]:
    """Divide programs into nearly equal parts of whole groups."""
    groups = programs // group
    ends = [group * (groups * part // number) for part in range(number + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]


def ask(agent: Agent, role: str, observations: Sequence[Observation]) -> list[str]:
    """Let a player answer as `ask_for_answers` does, and return the texts."""
    return list(map(str, ask_for_answers(agent, role, observations)))


def ask_for_answers(agent: Agent, role: str, observations: Sequence[Observation]) -> list[str]:
    """Let a player answer, and check that it gave one text for each observation, with notes or without."""
    kind = type(getattr(agent, "agent", agent))
    name = kind.__name__
    with explained(kind, "act", AnswerError):
        given = agent.act(observations)
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise AnswerError(
            f"Expect the {role} ({name}) to return a list of answers, one per observation, actually: "
            f"{given!r:.200}"
        )
    answers = list(given)
    if len(answers) != len(observations):
        raise AnswerError(
            f"Expect the {role} ({name}) to return one answer per observation "
            f"({len(observations)}), actually: {len(answers)}"
        )
    wrong = [type(answer) for answer in answers if not isinstance(answer, str)]
    if wrong:
        raise AnswerError(
            f"Expect the {role} ({name}) to answer with strings, actually: {wrong[0]}"
        )
    return answers


def _spread(episode: RolloutEpisode) -> float:
    rewards = [reward for reward in episode.test_rewards if reward is not None]
    return _variance(tuple(rewards)) if rewards else 0.0


# The exact variance takes long, and rewards have few values.
_variance = lru_cache(maxsize=4096)(statistics.pvariance)


_NOTHING_RUNS = "def {}(*args, **kwargs):\n    raise NotImplementedError\n"


def by_own_program(
    problems: Sequence[Problem], programs: Sequence[Program], referee: Referee
) -> list[Problem]:
    """Return the problems with the coder's first program that runs as their reference.

    Where none runs, the reference raises at every call, so that no test is valid.
    """
    swapped = [
        dataclasses.replace(problem, reference=program.code)  # which has what the problem gives
        for problem, program in zip(problems, programs, strict=True)
        if program.problem is None and program.code.strip()
    ]
    chosen: dict[str, Problem] = {}
    for problem, runs in zip(swapped, referee.references_run(swapped), strict=True):
        if runs:
            chosen.setdefault(problem.task_id, problem)
    for problem in problems:
        name = problem.entry_point
        nothing = _NOTHING_RUNS.format(name) if name else "raise NotImplementedError\n"
        chosen.setdefault(problem.task_id, dataclasses.replace(problem, reference=nothing))
    return [chosen[problem.task_id] for problem in problems]
