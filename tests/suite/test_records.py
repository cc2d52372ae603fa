"""Records, scores and submissions: what is whole counts, and what was changed is found."""

from __future__ import annotations

import base64
import dataclasses
import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from codea1_env import suite
from codea1_env.cli.app import run as main
from codea1_env.suite import SuiteError, records, tasks
from codea1_env.suite.players import ROWS, find_entry
from codea1_env.suite.records import measure, read_record
from codea1_env.suite.running import play, run_all
from codea1_env.suite.submissions import read_records, submission, write_tuning
from codea1_env.suite.tasks import GROUP, RecordKey, SuiteTask
from codea1_env.suite.tuning import Trial, tune
from codea1_env.suite.worlds import SuiteWorld

ID = "cycling/0"
TASK = tasks.find_task(ID)
RATES = {"both": {"cycling": [3.0, 24.0]}}
TRIAL = Trial("both", "cycling", (3.0, 24.0))
TRIED = {"track": "both", "experiment": "cycling", "rates": [3.0, 24.0]}
TUNED = {"seeds": [1000], "tried": [TRIED | {"mean": TRIAL.play(find_entry("grpo"))}], "rates": RATES}  # fmt: skip


def shortened(task: SuiteTask, episodes: int) -> SuiteTask:
    """A task with fewer episodes."""
    return dataclasses.replace(task, episodes=min(task.episodes, -(-episodes // GROUP) * GROUP))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A submission with two records."""
    base = tmp_path_factory.mktemp("suite") / "mine"
    write_tuning(base, TUNED)
    keys = [RecordKey("both", TASK, seed) for seed in (0, 1)]
    run_all(base, "grpo", {}, keys, rates=RATES, processes=2)
    return base


@pytest.fixture
def base(played: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(played, tmp_path / "mine"))


def own(base: Path, seed: int = 0) -> Path:
    return RecordKey("both", TASK, seed).folder(base)


def test_the_record_says_what_was_played(base: Path) -> None:
    entry = find_entry("grpo")
    value, sha256 = play(entry.__class__(coder_rate=3.0, tester_rate=24.0), TASK, 0, "both")
    record = read_record(own(base))
    assert (record.value, record.sha256) == (value, sha256)
    assert 0.5 < value < 1


def test_an_environment_records_by_itself_and_the_referee_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    short = shortened(TASK, 512)
    monkeypatch.setattr("codea1_env.suite.environments.find_task", lambda *_: short)
    monkeypatch.setattr("codea1_env.suite.records.find_task", lambda *_: short)
    env, rng = suite.make(ID, 3, record=tmp_path), np.random.default_rng(0)
    beside = suite.make(
        ID, 3, record=tmp_path
    )  # a second environment writes parts of the same record
    for number in range(400):
        for each in (env, beside):
            each.reset(seed=number if number < 3 else None)
        for each in (beside, env):
            each.step({"coder_0": rng.integers(16)})
            each.step({"tester_0": rng.integers(16, size=1)})
    record = read_record(RecordKey("both", short, 3).folder(tmp_path))
    assert record.source == "make"
    last = json.loads((RecordKey("both", short, 3).folder(tmp_path) / "rounds.jsonl").read_text().splitlines()[-1])  # fmt: skip
    assert last["checked"] >= 200
    assert last["resets"] == 512
    del env, beside, each
    gc.collect()
    with pytest.raises(SuiteError, match="was begun before") as refused:
        suite.make(ID, 3, record=tmp_path)
    assert "resume" not in str(refused.value)


def edit(path: Path, line: int, change) -> None:  # type: ignore[no-untyped-def]
    lines = path.read_text().splitlines(keepends=True)
    lines[line] = change(lines[line])
    path.write_text("".join(lines))


def test_what_is_not_whole_or_edited_is_refused(base: Path) -> None:
    rounds = own(base) / "rounds.jsonl"
    text = rounds.read_text()
    rounds.write_text("".join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(SuiteError, match="Expect a whole record of 20480 episodes"):
        read_record(own(base))
    rounds.write_text(text)
    edit(rounds, 2, lambda line: line.replace('"rounds": "A', '"rounds": "B', 1).replace('"rounds": "D', '"rounds": "E', 1).replace('"first": 2048', '"first": 0'))  # fmt: skip
    with pytest.raises(SuiteError, match="was edited: line 3"):
        read_record(own(base))
    rounds.write_text(text.replace("\n", "\n\n", 1))
    with pytest.raises(SuiteError, match="was edited"):
        read_record(own(base))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("suite_sha256", "0" * 64, "Expect records of codea1-suite v1"),
        ("track", "tester", "no tracks mixed|was edited"),
        ("seed", 1, "was edited|where they were written"),
        ("id", "cycling/9", "Expect an id of codea1-suite"),
        ("episodes", 32, "was edited"),
    ],
)
def test_a_record_of_something_else_is_refused(base: Path, key: str, value: object, message: str) -> None:  # fmt: skip
    path = own(base) / "record.json"
    content = json.loads(path.read_text())
    content["settings"][key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(SuiteError, match=message):
        read_record(own(base))
    assert main(["suite", "score", str(base)]) == 2
    assert not (base / "submission.json").exists()


def test_mixed_tracks_are_refused(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (base / "records/tester/cycling-0").mkdir(parents=True)
    shutil.move(own(base), base / "records/tester/cycling-0/0")
    assert main(["suite", "score", str(base)]) == 2
    assert "no tracks mixed" in capsys.readouterr().err


def test_a_submission_without_tuning_is_refused(base: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    one = {"rates": [1.0, 8.0]}
    for content in (None, {"seeds": [0], "tried": [one]}, {"seeds": [1000], "tried": [one] * 7}, {"seeds": [1000], "tried": []}, {"seeds": [1000], "tried": [3]}, {"seeds": [1000], "tried": [{}]}, {"seeds": [1000], "tried": 3}, {"seeds": []}, {"seeds": [1000], "tried": [one], "rates": 3}):  # fmt: skip
        (base / "tuning.json").unlink()
        if content is not None:
            write_tuning(base, content)
        assert main(["suite", "score", str(base)]) == 2
        assert "tun" in capsys.readouterr().err or content
        (base / "tuning.json").touch()
    assert not (base / "submission.json").exists()


def test_trials_have_scores_and_are_no_submission(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    play(find_entry("oracle"), TASK, 1000, "both", tmp_path, False)
    assert main(["suite", "score", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "(one seed)" in told and "no submission" in told  # noqa: PT018
    assert not (tmp_path / "submission.json").exists()
    assert main(["suite", "score", str(tmp_path), "--json"]) == 0
    [track] = json.loads(capsys.readouterr().out)
    assert track["ids"][ID]["values"] == [pytest.approx(1.0, abs=0.05)]
    play(find_entry("oracle"), TASK, 1, "both", tmp_path, False)
    assert main(["suite", "score", str(tmp_path)]) == 2
    assert "[1000]" in capsys.readouterr().err


def test_records_of_other_seeds_and_broken_folders_are_refused(base: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    strange = base / "records/both/cycling-0/12"
    for make in (strange.mkdir, lambda: play(find_entry("random"), TASK, 12, "both", base, False)):
        make()
        assert main(["suite", "score", str(base)]) == 2
        assert "12" in capsys.readouterr().err
        shutil.rmtree(strange)
    (own(base) / "record.json").unlink()
    assert main(["suite", "score", str(base)]) == 2
    assert str(own(base)) in capsys.readouterr().err


def test_every_track_is_scored_and_repeated(tmp_path: Path) -> None:
    keys = [RecordKey(track, TASK, 0) for track in tasks.TRACKS]
    run_all(tmp_path, "random", {}, keys, rates={}, processes=1)
    assert main(["suite", "score", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "submission.json").read_text())
    assert [*content["values"]] == sorted(tasks.TRACKS)
    words = ["suite", "verify", str(tmp_path / "submission.json"), "--share", "1"]
    assert main(words) == 0
    (tmp_path / "submission.json").write_text(
        json.dumps(content | {"settings": {"algorithm": "random"}})
    )
    assert main(words) == 2


def test_verify_finds_a_changed_number(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["suite", "score", str(base)]) == 0
    path = base / "submission.json"
    assert main(["suite", "verify", str(path), "--share", "1"]) == 0
    content = json.loads(path.read_text())
    content["values"]["both"][ID]["1"] += 0.001
    path.write_text(json.dumps(content))
    capsys.readouterr()
    assert main(["suite", "verify", str(path), "--share", "1", "--salt", "x"]) == 1
    assert f"both {ID} 1" in capsys.readouterr().out
    path.write_text(json.dumps(content | {"tuning": {}}))
    assert main(["suite", "verify", str(path)]) == 2
    content["suite_sha256"] = ""
    path.write_text(json.dumps(content))
    assert main(["suite", "verify", str(path)]) == 2


def test_verify_repeats_the_tuning_and_refuses_other_rates(base: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    content, path = submission(base, read_records(base)), base / "submission.json"
    words = ["suite", "verify", str(path)]
    [tried] = TUNED["tried"]
    better = tried | {"rates": [1.0, 8.0], "mean": 0.99}
    for tuning, code, message in (
        ({"tried": [tried | {"mean": 0.99}]}, 1, "tuning, both cycling (3.0, 24.0): 0.99 was submitted"),
        ({"tried": [tried, better]}, 2, "Expect the rates of the best setting"),
        ({"tried": [tried, better], "rates": {"both": {"cycling": [1.0, 8.0]}}}, 2, "with the rates that tuning chose"),
        ({"tried": [{"rates": [3.0, 24.0]}]}, 2, "as `codea1 suite tune` tries them"),
        ({"rates": {"both": {"cycling": "ab"}}}, 2, "tuning.rates.both.cycling"),
        ({"rates": {"both": 3}}, 2, "tuning.rates.both"),
    ):  # fmt: skip
        path.write_text(json.dumps(content | {"tuning": TUNED | tuning}))
        assert main(words) == code
        told = capsys.readouterr()
        assert message in told.out + told.err
        assert "Traceback" not in told.err


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "with exit code 3"),
        ("raise type('Odd', (Exception,), {})(lambda: 1)", "Odd"),
        ("return 'x'", "Expect"),
    ],
)
def test_what_an_algorithm_raises_is_named(code: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    file, base = tmp_path / "mine.py", tmp_path / "runs"
    file.write_text(f"class Mine:\n    def __init__(self, learning_rate=1.0): self.learning_rate = learning_rate\n    def advantages(self, rewards): {code}\n")  # fmt: skip
    write_tuning(base, TUNED)
    words = ["--algorithm", f"{file}:Mine", "--output-dir", str(base), "--tracks", "both", "--processes", "1"]  # fmt: skip
    assert main(["suite", "run", *words, "--ids", ID, "--seeds", "1"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told


def test_verify_refuses_values_without_records(base: Path, capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    content = submission(base, read_records(base))
    path, key = base / "submission.json", f"both {ID} 1"
    own_id = content["values"]["both"][ID]
    for change in (
        {"played": {}},
        {"played": {}, "values": {}},
        {"played": {k: v for k, v in content["played"].items() if k != key}},
        {"values": {"both": {ID: own_id, "rare-faults/0": {"0": 0.9}}}},
        {"values": {"both": {ID: own_id | {"2": 0.9}}}, "played": content["played"] | {f"both {ID} 11": ""}},
        {"values": {"both": {ID: own_id | {"1": True}}}},
        {"values": {"both": {ID: own_id | {"1": 1.5}}}},
        {"values": {"both": {ID: 3}}},
        {"values": {"both": 3}},
        {"values": {"both": {ID: own_id, "cycling/9": {"0": 1.0}}}, "played": content["played"] | {"both cycling/9 0": ""}},
    ):  # fmt: skip
        path.write_text(json.dumps(content | change))
        assert main(["suite", "verify", str(path)]) == 2, change
        assert str(path) in capsys.readouterr().err


def test_a_killed_run_goes_on_to_the_same_bytes(played: Path, tmp_path: Path) -> None:
    base = tmp_path / "mine"
    write_tuning(base, TUNED)
    words = ["suite", "run", "--algorithm", "grpo", "--output-dir", str(base), "--ids", ID, "--tracks", "both", "--seeds", "2", "--processes", "1", "--check", "first"]  # fmt: skip
    command = [sys.executable, "-m", "codea1_env.cli", *words]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, start_new_session=True)
    while not (own(base) / "rounds.jsonl").exists() and process.poll() is None:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # its jobs end with it
    assert main(words) == 0
    for seed in (0, 1):
        assert read_record(own(base, seed)).sha256 == read_record(own(played, seed)).sha256


def test_tuning_finds_the_best_of_six_settings() -> None:
    content = tune(find_entry("grpo"), ["coder"], processes=2, experiments=["cycling"])
    tried = {tuple(each["rates"]): each["mean"] for each in content["tried"]}
    assert len(tried) == 6
    assert tried[tuple(content["rates"]["coder"]["cycling"])] == max(tried.values())
    assert min(content["seeds"]) >= 1000


def test_every_row_can_be_played() -> None:
    with pytest.raises(SuiteError, match="Expect an id whose programs are of a pool"):
        play(find_entry("pool-tests"), tasks.find_task("kinds/0"), 1000, "both")
    for name in ROWS:
        entry = find_entry(name)
        value, _ = play(entry, shortened(TASK, 512), 1000, "both")
        assert 0 <= value <= 1
    for name, args, message in (
        ("gpo", {}, "Expect the algorithm to be one of"),
        ("memory", {"beta": 1}, "no hyperparameters for the row memory"),
        ("grpo", {"beta": float("nan")}, "that JSON can hold"),
        ("grpo", {"learning_rate": 1.0}, "`codea1 suite tune` finds"),
    ):
        with pytest.raises(ValueError, match=message):
            find_entry(name, args)


def test_an_algorithm_of_a_file_is_in_the_submission(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "class Mine:\n    def __init__(self, learning_rate=1.0): self.learning_rate = learning_rate\n"
        "    def advantages(self, rewards): return rewards - rewards.mean(axis=1, keepdims=True)\n"
    )
    base = tmp_path / "runs"
    own_trial = TRIED | {"mean": TRIAL.play(find_entry(f"{file}:Mine"))}
    write_tuning(base, TUNED | {"tried": [own_trial]})
    run_all(
        base,
        f"{file}:Mine",
        {},
        [RecordKey("both", TASK, 0)],
        rates=RATES,
        processes=1,
    )
    content = submission(base, read_records(base))
    assert "class Mine" in content["code"]
    file.write_text("raise SystemExit")
    (base / "submission.json").write_text(json.dumps(content))
    assert main(["suite", "verify", str(base / "submission.json")]) == 0
    # Whoever verifies may have a file of this name: it is not what was submitted.
    (base / "submission.json").write_text(json.dumps(content | {"code": ""}))
    assert main(["suite", "verify", str(base / "submission.json")]) == 2


@pytest.mark.parametrize("name", ["record.json", "rounds.jsonl", "tuning.json"])
def test_pipes_and_deeply_nested_files_are_refused(base: Path, name: str) -> None:
    path = (base if name == "tuning.json" else own(base)) / name
    path.unlink()
    path.write_text("[" * 100_000)
    assert main(["suite", "score", str(base)]) == 2
    path.unlink()
    os.mkfifo(path)
    assert main(["suite", "score", str(base)]) == 2


def write_record(base: Path, *rows: dict[str, object]) -> Path:
    """Write a record by hand, with right checksums."""
    path = RecordKey("both", TASK, 0).folder(base)
    path.mkdir(parents=True, exist_ok=True)
    settings = RecordKey("both", TASK, 0).settings() | {"source": "make"}
    (path / "record.json").write_text(json.dumps({"version": 1, "settings": settings}))
    chain, lines = hashlib.sha256(json.dumps(settings).encode()), ""
    for row in rows:
        chain.update(json.dumps(row).encode())
        lines += json.dumps({**row, "chain": chain.hexdigest()[:16]}) + "\n"
    (path / "rounds.jsonl").write_text(lines)
    return path


def test_what_no_environment_writes_is_refused(tmp_path: Path) -> None:
    number = TASK.episodes
    played = np.zeros((number, 2), np.uint8)

    def rounds(**fields: object) -> dict[str, object]:
        return {"first": 0, "rounds": base64.b64encode(played.tobytes()).decode()} | fields

    end = {"whole": True, "resets": number, "checked": 0}
    assert read_record(write_record(tmp_path, rounds(), end)).value >= 0
    for episodes in (
        [0] * number,
        [-5] * number,
        ["a"] * number,
        [10**30] * number,
        [1, 2],
        3,
        [0.5] * number,
    ):
        with pytest.raises(SuiteError, match=r"different episodes|no row of"):
            read_record(write_record(tmp_path, rounds(episodes=episodes), end))
    for row in (
        {"first": 0},
        rounds(first="0"),
        rounds(first=10**30),
        rounds(first=1),
        rounds(rounds="?"),
        rounds(rounds="AAAA"),
        rounds(rounds=3),
    ):
        with pytest.raises(SuiteError, match=r"different episodes|no row of"):
            read_record(write_record(tmp_path, row, end))
    for resets in (None, -9, number - 1, "x", True):
        with pytest.raises(SuiteError, match="resets for"):
            read_record(write_record(tmp_path, rounds(), end | {"resets": resets}))
    played[5, 0] = 200
    with pytest.raises(SuiteError, match="program or test"):
        read_record(write_record(tmp_path, rounds(), end))


def test_an_episode_that_was_left_counts_as_played_with_nothing() -> None:
    task = tasks.find_task("kinds/0")
    first, number = round(task.episodes * (1 - task.last)), task.episodes
    world = SuiteWorld(task, 0)
    episodes = np.arange(number)
    problem, index = world.at(episodes)
    programs = (~world.right[problem]).argmax(axis=1)
    faulty = world.faulty[index, programs]
    tests = faulty.argmax(axis=1)[:, None]
    assert measure(RecordKey("both", task, 0), episodes, programs, tests) == 1
    kept = np.delete(episodes, range(first, first + 128))
    late = np.append(kept, np.arange(number, number + 128))  # those that came in their place
    again = late % number
    assert measure(
        RecordKey("both", task, 0), late, programs[again], tests[again]
    ) == pytest.approx(1 - 128 / (number - first))


def test_leaving_episodes_is_no_way_to_choose_among_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    short = shortened(TASK, 96)
    monkeypatch.setattr("codea1_env.suite.environments.find_task", lambda *_: short)
    monkeypatch.setattr(records, "find_task", lambda *_: short)
    env = suite.make(ID, 4, record=tmp_path, api="gym", side="tester")
    for number in range(96):
        for _ in range(3):
            env.reset(seed=number)
        env.step([1])
    with pytest.raises(SuiteError, match="288 resets for 96 episodes"):
        read_record(RecordKey("tester", short, 4).folder(tmp_path))
