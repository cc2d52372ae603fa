"""Two evaluations of the same problems: which one is better, and where."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.evaluation.asking import BUILT_IN
from codea1_env.evaluation.runner import REPORT
from codea1_env.evaluation.statistics import Count, Estimate, mean_over_problems, pass_at_k
from codea1_env.evaluation.suites.figures import difference as difference_of_suites
from codea1_env.evaluation.suites.figures import estimate, names
from codea1_env.support.jobs import EVALUATION, FolderError, read_json


@dataclass(frozen=True)
class Difference:
    """One figure of both evaluations."""

    figure: str
    """"pass@1", ...; "pass@1 (base)" for the base tests of programs."""
    a: Estimate
    b: Estimate
    difference: Estimate
    """b - a on the same problems; the interval is paired."""


@dataclass(frozen=True)
class Change:
    """A problem on which the evaluations differ."""

    task_id: str
    a: float
    """Share of right programs, or of right tests among those that were asked for; or the first figure of an evaluation
    of yours."""
    b: float


@dataclass(frozen=True)
class ComparedEvaluations:
    """What can be said about two evaluations."""

    problems: int
    not_compared: tuple[str, ...]
    """Problems that only one of them has, or that have changed in between."""
    differences: tuple[Difference, ...]
    better: tuple[Change, ...]
    """Where b has more right programs, the greatest change first."""
    worse: tuple[Change, ...]
    kind: str
    """"code", "tests" or the name of an evaluation of yours."""
    left_out: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return dataclasses.asdict(self)


def compare(a: Path, b: Path) -> ComparedEvaluations:
    """Compare the result folders of two evaluations; a FolderError where nothing can be compared."""
    reports = [_report(path) for path in (a, b)]
    kinds = [report.get("kind", "code") for report in reports]
    if kinds[0] != kinds[1]:
        raise FolderError(
            f"Expect two evaluations of one kind, actually: {a} is one of {_WHAT.get(kinds[0], kinds[0])}, and "
            f"{b} one of {_WHAT.get(kinds[1], kinds[1])}. Compare like with like."
        )
    if kinds[0] == "panel":
        raise FolderError(
            "Expect evaluations that have a value for every problem, actually: panels, whose rows are of few problems each. Compare "
            "the counts and intervals of their tables."
        )
    first, second = (report["results"] for report in reports)
    common = [
        name
        for name in first
        if name in second and first[name]["digest"] == second[name]["digest"]
        # 0: nothing could be judged
        if first[name].get("samples") != 0 and second[name].get("samples") != 0
    ]
    if not common:
        raise FolderError(
            f"Expect {a} and {b} to have problems in common, actually: none. Compare evaluations of the same set."
        )
    find = _of_suites if kinds[0] == "tests" else _of_means
    differences, shown, left_out = find(reports[0], reports[1], common)
    if not differences:
        raise FolderError(
            f"Expect {a} and {b} to have a figure in common with a value for every problem, actually: none. Compare "
            "evaluations with the same settings or players."
        )
    changes = [Change(name, x, y) for name, x, y in zip(common, *shown, strict=False)]
    changes.sort(key=lambda change: -abs(change.b - change.a))
    return ComparedEvaluations(
        len(common),
        tuple(name for name in {**first, **second} if name not in set(common)),
        tuple(differences),
        better=tuple(change for change in changes if change.b > change.a),
        worse=tuple(change for change in changes if change.b < change.a),
        kind=kinds[0],
        left_out=tuple(left_out),
    )


_WHAT = {"code": "programs", "tests": "tests"}
_Found = tuple[list[Difference], tuple[Sequence[float], Sequence[float]], list[str]]
"""Differences, the value of each problem in both that says where they differ, and why figures are left out."""


def _of_means(a: Mapping[str, Any], b: Mapping[str, Any], common: Sequence[str]) -> _Found:
    """Figures that are means over problems of a value that each has."""
    ours, theirs = (_values(report, common) for report in (a, b))
    found = {name: (ours[name], theirs[name]) for name in ours if name in theirs}
    differences = []
    for name, (x, y) in found.items():
        paired = [after - before for before, after in zip(x, y, strict=True)]
        differences.append(Difference(name, *map(mean_over_problems, (x, y, paired))))
    return differences, next(iter(found.values()), ((), ())), []


def _values(report: Mapping[str, Any], common: Sequence[str]) -> dict[str, list[float]]:
    results = [report["results"][name] for name in common]
    rows: list[Mapping[str, float | None]]
    if report.get("kind", "code") == "code":
        ks = sorted({1, *_ks(report["figures"]["all"])})
        rows = [
            {
                f"pass@{k}{suffix}": pass_at_k(Count(each["samples"], each[key]), k)
                for key, suffix in {"passed": "", "base": " (base)"}.items()
                if key in each
                for k in ks
            }
            for each in results
        ]
    else:
        rows = [each["values"] for each in results]
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    whole = {name: column for name, column in columns.items() if None not in column}
    return {name: [float(value or 0) for value in column] for name, column in whole.items()}


def _of_suites(a: Mapping[str, Any], b: Mapping[str, Any], common: Sequence[str]) -> _Found:
    ours, theirs = ([report["results"][name]["values"] for name in common] for report in (a, b))
    ks = sorted(_ks(ours[0]) & _ks(theirs[0]))
    unlike: list[str] = []
    left_out = []
    for setting, figures in _MEASURED_BY.items():
        if a["settings"].get(setting) != b["settings"].get(setting):
            unlike += figures
            left_out.append(f"other {setting.removesuffix('_sha256')}: {', '.join(figures)}")
    differences = []
    for name in names(ks):
        if name.partition("@")[0] in unlike:
            continue
        x, y = _with_figure(ours, theirs, name)
        found = [estimate(x, name), estimate(y, name)]
        between = difference_of_suites(x, y, name)
        if found[0] and found[1] and between:
            differences.append(Difference(name, found[0], found[1], between))
    # Where they differ: the share of right tests among the first k, for the largest k that both have.
    last = [f"pass@{k}" for k in ks[-1:]]
    first, second = (
        [each[name] or 0.0 for name in last for each in values] for values in (ours, theirs)
    )
    return differences, (first, second), left_out


def _with_figure(
    ours: Sequence[Mapping[str, Any]], theirs: Sequence[Mapping[str, Any]], name: str
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return the problems that have a figure in both; all, where it is made of several values."""
    pairs = list(zip(ours, theirs, strict=True))
    if any(name in each for pair in pairs for each in pair):
        pairs = [pair for pair in pairs if None not in (pair[0].get(name), pair[1].get(name))]
    return [x for x, _ in pairs], [y for _, y in pairs]


