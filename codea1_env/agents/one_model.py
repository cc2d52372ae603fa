"""One tabular model in both roles: what self-play with a single language model is, in small."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from codea1_env.agents.policy import Algorithm, Sample, SoftmaxPolicy, updated
from codea1_env.agents.scripted import TEST_SEPARATOR
from codea1_env.agents.state import (
    KnownProblems,
    load_saved_state,
    read_state,
    rng_state,
    saved_state,
    shown_to,
    write_json,
)
from codea1_env.agents.tabular import Pool
from codea1_env.referee import Referee
from codea1_env.rollout import Answer, Experience
from codea1_env.sandbox import Sandbox
from codea1_env.spaces import Observation

_TRUST = "shown"


class _SuiteDraw(NamedTuple):
    program: int
    """The program whose values the tests predict."""
    shown: bool
    """Whether that is the program that the tester was shown, and not one of its own belief."""
    tests: tuple[int, ...]


class TabularSelfPlayer:
    """One set of tables for coder and tester.

    A model that plays both roles writes the program that it believes in, and its tests predict what that program returns.
    So both draw a program from one table, which the rewards of both change. A tester that is shown a program of the pool
    may believe that one instead, with a probability that is learned, too: so self-play deceives itself.

    Both pools of a problem are given: programs, and tests whose values are replaced by what those programs return in the
    sandbox. `draws` is the number of tests of a suite.
    """

    def __init__(
        self,
        programs: Sequence[Pool],
        tests: Sequence[Pool],
        sandbox: Sandbox,
        program_algorithm: Algorithm,
        test_algorithm: Algorithm,
        rng: np.random.Generator,
        draws: int,
    ) -> None:
        self.rng = rng
        self._algorithms = {"programs": program_algorithm, "tests": test_algorithm}
        self._remembered()  # what cannot be saved is an error now, not at the first checkpoint
        self._problems = KnownProblems(pool.problem for pool in programs)
        self._programs = {pool.problem.task_id: pool for pool in programs}
        self._tests = {pool.problem.task_id: pool for pool in tests}
        self._referee = Referee(sandbox)
        self._texts: dict[tuple[str, int], tuple[str, ...]] = {}
        self.policies = {
            "programs": SoftmaxPolicy({key: len(p.items) for key, p in self._programs.items()}),
            "tests": SoftmaxPolicy({key: len(p.items) for key, p in self._tests.items()}, draws),
            "trust": SoftmaxPolicy({_TRUST: 2}),
        }

    def act(self, observations: Sequence[Observation]) -> list[str]:
        """Draw one answer for each observation: a program, or a suite if it is the tester's turn."""
        keys = [self._problems[observation].task_id for observation in observations]
        programs = self.policies["programs"]
        drawn = [
            self._draw_suite(key, observation["code"])
            if observation["turn"]
            else programs.draw(programs.table(key, shown_to(observation)), self.rng)[0]
            for key, observation in zip(keys, observations, strict=True)
        ]
        self._find_values(
            (key, each.program)
            for key, each in zip(keys, drawn, strict=True)
            if isinstance(each, _SuiteDraw)
        )
        return [
            Answer(TEST_SEPARATOR.join(self._texts[key, each.program][i] for i in each.tests), each)
            if isinstance(each, _SuiteDraw)
            else self._programs[key].items[each]
            for key, each in zip(keys, drawn, strict=True)
        ]

    def learn(self, experience: Sequence[Experience]) -> Mapping[str, float]:
        """Update the tables from the experience of both roles together."""
        samples: dict[str, list[Sample]] = {name: [] for name in self.policies}
        for item in experience:
            key, seen = self._problems[item.observation].task_id, shown_to(item.observation)
            if not item.observation["turn"]:
                index = self._programs[key].items.index(item.action)
                table = self.policies["programs"].table(key, seen)
                samples["programs"].append(Sample(table, (index,), item.reward, item.group))
                continue
            suite = item.note
            if not isinstance(suite, _SuiteDraw):
                raise ValueError(f"Expect a suite of this player, actually: {item.action!r:.200}")
            table = self.policies["tests"].table(key, seen)
            samples["tests"].append(Sample(table, suite.tests, item.reward, item.group))
            if not suite.shown:
                samples["programs"].append(Sample(key, (suite.program,), item.reward, item.group))
            if item.observation["code"] in self._programs[key].items:
                choice = (int(suite.shown),)
                samples["trust"].append(Sample(_TRUST, choice, item.reward, item.group))
        metrics: dict[str, float] = {}
        for name, policy in self.policies.items():
            algorithm = self._algorithms.get(name, self._algorithms["programs"])
            own = updated(algorithm, policy, samples[name])
            metrics |= {f"{name}/{metric}": value for metric, value in own.items()}
        metrics["trust"] = float(self.policies["trust"].probabilities(_TRUST)[1])
        return metrics

    def save(self, path: Path) -> None:
        """Write the tables, what the algorithms remember, and the state of the random generator."""
        tables = {name: policy.state_dict() for name, policy in self.policies.items()}
        state = {"tables": tables, "pools": self._fingerprints(), "rng": rng_state(self.rng)}
        write_json(path / "one_model.json", state | {"algorithms": self._remembered()})

    def load(self, path: Path) -> None:
        """Restore what `save` wrote. Raises a ValueError if it is of other pools."""
        state = read_state(path / "one_model.json", self._fingerprints())
        for name, tables in state["tables"].items():
            self.policies[name].load_state_dict(tables)
        for name, algorithm in self._algorithms.items():
            load_saved_state(algorithm, state.get("algorithms", {}).get(name))
        self.rng.bit_generator.state = state["rng"]

    def _remembered(self) -> dict[str, Any]:
        return {name: saved_state(algorithm) for name, algorithm in self._algorithms.items()}

    def _draw_suite(self, key: str, code: str) -> _SuiteDraw:
        known = self._programs[key].items
        shown = code in known and bool(self.policies["trust"].draw(_TRUST, self.rng)[0])
        own = self.policies["programs"].draw(key, self.rng)[0]
        tests = self.policies["tests"].draw(self.policies["tests"].table(key, code), self.rng)
        return _SuiteDraw(known.index(code) if shown else own, shown, tests)

    def _find_values(self, wanted: Iterable[tuple[str, int]]) -> None:
        new = [pair for pair in dict.fromkeys(wanted) if pair not in self._texts]
        believed = [
            dataclasses.replace(
                self._programs[key].problem, reference=self._programs[key].items[program]
            )
            for key, program in new
        ]
        runs = self._referee.references_run(believed)
        running = [each for each in zip(new, believed, runs, strict=True) if each[2]]
        found = self._referee.corrected(
            [(problem, self._tests[key].items) for (key, _), problem, _ in running]
        )
        for pair in new:
            self._texts[pair] = self._tests[pair[0]].items  # if the program says nothing
        for (pair, _, _), texts in zip(running, found, strict=True):
            self._texts[pair] = tuple(texts)

    def _fingerprints(self) -> dict[str, list[str]]:
        return {
            key: [pool.fingerprint, self._tests[key].fingerprint]
            for key, pool in self._programs.items()
        }
