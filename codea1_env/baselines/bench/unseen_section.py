"""The section of LEADERBOARD.md on problems that are not trained on: the first one of language models."""

from __future__ import annotations

from collections.abc import Mapping

from codea1_env.baselines.bench.run_result import UNSEEN_PREFIX
from codea1_env.baselines.bench.score_table import CONTROLS, MEASURES, Table
from codea1_env.evaluation.statistics import Estimate


def unseen_lines(table: Table, names: Mapping[str, str]) -> list[str]:
    """Return the section; none if no such problems were measured.

    Args:
        table: The scores.
        names: Name of an entry -> as it is shown.
    """
    if not table.measures_unseen:
        return []
    first = table.entries[0]
    problems = {
        measure: 0 if scores is None else scores.shape[1]
        for measure in MEASURES
        for scores in [table.scores(first, f"{UNSEEN_PREFIX}{measure}")]
    }
    order = sorted(
        table.entries, key=lambda name: -(table.mean(name, f"{UNSEEN_PREFIX}pass_rate") or -1.0)
    )
    rows = [(name, names[name].replace("|", "\\|")) for name in order]
    rows += [(name, f"*{shown}*") for name, shown in CONTROLS.items()]
    less = f"less {names[first]}".replace("|", "\\|")
    return [
        "## Problems that are not trained on",
        "",
        f"Pass rate: share of all golden tests of {problems['pass_rate']} problems that the coder's programs pass. Kill rate: share of the mutants of "
        f"{problems['kill_rate']} problems",
        "that the tester's suites kill; new kill rate: of those that copies of the examples in the problem's text do not kill,",
        f"of {problems['new_kill_rate']} problems. Means over seeds with 95% intervals by Student's t over seeds: all problems of a run share the weights of",
        f"one model, and are no independent runs. The differences to {names[first]} are paired by seed: an interval with 0 in it says nothing.",
        "A dash: the tester is no language model, or there is one seed.",
        "",
        f"| | coder: pass rate | {less} | tester: kill rate | {less} | new kill rate | {less} |",
        f"|{'---|' * 7}",
        *(_row(table, name, shown, first) for name, shown in rows),
        "",
        "## Problems that are trained on",
        "",
    ]


def _row(table: Table, name: str, shown: str, first: str) -> str:
    cells = [shown]
    for measure in (f"{UNSEEN_PREFIX}{each}" for each in MEASURES):
        difference = table.difference(name, first, measure) if name != first else None
        cells += [_text(table.mean_of_seeds(name, measure)), _text(difference)]
    return f"| {' | '.join(cells)} |"


def _text(value: Estimate | float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)
