"""The check of problem sets: each kind of finding, where it is, and that sound sets have none."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from codea1_env.problem_sets.validate import FindingKind, ProblemFinding, Tried, validate_problems
from codea1_env.problems import ProblemsError, load_problems
from codea1_env.sandbox import Limits, Sandbox

GOOD: dict[str, Any] = {
    "task_id": "demo/double",
    "prompt": 'def double(x: int) -> int:\n    """Double it."""\n',
    "entry_point": "double",
    "reference": "def double(x): return 2 * x",
    "tests": ["assert double(2) == 4", "assert double(0) == 0"],
    "metadata": {"source": "demo", "split": "train"},
}


def row(name: str = "demo/other", **changes: object) -> dict[str, Any]:
    return {**GOOD, "task_id": name, "prompt": f"def double(x): # {name}", **changes}


def check(path: Path, *rows: object, sandbox: Sandbox) -> list[ProblemFinding]:
    lines = [item if isinstance(item, str) else json.dumps(item) for item in rows]
    file = path / "set.jsonl"
    file.write_text("\n".join(lines))
    return list(validate_problems(file, sandbox).findings)


FINDINGS = [
    ({"reference": "def double(x) return x"}, FindingKind.UNPARSABLE_REFERENCE, "Expect a Python program"),
    ({"entry_point": "triple", "tests": ["assert triple(2) == 4"]},
     FindingKind.MISSING_ENTRY_POINT, "to define 'triple', actually it does not"),
    ({"entry_point": "Solution.double", "tests": ["assert Solution().double(2) == 4"]},
     FindingKind.MISSING_ENTRY_POINT, "to define 'Solution.double', actually it does not"),
    ({"reference": "double = None.no"}, FindingKind.REFERENCE_FAILS, "Expect the reference to run, actually: error"),
    ({"reference": "import os\nos._exit(0)"}, FindingKind.REFERENCE_FAILS, "Expect the reference to run, actually: exited"),
    ({"tests": ["assert double(2) == 4", "assert double(3) == 7"]}, FindingKind.REFERENCE_FAILS, "to pass test 2, actually: fail"),
    ({"cases": [{"args": [1], "expected": 3}], "tests": []}, FindingKind.REFERENCE_FAILS, "to pass test 1, actually: fail"),
    ({"reference": "def double(x): return 2 // x", "cases": [{"args": [0]}], "tests": []},
     FindingKind.REFERENCE_FAILS, "the reference gives no value for case 1: error, ZeroDivisionError"),
    ({"reference": "def double(x) return x", "cases": [{"args": [0]}], "tests": []}, FindingKind.UNPARSABLE_REFERENCE, "a Python program"),
    ({"reference": "def twice(x): return x", "cases": [{"args": [0]}], "tests": []},
     FindingKind.MISSING_ENTRY_POINT, "to define 'double', actually it does not"),
    ({"checker": "def check(args, output, expected): return 1 / 0"}, FindingKind.CHECKER_FAILS, "ZeroDivisionError"),
    ({"checker": "def check(args, output, expected): return 1"}, FindingKind.CHECKER_FAILS, "returned int, not True or False"),
    ({"checker": "def check(args, output): return True"}, FindingKind.CHECKER_FAILS, "gave no answer"),
    ({"checker": "def check(args, output, expected): return False"}, FindingKind.REFERENCE_FAILS, "checker says"),
    ({"checker": "def check(args, output, expected):\n    while args == (0,): pass\n    return output == expected"},
     FindingKind.CHECKER_FAILS, "to answer within some seconds, actually: no answer on test 2"),
    ({"reference": "def double(x): return ['a', *{'a', 'b', 'c', 'd'}][1:]", "checker": "def check(a, b, c): return True"},
     FindingKind.NON_DETERMINISTIC, "two runs of double(2) to return the same value"),
    ({"reference": "import random\ndef double(x): return random.random()", "checker": "def check(a, b, c): return b < 1"},
     FindingKind.NON_DETERMINISTIC, "independent of random numbers"),
    ({"reference": "assert hash('b') % 2 == 0\ndef double(x): return 2 * x"}, FindingKind.NON_DETERMINISTIC, "to load alike"),
    ({"tests": []}, FindingKind.NO_TESTS, "Expect cases, tests or a test_module, actually none"),
    ({"reference": "def double(x):\n    if x > 90:\n        return x + x\n    return 2 * x"},
     FindingKind.WEAK_TESTS, "the fault x > 90 -> x >= 90 in line 2, actually it passes them, as 5 of 8 mutants do"),
    ({"tests": ["assert double(2) == 4"]}, FindingKind.WEAK_TESTS, "a program that always returns 4, actually it passes them"),
    ({"prompt": "def double(x):\n    \"\"\"\n    >>> double(2)\n    4\n    >>> double(3)\n    6\n    \"\"\"\n",
      "tests": ["assert double(2) == 4", "assert double(3) == 6"]}, FindingKind.WEAK_TESTS, "knows only the prompt's examples"),
    ({"reference": "def double(x): return None", "tests": ["assert double(2) == None", "assert double(3) is None"]},
     FindingKind.STUB_PASSES, "a program that does nothing, actually it passes them"),
    ({"checker": "def check(args, output, expected): return True"}, FindingKind.STUB_PASSES, "a program that does nothing"),
    ({"entry_point": "", "reference": "print(2 * int(input()))", "tests": [], "cases": [{"stdin": "2", "stdout": "4"}, {"stdin": "3", "stdout": "7"}]},
     FindingKind.REFERENCE_FAILS, "Expect the reference to pass test 2, actually: fail, line 1: printed '6', expected '7'"),
    ({"entry_point": "", "reference": "print(2 *", "tests": [], "cases": [{"stdin": "2", "stdout": "4"}]},
     FindingKind.UNPARSABLE_REFERENCE, "Expect a Python program"),
    ({"entry_point": "", "reference": "print(hash('b'))", "tests": [], "cases": [{"stdin": "2"}]}, FindingKind.NON_DETERMINISTIC, "Expect two runs"),
    ({"entry_point": "", "reference": "print(input())", "tests": [], "cases": [{"stdin": "2", "stdout": "2"}, {"stdin": "3", "stdout": "3"}],
      "contract": "def check(stdin): return True"}, FindingKind.BROKEN_CONTRACT, "actually on test 1: the contract of the problem fails: check returned bool, not None"),
    ({"entry_point": "", "reference": "print(input())", "tests": [], "cases": [{"stdin": "2", "stdout": "2"}, {"stdin": "3", "stdout": "3"}],
      "contract": "def check(stdin): int('x')"}, FindingKind.BROKEN_CONTRACT, "on test 1: the contract of the problem fails: ValueError"),
    ({"entry_point": "", "reference": "print(input())", "tests": [], "cases": [{"stdin": "2", "stdout": "2"}, {"stdin": "3", "stdout": "3"}],
      "contract": "def check(stdin):\n    while True: pass"}, FindingKind.BROKEN_CONTRACT, "on test 1: the contract ends with timeout"),
    ({"entry_point": "", "reference": "print(input())", "tests": [], "cases": [{"stdin": "2", "stdout": "2"}, {"stdin": "3", "stdout": "3"}],
      "contract": "def check(stdin):\n    assert int(stdin) < 3, 'small'"}, FindingKind.BROKEN_CONTRACT, "on test 2: it is outside the contract: small"),
    ({"prompt": GOOD["prompt"]}, FindingKind.DUPLICATE_PROMPT, "Expect every prompt once, actually it is also at"),
    ({"task_id": "demo/double"}, FindingKind.DUPLICATE_ID, "Expect every task_id once, actually it is also at"),
    ({"cases": [{"args": 3}]}, FindingKind.BROKEN_ROW, "Expect args of case 1 to be a list"),
    ({"cases": [[1, 2]]}, FindingKind.BROKEN_ROW, "Expect case 1 to be an object with the fields args, kwargs and expected"),
    ({"checker": "def right(): ..."}, FindingKind.BROKEN_ROW, "Problem.checker to define check"),
    ({"test_program": "assert double(1) == 2"}, FindingKind.BROKEN_ROW, "actually also: test_program"),
]  # fmt: skip


@pytest.fixture(scope="module")
def findings(sandbox, tmp_path_factory):
    """What is found in each line of one file: a good row, and then the bad ones."""
    bad = [row(f"demo/{n}", **changes) for n, (changes, *_) in enumerate(FINDINGS, 2)]  # fmt: skip
    path = tmp_path_factory.mktemp("findings")
    found: dict[int, list[ProblemFinding]] = {}
    for each in check(path, GOOD, *bad, sandbox=sandbox):
        found.setdefault(int(each.where.rpartition(f"{path}/set.jsonl, line ")[2]), []).append(each)
    assert [*found] == sorted(found)
    return found


@pytest.mark.parametrize("line", range(2, len(FINDINGS) + 2))
def test_finding_has_kind_file_and_line(line, findings):
    changes, kind, message = FINDINGS[line - 2]
    found = findings[line]
    assert {finding.kind for finding in found} == {kind}
    expected = str(changes.get("task_id", f"demo/{line}"))
    assert found[0].task_id == ("" if kind is FindingKind.BROKEN_ROW else expected)
    assert message in found[0].message
    level = "warning" if kind.is_warning else "error"
    assert f"set.jsonl, line {line}: {level} [{kind.value}]" in str(found[0])


@pytest.mark.parametrize(
    ("changes", "others", "message"),
    [
        ({"tests": ["assert double(2 == 4"]}, {FindingKind.REFERENCE_FAILS, FindingKind.NOT_PLAYABLE}, "assert double(2 == 4"),
        ({"tests": ["assert double(1) > 1"], "reference": "import time\ndef double(x): return time.time_ns()"},
         {FindingKind.NOT_PLAYABLE}, "assert double(1) > 1"),
        ({"test_module": "import nothing_like_it"}, {FindingKind.REFERENCE_FAILS}, "import nothing_like_it"),
    ],
)  # fmt: skip
def test_what_is_no_data_is_named(changes, others, message, tmp_path, sandbox):
    findings = check(tmp_path, row(**changes), sandbox=sandbox)
    assert {finding.kind for finding in findings} == {FindingKind.JUDGED_INSIDE, *others}
    (inside,) = (each for each in findings if each.kind is FindingKind.JUDGED_INSIDE)
    assert message in inside.message
    assert inside.where == f"{tmp_path}/set.jsonl, line 1"


def test_without_pytest_test_modules_are_named_and_the_rest_is_checked(
    tmp_path: Path, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "pytest" else found(name)
    )
    module = row("demo/1", tests=[], test_module="def test_double(): assert double(1) == 2")
    wrong = row("demo/2", tests=["assert double(2) == 5"])
    findings = check(tmp_path, module, wrong, sandbox=sandbox)
    said = [each for each in findings if each.kind is FindingKind.REFERENCE_FAILS]
    assert [each.task_id for each in said] == ["demo/1", "demo/2"]
    assert "codea1-env[evaluation]" in said[0].message


def test_sound_set(tmp_path: Path, sandbox: Sandbox) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text("\n".join(json.dumps(row(f"demo/{n}")) for n in range(20)))
    seen: list[tuple[int, int]] = []
    report = validate_problems(
        str(file), sandbox, progress=lambda done, total: seen.append((done, total))
    )
    assert report.ok
    assert report.findings == ()
    assert report.tried["stub"] == Tried(programs=20, passed=0)
    assert report.tried["constant"] == Tried(programs=40, passed=0)
    assert report.tried["examples"] == Tried(programs=0, passed=0)
    assert report.tried["mutant"].programs >= 60
    assert (report.problems, report.tests) == (20, 40)
    assert (seen[0], seen[-1]) == ((0, 20), (20, 20))
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    "changes",
    [
        {"entry_point": "", "reference": "print(4)", "tests": [], "cases": [{"stdin": "2", "stdout": "4"}]},
        {"entry_point": "A.double", "reference": "class A:\n    def double(self, x): return 4", "tests": ["assert A().double(2) == 4"]},
        {"test_module": "from solution import double\n\ndef test_double(): assert double(2) == 4"},
    ],
)  # fmt: skip
def test_wrong_programs_are_written_for_every_kind_of_problem(changes, tmp_path, sandbox):
    findings = check(
        tmp_path, row(**{"tests": ["assert double(2) == 4"], **changes}), sandbox=sandbox
    )
    (weak,) = (each for each in findings if each.kind is FindingKind.WEAK_TESTS)
    assert "a program that always returns" in weak.message


def test_set_that_training_does_not_take_says_why(tmp_path: Path, sandbox: Sandbox) -> None:
    findings = check(tmp_path, row(metadata={"split": "dev"}), sandbox=sandbox)
    assert [finding.kind for finding in findings] == [FindingKind.NOT_PLAYABLE]
    assert "actually the splits are dev. Train with --split dev" in findings[0].message
    with pytest.raises(ProblemsError, match="Expect the split to be one of dev"):
        load_problems(str(tmp_path / "set.jsonl"), "train")


def test_slow_reference_is_a_warning(tmp_path, sandbox, monkeypatch):
    monkeypatch.setattr("codea1_env.problem_sets.validate.SLOW_PROGRAM", 0.01)
    busy = "def double(x):\n    for _ in range(3_000_000): pass\n    return 2 * x"
    findings = check(tmp_path, row(reference=busy), sandbox=sandbox)
    assert {finding.kind for finding in findings} == {FindingKind.SLOW_REFERENCE}


def test_endless_reference_fails_within_the_limits(tmp_path: Path, sandbox: Sandbox) -> None:
    file = tmp_path / "set.jsonl"
    endless = row("demo/endless", reference="def double(x):\n    while True: pass")
    file.write_text(f"{json.dumps(endless)}\n{json.dumps(GOOD)}")
    limits = Limits(
        call_cpu_time=0.2, call_wall_time=5, run_cpu_time=2, run_wall_time=20, calls_per_test=1
    )
    report = validate_problems(file, sandbox, limits=limits)
    assert {finding.kind for finding in report.findings} == {FindingKind.REFERENCE_FAILS}
    assert "timeout" in report.findings[0].message
    assert {finding.task_id for finding in report.findings} == {"demo/endless"}


@pytest.mark.parametrize("kind", ["function", "program"])
def test_behind_a_call_that_hangs_nothing_is_run(kind: str, tmp_path, sandbox, monkeypatch) -> None:
    cases = [{"stdin": f"{n}\n", "stdout": f"{2 * n}\n"} for n in range(9)]
    loops = "n = int(input())\nwhile n > 1: pass\nprint(2 * n)\n"
    item = row(kind=kind, entry_point="", tests=[], cases=cases, reference=loops)
    if kind == "function":
        tests = [f"assert double({n}) == {2 * n}" for n in range(9)]
        item = row(tests=tests, reference="def double(x):\n    while x > 1: pass\n    return 2 * x")
    (tmp_path / "set.jsonl").write_text(json.dumps(item))
    made, judge = [], sandbox.judge_cases

    def judged(*arguments: Any, **options: Any) -> Any:
        made.append(judge(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(sandbox, "judge_cases", judged)
    limits = Limits(call_cpu_time=0.2, call_wall_time=5, run_cpu_time=2, run_wall_time=20)
    [found, *_] = validate_problems(tmp_path / "set.jsonl", sandbox, limits=limits).findings
    assert found.kind is FindingKind.REFERENCE_FAILS
    assert "to pass test 3, actually: timeout" in found.message
    assert [len(each.tests) for each in made] == [3, 3]


def test_each_test_that_the_reference_fails_is_named(tmp_path: Path, sandbox: Sandbox) -> None:
    tests = [f"assert double({n}) == {2 * n}" for n in range(9)]
    findings = check(tmp_path, row(tests=tests, reference="def double(x): return x * (2 + x % 2)"), sandbox=sandbox)  # fmt: skip
    assert [each.message[:34] for each in findings if each.kind is FindingKind.REFERENCE_FAILS] == [
        f"Expect the reference to pass test {n}"[:34] for n in (2, 4, 6, 8)
    ]


def test_split_and_limit(tmp_path: Path, sandbox: Sandbox) -> None:
    file = tmp_path / "set.jsonl"
    other = row("demo/eval", metadata={"split": "eval"}, reference="def")
    file.write_text(f"{json.dumps(GOOD)}\n{json.dumps(other)}")
    assert validate_problems(file, sandbox, split="train").ok
    assert not validate_problems(file, sandbox, split="eval").ok
    assert validate_problems(file, sandbox, limit=1).ok
    with pytest.raises(ProblemsError, match="one of eval, train, actually: 'test'"):
        validate_problems(file, sandbox, split="test")


def test_public_set(shared_data: Path, sandbox: Sandbox) -> None:
    report = validate_problems(shared_data / "mbpp.jsonl.gz", sandbox, limit=20)
    assert report.ok, report.findings
    assert report.problems == 20
