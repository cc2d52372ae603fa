"""Problems from files and by name: every form of file, every error in one, splits, hub sets."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path

import pytest
from problem_rows import CONTEST, LAYOUTS, OWN, write_lines

from codea1_env import parallel_env, problems, register_source
from codea1_env.cli.app import run
from codea1_env.problem_sets import sources
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problems import Problem, ProblemsError, load_problems, read_problems

pytestmark = pytest.mark.usefixtures("sandboxes_stay_open")


# Files


def test_plain_and_compressed_lines_hold_the_same(tmp_path):
    plain = write_lines(tmp_path / "set.jsonl", {**OWN, "checker": None})
    packed = tmp_path / "set.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(plain).read_bytes()))
    assert load_problems(plain) == load_problems(str(packed)) == [Problem(**OWN)]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parquet_of_every_layout(layout, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "set.parquet"
    table = pyarrow.Table.from_pylist([LAYOUTS[layout]])
    importlib.import_module("pyarrow.parquet").write_table(table, path)
    assert load_problems(str(path)) == [to_problem(Row(LAYOUTS[layout], ""))]
    assert next(iter(read_problems(path))).where == f"{path}, row 1"


def test_file_that_is_one_json_array(tmp_path: Path) -> None:
    path = tmp_path / "ULT.jsonl"
    path.write_text(json.dumps([LAYOUTS["ult"], OWN], indent=2))
    assert [problem.task_id for problem in load_problems(str(path))] == ["ULT/906", "demo/double"]


def test_blank_lines_byte_order_mark_and_any_newline(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    mark = b"\xef\xbb\xbf"
    path.write_bytes(mark + json.dumps(OWN).encode() + b"\r\n\r\n  \n")
    assert load_problems(str(path)) == [Problem(**OWN)]
    path.write_bytes(mark + json.dumps([OWN]).encode())  # a file that is one array
    assert load_problems(str(path)) == [Problem(**OWN)]
    mbpp = LAYOUTS["mbpp full"]
    path.write_text(json.dumps({**mbpp, "code": f"\ufeff{mbpp['code']}"}))
    assert load_problems(str(path)) == [to_problem(Row(mbpp, ""))]


BROKEN = [
    (b'{"task_id": "a",\n', "line 2: Expect one JSON object a line, actually: Expecting property name"),
    (b"[1, 2]\n", "line 2: Expect a JSON object, actually: list"),
    (b"\xff\xfe\n", "line 2: Expect UTF-8, actually byte 0 is not."),
    (b"[" * 100_000 + b"\n", "line 2: Expect one JSON object a line"),
    (b"9" * 10_000 + b"\n", "line 2: Expect one JSON object a line"),
    (json.dumps({**OWN, "reference": None}).encode(), "line 2: Expect the field 'reference' to be a text, actually: null"),
    (json.dumps({**OWN, "kind": "script", "entry_point": None}).encode(), "line 2: Expect the field 'kind' to be \"function\" or \"program\", actually: str"),
    (json.dumps({**OWN, "prompt": "\ud800"}).encode(), "line 2: Expect Problem.prompt to be text"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "message"), BROKEN, ids=range(len(BROKEN)))
def test_broken_line_names_file_and_line(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_bytes(json.dumps(OWN).encode() + b"\n" + line)
    with pytest.raises(ProblemsError) as caught:
        load_problems(str(path))
    assert str(caught.value).startswith(f"{path}, {message}")


def test_duplicate_id_names_both_lines(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "set.jsonl", OWN, {**OWN, "task_id": "other"}, OWN)
    with pytest.raises(ProblemsError) as caught:
        load_problems(path)
    assert f"{path}, line 3: Expect every task_id once" in str(caught.value)
    assert f"is also at {path}, line 1" in str(caught.value)


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write_lines(tmp_path / "problems.jsonl", OWN)
    with pytest.raises(FileNotFoundError, match=r"there is no .*Did you mean .*problems\.jsonl\?"):
        load_problems(str(tmp_path / "problem.jsonl"))


def test_damaged_files(tmp_path: Path) -> None:
    data = gzip.compress(json.dumps(OWN).encode() * 1000)
    path = tmp_path / "set.jsonl.gz"
    for content in (data[:60], b"plain text", data[:40] + b"\0" * 40):
        path.write_bytes(content)
        with pytest.raises(ProblemsError, match="that gzip can unpack, actually: "):
            load_problems(str(path))
    pytest.importorskip("pyarrow")
    path = tmp_path / "set.parquet"
    path.write_bytes(b"PAR1 no")
    with pytest.raises(ProblemsError, match=r"set\.parquet: Expect a parquet file"):
        load_problems(str(path))


def test_line_that_would_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_LINE", 1000)
    path = write_lines(tmp_path / "set.jsonl", OWN, {**OWN, "task_id": "x" * 1000})
    with pytest.raises(ProblemsError, match="line 2: Expect at most 1,000 bytes in a line"):
        load_problems(path)


# Splits and names


def test_split_selects(tmp_path: Path) -> None:
    other = {**OWN, "task_id": "other", "metadata": {"split": "eval"}}
    path = write_lines(tmp_path / "set.jsonl", OWN, other)
    assert [problem.task_id for problem in load_problems(path, "eval")] == ["other"]
    with pytest.raises(ProblemsError, match="one of eval, train, actually: 'test'"):
        load_problems(path, "test")


def test_unknown_source_names_the_nearest() -> None:
    with pytest.raises(ProblemsError, match=r"actually: 'startr'. Did you mean starter or "):
        load_problems("startr")
    with pytest.raises(ProblemsError, match=r"Did you mean humaneval\+"):
        load_problems("HumanEvalPlus")


def test_hub_sets_through_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loading code for the hub, on a data set that lies in a folder."""
    pytest.importorskip("datasets")
    pyarrow = pytest.importorskip("pyarrow")
    (tmp_path / "data").mkdir()
    for split, row in (("train", OWN), ("test", {**OWN, "task_id": "second"})):
        row = {key: value for key, value in row.items() if key != "metadata"}
        importlib.import_module("pyarrow.parquet").write_table(
            pyarrow.Table.from_pylist([row]), tmp_path / "data" / f"{split}-00000.parquet"
        )
    monkeypatch.setitem(sources.HUB_SOURCES, "demo", sources.HubSource(str(tmp_path)))
    assert {p.task_id: p.metadata["split"] for p in load_problems("demo")} == {
        "demo/double": "train",
        "second": "test",
    }
    assert [p.task_id for p in load_problems("demo", "test")] == ["second"]
    with pytest.raises(ProblemsError, match=r"one of .*, actually: 'dev'"):
        load_problems("demo", "dev")
    monkeypatch.setitem(sources.HUB_SOURCES, "demo", sources.HubSource(str(tmp_path / "no")))
    with pytest.raises(ProblemsError, match="Expect the library datasets to load"):
        load_problems("demo")


