"""Problems: construction, every layout of rows, every place they come from, every error."""

from __future__ import annotations

import copy
import dataclasses
import gzip
import importlib.util
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codea1_env.data import sources
from codea1_env.data.schemas import Row, to_problem
from codea1_env.problems import Problem, ProblemsError, load_problems, read_problems
from codea1_env.sandbox import Outcome, Sandbox

OWN: dict[str, Any] = {
    "task_id": "demo/double",
    "prompt": 'def double(x: int) -> int:\n    """Double it."""\n',
    "entry_point": "double",
    "reference": "def double(x): return 2 * x",
    "tests": ["assert double(2) == 4", "assert double(0) == 0"],
    "metadata": {"source": "demo", "split": "train"},
}
SOLUTION = "def double(x):\n    return 2 * x\n"
LAYOUTS: dict[str, dict[str, Any]] = {
    "own": OWN,
    "humaneval+ release": {
        "task_id": "HumanEval/900",
        "entry_point": "double",
        "declaration": "def double(x):",
        "imports": "",
        "prompt": 'def double(x):\n    """Double it."""\n',
        "description": "Double it.",
        "canonical_solution": "    return 2 * x\n",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    },
    "humaneval+ hub": {
        "task_id": "HumanEval/901",
        "prompt": 'def double(x):\n    """Double it."""\n',
        "canonical_solution": "    return 2 * x\n",
        "entry_point": "double",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    },
    "mbpp+ release": {
        "task_id": "MBPP/902",
        "entry_point": "double",
        "declaration": "def double(x)",
        "imports": "import math",
        "prompt": 'import math\n\ndef double(x):\n"""\nDouble it.\n"""',
        "description": "Double it.",
        "canonical_solution": f"\n{SOLUTION}",
        "test": "def check(double):\n    inputs = [[2]]\n    results = [4]\n"
        "    for i, (inp, exp) in enumerate(zip(inputs, results)):\n"
        "        assert double(*inp) == exp\n",
    },
    "mbpp+ hub": {
        "task_id": 903,
        "code": SOLUTION,
        "prompt": "Double it.",
        "source_file": "demo",
        "test_imports": [],
        "test_list": ["assert double(2) == 4"],
        "test": "import math\n\ninputs = [[2]]\nresults = [4]\n"
        "for i, (inp, exp) in enumerate(zip(inputs, results)):\n    assert double(*inp) == exp\n",
    },
    "mbpp full": {
        "text": "Double it.",
        "code": SOLUTION.replace("\n", "\r\n"),
        "task_id": 904,
        "test_setup_code": "four = 4",
        "test_list": ["assert double(2) == four"],
        "challenge_test_list": ["assert double(-2) == -four"],
    },
    "mbpp sanitized": {
        "source_file": "demo",
        "task_id": 905,
        "prompt": "Double it.",
        "code": f"import math\n{SOLUTION}",
        "test_imports": ["import itertools"],
        "test_list": ["assert double(2) == math.sqrt(16)"],
    },
    "ult": {
        "func_name": "double",
        "code": "def double(x):\n    return int(math.fsum([x, x]))\n",
        "prompt": "Double it.",
        "task_id": "906",
        "test_list": ["assert double(2) == 5"],
    },
    "bigcodebench": {
        "task_id": "BigCodeBench/907",
        "complete_prompt": 'import math\n\ndef double(x):\n    """Double it."""\n',
        "instruct_prompt": "Double it.",
        "canonical_solution": "    return 2 * x\n",
        "code_prompt": "import math\n\ndef double(x):\n",
        "test": "import unittest\n\nclass TestCases(unittest.TestCase):\n"
        "    def test_case_1(self):\n        self.assertEqual(double(2), 4)\n",
        "entry_point": "double",
        "doc_struct": "{}",
        "libs": "['math']",
    },
    "kodcode": {
        "style": "instruct",
        "subset": "Prefill",
        "question_id": "Prefill_908_I",
        "question": "Double it.",
        "solution": SOLUTION,
        "test_code": "from solution import double\n\ndef test_two():\n    assert double(2) == 4\n",
        "test_info": [{"function_name": "double", "function_declaration": "def double(x):"}],
        "gpt_difficulty": "hard",
    },
}


def write_lines(path: Path, *rows: object) -> str:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


# Problem