_MEASURED_BY = {
    "num_tests": ("all pass", "any pass", "mutation score"),
    "wrong_programs_sha256": ("p_01", "p_00", "mu"),
}
"""Setting -> figures that mean something else where it is another."""


def _ks(names: Iterable[str]) -> set[int]:
    return {int(name.removeprefix("pass@")) for name in names if name.startswith("pass@")}


def _report(folder: Path) -> dict[str, Any]:
    _check_finished(folder)
    report = read_json(folder / REPORT)
    if not isinstance(report.get("results"), dict) or not isinstance(report.get("figures"), dict):
        raise FolderError(
            f"Expect {folder / REPORT} to be the report of an evaluation, actually it has other fields."
        )
    own = all("values" in result for result in report["results"].values())
    if report.get("kind", "code") not in _WHAT and not (own and report["results"]):
        raise FolderError(
            f"Expect {folder} to be a result folder of `codea1 eval` (run, {', '.join(BUILT_IN)}) with values of its "
            f"problems, actually it is of {report['kind']!r:.80} and has none. Name another folder."
        )
    return report


def _check_finished(folder: Path) -> None:
    if (folder / REPORT).is_file():
        return
    if not folder.exists():
        found, remedy = "there is no such folder", "Name another"
    elif (folder / EVALUATION.manifest).is_file():
        found, remedy = f"it has no {REPORT}", "Finish it with --resume, or name another folder"
    else:
        found, remedy = f"it has no {REPORT} and no {EVALUATION.manifest}", "Name another folder"
    raise FolderError(
        f"Expect {folder} to be the folder of a finished evaluation, actually: {found}. {remedy}."
    )
