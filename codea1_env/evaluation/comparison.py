"""Two evaluations of the same problems: which one is better, and where."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codea1_env.evaluation.asking import BUILT_IN
from codea1_env.evaluation.runner import REPORT
from codea1_env.evaluation.statistics import Estimate, mean_over_problems, pass_at_k
from codea1_env.evaluation.suites import figures
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


_WHAT = {"code": "programs", "tests": "tests"}
_MEASURED_BY = {
    "num_tests": ("all pass", "any pass", "mutation score"),
    "wrong_programs_sha256": ("p_01", "p_00", "mu"),
}
"""Setting -> figures that mean something else where it is another."""
_Values = Mapping[str, float | None]


def compare(a: Path, b: Path) -> ComparedEvaluations:
    """Compare the result folders of two evaluations; a FolderError where nothing can be compared."""
    ours, theirs = (_report(path) for path in (a, b))
    kind, other = (report.get("kind", "code") for report in (ours, theirs))
    if kind != other:
        raise FolderError(
            f"Expect two evaluations of one kind, actually: {a} is one of {_WHAT.get(kind, kind)}, and "
            f"{b} one of {_WHAT.get(other, other)}. Compare like with like."
        )
    if kind == "panel":
        raise FolderError(
            "Expect evaluations that have a value for every problem, actually: panels, whose rows are of few problems each. Compare "
            "the counts and intervals of their tables."
        )
    first, second = ours["results"], theirs["results"]
    common = [name for name in first if name in second and _alike(first[name], second[name])]
    if not common:
        raise FolderError(
            f"Expect {a} and {b} to have problems in common, actually: none. Compare evaluations of the same set."
        )
    x, y = ([_values(report, name) for name in common] for report in (ours, theirs))
    left_out = _measured_otherwise(ours, theirs) if kind == "tests" else {}
    if kind == "tests":
        differences, main = _of_suites(x, y, [name for each in left_out.values() for name in each])
    else:
        differences, main = _of_means(x, y)
    if not differences:
        raise FolderError(
            f"Expect {a} and {b} to have a figure in common with a value for every problem, actually: none. Compare "
            "evaluations with the same settings or players."
        )
    changes = [
        Change(name, float(before[main] or 0.0), float(after[main] or 0.0))
        for name, before, after in zip(common, x, y, strict=True)
        if main
    ]
    changes.sort(key=lambda change: -abs(change.b - change.a))
    return ComparedEvaluations(
        len(common),
        tuple(name for name in {**first, **second} if name not in set(common)),
        tuple(differences),
        better=tuple(change for change in changes if change.b > change.a),
        worse=tuple(change for change in changes if change.b < change.a),
        kind=kind,
        left_out=tuple(f"other {name}: {', '.join(of)}" for name, of in left_out.items()),
    )


def _alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether results are of the same problem, and something of it could be judged in both."""
    return one["digest"] == other["digest"] and 0 not in (one.get("samples"), other.get("samples"))


def _measured_otherwise(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Setting that differs -> figures that mean something else then."""
    return {
        setting.removesuffix("_sha256"): of
        for setting, of in _MEASURED_BY.items()
        if a["settings"].get(setting) != b["settings"].get(setting)
    }


def _values(report: Mapping[str, Any], task: str) -> _Values:
    """Values of one problem, of which figures are made."""
    result = report["results"][task]
    if "values" in result:
        return result["values"]  # type: ignore[no-any-return]
    ks = sorted({1, *_ks(report["figures"]["all"])})
    kinds = {"passed": "", "base": " (base)"}
    return {
        f"pass@{k}{suffix}": pass_at_k(result["samples"], result[key], k)
        for key, suffix in kinds.items()
        if key in result
        for k in ks
    }


def _of_means(ours: Sequence[_Values], theirs: Sequence[_Values]) -> tuple[list[Difference], str]:
    """Differences of means over problems, of values that all have; and the first of their names."""
    found = []
    for name in ours[0]:
        x, y = ([v for row in side if (v := row.get(name)) is not None] for side in (ours, theirs))
        if len(x) == len(y) == len(ours):
            paired = [after - before for before, after in zip(x, y, strict=True)]
            found.append(Difference(name, *map(mean_over_problems, (x, y, paired))))
    return found, found[0].figure if found else ""


def _of_suites(
    ours: Sequence[_Values], theirs: Sequence[_Values], left_out: Sequence[str]
) -> tuple[list[Difference], str]:
    """Differences of figures of tests; and the share of right tests for the largest k that both have."""
    ks = sorted(_ks(ours[0]) & _ks(theirs[0]))
    found = []
    for name in figures.names(ks):
        if name.partition("@")[0] in left_out:
            continue
        pairs = list(zip(ours, theirs, strict=True))
        if any(name in each for pair in pairs for each in pair):  # it is not made of other values
            pairs = [pair for pair in pairs if None not in (pair[0].get(name), pair[1].get(name))]
        x, y = [x for x, _ in pairs], [y for _, y in pairs]
        a, b = figures.estimate(x, name), figures.estimate(y, name)
        difference = figures.difference(x, y, name)
        if a and b and difference:
            found.append(Difference(name, a, b, difference))
    return found, f"pass@{ks[-1]}" if ks else ""


def _ks(names: Iterable[str]) -> set[int]:
    return {int(name.removeprefix("pass@")) for name in names if name.startswith("pass@")}


def _report(folder: Path) -> dict[str, Any]:
    if not (folder / REPORT).is_file():
        begun = (folder / EVALUATION.manifest).is_file()
        found = f"it has no {REPORT}" if folder.exists() else "there is no such folder"
        remedy = (
            "Finish it with --resume, or name another folder" if begun else "Name another folder"
        )
        raise FolderError(
            f"Expect {folder} to be the folder of a finished evaluation, actually: {found}. {remedy}."
        )
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