def test_problem_is_immutable_hashable_and_can_be_copied() -> None:
    problem = Problem(**OWN)
    assert problem.tests == ("assert double(2) == 4", "assert double(0) == 0")
    assert problem.all_tests == problem.tests
    with pytest.raises(dataclasses.FrozenInstanceError):
        problem.prompt = "other"  # type: ignore[misc]
    for change in (
        lambda: problem.metadata.update(a="b"),  # type: ignore[attr-defined]
        lambda: problem.metadata.__setitem__("a", "b"),  # type: ignore[attr-defined]
        lambda: problem.metadata.clear(),  # type: ignore[attr-defined]
        lambda: problem.metadata.pop("split"),  # type: ignore[attr-defined]
    ):
        with pytest.raises(TypeError, match="cannot be changed"):
            change()
    for twin in (copy.deepcopy(problem), copy.copy(problem), pickle.loads(pickle.dumps(problem))):
        assert twin == problem
        assert hash(twin) == hash(problem)
    assert json.loads(json.dumps(dataclasses.asdict(problem)))["metadata"] == OWN["metadata"]


def test_changing_the_given_lists_does_not_change_the_problem() -> None:
    tests, metadata = ["assert double(2) == 4"], {"split": "train"}
    problem = Problem(**{**OWN, "tests": tests, "metadata": metadata})
    tests.append("assert False")
    metadata["split"] = "eval"
    assert len(problem.tests) == 1
    assert problem.metadata["split"] == "train"


@pytest.mark.parametrize(
    ("field", "value", "error", "message"),
    [
        ("task_id", 7, TypeError, "task_id to be a str, actually: <class 'int'>"),
        ("prompt", None, TypeError, "prompt to be a str, actually: <class 'NoneType'>"),
        ("reference", "", ValueError, "reference not to be empty"),
        ("reference", " \n", ValueError, "reference not to be empty"),
        ("entry_point", "f(x); import os", ValueError, "entry_point to be a Python name"),
        ("entry_point", "class", ValueError, "entry_point to be a Python name"),
        ("tests", "assert f(1)", TypeError, "tests to be a list or tuple of str"),
        (
            "tests",
            ["assert f(1)", 3],
            TypeError,
            r"tests\[1\] to be a str, actually: <class 'int'>",
        ),
        ("test_program", 3, TypeError, "test_program to be a str"),
        ("metadata", ["x"], TypeError, "metadata to be a mapping of str to str"),
        ("metadata", {"level": 3}, TypeError, r"metadata\['level'\] to be a str"),
        ("prompt", "\ud800", ValueError, r"prompt to be text .* lone surrogate '\\ud800' at 0"),
    ],
)
def test_wrong_fields_are_refused(
    field: str, value: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"Expect Problem.{message}"):
        Problem(**{**OWN, field: value})


# Layouts


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reference_of_every_layout_passes_its_tests(layout: str, sandbox: Sandbox) -> None:
    problem = to_problem(Row(LAYOUTS[layout], "here"))
    assert problem.entry_point == "double"
    assert "Double it." in problem.prompt
    assert problem.prompt.endswith('"""\n')
    results = sandbox.run_tests(
        problem.reference, problem.all_tests, entry_point=problem.entry_point
    )
    assert [result.outcome for result in results] == [Outcome.PASS] * len(problem.all_tests)
    assert bool(problem.all_tests) == (layout != "ult")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_tests_of_every_layout_fail_a_wrong_program(layout: str, sandbox: Sandbox) -> None:
    problem = to_problem(Row(LAYOUTS[layout], "here"))
    wrong = "import math\ndef double(x): return 3 * x + 1"
    results = sandbox.run_tests(wrong, problem.all_tests, entry_point="double")
    assert Outcome.PASS not in {result.outcome for result in results}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_programs_end_with_their_own_call(layout: str) -> None:
    program = to_problem(Row(LAYOUTS[layout], "here")).test_program
    assert program is None or program.endswith("\ncheck(double)\n")


PYTEST_STYLE = """import pytest
from solution import double

@pytest.fixture
def two():
    yield 2

@pytest.mark.parametrize("given, wanted", [(1, 2), (0, 0), pytest.param(-1, -2, id="negative")])
@pytest.mark.timeout(5)
def test_values(given, wanted, two):
    assert double(given) == wanted == two * given

class TestDouble:
    def setup_method(self):
        self.four = 4

    @pytest.mark.parametrize("plus", [0, 1])
    def test_method(self, plus, two):
        assert double(two) + plus == self.four + plus

    def test_floats(self):
        assert double(0.1) == pytest.approx(0.2)
        assert double(0.1) != pytest.approx(0.21, abs=1e-3)
        assert [double(0.1)] == pytest.approx([0.2])

@pytest.mark.slow
def test_raises():
    with pytest.raises(TypeError, match="NoneType") as caught:
        double(None)
    assert caught.type is TypeError
    pytest.raises(TypeError, double)

if __name__ == "__main__":
    pytest.main()
"""


