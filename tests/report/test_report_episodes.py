"""The episodes of a report: a bounded sample of all steps, and what is damaged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from run_logs import episode, write_run

from codea1_env.report.episode_log import EpisodeSample, sample, scan
from codea1_env.report.folders import read_run
from codea1_env.training.run_folder import EPISODES


def drawn(folder: Path, limit: int = 1_000_000) -> EpisodeSample:
    return sample([scan(read_run(folder, "run"))], limit)


def test_a_sample_has_all_steps_alike_and_is_the_same_each_time(tmp_path: Path) -> None:
    rows = [episode(step, f"own/{step}-{i}") for step in range(1, 21) for i in range(20)]
    run = write_run(tmp_path / "run", rows)
    some = drawn(run, 20_000)
    per_step = Counter(row["step"] for row in some.rows)
    assert some.total == 400
    assert 40 < len(some.rows) < 400
    assert set(per_step) == set(range(1, 21))
    assert max(per_step.values()) - min(per_step.values()) <= 1
    assert drawn(run, 20_000).data() == some.data()
    assert len(drawn(run).rows) == 400


def test_an_episode_names_its_outcome_and_the_difference_to_the_last_program(tmp_path):
    tests = [{"test": "assert one() == 1", "status": "kept", "outcome": "pass"}]
    passing = episode(3, suites=[{"tests": tests}], history=[])
    page = drawn(write_run(tmp_path / "run", [episode(1), episode(2, executes=False), passing]))
    first, second, third = page.rows
    texts = page.texts.all()
    assert (first["outcome"], first["winner"]) == ("broken by new tests", "tester")
    assert (second["outcome"], third["outcome"]) == ("does not run", "passes all tests")
    assert third["winner"] == "coder"
    assert "last" not in first
    assert second["last"]["step"] == 1
    assert texts[second["last"]["diff"]].endswith("-    return 1\n+    return 2")


def test_the_program_before_is_of_another_step_or_round(tmp_path: Path) -> None:
    rows = [episode(1), episode(1, program=1), episode(2), episode(2, program=1)]
    rows += [episode(2, round=1), episode(2, program=1, round=1), episode(2, "own/other")]
    log = scan(read_run(write_run(tmp_path / "run", rows), "run"))
    assert [before for *_, before in log.places] == [-1, -1, 0, 0, 2, 2, -1]


def test_lines_that_are_no_episodes_are_counted(tmp_path: Path) -> None:
    odd = [{"test": "a", "status": "kept", "outcome": []}]
    rows = [episode(1), episode(2, suites="none"), episode(2, history=odd), {"step": 3}]
    run = write_run(tmp_path / "run", rows)
    with (run / EPISODES).open("ab") as log:
        log.write(b"\xff\n[1]\n" + b"[" * 100_000 + b'\n{"step": 4, "task')
    log = scan(read_run(run, "run"))
    assert (len(log.places), log.damaged) == (1, 7)


def test_long_and_invisible_text_is_cut_and_escaped(tmp_path: Path) -> None:
    page = drawn(write_run(tmp_path / "run", [episode(1, code="\u202e\x1b" + "x" * 1_000_000)]))
    (text,) = (text for text in page.texts.all() if "xxx" in text)
    assert text.startswith("\\u202e\\x1bxxx")
    assert text.endswith("x ... (980002 more characters)")
