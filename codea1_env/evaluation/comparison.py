"""Two evaluations of the same problems: which one is better, and where."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.evaluation.pass_at_k import Count, mean_pass_at_k, paired_difference
from codea1_env.evaluation.result_folder import REPORT, FolderError, read_json
from codea1_env.evaluation.statistics import Estimate


@dataclass(frozen=True)
class Difference:
    """One figure of both evaluations."""

    figure: str
    """"pass@1", or "pass@1 (base)" for the base tests."""
    a: Estimate
    b: Estimate
    difference: Estimate
    """b - a on the same problems; the interval is paired."""


@dataclass(frozen=True)
class Change:
    """A problem on which the evaluations differ."""

    task_id: str
    a: float
    """Share of right programs."""
    b: float


@dataclass(frozen=True)
class Comparison:
    """What can be said about two evaluations."""

    problems: int
    """Problems that both have, and that are the same in both."""
    not_compared: tuple[str, ...]
    """Problems that only one of them has, or that have changed in between."""
    differences: tuple[Difference, ...]
    better: tuple[Change, ...]
    """Where b has more right programs, the greatest change first."""
    worse: tuple[Change, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)


def compare(a: Path, b: Path) -> Comparison:
    """Compare the result folders of two evaluations.

    Args:
        a: Result folder.
        b: Another one, on the same problems.

    Raises:
        FolderError: One of them is no finished evaluation, or they have no problem in common.
    """
    reports = [_report(path) for path in (a, b)]
    first, second = (report["results"] for report in reports)
    common = [
        name for name in first if name in second and first[name]["digest"] == second[name]["digest"]
    ]
    if not common:
        raise FolderError(
            f"Expect {a} and {b} to have problems in common, actually: none. Compare evaluations of the same set."
        )
    differences = []
    kinds = {"passed": "", "base": " (base)"}
    for key, suffix in kinds.items():
        if any(key not in results[name] for results in (first, second) for name in common):
            continue
        ours, theirs = (_counts(results, common, key) for results in (first, second))
        for k in _common_k(*reports):
            between = paired_difference(ours, theirs, k)
            a_value, b_value = (
                mean_pass_at_k(list(counts.values()), k) for counts in (ours, theirs)
            )
            differences.append(Difference(f"pass@{k}{suffix}", a_value, b_value, between))
    ours, theirs = (_counts(results, common, "passed") for results in (first, second))
    changes = [Change(name, _share(ours[name]), _share(theirs[name])) for name in common]
    changes.sort(key=lambda change: -abs(change.b - change.a))
    return Comparison(
        len(common),
        tuple(name for name in {**first, **second} if name not in set(common)),
        tuple(differences),
        better=tuple(change for change in changes if change.b > change.a),
        worse=tuple(change for change in changes if change.b < change.a),
    )


def _report(folder: Path) -> dict[str, Any]:
    if not (folder / REPORT).is_file():
        raise FolderError(
            f"Expect {folder} to be the folder of a finished evaluation, actually: it has no {REPORT}. "
            "Finish it with --resume, or name another folder."
        )
    report = read_json(folder / REPORT)
    if not isinstance(report.get("results"), dict) or not isinstance(report.get("figures"), dict):
        raise FolderError(
            f"Expect {folder / REPORT} to be the report of an evaluation, actually it has other fields."
        )
    return report


def _common_k(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[int]:
    names = [set(report["figures"]["all"]) for report in (first, second)]
    found = [name for name in names[0] & names[1] if name.startswith("pass@")]
    return sorted({1, *(int(name.removeprefix("pass@")) for name in found)})


def _counts(results: Mapping[str, Any], names: list[str], key: str) -> dict[str, Count]:
    return {name: Count(results[name]["samples"], results[name][key]) for name in names}


def _share(count: Count) -> float:
    return count.correct / count.samples
