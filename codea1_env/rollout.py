"""Many episodes of one round at once: how players are trained.

An environment plays one episode at a time. A training step wants N programs for each problem and M suites
for each program, all asked for and judged together, so that a language model generates one big batch and
the sandbox is always busy. The rules are those of the environment: the same observations, the same referee,
the same Mistake Book.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Protocol, Self

from codea1_env.judging.verdicts import Judged, never_passed
from codea1_env.mistake_book import BookChange, MistakeBook
from codea1_env.problems import Problem
from codea1_env.referee import Counters, Referee, Verdict
from codea1_env.responses import Program, Suite, read_programs
from codea1_env.spaces import Observation, observe
from codea1_env.support.plugins import explained

SuiteSelection = Literal["max-variance", "all"]
Oracle = Literal["reference", "coder"]


class AnswerError(ValueError):
    """A player returned something else than one text for each observation."""


class Agent(Protocol):
    """A player. It answers a whole batch, so that a language model can generate it at once."""

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Return one answer for each observation, in order."""
        ...


class Answer(str):
    """An answer with whatever its player wants to know when it learns from it; the game sees the text alone.

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
    """What one answer of a player earned."""

    observation: Observation
    action: str
    """What the player returned, an `Answer` of its own included."""
    reward: float | None
    """None: the answer could not be scored. It must not count in its group, not even as 0."""
    group: str
    """Answers of one group are answers to the same question, and may be compared with each other."""

    @property
    def note(self) -> Any:
        """What the player put into its answer; None if that is a mere text."""
        return self.action.note if isinstance(self.action, Answer) else None


@dataclass(frozen=True)
class RolloutConfig:
    """How many answers to ask for, and what the tester gets to see."""

    num_generations: int = 8
    """Programs per problem."""
    num_suites: int = 8
    """Suites per program."""
    use_book: bool = True
    """Replay tests from the Mistake Book, and write new ones into it."""
    black_box: bool = False
    """Hide the program from the tester."""
    overlap: int = 1
    """Parts that the problems are divided into: while the tester attacks one part, the sandbox judges the part
    before. 1 judges everything at the end."""
    oracle: Oracle = "reference"
    """Who says what is right: the problem's reference; or the coder, by the first program of its group that
    runs. Then nothing but the players' agreement decides, and both can be wrong together."""

    def __post_init__(self) -> None:
        if self.num_generations < 1 or self.num_suites < 1 or self.overlap < 1:
            raise ValueError(
                "Expect num_generations, num_suites and overlap to be at least 1, "
                f"actually: {self.num_generations}, {self.num_suites} and {self.overlap}"
            )


@dataclass(frozen=True)
class RolloutEpisode:
    """One program, the suites that attacked it, and what the referee says."""

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
        """Return what the coder can learn from: the programs of a problem are one group."""
        return [
            Experience(
                episode.coder_observation,
                episode.answer,
                episode.verdict.code_reward,
                group=episode.problem.task_id,
            )
            for episode in self.episodes
        ]

    def tester_experience(self, selection: SuiteSelection = "max-variance") -> list[Experience]:
        """What the tester can learn from: the suites against one program are one group.

        Args:
            selection: "all" programs, or of each problem the one whose suites' rewards differ most.
                Programs that every suite breaks, or none, say little about suites (as in the paper).
        """
        return [
            Experience(
                episode.tester_observation,
                answer,
                reward,
                group=f"{episode.problem.task_id}#{episode.index}",
            )
            for episode in (self.episodes if selection == "all" else self.max_variance_episodes())
            for answer, reward in zip(episode.suite_answers, episode.test_rewards, strict=True)
        ]

    def max_variance_episodes(self) -> list[RolloutEpisode]:
        """Of each problem, the episode whose suites' rewards differ most (the first of equals)."""
        best: dict[str, RolloutEpisode] = {}
        for episode in self.episodes:
            known = best.get(episode.problem.task_id)
            if known is None or _spread(episode) > _spread(known):
                best[episode.problem.task_id] = episode
        return list(best.values())


def rollout(
    problems: Sequence[Problem],
    coder: Agent,
    tester: Agent,
    referee: Referee,
    book: MistakeBook,
    config: RolloutConfig = RolloutConfig(),
    more: Callable[[Rollouts], Sequence[Problem]] = lambda _: (),
) -> Rollouts:
    """Play one round of every problem with every combination of answers, and update the book once.

    Args and errors are those of `play`; the book is changed.
    """
    return entered(play(problems, coder, tester, referee, book, config, more), book, config)


