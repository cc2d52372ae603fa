"""pass@k while a run goes on: of the programs that a measurement asks for, which pass all held-back golden tests."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from codea1_env.agents import Experience, Learner
from codea1_env.evaluation import HeldOut
from codea1_env.evaluation.pass_at_k import Count, pass_at_k
from codea1_env.judging.programs import read_programs
from codea1_env.sandbox import Job, Sandbox
from codea1_env.spaces import Observation, observe
from codea1_env.training.metrics import Row, mean
from codea1_env.training.players import Players


class OverheardCoder:
    """A coder whose answers are kept.

    Args:
        coder: Who answers.
    """

    def __init__(self, coder: Learner) -> None:
        self._coder = coder
        self.answers: list[tuple[Observation, str]] = []

    def act(self, observations: Sequence[Observation]) -> Sequence[str]:
        """Return one answer for each observation, in order."""
        answers = self._coder.act(observations)
        if isinstance(answers, Iterator):
            answers = list(answers)
        if isinstance(answers, Sequence):  # who asks checks what they are, and how many
            self.answers += zip(observations, answers, strict=False)
        return answers

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Let the coder learn."""
        return self._coder.learn(experience)

    def save(self, path: Path) -> None:
        """Let the coder save itself."""
        self._coder.save(path)

    def load(self, path: Path) -> None:
        """Let the coder load itself."""
        self._coder.load(path)


def overheard(players: Players) -> tuple[Players, OverheardCoder]:
    """The same players, with a coder whose answers are kept."""
    coder = OverheardCoder(players.coder)
    return dataclasses.replace(players, coder=coder), coder


def solved_metrics(
    coder: OverheardCoder, held_out: Sequence[HeldOut], sandbox: Sandbox, samples: int
) -> Row:
    """Return pass@1 and pass@`samples`: means over the problems with held-back tests.

    Args:
        coder: Was asked for programs for the problems.
        held_out: The problems, with their held-back golden tests.
        sandbox: Runs the programs. Equal ones run once.
        samples: Programs per problem.
    """
    counts = _counts(coder.answers, held_out, sandbox)
    return {
        f"held_out/pass@{k}": mean(pass_at_k(each, k) for each in counts if each.samples >= k)
        for k in sorted({1, samples})
    }


def _counts(
    answers: Sequence[tuple[Observation, str]], held_out: Sequence[HeldOut], sandbox: Sandbox
) -> list[Count]:
    """How many programs for each problem there are, and how many are right."""
    given: dict[tuple[object, ...], list[str]] = {}
    for observation, answer in answers:
        given.setdefault(tuple(observation.values()), []).append(answer)
    asked = [
        (item, answer)
        for item in held_out
        if item.tests
        for answer in given.get(tuple(observe(item.problem).values()), ())
    ]
    texts = [answer for _, answer in asked]
    programs = read_programs([item.problem for item, _ in asked], texts, sandbox)
    jobs = [
        Job(program.code, item.tests, entry_point=item.problem.entry_point)
        for (item, _), program in zip(asked, programs, strict=True)
    ]
    distinct = list({(job.code, job.tests): job for job in jobs}.values())
    right = {
        (job.code, job.tests): all(result.passed for result in results)
        for job, results in zip(distinct, sandbox.run_many(distinct), strict=True)
    }
    flags: dict[str, list[bool]] = {}
    for (item, _), job in zip(asked, jobs, strict=True):
        flags.setdefault(item.problem.task_id, []).append(right[job.code, job.tests])
    return [Count(len(each), sum(each)) for each in flags.values()]