def test_releases_are_files_of_which_only_the_wanted_are_fetched(tmp_path, monkeypatch):
    pytest.importorskip("datasets")
    first = write_lines(tmp_path / "test.jsonl", CONTEST)
    second = write_lines(tmp_path / "test2.jsonl", {**CONTEST, "question_id": "second"})
    absent = str(tmp_path / "absent")
    files = {"v1": first, "v2": second, "v3": absent, "release_v2": [first, second]}
    hub = sources.HubSource("json", split="release_v2", data_files=files)
    monkeypatch.setitem(sources.HUB_SOURCES, "livecodebench", hub)
    found = load_problems("livecodebench")
    assert [p.task_id for p in found] == ["LiveCodeBench/abc900_a", "LiveCodeBench/second"]
    assert [p.task_id for p in load_problems("livecodebench", "v2")] == ["LiveCodeBench/second"]
    with pytest.raises(ProblemsError, match="one of v1, v2, v3, release_v2, actually: 'v9'"):
        load_problems("livecodebench", "v9")
    with pytest.raises(ProblemsError, match=r"Expect the library datasets to load .*absent"):
        load_problems("livecodebench", "v3")


FILE = """
from codea1_env import Problem

def mine():
    for split in ("train", "eval"):
        yield Problem(
            f"mine/{split}", "def double(n: int) -> int:", "double", "def double(n):\\n    return 2 * n\\n",
            ("assert double(2) == 4",), metadata={"split": split},
        )

def broken():
    return [1]

def wants(split):
    return []
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "mine.py"
    path.write_text(FILE)
    return str(path)


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problems, "_registered", {})


def one() -> list[Problem]:
    return [Problem("mine/one", "def one():", "one", "def one():\n    return 1\n")]


def test_a_registered_name_is_a_source() -> None:
    register_source("mine", one)
    with pytest.raises(ValueError, match="'mine' is taken"):
        register_source("mine", one)
    assert load_problems("mine") == one()
    env = parallel_env(problems="mine")
    env.reset(seed=0)
    assert env.game.running().problem.task_id == "mine/one"


@pytest.mark.slow
def test_a_file_is_a_source(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = load_problems(f"{file}:mine")
    assert [problem.task_id for problem in found] == ["mine/train", "mine/eval"]
    assert [problem.task_id for problem in load_problems(f"{file}:mine", "eval")] == ["mine/eval"]
    assert run(["play", "--json", "--problems", f"{file}:mine", "--problem", "mine/eval"]) == 0
    assert "mine/eval" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "load", "kind", "message"),
    [
        ("starter", one, ValueError, "is taken. Choose another"),
        ("a/b", one, ValueError, "they mark files and hub ids"),
        ("mine", lambda split: [], TypeError, "a function without parameters"),
    ],
)
def test_what_is_no_source_is_named_at_registration(name, load, kind, message):
    with pytest.raises(kind, match=message):
        register_source(name, load)  # type: ignore[arg-type]


def test_what_a_file_gives_is_checked(file: str) -> None:
    with pytest.raises(ProblemsError, match="Expect a Problem, actually: <class 'int'>"):
        load_problems(f"{file}:broken")
    with pytest.raises(ProblemsError, match="to define the function 'mien'"):
        load_problems(f"{file}:mien")
    with pytest.raises(ProblemsError, match="without parameters"):
        load_problems(f"{file}:wants")
