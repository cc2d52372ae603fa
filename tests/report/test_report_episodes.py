"""The episodes of a report: a bounded sample of all steps, what is damaged, and what was replayed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from run_logs import episode, write_run

from codea1_env.report.episode_log import ReplayedTest, scan
from codea1_env.report.episodes import EpisodeSample, sample
from codea1_env.report.runs import read_run
from codea1_env.report.tables import replay_counts
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


def test_a_test_that_comes_back_is_a_relapse_and_replays_have_ages(tmp_path: Path) -> None:
    text = "assert one(3) == 3"

    def replay(step: int, outcome: str) -> dict[str, object]:
        test = {"test": text, "status": "kept", "outcome": outcome}
        return episode(step, history=[test], suites=[])

    steps = [replay(2, "fail"), replay(4, "pass"), replay(7, "fail"), replay(8, "fail")]
    log = scan(read_run(write_run(tmp_path / "run", steps), "run"))
    assert log.replays.tests == {2: 1, 4: 1, 7: 1, 8: 1}
    assert log.replays.ages == {2: 0, 4: 2, 7: 5, 8: 6}
    expected = ReplayedTest("own/one", text, first=2, last=8, replays=4, passed=1, relapses=1)
    assert log.most_replayed() == [expected]
    assert log.came_back() == [expected]


def test_replays_are_counted_test_by_test(tmp_path: Path) -> None:
    same = [episode(step, f"own/{step % 2}") for step in range(1, 6)]
    log = scan(read_run(write_run(tmp_path / "run", same), "run"))
    found = {
        (each.task_id, each.test[-1]): (each.last, each.replays, each.passed)
        for each in log.most_replayed()
    }
    assert found == {("own/1", "2"): (5, 3, 3), ("own/1", "3"): (5, 3, 0), ("own/0", "2"): (4, 2, 2), ("own/0", "3"): (4, 2, 0)}  # fmt: skip
    sheet = replay_counts([log])
    assert [cell.text for cell in sheet.rows[0]] == ["run", "own/1", "assert one(2) == 2", "1", "5", "3", "3"]  # fmt: skip
    assert sheet.note.startswith("4 tests were replayed, half of them 2 times or less")
