"""A referee for small worlds: it asks the sandbox about each pair of a program and a call once."""

from __future__ import annotations

import hashlib
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from codea1_env.agents.scripted import TEST_SEPARATOR
from codea1_env.judging.programs import ProgramResults
from codea1_env.judging.verdicts import AttackAnswers, Judged, TestVerdict
from codea1_env.problem_sets.cells import Pools, pools_of
from codea1_env.problems import Problem
from codea1_env.referee import Referee, RefereeConfig, Round, _Read
from codea1_env.responses import Program, Suite, joined, parse_suites
from codea1_env.sandbox import Outcome, Sandbox, TestResult
from codea1_env.subjects import Attack, Subject


@dataclass(frozen=True)
class Noise:
    """Rates at which a judge is wrong.

    Example:
        >>> Noise("independent", false_fail=0.1).informedness
        0.9
    """

    kind: Literal["independent", "pair", "program"] = "independent"
    """Drawn anew each time; once for each program and call; once for each program, and so for a whole family of faults."""
    false_pass: float = 0.0
    """Rate at which a failure is called a pass."""
    false_fail: float = 0.0
    """Rate at which a pass is called a failure."""
    seed: int = 0

    @property
    def informedness(self) -> float:
        """Youden's J: true positive rate less false positive rate."""
        return 1 - self.false_pass - self.false_fail


class RememberingReferee(Referee):
    """A `Referee` of worlds of cells that remembers the sandbox's verdicts on programs and tests of the pools.

    Only verdicts are remembered, and the programs in answers. Rewards, the Mistake Book and all rules of a round are those of the game.
    """

    def __init__(
        self, sandbox: Sandbox, config: RefereeConfig | None = None, noise: Noise | None = None
    ) -> None:
        super().__init__(sandbox, config)
        self._noise = noise
        self._judgements: Counter[str] = Counter()
        self._worlds: dict[tuple[str, str], _Memory] = {}
        self._answers: dict[tuple[str, str], Program] = {}
        self._mistaken: dict[tuple[str, str, str], ProgramResults] = {}

    def memory(self, problem: Problem) -> _Memory:
        """Return all verdicts on a problem. A new problem is judged by the sandbox."""
        key = (problem.task_id, problem.reference)
        if key not in self._worlds:
            self._worlds[key] = _remember(self, problem)
        return self._worlds[key]

    def read_programs(self, problems: Sequence[Problem], answers: Sequence[str]) -> list[Program]:
        """Find the programs in answers, of which most have been seen before."""
        asked = [(each.task_id, answer) for each, answer in zip(problems, answers, strict=True)]
        new = {
            key: each for key, each in zip(asked, problems, strict=True) if key not in self._answers
        }
        found = (
            super().read_programs(list(new.values()), [answer for _, answer in new]) if new else []
        )
        self._answers |= dict(zip(new, found, strict=True))
        return [self._answers[key] for key in asked]

    def judge_parts(self, parts: Sequence[AttackAnswers]) -> list[Judged]:
        """Judge one part after another: threads would wait for each other, not for the sandbox."""
        return [item for part in parts for item in self._judge_part(part)]

    def _judge_part(self, part: AttackAnswers) -> list[Judged]:
        memory = self.memory(part.problem)
        share = len(part.attacks) // max(1, len(part.programs))
        rng = self._rng(part.problem.task_id)
        judged: list[Judged] = []
        for number, program in enumerate(part.programs):
            attacks = part.attacks[number * share : (number + 1) * share]
            read = memory.read(part.problem, program.code, attacks, part.history)
            if read is None:  # something that is in no pool: the sandbox says
                return super()._judge_part(part)
            results = memory.results[program.code]
            if self._noise is not None:
                results = self._noisy(part.problem, results, rng, program.code)
            judged.append((list(read.suites), self._pay(read, results)))
        return judged

    def _noisy(
        self, problem: Problem, results: ProgramResults, rng: np.random.Generator, code: str
    ) -> ProgramResults:
        assert self._noise is not None
        if self._noise.kind == "independent":
            return _noisy(results, self._noise, rng, code)
        key = (problem.task_id, problem.reference, code)  # these errors are the same each time
        if key not in self._mistaken:
            self._mistaken[key] = _noisy(results, self._noise, rng, code)
        return self._mistaken[key]

    def _rng(self, task_id: str) -> np.random.Generator:
        """Return a generator for the errors of one judgement. Problems are judged in several threads."""
        self._judgements[task_id] += 1
        seed = 0 if self._noise is None else self._noise.seed
        name = zlib.crc32(task_id.encode())
        return np.random.default_rng([seed, name, self._judgements[task_id]])


