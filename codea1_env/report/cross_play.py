"""Cross-play on the page: who beats whom, and the ratings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codea1_env.evaluation.statistics import Estimate
from codea1_env.rendering.display import counted
from codea1_env.report.charts import Chart, heat_map
from codea1_env.report.folders import Played
from codea1_env.report.tables import Cell, Sheet, text_cell


def rating(found: Estimate) -> str:
    """Return a rating with its interval.

    Example:
        >>> rating(Estimate(612.3, 584.1, 668.0))
        '612 [584, 668]'
    """
    return f"{found.value:.0f} {found.interval('{:.0f}'.format)}"


def cross_play_section(found: Sequence[Played]) -> tuple[list[Sheet], list[Chart]]:
    """Return the ratings as CROSSPLAY.md has them, and who beats whom."""
    return (
        [_ratings(each) for each in found],
        [heat_map(each.result)._replace(title=each.name) for each in found],
    )


def _ratings(each: Played) -> Sheet:
    rows = [
        [text_cell(name), Cell(role), Cell(rating(one), one.value)]
        for role, ratings in zip(
            ("coder", "tester"), each.result.ratings(np.random.default_rng(0)), strict=True
        )
        for name, one in sorted(ratings.items(), key=lambda item: -item[1].value)
    ]
    note = f"Bradley-Terry, on the scale of Elo; brackets: 95% intervals over {counted(len(each.result.problems), 'problems')}."
    return Sheet(f"Ratings: {each.name}", note, ["player", "role", "rating"], rows)