def play(
    problems: Sequence[Problem],
    coder: Agent,
    tester: Agent,
    referee: Referee,
    book: MistakeBook,
    config: RolloutConfig = RolloutConfig(),
    more: Callable[[Rollouts], Sequence[Problem]] = lambda _: (),
) -> Rollouts:
    """Play one round of every problem with every combination of answers, and leave the book as it is.

    Args:
        problems: The problems of the step, all different.
        coder: Writes `num_generations` programs for each.
        tester: Writes `num_suites` suites against each program.
        referee: Judges everything in one batch.
        book: Supplies the tests to replay, as they are before the step.
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
    return played


def entered(played: Rollouts, book: MistakeBook, config: RolloutConfig) -> Rollouts:
    """Enter what `play` returned into the book, once per problem, and say in it what that changed."""
    if not config.use_book:
        return played
    by_problem: dict[str, list[Verdict]] = {}
    for episode in played.episodes:
        by_problem.setdefault(episode.problem.task_id, []).append(episode.verdict)
    changes = [
        book.update(
            task_id,
            failed=[test for verdict in verdicts for test in verdict.failed],
            passed=[test for verdict in verdicts for test in verdict.forgettable],
            unpassed=never_passed(verdicts),
        )
        for task_id, verdicts in by_problem.items()
    ]
    change = BookChange(
        added=sum(each.added for each in changes),
        removed=sum(each.removed for each in changes),
        evicted=sum(each.evicted for each in changes),
    )
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
    started = time.perf_counter()
    asked = [problem for problem in problems for _ in range(config.num_generations)]
    coder_observations = [observe(problem) for problem in asked]
    answers = ask_for_answers(coder, "coder", coder_observations)
    programs = read_programs(asked, list(map(str, answers)), referee.sandbox)

    coded = time.perf_counter()
    tester_observations = [
        observe(problem, code="" if config.black_box else program.code, turn=1)
        for problem, program in zip(asked, programs, strict=True)
    ]
    judged_by = asked if config.oracle == "reference" else by_own_program(asked, programs, referee)
    limit = referee.config.rewards.num_tests
    history = {
        p.task_id: tuple(book.tests(p.task_id, limit)) if config.use_book else () for p in problems
    }
    before = dataclasses.replace(referee.counters)
    suite_answers: list[str] = []
    judging: list[Callable[[], list[Judged]]] = []
    with ThreadPoolExecutor(1, "judge") as thread:
        for part in _parts(len(asked), config.num_generations, config.overlap):
            observed = [o for o in tester_observations[part] for _ in range(config.num_suites)]
            attacks = ask_for_answers(tester, "tester", observed)
            suite_answers += attacks
            judge = partial(
                referee.judge_answers,
                judged_by[part],
                programs[part],
                list(map(str, attacks)),
                history,
            )
            # The last part is not left to the thread: there is nothing to wait for but itself.
            last = len(suite_answers) == len(asked) * config.num_suites
            judging.append(judge if last else thread.submit(judge).result)
        tested = time.perf_counter()
        judgements = [item for result in judging for item in result()]
    judged = time.perf_counter()

    repeats = config.num_suites
    episodes = tuple(
        RolloutEpisode(
            problem=problem,
            index=i % config.num_generations,
            coder_observation=coder_observations[i],
            answer=answers[i],
            program=programs[i],
            tester_observation=tester_observations[i],
            suite_answers=tuple(suite_answers[i * repeats : (i + 1) * repeats]),
            suites=tuple(suites),
            verdict=verdict,
        )
        for i, (problem, (suites, verdict)) in enumerate(zip(asked, judgements, strict=True))
    )
    seconds = {"coder": coded - started, "tester": tested - coded, "judge": judged - tested}
    return Rollouts(episodes, BookChange(0, 0, 0), referee.counters - before, seconds)


def _parts(programs: int, group: int, number: int) -> list[slice]:
    """Divide programs into parts of whole groups, as equal as can be."""
    groups = programs // group
    ends = [group * (groups * part // number) for part in range(number + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]


def ask(agent: Agent, role: str, observations: Sequence[Observation]) -> list[str]:
    """Let a player answer as `ask_for_answers` does, and return the mere texts."""
    return list(map(str, ask_for_answers(agent, role, observations)))


def ask_for_answers(agent: Agent, role: str, observations: Sequence[Observation]) -> list[str]:
    """Let a player answer, and check that it gave one text for each observation, with notes or without.

    Args:
        agent: The player.
        role: What it plays, for messages.
        observations: What it is shown.

    Raises:
        AnswerError: It raised, or returned the wrong number of answers, or something else than text.
    """
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
    return statistics.pvariance(rewards) if rewards else 0.0


_NOTHING_RUNS = "def {}(*args, **kwargs):\n    raise NotImplementedError\n"


def by_own_program(
    problems: Sequence[Problem], programs: Sequence[Program], referee: Referee
) -> list[Problem]:
    """Return the problems with the coder's first program that runs as their reference.

    Where none runs, the reference raises at every call, so that no test is valid.

    Args:
        problems: The problem of each program.
        programs: All programs of a step.
        referee: Finds out which programs run.

    Returns:
        One problem for each program; the programs of a problem share one.
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
        nothing = _NOTHING_RUNS.format(problem.entry_point)
        chosen.setdefault(problem.task_id, dataclasses.replace(problem, reference=nothing))
    return [chosen[problem.task_id] for problem in problems]
