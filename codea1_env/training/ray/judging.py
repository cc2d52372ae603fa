"""Judges on the nodes of a Ray cluster: the rounds of a problem are one task, and each worker process has one referee.

Ray places the tasks and repeats those whose process is lost. A task that is lost each time pays nobody.
"""

from __future__ import annotations

import os
import pickle
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from codea1_env.judging.verdicts import NOT_JUDGED, AttackAnswers, Counters, Judged
from codea1_env.referee import Referee, RefereeConfig, Round, SuiteVerdict, TestVerdict, Verdict
from codea1_env.responses import Suite
from codea1_env.rewards import SuiteOutcome, SuiteRewards
from codea1_env.sandbox import InfraError, Limits, Outcome, Sandbox, TestResult

_RETRIES = 3
"""Times that Ray repeats a task whose process was lost, or whose sandbox failed."""
Asked = AttackAnswers | list[Round]
"""What is asked about one problem."""


class Rules(NamedTuple):
    """All that makes a referee."""

    config: RefereeConfig
    limits: Limits
    level: str | None
    packages: tuple[str, ...]
    folder: str
    """Where files of the user's lie, such as a reward."""


_referee: tuple[Rules, Referee] | None = None
"""The referee of this worker process: it remembers the values of references."""


def judged(rules: Rules, asked: Asked) -> bytes:
    """Judge what is asked about one problem, and count what the sandbox did; see `read`. Runs in a worker process of Ray."""
    referee = _referee_here(rules)
    before = replace(referee.counters)
    found: Sequence[Any]
    if isinstance(asked, AttackAnswers):
        found = referee.judge_parts([asked])
    else:
        found = referee.judge(asked)
    # Half the time of Ray's own way, and small enough to come without its store.
    return zlib.compress(pickle.dumps((found, referee.counters - before)), 1)


def read(answer: bytes) -> tuple[list[Any], Counters]:
    """Read what `judged` returned."""
    found: tuple[list[Any], Counters] = pickle.loads(zlib.decompress(answer))
    return found


def _referee_here(rules: Rules) -> Referee:
    global _referee
    if _referee is None or _referee[0] != rules:
        if _referee is not None:
            _referee[1].sandbox.close()
        with suppress(OSError):  # another machine may not have it, and not need it
            os.chdir(rules.folder)
        sandbox = Sandbox(1, rules.limits, level=rules.level, packages=rules.packages)
        _referee = rules, Referee(sandbox, rules.config)
    return _referee[1]


class RayReferee(Referee):
    """Judges as a `Referee` does, on the nodes. Programs are found in answers here. `say` is told of lost nodes."""

    def __init__(
        self, ray: Any, sandbox: Sandbox, config: RefereeConfig, say: Callable[[str], None]
    ) -> None:
        super().__init__(sandbox, config)
        self._ray, self._say = ray, say
        self._nodes = self._living_nodes()
        rules = Rules(config, sandbox.limits, sandbox.asked_level, sandbox.packages, os.getcwd())
        self._rules = ray.put(rules)
        self._task = ray.remote(judged).options(
            num_cpus=1,
            max_retries=_RETRIES,
            retry_exceptions=[InfraError],
            scheduling_strategy="SPREAD",
        )

    def judge(self, rounds: Sequence[Round]) -> list[Verdict]:
        """Judge a batch, the rounds of each problem together. See `Referee.judge`."""
        places: dict[int, list[int]] = {}
        for place, each in enumerate(rounds):
            places.setdefault(id(each.problem), []).append(place)
        asked = [[rounds[place] for place in numbers] for numbers in places.values()]
        verdicts: dict[int, Verdict] = {}
        for numbers, found in zip(places.values(), self._all(asked), strict=True):
            verdicts |= zip(numbers, found, strict=True)
        return [verdicts[place] for place in range(len(rounds))]

    def judge_parts(self, parts: Sequence[AttackAnswers]) -> list[Judged]:
        """Judge what testers answered, each problem by itself. See `Referee.judge_parts`."""
        return [item for found in self._all(parts) for item in found]

    def _all(self, asked: Sequence[Asked]) -> list[list[Any]]:
        """Judge each problem, wherever there is room; an InfraError if none of them could be judged."""
        references = [self._task.remote(self._rules, each) for each in asked]
        found: list[list[Any]] = []
        lost = 0
        for each, reference in zip(asked, references, strict=True):
            try:
                items, done = read(self._ray.get(reference))
            except self._ray.exceptions.RayError as error:
                cause = getattr(error, "cause", None)  # what a referee raised
                if cause is not None and not isinstance(cause, InfraError):
                    raise cause from None
                items, done, lost, why = *_unjudged(each), lost + 1, error
            found.append(items)
            self._count(done)
        before, self._nodes = self._nodes, self._living_nodes()
        for node in before.keys() - self._nodes.keys():
            self._say(f"Node {before[node]} is gone: what it was judging was repeated elsewhere.")
        if lost and lost == len(asked):
            raise InfraError(
                f"No problem could be judged on the cluster, though each was tried {_RETRIES + 1} times: "
                f"{' '.join(str(why).split())[-300:]}"
            ) from why
        return found

    def _living_nodes(self) -> dict[str, str]:
        """The nodes that Ray does not know to be dead, as it does before it repeats a task of theirs: id -> address."""
        nodes = self._ray.nodes()
        return {each["NodeID"]: each["NodeManagerAddress"] for each in nodes if each["Alive"]}


def _unjudged(asked: Asked) -> tuple[list[Any], Counters]:
    """Return verdicts that pay nobody, and change nothing in the Mistake Book."""
    if isinstance(asked, AttackAnswers):
        suites = [Suite(())] * (len(asked.attacks) // max(1, len(asked.programs)))
        verdict = _no_verdict(Round(asked.problem, "", suites))
        return [(suites, verdict) for _ in asked.programs], Counters(unjudged=len(asked.attacks))
    verdicts = [_no_verdict(each) for each in asked]
    tests = sum(len(suite.tests) for v in verdicts for suite in v.suites)
    return verdicts, Counters(unjudged=tests)


def _no_verdict(asked: Round) -> Verdict:
    load = TestResult(Outcome.INFRA_ERROR, "the cluster lost each process that judged it")
    outcome, rewards = SuiteOutcome(False, (), 0, 0, 0), SuiteRewards(None, None, 0.0, 0.0)
    suites = []
    for suite in asked.suites:
        texts = [test.text for test in suite.tests] if isinstance(suite, Suite) else suite
        tests = [TestVerdict(text, "not made", NOT_JUDGED, Outcome.UNJUDGED) for text in texts]
        suites.append(SuiteVerdict(tuple(tests), outcome, rewards))
    return Verdict(asked.problem.task_id, False, load, None, tuple(suites), ())
