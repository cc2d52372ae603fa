"""Public sets of contest problems: rows as they are, with the oddities that they have."""

from __future__ import annotations

import ast
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.problem_sets.judging import passes, submit_to_tests
from codea1_env.problem_sets.livecodebench import PREAMBLE
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import to_problem
from codea1_env.problem_sets.validate import FindingKind, validate_problems
from codea1_env.problems import Located, ProblemsError, load_problems, read_problems
from codea1_env.reading.python3 import LONGEST
from codea1_env.sandbox import Case, Limits, Sandbox

FOLDER = Path(__file__).parent / "data" / "contests"
LAYOUTS = {"apps": "APPS", "taco": "TACO", "codecontests": "CodeContests", "deepcoder": "DeepCoder"}
SUM = "a, b = map(int, input().split())\nprint(a + b)\n"


def rows_of(layout: str) -> list[dict[str, Any]]:
    """The rows of a layout; `expect` says what is to come of each."""
    return [json.loads(line) for line in (FOLDER / f"{layout}.jsonl").read_text().splitlines()]


def expected_cases(expect: dict[str, Any]) -> list[Case]:
    if "function" in expect:
        return [Case(args, {}, value) for args, value in ast.literal_eval(expect["cases"])]
    return [Case((stdin,), {}, stdout) for stdin, stdout in expect["cases"]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_are_read_right_or_refused_by_name(layout: str, tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    rows = rows_of(layout)
    assert len(rows) == 12
    expects = [row.pop("expect") for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = list(read_problems(path))
    assert len(found) == len(rows)
    for number, (expect, item) in enumerate(zip(expects, found, strict=True), 1):
        if "refused" in expect:
            assert isinstance(item, ProblemsError), (number, expect)
            assert item.where == f"{path}, line {number}"
            assert expect["refused"] in item.expectation
            continue
        assert isinstance(item, Located), (number, item)
        problem = item.problem
        assert problem.task_id.startswith(f"{LAYOUTS[layout]}/")
        assert problem.kind == ("function" if "function" in expect else "program"), number
        assert problem.entry_point == expect.get("function", "")
        assert list(problem.cases) == expected_cases(expect), number
        assert bool(problem.reference) == expect["reference"], number
        assert problem.playable == expect["reference"]
    names = [item.problem.task_id for item in found if isinstance(item, Located)]
    assert len(set(names)) == len(names) >= 6


@pytest.mark.parametrize("layout", LAYOUTS)
def test_references_pass_what_was_read(layout: str, sandbox: Sandbox) -> None:
    rows = [row for row in rows_of(layout) if row.pop("expect").get("reference")]
    problems = [to_problem(Row(row, f"line {number}")) for number, row in enumerate(rows)]
    runs = [
        (each.task_id, submit_to_tests(each, each.reference, Limits(), sandbox))
        for each in problems
        if each.number_of_tests
    ]
    assert len(runs) >= 4
    assert [name for name, run in runs if not passes(run.result())] == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parquet(layout: str, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    row = {name: value for name, value in rows_of(layout)[0].items() if name != "expect"}
    path = tmp_path / "set.parquet"
    table = pyarrow.Table.from_pylist([row])
    importlib.import_module("pyarrow.parquet").write_table(table, path)
    assert load_problems(str(path)) == [to_problem(Row(row, f"{path}, row 1"))]


def test_what_else_a_row_says(tmp_path: Path) -> None:
    contest, taco = rows_of("codecontests"), rows_of("taco")
    first = to_problem(Row(contest[0], "x, line 1"))
    assert first.task_id == "CodeContests/1_A. Sum"
    assert first.metadata["time_limit"] == "1.5 seconds"
    assert "difficulty" not in first.metadata
    assert to_problem(Row(contest[7], "x, line 8")).metadata["difficulty"] == "easy"
    named = to_problem(Row(taco[0], "BAAI/TACO [test], row 7", "test"))
    assert (named.task_id, named.metadata["split"]) == ("TACO/test/7", "test")
    assert named.metadata["difficulty"] == "easy"
    assert named.compare == "loose-lines"


def test_the_incorrect_solutions_are_no_reference() -> None:
    row = next(row for row in rows_of("codecontests") if row["name"] == "3_A. No Python")
    assert to_problem(Row(row, "line 1")).reference == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"question": "Add.", "inputs": ["1 2\n"], "outputs": ["3\n"], "solutions": [SUM]},
        {"prompt": "Add.", "inputs": json.dumps(["1 2\n"]), "outputs": json.dumps(["3\n"]), "solutions": SUM},
        {
            "prompt": "Add.",
            "verification_info": json.dumps(
                {"language": "python", "test_cases": [{"type": "stdin_stdout", "input": "1 2\n", "output": "3\n"}]}
            ),
            "gold_standard_solution": f"```python\n{SUM}```",
        },
    ],
)  # fmt: skip
def test_other_rows_with_inputs_and_outputs(fields: dict[str, Any]) -> None:
    problem = to_problem(Row(fields, "set.jsonl, line 3"))
    assert problem.cases == (Case(("1 2\n",), {}, "3\n"),)
    assert (problem.prompt, problem.reference) == ("Add.\n", SUM)
    assert problem.task_id.endswith("/3")


BROKEN = [
    ({"question": " "}, "Expect 'question' not to be empty"),
    ({"question": 5}, "Expect 'question' to be text, actually: int 5"),
    ({"question": "\ud800 add"}, "Expect Problem.prompt to be text in UTF-8, actually: the lone surrogate"),
    ({"inputs": "1 2"}, "Expect 'inputs' to be JSON, actually: "),
    ({"inputs": {"a": 1}}, "to have lists of inputs and outputs"),
    ({"inputs": ["x" * 10_000_000]}, "Expect stdin of case 1 to have at most 8,388,608 bytes, actually: 10,000,000"),
    ({"outputs": ["x" * 10_000_000]}, "Expect stdout of case 1 to have at most 8,388,608 bytes, actually: 10,000,000"),
    ({"inputs": [["x" * 10_000_000]], "fn_name": "f"}, "Expect input 1 to have at most 8,388,608 bytes, actually: 10,000,0"),
    ({"inputs": ["1 2\n", "1 2"], "outputs": ["a b", "a\nb"]}, "actually cases 1 and 2 have the same input"),
    ({"inputs": ["1 2\n", "1 2"], "outputs": ["3", "4"]}, "actually cases 1 and 2 have the same input, and the outputs '3' and '4'"),
    ({"inputs": [[1, "2"]]}, "Expect stdin of case 1 to be text, actually: list [1, '2']"),
    ({"outputs": [{"a": 1}]}, "Expect stdout of case 1 to be text, actually: dict"),
    ({"fn_name": 7}, "Expect 'fn_name' to be the name of a function, actually: int 7"),
    ({"fn_name": "no name", "inputs": [[1]]}, "entry_point to be a Python name"),
    ({"inputs": [json.loads("[" * 900 + "]" * 900)], "fn_name": "f"}, "nested"),
    ({"solutions": {"language": [3], "solution": [7]}}, "Expect 'solutions' to be a list of texts, actually: list [7]"),
    ({"solutions": {"language": 3, "solution": SUM}}, "Expect 'solutions' to have lists of languages and solutions, actually: dict"),
    ({"solutions": {"language": [3], "solution": [SUM, SUM]}}, "Expect 'solutions' to have as many languages as solutions, actually: 1 languages and 2"),
    ({"solutions": {"language": [3, 2], "solution": [SUM]}}, "actually: 2 languages and 1 solutions"),
    (
        {"fn_name": "f", "inputs": [[1, 2], [2, 2], [1, 2]], "outputs": [3, 4, 5]},
        "Expect one value for each call, actually cases 1 and 3 have the same arguments, and the values 3 and 5",
    ),
    ({"solutions": "[1"}, "Expect 'solutions' to be JSON, actually: "),
    ({"solutions": "", "inputs": [], "outputs": []}, "reference not to be empty where there are no tests"),
    ({"starter_code": 1, "fn_name": "f"}, "Expect 'starter_code' to be text, actually: int 1"),
]  # fmt: skip


@pytest.mark.parametrize(("changed", "message"), BROKEN, ids=range(len(BROKEN)))
def test_a_broken_row_is_named_and_the_others_stay(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    good = {"question": "Add.", "inputs": ["1 2\n"], "outputs": ["3\n"], "solutions": [SUM]}
    path = tmp_path / "set.jsonl"
    rows = [good, {**good, **changed}, good]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    before, broken, after = read_problems(path)
    assert isinstance(before, Located)
    assert isinstance(after, Located)
    assert isinstance(broken, ProblemsError)
    assert broken.where == f"{path}, line 2"
    assert message in broken.expectation
    assert len(str(broken)) < 1000
    with pytest.raises(ProblemsError, match="line 2"):
        load_problems(str(path))


def reference_of(**fields: Any) -> str:
    row = {"question": "Add.", "inputs": ["1 2\n"], "outputs": ["3\n"], **fields}
    return to_problem(Row(row, "set.jsonl, line 1")).reference


CPP = "#include <iostream>\nint main(){}\n"
OLD = "a, b = map(int, input().split())\nprint(a + b),\n"
BOMBS = [
    "(" * 200_000, "-" * 200_000 + "1", "x" + ".x" * 200_000, "1" + "+1" * 200_000, "x = " + "lambda: " * 100_000 + "1",
    "x = 1\n" * (LONGEST // 6 + 1), "x = 9" + "9" * 100_000, "\ud800",
]  # fmt: skip


@pytest.mark.parametrize("other", [CPP, OLD, "print 1", "x = 08", "class A { }", "int main(){}", " \n", *BOMBS], ids=range(15))  # fmt: skip
def test_the_first_solution_in_python_3_is_the_reference(other: str) -> None:
    assert reference_of(solutions=[other, SUM, "print(5)\n"]) == SUM
    assert reference_of(solutions=[other]) == ""
    assert reference_of(solutions=[OLD, other, OLD, SUM]) == SUM


def test_a_row_without_a_solution_in_python_3_stays(tmp_path: Path) -> None:
    row = {"question": "Add.", "inputs": ["1 2\n"], "outputs": ["3\n"], "solutions": ["int main(){}"]}  # fmt: skip
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(row) + "\n")
    (problem,) = load_problems(str(path))
    assert (problem.reference, problem.playable) == ("", False)
    assert problem.cases == (Case(("1 2\n",), {}, "3\n"),)


@pytest.mark.parametrize("label", ["python", "Python3", "py", ""])
def test_fences_of_python(label: str) -> None:
    assert reference_of(gold_standard_solution=f"```{label}\n{SUM}```") == SUM


@pytest.mark.parametrize("label", ["cpp", "c++", "java", "javascript"])
def test_fences_of_others(label: str) -> None:
    for code in (CPP, SUM):
        assert reference_of(gold_standard_solution=f"```{label}\n{code}```") == ""


@pytest.mark.parametrize("language", [3, 3.0, "3", "PYTHON3", "python3", " Python 3 ", "py3", "pypy_3", "python3.8"])  # fmt: skip
def test_languages_that_are_python_3(language: object) -> None:
    solutions = {"language": [1, language, language], "solution": ["print(1)", SUM, "print(2)"]}
    assert reference_of(solutions=solutions) == SUM


@pytest.mark.parametrize("language", [0, 1, 2, 4, None, True, "python", "CPP", "python2", "33", [3]])  # fmt: skip
def test_languages_that_are_not(language: object) -> None:
    assert reference_of(solutions={"language": [language], "solution": [SUM]}) == ""


def test_a_single_solution_beside_a_description() -> None:
    row = {key: value for key, value in rows_of("codecontests")[0].items() if key not in ("expect", "solutions")}  # fmt: skip
    for more in ({"solution": SUM}, {"solution": [CPP, SUM]}, {"solutions": [], "solution": SUM}):
        assert to_problem(Row({**row, **more}, "line 1")).reference == SUM
    assert to_problem(Row({**row, "solutions": ["print(1)"], "solution": SUM}, "line 1")).reference == "print(1)"  # fmt: skip


def test_functions_may_use_what_their_preamble_imports() -> None:
    code = (
        "def add(a: int, b: int) -> List[int]:\n    return [reduce(lambda x, y: x + y, [a, b])]\n"
    )
    called = {"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add", "solutions": [code]}
    row = {"question": "Add.", **called}
    problem = to_problem(Row(row, "line 1"))
    assert (problem.preamble, problem.reference) == (PREAMBLE, code)
    assert reference_of(solutions=[code]) == ""


def test_validate_runs_references_and_names_rows_without(tmp_path: Path, sandbox: Sandbox) -> None:
    wrong = {
        "question": "Add 1.",
        "inputs": ["1\n"],
        "outputs": ["2\n"],
        "solutions": ["print(1)\n"],
    }
    none = {"question": "Add 2.", "inputs": ["1\n"], "outputs": ["3\n"]}
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (wrong, none)))
    findings = {
        finding.kind: finding.where for finding in validate_problems(path, sandbox).findings
    }
    assert findings[FindingKind.REFERENCE_FAILS] == f"{path}, line 1"
    assert findings[FindingKind.NO_REFERENCE] == f"{path}, line 2"
