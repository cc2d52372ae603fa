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
from codea1_env.suite import SuiteError, tasks
from codea1_env.suite.players import ROWS, find_entry
from codea1_env.suite.records import measure, read_record
from codea1_env.suite.running import play, run_all, with_rates
from codea1_env.suite.submissions import read_records, submission, write_tuning
from codea1_env.suite.tasks import GROUP, RecordKey, SuiteTask
from codea1_env.suite.tuning import Trial, tune
from codea1_env.suite.worlds import SuiteWorld

ID = "cycling/0"
TASK = tasks.find_task(ID)
RATES = {"both": {"cycling": [3.0, 24.0]}}
TRIAL = Trial("both", "cycling", (3.0, 24.0))
TRIED = {"track": "both", "experiment": "cycling", "rates": [3.0, 24.0]}
MEAN = TRIAL.play(find_entry("grpo"))
TUNED = {"seeds": [1000], "tried": [TRIED | {"mean": MEAN}], "rates": RATES}
OWN_ALGORITHM = """\
class Mine:
    def __init__(self, learning_rate=1.0):
        self.learning_rate = learning_rate

    def advantages(self, rewards):
        {}
"""
ONE = {"rates": [1.0, 8.0]}
Capture = pytest.CaptureFixture[str]


def shortened(task: SuiteTask, episodes: int) -> SuiteTask:
    """A task with fewer episodes."""
    return dataclasses.replace(task, episodes=min(task.episodes, -(-episodes // GROUP) * GROUP))


def made_short(monkeypatch: pytest.MonkeyPatch, episodes: int) -> SuiteTask:
    """Let the id have fewer episodes."""
    short = shortened(TASK, episodes)
    for module in ("environments", "records"):
        monkeypatch.setattr(f"codea1_env.suite.{module}.find_task", lambda *_: short)
    return short


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
    record = play(with_rates(entry, RATES, "both", "cycling"), RecordKey("both", TASK, 0))
    assert record == read_record(own(base))
    assert 0.5 < record.value < 1


def test_an_environment_records_by_itself_and_the_referee_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = made_short(monkeypatch, 512)
    env, rng = suite.make(ID, 3, record=tmp_path), np.random.default_rng(0)
    beside = suite.make(ID, 3, record=tmp_path)  # it writes parts of the same record
    for number in range(400):
        for each in (env, beside):
            each.reset(seed=number if number < 3 else None)
        for each in (beside, env):
            each.step({"coder_0": rng.integers(16)})
            each.step({"tester_0": rng.integers(16, size=1)})
    folder = RecordKey("both", short, 3).folder(tmp_path)
    read_record(folder)
    last = json.loads((folder / "rounds.jsonl").read_text().splitlines()[-1])
    assert last["checked"] >= 200
    assert last["resets"] == 512
    del env, beside, each
    gc.collect()
    with pytest.raises(SuiteError, match="was begun before") as refused:
        suite.make(ID, 3, record=tmp_path)
    assert "resume" not in str(refused.value)


def test_what_is_not_whole_or_edited_is_refused(base: Path) -> None:
    rounds = own(base) / "rounds.jsonl"
    text = rounds.read_text()
    rounds.write_text("".join(text.splitlines(keepends=True)[:-1]))
    with pytest.raises(SuiteError, match="Expect a whole record of 20480 episodes"):
        read_record(own(base))
    rounds.write_text(text)
    lines = text.splitlines(keepends=True)
    lines[2] = lines[2].replace('"first": 2048', '"first": 0')
    rounds.write_text("".join(lines))
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
def test_a_record_of_something_else_is_refused(
    base: Path, key: str, value: object, message: str
) -> None:
    path = own(base) / "record.json"
    content = json.loads(path.read_text())
    content["settings"][key] = value
    path.write_text(json.dumps(content))
    with pytest.raises(SuiteError, match=message):
        read_record(own(base))
    assert main(["suite", "score", str(base)]) == 2
    assert not (base / "submission.json").exists()


def test_mixed_tracks_are_refused(base: Path, capsys: Capture) -> None:
    (base / "records/tester/cycling-0").mkdir(parents=True)
    shutil.move(own(base), base / "records/tester/cycling-0/0")
    assert main(["suite", "score", str(base)]) == 2
    assert "no tracks mixed" in capsys.readouterr().err


def test_a_submission_without_tuning_is_refused(base: Path, capsys: Capture) -> None:
    (base / "tuning.json").unlink()
    assert main(["suite", "score", str(base)]) == 2
    assert "Expect a tuned submission" in capsys.readouterr().err
    assert not (base / "submission.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        {"seeds": []},
        {"seeds": [0], "tried": [ONE]},
        {"seeds": [1000], "tried": []},
        {"seeds": [1000], "tried": 3},
        {"seeds": [1000], "tried": [3]},
        {"seeds": [1000], "tried": [{}]},
        {"seeds": [1000], "tried": [ONE] * 7},
        {"seeds": [1000], "tried": [ONE], "rates": 3},
    ],
)
def test_tuning_by_other_rules_is_refused(
    base: Path, content: dict[str, object], capsys: Capture
) -> None:
    write_tuning(base, content)
    assert main(["suite", "score", str(base)]) == 2
    assert "tuning.json by the rules of docs/suite.md" in capsys.readouterr().err
    assert not (base / "submission.json").exists()


def test_trials_have_scores_and_are_no_submission(tmp_path: Path, capsys: Capture) -> None:
    play(find_entry("oracle"), RecordKey("both", TASK, 1000), tmp_path, False)
    assert main(["suite", "score", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "(one seed)" in told
    assert "no submission" in told
    assert not (tmp_path / "submission.json").exists()
    assert main(["suite", "score", str(tmp_path), "--json"]) == 0
    [track] = json.loads(capsys.readouterr().out)
    assert track["ids"][ID]["values"] == [pytest.approx(1.0, abs=0.05)]
    play(find_entry("oracle"), RecordKey("both", TASK, 1), tmp_path, False)
    assert main(["suite", "score", str(tmp_path)]) == 2
    assert "[1000]" in capsys.readouterr().err


def test_records_of_other_seeds_and_broken_folders_are_refused(base: Path, capsys: Capture) -> None:
    strange = base / "records/both/cycling-0/12"
    key = RecordKey("both", TASK, 12)
    for make in (strange.mkdir, lambda: play(find_entry("random"), key, base, False)):
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


def test_verify_finds_a_changed_number(base: Path, capsys: Capture) -> None:
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


BETTER = TRIED | {"rates": [1.0, 8.0], "mean": 0.99}
OTHER_RATES = {"both": {"cycling": [1.0, 8.0]}}


@pytest.mark.parametrize(
    ("tuning", "code", "message"),
    [
        ({"tried": [TRIED | {"mean": 0.99}]}, 1, "(3.0, 24.0): 0.99 was submitted"),
        ({"tried": [TRIED | {"mean": MEAN}, BETTER]}, 2, "Expect the rates of the best setting"),
        ({"tried": [BETTER], "rates": OTHER_RATES}, 2, "with the rates that tuning chose"),
        ({"tried": [{"rates": [3.0, 24.0]}]}, 2, "as `codea1 suite tune` tries them"),
        ({"rates": {"both": {"cycling": "ab"}}}, 2, "tuning.rates.both.cycling"),
        ({"rates": {"both": 3}}, 2, "tuning.rates.both"),
    ],
)
def test_verify_repeats_the_tuning_and_refuses_other_rates(
    base: Path, tuning: dict[str, object], code: int, message: str, capsys: Capture
) -> None:
    content, path = submission(base, read_records(base)), base / "submission.json"
    path.write_text(json.dumps(content | {"tuning": TUNED | tuning}))
    assert main(["suite", "verify", str(path)]) == code
    told = capsys.readouterr()
    assert message in told.out + told.err
    assert "Traceback" not in told.err


def run_words(algorithm: str, base: Path) -> list[str]:
    """A command that plays the id in one process."""
    played = ["--ids", ID, "--tracks", "both", "--processes", "1"]
    return ["suite", "run", "--algorithm", algorithm, "--output-dir", str(base), *played]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "with exit code 3"),
        ("raise type('Odd', (Exception,), {})(lambda: 1)", "Odd"),
        ("return 'x'", "Expect"),
    ],
)
def test_what_an_algorithm_raises_is_named(
    code: str, message: str, tmp_path: Path, capsys: Capture
) -> None:
    file, base = tmp_path / "mine.py", tmp_path / "runs"
    file.write_text(OWN_ALGORITHM.format(code))
    write_tuning(base, TUNED)
    assert main([*run_words(f"{file}:Mine", base), "--seeds", "1"]) == 2
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told


def test_verify_refuses_values_without_records(base: Path, capsys: Capture) -> None:
    content, path = submission(base, read_records(base)), base / "submission.json"
    values, played = content["values"]["both"][ID], content["played"]
    first, _ = played
    for change in (
        {"played": {}},
        {"played": {}, "values": {}},
        {"played": {first: played[first]}},
        {"values": {"both": {ID: values, "rare-faults/0": {"0": 0.9}}}},
        {"values": {"both": {ID: values | {"2": 0.9}}}, "played": played | {f"both {ID} 11": ""}},
        {"values": {"both": {ID: values | {"1": True}}}},
        {"values": {"both": {ID: values | {"1": 1.5}}}},
        {"values": {"both": {ID: 3}}},
        {"values": {"both": 3}},
        {
            "values": {"both": {ID: values, "cycling/9": {"0": 1.0}}},
            "played": played | {"both cycling/9 0": ""},
        },
    ):
        path.write_text(json.dumps(content | change))
        assert main(["suite", "verify", str(path)]) == 2, change
        assert str(path) in capsys.readouterr().err


def test_a_killed_run_goes_on_to_the_same_bytes(played: Path, tmp_path: Path) -> None:
    base = tmp_path / "mine"
    write_tuning(base, TUNED)
    words = [*run_words("grpo", base), "--seeds", "2", "--check", "first"]
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
        play(find_entry("pool-tests"), RecordKey("both", tasks.find_task("kinds/0"), 1000))
    for name in ROWS:
        entry = find_entry(name)
        short = RecordKey("both", shortened(TASK, 512), 1000)
        assert 0 <= play(entry, short).value <= 1
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
    file.write_text(OWN_ALGORITHM.format("return rewards - rewards.mean(axis=1, keepdims=True)"))
    base = tmp_path / "runs"
    own_trial = TRIED | {"mean": TRIAL.play(find_entry(f"{file}:Mine"))}
    write_tuning(base, TUNED | {"tried": [own_trial]})
    keys = [RecordKey("both", TASK, 0)]
    run_all(base, f"{file}:Mine", {}, keys, rates=RATES, processes=1)
    content = submission(base, read_records(base))
    assert "class Mine" in content["code"]
    file.write_text("raise SystemExit")
    (base / "submission.json").write_text(json.dumps(content))
    assert main(["suite", "verify", str(base / "submission.json")]) == 0
    # Whoever verifies may have a file of this name: it is not what was submitted.
    settings = content["settings"]
    for change in (
        {"code": ""},
        {"code": content["code"] + "\n# other"},
        {"settings": settings | {"algorithm": ""}},
        {"settings": settings | {"algorithm_sha256": "0"}},
        {"settings": settings | {"suite_sha256": "0"}},
        {"tuning": content["tuning"] | {"suite_sha256": "0"}},
        {"tuning": content["tuning"] | {"seeds": [1001]}},
    ):
        (base / "submission.json").write_text(json.dumps(content | change))
        assert main(["suite", "verify", str(base / "submission.json")]) == 2, change


def test_records_of_two_sources_are_not_mixed(base: Path, capsys: Capture) -> None:
    assert main(["suite", "score", str(base)]) == 0
    (base / "records" / "suite.json").unlink()
    assert main(["suite", "score", str(base)]) == 2
    assert "of one source" in capsys.readouterr().err


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


def test_leaving_episodes_is_no_way_to_choose_among_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = made_short(monkeypatch, 96)
    env = suite.make(ID, 4, record=tmp_path, api="gym", side="tester")
    for number in range(96):
        for _ in range(3):
            env.reset(seed=number)
        env.step([1])
    with pytest.raises(SuiteError, match="288 resets for 96 episodes"):
        read_record(RecordKey("tester", short, 4).folder(tmp_path))
