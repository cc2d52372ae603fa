"""Rules of a round: what each player sees, and what enters the Mistake Book.

Environments (`codea1_env.game`) play one round at a time, rollouts (`codea1_env.rollout`) many. Both use what is here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from codea1_env.judging.feedback import feedback, shown_tests
from codea1_env.judging.verdicts import Verdict, never_passed
from codea1_env.mistake_book import BookChange, MistakeBook
from codea1_env.problems import Problem
from codea1_env.responses import Dropped, Program, Suite
from codea1_env.spaces import CODER, TESTER, Observation, observe


@dataclass(frozen=True)
class PlayedRound:
    """A judged round."""

    program: Program
    suites: tuple[Suite, ...]
    """What was read from the tester's answers."""
    verdict: Verdict

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """Parts of the tester's answer that are no tests."""
        return tuple(item for suite in self.suites for item in suite.dropped)

    @property
    def shown(self) -> frozenset[str]:
        """Calls whose values the coder has seen after this round: they do not score its next program."""
        return self.program.shown | {test.call for test in shown_tests(self.verdict)}

    @property
    def rewards(self) -> Mapping[str, float]:
        """Reward of each agent's first answer; 0.0 where the round could not be scored."""
        verdict = self.verdict
        paid = {CODER: verdict.code_reward, TESTER: verdict.suites[0].rewards.test}
        return {agent: float(reward or 0.0) for agent, reward in paid.items()}


def situation(
    problem: Problem,
    number: int,
    program: Program | None = None,
    before: PlayedRound | None = None,
    *,
    black_box: bool = False,
) -> Observation:
    """Make the observation of the player whose turn it is."""
    turn = 0 if program is None else 1
    if black_box and program is not None:
        return observe(problem, round=number, turn=turn)
    shown = program or (before.program if before else None)
    return observe(
        problem,
        code=shown.code if shown else "",
        tests="\n".join([test.text for test in shown_tests(before.verdict)]) if before else "",
        feedback=feedback(before.program, before.verdict, before.dropped) if before else "",
        round=number,
        turn=turn,
    )


def enter_into_book(book: MistakeBook, verdicts: Iterable[Verdict]) -> BookChange:
    """Enter verdicts into the book, in one update for each problem, and return the changes."""
    by_problem: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        by_problem.setdefault(verdict.task_id, []).append(verdict)
    changes = [
        book.update(
            task_id,
            failed=[test for verdict in judged for test in verdict.failed],
            passed=[test for verdict in judged for test in verdict.forgettable],
            unpassed=never_passed(judged),
        )
        for task_id, judged in by_problem.items()
    ]
    return BookChange(
        added=sum(each.added for each in changes),
        removed=sum(each.removed for each in changes),
        evicted=sum(each.evicted for each in changes),
    )