@dataclass(frozen=True)
class _Memory:
    pools: Pools
    subject: Subject
    suites: dict[str, Suite]
    """Text of a test -> what was read."""
    rulings: dict[str, TestVerdict]
    """Text of a test -> the ruling on it, whatever the program."""
    results: dict[str, ProgramResults]
    """Program -> how it ran."""

    def read(
        self, problem: Problem, code: str, attacks: Sequence[str], history: Sequence[str]
    ) -> _Read | None:
        """Return a round with its rulings; None if a part of it is unknown."""
        answers = [text.split(TEST_SEPARATOR) if text else [] for text in attacks]
        known = self.suites.keys()
        if code not in self.results or not all(map(known.__contains__, history)):
            return None
        for tests in answers:
            calls = [self.rulings[text].call for text in tests if text in known]
            if len(set(calls)) < len(tests):  # unknown ones, or several of one call
                return None
        suites = [joined(tests, [self.suites[text] for text in tests]) for tests in answers]
        replayed = [self.rulings[text] for text in dict.fromkeys(history)]
        return _Read(
            Round(problem, code, suites, history),
            Attack(self.subject, code),
            suites,
            [self.suites[text] for text in dict.fromkeys(history)],
            [[self.rulings[text] for text in tests] for tests in answers],
            [each if each.status == "kept" else None for each in replayed],
        )


def _remember(referee: Referee, problem: Problem) -> _Memory:
    pools = pools_of(problem)
    ask = Referee(referee.sandbox, referee.config).judge

    def round_of(code: str, texts: Sequence[str]) -> Round:
        return Round(problem, code, [[text] for text in texts])

    found = ask([round_of(problem.reference, pools.tests)])[0].suites
    # The book holds tests with the reference's value: one for each call, and so enough to say what programs return.
    held = list(dict.fromkeys(suite.tests[0].text for suite in found))
    more = [text for text in held if text not in set(pools.tests)]
    others, *verdicts = ask(
        [round_of(problem.reference, more), *(round_of(code, held) for code in pools.programs)]
    )
    texts = [*pools.tests, *more]
    suites = parse_suites([(text, problem) for text in texts], referee.sandbox)
    judged = [suite.tests[0] for suite in (*found, *others.suites)]
    rulings = dict(zip(texts, judged, strict=True))
    results = {}
    for code, verdict in zip(pools.programs, verdicts, strict=True):
        tests = [suite.tests[0] for suite in verdict.suites]
        calls = {t.call: TestResult(t.outcome, t.message) for t in tests if t.outcome is not None}
        results[code] = ProgramResults(verdict.load, calls)
    return _Memory(
        pools, Subject.of(problem), dict(zip(texts, suites, strict=True)), rulings, results
    )


def _noisy(
    results: ProgramResults, noise: Noise, rng: np.random.Generator, code: str
) -> ProgramResults:
    calls = dict(results.calls)
    chances = rng.random(len(calls)) if noise.kind == "independent" else None
    for number, (call, result) in enumerate(results.calls.items()):
        passed = result.outcome is Outcome.PASS
        rate = noise.false_fail if passed else noise.false_pass
        if chances is not None:
            chance = float(chances[number])
        else:
            text = f"{noise.seed} {passed} {code} {call if noise.kind == 'pair' else ''}"
            digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
            chance = int.from_bytes(digest) / 2**64
        if chance < rate:
            calls[call] = TestResult(Outcome.FAIL if passed else Outcome.PASS, "")
    return ProgramResults(results.load, calls)