@pytest.mark.parametrize(
    ("code", "passes"),
    [
        ("def double(x): return 2 * x", True),
        ("def double(x): return 2 * abs(x)", False),  # a case of test_values
        ("def double(x): return 2 * x if x != 2 else 5", False),  # test_method
        ("def double(x): return round(2 * x)", False),  # test_floats
        ("def double(x=0): return x + x", False),  # second half of test_raises
        ("def double(x): return 2 * (x or 0)", False),  # first half of test_raises
        ("def double(x): return 2 * x if x is not None else 1 / 0", False),  # another exception
    ],
)
def test_pytest_style_without_pytest(code: str, passes: bool, sandbox: Sandbox) -> None:
    problem = to_problem(Row({**LAYOUTS["kodcode"], "test_code": PYTEST_STYLE}, "here"))
    (result,) = sandbox.run_tests(code, problem.all_tests, entry_point="double")
    assert (result.outcome is Outcome.PASS) == passes, result


@pytest.mark.parametrize("layout", ["kodcode", "bigcodebench"])
def test_no_tests_are_not_a_pass(layout: str, sandbox: Sandbox) -> None:
    field = "test" if layout == "bigcodebench" else "test_code"
    empty = "import unittest\nclass TestCases(unittest.TestCase): pass\n"
    problem = to_problem(Row({**LAYOUTS[layout], field: empty}, "here"))
    (result,) = sandbox.run_tests(SOLUTION, problem.all_tests, entry_point="double")
    assert result.outcome is not Outcome.PASS


def test_function_called_check() -> None:
    """The function of MBPP/56 has the name that the test program uses for itself."""
    row = {**LAYOUTS["mbpp+ release"], "entry_point": "check"}
    row["canonical_solution"] = "def check(n):\n    return n == 2\n"
    row["test"] = "def check(check):\n    assert check(*[2])\n    assert not check(*[3])\n"
    program = to_problem(Row(row, "here")).test_program
    assert program is not None
    namespace: dict[str, Any] = {}
    exec(row["canonical_solution"], namespace)  # our own text, six lines above
    exec(program, namespace)
    namespace["check"] = lambda n: True
    with pytest.raises(AssertionError):
        exec(program, namespace)


def test_function_that_the_test_calls_is_the_entry_point() -> None:
    """A few rows of MBPP+ name the first function of the program, which is only a helper."""
    row = {**LAYOUTS["mbpp+ release"], "entry_point": "helper"}
    row["canonical_solution"] = f"def helper(x):\n    return x\n\n{SOLUTION}"
    problem = to_problem(Row(row, "here"))
    assert problem.entry_point == "double"
    assert "def double(x):" in problem.prompt


def test_carriage_returns_of_mbpp_are_removed() -> None:
    problem = to_problem(Row(LAYOUTS["mbpp full"], "here"))
    assert "\r" not in problem.reference + problem.prompt + "".join(problem.tests)
    assert problem.tests[0] == "four = 4\nassert double(2) == four"


@pytest.mark.parametrize(
    ("task_id", "split"),
    [(1, "prompt"), (10, "prompt"), (11, "test"), (510, "test"), (511, "validation"),
     (600, "validation"), (601, "train"), (974, "train")],
)  # fmt: skip
def test_splits_of_mbpp(task_id: int, split: str) -> None:
    row = {**LAYOUTS["mbpp full"], "task_id": task_id}
    assert to_problem(Row(row, "here")).metadata == {"source": "mbpp", "split": split}
    assert to_problem(Row(row, "here", "theirs")).metadata["split"] == "theirs"


