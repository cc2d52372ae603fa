"""How many programs are right: what `codea1 eval code` does.

First the references run on their own tests, which finds problems that cannot be used and how long programs may take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from codea1_env.evaluation.asking import ProgramEvaluation
from codea1_env.evaluation.program_verdicts import (
    MIN_TIME_LIMIT,
    TIME_LIMIT_FACTOR,
    TIME_LIMIT_WITHOUT_REFERENCE,
    CodeVerdict,
    ReferenceRun,
    judge_program,
    run_reference,
)
from codea1_env.evaluation.samples import ProgramSample
from codea1_env.evaluation.statistics import figure_of, pass_at_k
from codea1_env.evaluation.task import EvaluationError, Question
from codea1_env.problems import Problem
from codea1_env.rendering.display import counted
from codea1_env.sandbox import Outcome

DEFAULT_K = (1, 5, 10)


@dataclass(kw_only=True, eq=False)
class CodeEvaluation(ProgramEvaluation[CodeVerdict]):
    """Judge programs: pass@k and avg@n with intervals, of an agent or of a file of samples.

    The defaults are the paper's: 32 programs per problem at temperature 0.7 and top_p 0.95. Writes samples.jsonl
    (evalplus can score it), verdicts.jsonl and report.json to the result folder.
    """

    kind = ""
    default_samples = 32
    figure = "pass@1"
    check_type = ReferenceRun
    verdict_type = CodeVerdict

    k: Annotated[tuple[int, ...] | None, tyro.conf.arg(metavar="K")] = None
    """Which pass@k to report; None for those of 1, 5 and 10 that the number of samples allows."""
    select: Annotated[str | None, tyro.conf.arg(metavar="AGENT")] = None
    """Also choose one program of each problem by agreement with the tests of this agent (CodeT, arXiv 2207.10397), and show how
    often it is right, beside the first and a random one. Who writes tests: as --agent of `codea1 eval tests`."""
    codes: dict[str, list[str]] = field(init=False, default_factory=dict)
    """Task -> its programs, in the order of its verdicts."""

    def settings(self, asked: bool) -> dict[str, Any]:
        """Limits; which figures are shown decides nothing."""
        return {
            "min_time_limit": MIN_TIME_LIMIT,
            "time_limit_factor": TIME_LIMIT_FACTOR,
            "time_limit_without_reference": TIME_LIMIT_WITHOUT_REFERENCE,
        }

    def check_counts(self, counts: Mapping[str, int]) -> None:
        """Refuse a k above the number of samples, and a choice of one."""
        fewest = min(counts, key=lambda name: counts[name])
        if self.select is not None and counts[fewest] < 2:
            raise EvaluationError(
                f"Expect two samples or more with --select, actually: {fewest} has {counts[fewest]}. Ask for more samples."
            )
        for k in self.k or ():
            if not 1 <= k <= counts[fewest]:
                raise EvaluationError(
                    f"Expect every k to be between 1 and the number of samples, actually: k={k}, and {fewest} has "
                    f"{counts[fewest]}. Ask for a smaller k, or for more samples."
                )

    def check(self, problem: Problem) -> ReferenceRun:
        """Run the reference on its own tests."""
        return run_reference(problem, self.sandbox)

    def questions(self, num_samples: int) -> list[Question]:
        """Also about problems that cannot be used here: evalplus wants samples for all."""
        return [Question(each, i) for each in self.problems.values() for i in range(num_samples)]

    def judge(self, problem: Problem, sample: ProgramSample) -> CodeVerdict:
        """Run a program on all tests of its problem, up to the first that it fails."""
        return judge_program(problem, sample.code, self.checks[problem.task_id], self.sandbox)

    def add(self, sample: ProgramSample, verdict: CodeVerdict) -> None:
        """Count one more verdict."""
        super().add(sample, verdict)
        self.codes.setdefault(sample.task_id, []).append(sample.code)

    def values(self, verdicts: Sequence[CodeVerdict]) -> Mapping[str, float | None]:
        """pass@1, which is shown while it runs."""
        known = sum(map(_is_known, verdicts))
        return {"pass@1": sum(each.passed for each in verdicts) / known if known else None}

    def programs_of(self, task: str) -> list[tuple[str, bool]]:
        """Return the programs of a problem that were judged, and whether they are right."""
        both = zip(self.codes[task], self.verdicts[task], strict=True)
        return [(code, verdict.passed) for code, verdict in both if _is_known(verdict)]

    def numbers(self) -> dict[str, int]:
        """Return how many programs of each problem were judged, where one was."""
        known = {task: len(self.programs_of(task)) for task in self.scored}
        return {task: number for task, number in known.items() if number}

    def figures(self) -> dict[str, Any]:
        """pass@k and avg@n, on all tests and, where all problems have them, on the base tests."""
        numbers = self.numbers()
        # Of a group, or of what could be judged, there may be too few for a k.
        fewest = min(numbers.values(), default=0)
        asked = {f"pass@{k}": k for k in sorted({k for k in self.k or DEFAULT_K if k <= fewest})}
        if fewest > 1 and set(numbers.values()) == {fewest}:
            asked[f"avg@{fewest}"] = 1
        return {
            title: {
                name: figure_of([pass_at_k(n, self._right(t, kind), k) for t, n in numbers.items()])
                for name, k in asked.items()
            }
            for title, kind in zip(("all", "base"), self._kinds, strict=False)
        }

    @property
    def _kinds(self) -> list[str]:
        """Where a verdict says whether a program passes all tests, and the base tests where all problems have some."""
        base = [self.verdicts[task][0].base for task in self.scored]
        return ["passed", "base"] if base and None not in base else ["passed"]

    def _right(self, task: str, kind: str) -> int:
        return sum(bool(getattr(verdict, kind)) for verdict in self.verdicts[task])

    def summary(self) -> dict[str, Any]:
        """How programs ended."""
        faults = self.faults()
        ends = Counter(verdict.outcome for each in self.verdicts.values() for verdict in each)
        scored = (each for task in self.scored for each in self.verdicts[task])
        return super().summary() | {
            "outcomes": dict(sorted(ends.items())),
            "repeated": sum(
                len(each) - len(set(each))
                for task, each in self.codes.items()
                if task not in faults
            ),
            "judged_inside": sum(each.judged == "inside" for each in scored),
        }

    def result(self, task: str) -> dict[str, Any]:
        """How many programs are right, of those that could be judged."""
        right = {kind: self._right(task, kind) for kind in self._kinds}
        return {"samples": len(self.programs_of(task)), **right}

    def lines(self, report: Mapping[str, Any]) -> list[str]:
        """How programs ended, and how many are the same."""
        outcomes = ", ".join(f"{name} {number}" for name, number in report["outcomes"].items())
        lines = [f"{super().lines(report)[0]}: {outcomes}"]
        if number := report["repeated"]:
            lines.append(
                f"{counted(number, 'programs')} repeating another of the problem word for word (counted, as in evalplus)"
            )
        if number := report["judged_inside"]:
            lines.append(
                f"{counted(number, 'verdicts')} made inside, in the program's own process: a program can forge that"
            )
        return lines


def _is_known(verdict: CodeVerdict) -> bool:
    """Whether a program was judged: the sandbox may have failed at it, while others were judged."""
    return verdict.outcome != Outcome.UNJUDGED.value
