from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.evaluation.comparison import compare
from codea1_env.support.jobs import FolderError


def folder(path: Path, passed: dict[str, int], samples: int = 4, **more: Any) -> Path:
    """A finished evaluation; `more` is task -> other fields of its result."""
    results = {
        task: {"samples": samples, "passed": n, "digest": task, **more.get(task, {})}
        for task, n in passed.items()
    }
    ks = [k for k in (1, 2, 5) if k <= samples]
    path.mkdir()
    content = {"results": results, "figures": {"all": {f"pass@{k}": {} for k in ks}}}
    (path / "report.json").write_text(json.dumps(content))
    return path


def test_differences_and_changed_problems(tmp_path):
    a = folder(tmp_path / "a", {"p": 4, "q": 0, "r": 1, "s": 2})
    b = folder(tmp_path / "b", {"p": 3, "q": 4, "r": 2, "s": 2})
    result = compare(a, b)
    assert [each.figure for each in result.differences] == ["pass@1", "pass@2"]
    first = result.differences[0]
    assert (first.a.value, first.b.value) == (7 / 16, 11 / 16)
    assert first.difference.value == pytest.approx(0.25)
    assert first.difference.low < 0.25 < first.difference.high
    assert [(each.task_id, each.a, each.b) for each in result.better] == [
        ("q", 0.0, 1.0),
        ("r", 0.25, 0.5),
    ]
    assert [each.task_id for each in result.worse] == ["p"]
    assert result.problems == 4
    assert result.not_compared == ()


def test_problems_of_one_only_and_changed_problems_are_left_out(tmp_path):
    a = folder(tmp_path / "a", {"p": 1, "q": 1, "r": 1})
    b = folder(tmp_path / "b", {"q": 1, "r": 4, "s": 1}, r={"digest": "changed"})
    result = compare(a, b)
    assert result.problems == 1
    assert set(result.not_compared) == {"p", "r", "s"}
    assert result.better == ()


def test_unusable_folders(tmp_path):
    a = folder(tmp_path / "a", {"p": 1})
    b = folder(tmp_path / "b", {"q": 1})
    with pytest.raises(FolderError, match="problems in common, actually: none"):
        compare(a, b)
    with pytest.raises(FolderError, match=r"it has no report.json"):
        compare(a, tmp_path)
    suites = '{"results": {}, "figures": {}, "kind": "suites"}'
    for content, says in (("[]", "a JSON object"), ("{}", "report of an"), (suites, "'suites'")):
        (tmp_path / "report.json").write_text(content)
        with pytest.raises(FolderError, match=says):
            compare(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"results": {"p": {"digest": "p", "values": {"kill_rate": 1.0}}}}, "figure in common"),
        ({"results": {}}, r"result folder of `codea1 eval` \(run, code, .* it is of 'held-out' and has none"),
    ],
)  # fmt: skip
def test_evaluations_without_a_figure_in_common_are_refused(tmp_path, other, says):
    results = {"p": {"digest": "p", "values": {"pass_rate": 1.0}}}
    report = {"kind": "held-out", "settings": {}, "figures": {}, "results": results}
    for name, content in (("a", report), ("b", {**report, **other})):
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(content))
    (same,) = compare(tmp_path / "a", tmp_path / "a").differences
    assert (same.difference.low, same.difference.high) == (0.0, 0.0)
    with pytest.raises(FolderError, match=says):
        compare(tmp_path / "a", tmp_path / "b")


@pytest.mark.parametrize(
    ("setting", "missing"),
    [
        ("num_tests", "all pass, any pass, mutation score"),
        ("wrong_programs_sha256", "p_01, p_00, mu"),
    ],
)
def test_figures_of_other_settings_are_not_compared(tmp_path, setting, missing):
    values = {"pass@1": 0.5, "mut@1": 0.5, "mut@1@pass": 0.5}
    values |= {"mutation score": 0.5, "p_u": 0.5, "p_01": 0.5, "p_00": 0.5}
    for name in ("a", "b"):
        results = {"p": {"digest": "p", "values": values}}
        report = {"kind": "tests", "figures": {}, "settings": {setting: name}, "results": results}
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(report))
    found = compare(tmp_path / "a", tmp_path / "b")
    (left_out,) = found.left_out
    assert left_out == f"other {setting.removesuffix('_sha256')}: {missing}"
    figures = {each.figure for each in found.differences}
    assert "pass@1" in figures
    assert not any(name.partition("@")[0] in missing.split(", ") for name in figures)


def test_a_figure_is_compared_where_both_have_it(tmp_path):
    """mut@1@pass is of problems with a right first test: a has one in two problems, b in one."""
    values = {"pass@1": 0.5, "mut@1": 0.5}
    sides = {"a": (0.25, 0.75), "b": (None, 0.5)}
    for side, found in sides.items():
        rows = [{**values, "mut@1@pass": value} for value in found]
        results = {f"p{i}": {"digest": f"p{i}", "values": row} for i, row in enumerate(rows)}
        report = {"kind": "tests", "settings": {}, "figures": {}, "results": results}
        (tmp_path / side).mkdir()
        (tmp_path / side / "report.json").write_text(json.dumps(report))
    found = compare(tmp_path / "a", tmp_path / "b").differences
    (told,) = [each for each in found if each.figure == "mut@1@pass"]
    assert (told.a.value, told.b.value, told.difference.value) == (0.75, 0.5, -0.25)
