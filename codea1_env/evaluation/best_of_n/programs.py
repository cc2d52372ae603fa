"""Programs that are known to be right or wrong: what `codea1 eval code` leaves in its result folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.evaluation.programs.judging import EXCLUDED
from codea1_env.evaluation.result_folder import (
    REPORT,
    SAMPLES,
    SETTINGS,
    VERDICTS,
    FolderError,
    read_json,
)
from codea1_env.evaluation.samples import digest, read_samples
from codea1_env.problem_sets.sources import rows
from codea1_env.problems import Problem, ProblemsError
from codea1_env.sandbox import Outcome


@dataclass(frozen=True)
class JudgedProgram:
    """A program, and what its evaluation found."""

    code: str
    right: bool


class CodeResults:
    """The result folder of a finished evaluation of programs.

    Args:
        path: The folder.

    Raises:
        FolderError: It is no such folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not (path / REPORT).is_file():
            raise FolderError(
                f"Expect {path} to be the folder of a finished `codea1 eval code`, actually: it has no {REPORT}. "
                "Finish it with --resume, or name another folder."
            )
        self.settings: Mapping[str, Any] = read_json(path / SETTINGS).get("settings", {})
        self._report = read_json(path / REPORT)
        if self._report.get("kind", "code") != "code":
            raise FolderError(
                f"Expect {path} to be the folder of `codea1 eval code`, actually it is that of another evaluation."
            )

    @property
    def excluded(self) -> dict[str, str]:
        """Task that could not be used -> why."""
        return dict(self._report["excluded"])

    @property
    def packages(self) -> tuple[str, ...]:
        """Packages that programs were allowed."""
        return tuple(self.settings.get("packages", {}))

    def digest(self) -> str:
        """A text that changes whenever the programs or their verdicts do."""
        content = b"".join((self.path / name).read_bytes() for name in (SAMPLES, VERDICTS))
        return hashlib.sha256(content).hexdigest()

    def programs(self, problems: Sequence[Problem]) -> dict[str, list[JudgedProgram]]:
        """The programs of each problem that was used, in the order of the problems.

        Args:
            problems: The problem set of the evaluation.

        Raises:
            FolderError: The files, or the problems, have changed since.
            SamplesError: The file of samples cannot be read.
        """
        results = self._report["results"]
        changed = [
            each.task_id
            for each in problems
            if each.task_id in results and results[each.task_id]["digest"] != digest(each)
        ]
        if changed:
            raise FolderError(
                f"Expect the problems that {self.path} was made with, actually {len(changed)} have changed since, "
                f"such as {changed[0]}. Evaluate the programs again."
            )
        samples = read_samples(self.path / SAMPLES, problems).samples
        verdicts = self._verdicts()
        found: dict[str, list[JudgedProgram]] = {
            each.task_id: [] for each in problems if each.task_id in results
        }
        for sample, verdict in zip(samples, verdicts, strict=False):
            if (verdict.get("task_id"), verdict.get("sample")) != (sample.task_id, sample.index):
                break
            if verdict.get("outcome") != EXCLUDED:
                right = verdict.get("outcome") == Outcome.PASS.value
                found[sample.task_id].append(JudgedProgram(sample.code, right))
        if {task: len(programs) for task, programs in found.items()} != {
            task: result["samples"] for task, result in results.items()
        }:
            raise FolderError(
                f"Expect {VERDICTS} of {self.path} to have a verdict on every program, actually it does not fit "
                f"{SAMPLES} and {REPORT}. The files were changed; evaluate the programs again."
            )
        return found

    def _verdicts(self) -> list[Mapping[str, Any]]:
        found = []
        try:
            for row in rows(str(self.path / VERDICTS)):
                if isinstance(row, ProblemsError) or not isinstance(row.fields, Mapping):
                    raise FolderError(f"Expect rows of verdicts, actually: {row!s:.200}")
                found.append(row.fields)
        except (OSError, ProblemsError) as error:
            raise FolderError(str(error)) from error
        return found
