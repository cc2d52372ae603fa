"""`codea1 eval tests --panel`: a tester on the whole panel, kept in a folder like any evaluation."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from codea1_env.evaluation.asking import TestEvaluation
from codea1_env.evaluation.panel import (
    ROWS,
    Panel,
    PanelCount,
    PanelProgram,
    add_up,
    count_of,
    draw_panel,
)
from codea1_env.evaluation.samples import SampleFile, SamplesError, SuiteSample
from codea1_env.evaluation.task import Question
from codea1_env.problems import Problem
from codea1_env.referee import Referee, Round
from codea1_env.responses import parse_suites
from codea1_env.sandbox import Sandbox

_BUNDLED = "bundled:"


@dataclass(kw_only=True, eq=False)
class PanelEvaluation(TestEvaluation[SuiteSample, Mapping[str, Any]]):
    """Judge a tester by a panel: planted faults that only a program's text names, the same shown blind, and more.

    docs/evaluation.md says what the rows are. `numbers` and `copier` as the agent are the scripts to compare with.
    """

    kind = "panel"
    figure = "copied_unseen"

    panel_size: Annotated[int, tyro.conf.arg(metavar="N")] = 48
    """Programs of each row."""
    panel_seed: int = 0
    """Draws the panel. A run draws its own from its seed."""
    trained: Annotated[str | None, tyro.conf.arg(metavar="RUN")] = None
    """Leave out the problems that this run trains on; None for the run of the agent."""

    panel: Panel = field(init=False, repr=False, default=Panel(()))
    left_out: tuple[Problem, ...] = field(init=False, repr=False, default=())
    """Problems that were trained on."""

    def settings(self, asked: bool) -> dict[str, Any]:
        """All that the panel and its counts depend on."""
        return {
            "num_tests": self.num_tests,
            "panel_size": self.panel_size,
            "panel_seed": self.panel_seed,
            "trained": [each.task_id for each in self.left_out],
        }

    def load(self, problems: Sequence[Problem]) -> dict[str, int]:
        """Take the source of mutants, of right programs and of wrong ones that a model wrote."""
        self._source = list(problems)
        return super().load(problems)

    def begin(self, sandbox: Sandbox) -> None:
        """Draw the panel."""
        super().begin(sandbox)
        self.referee = Referee(sandbox)
        self.panel = draw_panel(
            self._source, self.left_out, self.referee, self.panel_seed, self.panel_size
        )
        self._of: dict[str, list[PanelProgram]] = {}
        known = self.problems
        self.problems = {task: known[task] for task in self.panel.unusable}
        for each in self.panel.programs:
            task = each.problem.task_id
            if not _same(known.setdefault(task, each.problem), each.problem):
                task = f"{_BUNDLED}{task}"  # the source has another problem of this name
            self.problems[task] = replace(each.problem, task_id=task)
            self._of.setdefault(task, []).append(each)

    def faults(self) -> dict[str, str]:
        """Task -> why its reference can judge no tests."""
        return dict(self.panel.unusable)

    def questions(self, num_samples: int) -> list[Question]:
        """Return each program of the panel so many times."""
        self._samples = num_samples
        return [
            Question(self.problems[task], i, self._program(task, i).shown)
            for task, programs in self._of.items()
            for i in range(len(programs) * num_samples)
        ]

    def _program(self, task: str, index: int) -> PanelProgram:
        return self._of[task][index // self._samples]

    def read_file(self, path: Path, problems: Sequence[Problem]) -> SampleFile[SuiteSample]:
        """Refuse tests made elsewhere: they were not written for these programs."""
        raise SamplesError(
            f"The panel asks about its own programs: name an --agent, and leave --samples {path} out."
        )

    def judge(self, problem: Problem, sample: SuiteSample) -> Mapping[str, Any]:
        """Count what a suite does on its program."""
        program = self._program(problem.task_id, sample.index)
        [suite] = parse_suites([(sample.row["answer"], problem)], self.sandbox)
        [verdict] = self.referee.judge([Round(problem, program.code, [suite])])
        count = count_of(program, verdict)
        return {"row": program.row, "fault": program.kind, **dataclasses.asdict(count)}

    def counts(self) -> dict[str, PanelCount]:
        """Row -> counts, in the order of `ROWS`."""
        verdicts = (each for task in self.scored for each in self.verdicts[task])
        found = add_up((each["row"], _count(each)) for each in verdicts)
        return {row: found[row] for row in ROWS if row in found}

    def values(self, verdicts: Sequence[Mapping[str, Any]]) -> Mapping[str, float | None]:
        """Share of each row, of one problem."""
        found = add_up((each["row"], _count(each)) for each in verdicts)
        return {row: count.hits / count.of if count.of else None for row, count in found.items()}

    def figures(self) -> dict[str, Any]:
        """Share of each row over all programs, with Wilson's interval."""
        shares = {row: count.share for row, count in self.counts().items()}
        return {row: each and dataclasses.asdict(each) for row, each in shares.items()}

    def summary(self) -> dict[str, Any]:
        """Add counts, and rows that have no programs."""
        counts = {row: dataclasses.asdict(count) for row, count in self.counts().items()}
        return super().summary() | {
            "counts": counts,
            "panel": self.panel.digest,
            "left_out": dict(self.panel.left_out),
        }

    def table(self, report: Mapping[str, Any]) -> list[list[str]]:
        """Rows with counts."""
        rows = []
        for row, fields in report["counts"].items():
            count = PanelCount(**fields)
            rows.append([ROWS[row], str(count.share or "-"), str(count), str(count.right)])
        return [["breaks", "share [95% interval]", "counts", "by a right value"], *rows]

    def lines(self, report: Mapping[str, Any]) -> list[str]:
        """Say which rows are missing."""
        said = [f"Left out: {ROWS[row]} ({why})" for row, why in report["left_out"].items()]
        return [*super().lines(report), *said]


def _same(one: Problem, other: Problem) -> bool:
    return (one.prompt, one.reference) == (other.prompt, other.reference)


def _count(row: Mapping[str, Any]) -> PanelCount:
    return PanelCount(row["hits"], row["of"], row["right"])