def test_description_cannot_end_the_docstring() -> None:
    row = {**LAYOUTS["ult"], "prompt": 'Ends """ early \\ and\r\n  goes on.'}
    namespace: dict[str, Any] = {}
    exec(to_problem(Row(row, "here")).prompt + "    return 1\n", namespace)
    assert namespace["double"].__doc__.strip() == 'Ends """ early \\ and\n      goes on.'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([1, 2], "Expect a JSON object, actually: list [1, 2]. Write one object a line."),
        (None, "Expect a JSON object"),
        ({"task_id": "a", "prompt": "b", "entry_point": "c"}, "nearest layout, codea1, also has: reference"),
        ({}, "Expect the fields of a known layout"),
        ({**OWN, "tests": "assert double(1)"}, "tests to be a list or tuple of str"),
        ({**OWN, "test": "x"}, "actually also: test"),
        ({**OWN, "task_id": 7}, "task_id to be a str, actually: <class 'int'>. Correct this row."),
        ({**LAYOUTS["mbpp full"], "task_id": "x"}, "Expect 'task_id' to be an int, actually: str 'x'"),
        ({**LAYOUTS["mbpp full"], "test_list": [], "challenge_test_list": []}, "Expect at least one test in 'test_list'"),
        ({**LAYOUTS["mbpp full"], "test_list": ["assert g(1)"], "challenge_test_list": []}, "to call a function of the program (double)"),
        ({**LAYOUTS["mbpp full"], "test_list": "assert"}, "Expect 'test_list' to be a list of texts"),
        ({**LAYOUTS["humaneval+ hub"], "test": None}, "Expect 'test' to be text, actually: NoneType None"),
        ({**LAYOUTS["kodcode"], "test_info": []}, "Expect 'test_info' to hold a function_name"),
    ],
)  # fmt: skip
def test_wrong_rows_name_place_and_remedy(row: object, message: str) -> None:
    with pytest.raises(ProblemsError) as caught:
        to_problem(Row(row, "set.jsonl, line 3"))
    assert str(caught.value).startswith("set.jsonl, line 3: Expect")
    assert message in str(caught.value)
    assert caught.value.where == "set.jsonl, line 3"


# Files


