"""The lists of docs/training.md and the rows of real runs name the same metrics."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import codea1_env
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.support.logs import read_rows
from codea1_env.training.metrics import slug
from codea1_env.training.run_folder import METRICS, TIMINGS

REASONS = tuple(map(slug, InvalidReason))

PAGE = Path(codea1_env.__file__).resolve().parent.parent / "docs" / "training.md"
PHASES = ("coder", "tester", "judge", "learn_coder", "learn_tester", "evaluate", "checkpoint")

pytestmark = pytest.mark.skipif(not PAGE.is_file(), reason="needs the repository")


def documented(heading: str, of: Iterable[str], roles: Iterable[str], samples: int) -> set[str]:
    """Metrics of a list, with every value of the words in capitals."""
    page = PAGE.read_text("utf-8")
    after = page.split(f"# {heading}\n", 1)[1]
    section = re.split(r"^#+ ", after, maxsplit=1, flags=re.MULTILINE)[0]
    values = {"ROLE": roles, "REASON": REASONS, "PHASE": PHASES, "K": ("1", str(samples))}
    found = set()
    for names, who in re.findall(r"^- (`.+?`)(?: \((.+?)\))?: ", section, re.MULTILINE):
        if (who or "all") not in of:
            continue
        for name in re.findall(r"`([^`]+)`", names):
            parts = re.split(r"\b(ROLE|REASON|PHASE|K)\b", name)
            choices = [tuple(values.get(part, (part,))) for part in parts]
            found |= {"".join(each) for each in itertools.product(*choices)}
    return found


def names_in(path: Path) -> set[str]:
    return {name for row in read_rows(path) for name in row}


def test_a_run_with_tables_has_what_is_documented(finished: Any) -> None:
    folder = finished[0]
    of, roles = ("all", "tables"), ("coder", "tester")
    metrics = documented("Metrics", of, roles, 1)
    assert len(metrics) > 50
    assert names_in(folder / METRICS) == metrics
    timings = documented("Timings", of, roles, 1)
    assert names_in(folder / TIMINGS) == timings | {"step"}
    # Every row of a step has the same ones, and so has every measurement.
    start, first, second, third, fourth, _ = map(set, read_rows(folder / METRICS))
    assert first == third
    assert second == fourth == start | first


def test_all_reasons_are_explained() -> None:
    page = PAGE.read_text("utf-8").split("### Reasons of invalid tests")[1].split("###")[0]
    assert tuple(re.findall(r"`(\w+)`", page)) == REASONS