def test_jsonl_gz_and_parquet_hold_the_same(tmp_path: Path) -> None:
    row = {**OWN, "test_program": None}
    plain = write_lines(tmp_path / "set.jsonl", row)
    packed = tmp_path / "set.jsonl.gz"
    packed.write_bytes(gzip.compress(Path(plain).read_bytes()))
    pyarrow = pytest.importorskip("pyarrow")
    parquet = tmp_path / "set.parquet"
    importlib.import_module("pyarrow.parquet").write_table(
        pyarrow.Table.from_pylist([row]), parquet
    )
    expected = [Problem(**OWN)]
    assert load_problems(plain) == expected
    assert load_problems(str(packed)) == expected
    assert load_problems(str(parquet)) == expected
    assert next(iter(read_problems(parquet))).where == f"{parquet}, row 1"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parquet_of_every_layout(layout: str, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "set.parquet"
    table = pyarrow.Table.from_pylist([LAYOUTS[layout]])
    importlib.import_module("pyarrow.parquet").write_table(table, path)
    assert load_problems(str(path)) == [to_problem(Row(LAYOUTS[layout], ""))]


def test_file_that_is_one_json_array(tmp_path: Path) -> None:
    path = tmp_path / "ULT.jsonl"
    path.write_text(json.dumps([LAYOUTS["ult"], OWN], indent=2))
    assert [problem.task_id for problem in load_problems(str(path))] == ["ULT/906", "demo/double"]


def test_blank_lines_byte_order_mark_and_any_newline(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(OWN).encode() + b"\r\n\r\n  \n")
    assert load_problems(str(path)) == [Problem(**OWN)]


BROKEN = [
    (b'{"task_id": "a",\n', "line 2: Expect one JSON object a line, actually: Expecting property name"),
    (b"[1, 2]\n", "line 2: Expect a JSON object, actually: list"),
    (b"\xff\xfe\n", "line 2: Expect UTF-8, actually byte 0 is not. Save the file as UTF-8."),
    (b"[" * 100_000 + b"\n", "line 2: Expect one JSON object a line"),
    (b"9" * 10_000 + b"\n", "line 2: Expect one JSON object a line"),
    (b'{"prompt": "\\ud800"}\n', "line 2: Expect the fields of a known layout"),
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


def test_empty_file(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "set.jsonl")
    with pytest.raises(ProblemsError, match="at least one problem, actually there is none"):
        load_problems(path)


def test_missing_file_names_the_nearest(tmp_path: Path) -> None:
    write_lines(tmp_path / "problems.jsonl", OWN)
    with pytest.raises(FileNotFoundError, match=r"there is no .*Did you mean .*problems\.jsonl\?"):
        load_problems(str(tmp_path / "problem.jsonl"))
    with pytest.raises(FileNotFoundError, match=r"Check the path"):
        load_problems(str(tmp_path / "nowhere" / "set.jsonl"))


def test_folder_and_unknown_suffix(tmp_path: Path) -> None:
    write_lines(tmp_path / "set.jsonl", OWN)
    with pytest.raises(IsADirectoryError, match=r"folder that holds set\.jsonl"):
        load_problems(str(tmp_path))
    (tmp_path / "set.csv").write_text("a,b")
    with pytest.raises(ProblemsError, match=r"Expect a file name that ends in \.jsonl"):
        load_problems(str(tmp_path / "set.csv"))


def test_damaged_files(tmp_path: Path) -> None:
    data = gzip.compress(json.dumps(OWN).encode() * 1000)
    for name, content in (
        ("cut", data[:60]),
        ("not", b"plain text"),
        ("flip", data[:40] + b"\0" * 40),
    ):
        path = tmp_path / f"{name}.jsonl.gz"
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


def test_reading_goes_on_after_an_error(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(f"{json.dumps(OWN)}\nbroken\n{json.dumps({**OWN, 'task_id': 'second'})}\n")
    kinds = [isinstance(item, ProblemsError) for item in read_problems(str(path))]
    assert kinds == [False, True, False]


# Splits and names


def test_split_selects(tmp_path: Path) -> None:
    other = {**OWN, "task_id": "other", "metadata": {"split": "eval"}}
    path = write_lines(tmp_path / "set.jsonl", OWN, other)
    assert [problem.task_id for problem in load_problems(path, "eval")] == ["other"]
    with pytest.raises(ProblemsError, match="one of eval, train, actually: 'test'"):
        load_problems(path, "test")
    with pytest.raises(TypeError, match="Expect split to be a str or None"):
        load_problems(path, 3)  # type: ignore[arg-type]


def test_split_of_a_set_without_splits(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "set.jsonl", {**OWN, "metadata": {}})
    with pytest.raises(ProblemsError, match=r"none \(this set has no splits\), actually: 'train'"):
        load_problems(path, "train")


def test_unknown_source_names_the_nearest() -> None:
    with pytest.raises(ProblemsError, match=r"actually: 'startr'. Did you mean starter\?"):
        load_problems("startr")
    with pytest.raises(ProblemsError, match=r"Did you mean humaneval\+"):
        load_problems("HumanEvalPlus")
    with pytest.raises(TypeError, match="Expect source to be a str"):
        load_problems(3)  # type: ignore[arg-type]


def test_hub_set_without_the_library_names_the_extra() -> None:
    if importlib.util.find_spec("datasets") is not None:
        pytest.skip("the library is installed")
    for name in ("humaneval+", "mbpp", "org/name"):
        with pytest.raises(ImportError, match=r"pip install 'codea1-env\[llm\]'"):
            load_problems(name)


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


# Public data sets

LARGE = {
    "HumanEval/15", "HumanEval/83", "HumanEval/130", "HumanEval/139", "MBPP/255", "MBPP/392",
    "MBPP/599", "MBPP/630",
}  # fmt: skip
"""Problems whose test programs need more time or larger values than the default limits allow."""


@pytest.mark.parametrize(
    ("file", "count", "source", "splits"),
    [
        ("humanevalplus", 164, "humaneval+", {"test"}),
        ("mbppplus", 378, "mbpp+", {"test"}),
        ("mbpp", 974, "mbpp", {"prompt", "test", "validation", "train"}),
        ("ult_lite", 200, "ult", {"test"}),
    ],
)
def test_public_data_set(
    file: str, count: int, source: str, splits: set[str], shared_data: Path, sandbox: Sandbox
) -> None:
    problems = load_problems(str(shared_data / f"{file}.jsonl.gz"))
    assert len(problems) == count
    assert {problem.metadata["source"] for problem in problems} == {source}
    assert {problem.metadata["split"] for problem in problems} == splits
    assert all("\r" not in problem.reference for problem in problems)
    rng = np.random.default_rng(0)
    for index in rng.choice(count, 12, replace=False):
        problem = problems[index]
        if problem.task_id in LARGE:
            continue
        results = sandbox.run_tests(
            problem.reference, problem.all_tests, entry_point=problem.entry_point
        )
        assert {result.outcome for result in results} <= {Outcome.PASS}, problem.task_id


@pytest.mark.parametrize(
    ("file", "task_id"),
    [("humanevalplus", "HumanEval/32"), ("mbppplus", "MBPP/56"), ("mbppplus", "MBPP/6")],
)
def test_rows_that_need_care(file: str, task_id: str, shared_data: Path, sandbox: Sandbox) -> None:
    problems = load_problems(str(shared_data / f"{file}.jsonl.gz"))
    (problem,) = (problem for problem in problems if problem.task_id == task_id)
    assert problem.test_program is not None
    (result,) = sandbox.run_tests(problem.reference, [problem.test_program])
    assert result.outcome is Outcome.PASS
    wrong = f"def {problem.entry_point}(*args): return 17"
    (result,) = sandbox.run_tests(wrong, [problem.test_program])
    assert result.outcome in (Outcome.FAIL, Outcome.ERROR)
