"""A contract refuses what the problem does not speak of, before the reference is asked."""

from __future__ import annotations

import ast
import gzip
import itertools
import json
import re
import runpy
import subprocess
import sys
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from problem_rows import LAYOUTS, public_set

from codea1_env.oracle import Oracle, Truth
from codea1_env.problem_sets.contracts import contracted
from codea1_env.problem_sets.rows import Row
from codea1_env.problem_sets.schemas import row_of, to_problem
from codea1_env.problem_sets.validate import FindingKind, validate_problems
from codea1_env.problems import Problem, ProblemsError, load_problems
from codea1_env.reading.calls import literal_calls
from codea1_env.reading.invalid_reasons import InvalidReason
from codea1_env.reading.signatures import read_signatures
from codea1_env.referee import Referee, RefereeConfig, Round
from codea1_env.responses import Test as Call
from codea1_env.sandbox import Limits, Sandbox, encoded_arguments
from codea1_env.subjects import Subject

LIMITS = Limits(call_cpu_time=0.3, call_wall_time=3.0)
HALF = "def f(n, by=2):\n    return n // by\n"


def asked(
    sandbox: Sandbox, contract: str, *calls: tuple, code: str = HALF, name: str = "f", **named
) -> list[Truth]:
    """What the oracle says of calls of a reference with a contract."""
    tests = [
        Call(encoded_arguments(each, named), b"", f"f({each})", f"{each}", "") for each in calls
    ]
    subject = Subject("demo", name, code, contract)
    [found] = Oracle(sandbox, LIMITS).ask({subject: [tests]}).values()
    return [found[test.call_text] for test in tests]


def test_a_call_outside_the_contract_says_which_assert_refuses_it(sandbox: Sandbox) -> None:
    contract = "assert n >= 0\nassert n < 9, f'{n} is too large'"
    inside, below, above = asked(sandbox, contract, (4,), (-4,), (40,))
    assert inside.source == "2"
    assert (below.fault, below.reason) == (
        InvalidReason.OUTSIDE_CONTRACT,
        "outside the contract: n >= 0",
    )
    assert above.reason == "outside the contract: 40 is too large"


def test_defaults_and_keywords_are_bound(sandbox: Sandbox) -> None:
    inside, outside = (
        asked(sandbox, "assert by == 2 or n == 3", (4,), (3, 3)),
        asked(sandbox, "assert by == 2", (4,), by=5),
    )
    assert [truth.source for truth in inside] == ["2", "1"]
    assert [truth.fault for truth in outside] == [InvalidReason.OUTSIDE_CONTRACT]


@pytest.mark.parametrize("name", ["Solution.f", "Solution.g"])
def test_methods(sandbox: Sandbox, name: str) -> None:
    code = (
        "class Solution:\n"
        "    def f(self, n): return self.g(n - 9)\n"  # outside, but not a call of the test
        "    @staticmethod\n    def g(n): return 2 * n\n"
    )
    inside, outside = asked(sandbox, "assert n > 0", (5,), (0,), code=code, name=name)
    assert inside.source in ("-8", "10")
    assert outside.fault is InvalidReason.OUTSIDE_CONTRACT


def test_the_reference_calls_itself_with_anything(sandbox: Sandbox) -> None:
    code = "def f(n):\n    return 0 if n < 1 else n + f(n - 1)\n"
    [truth] = asked(sandbox, "assert n > 0", (4,), code=code)
    assert truth.source == "10"


def test_names_of_the_reference_are_not_those_of_the_contract(sandbox: Sandbox) -> None:
    """Nor does a contract change what the reference gets, or lend it what it imports."""
    code = (
        "str = type = len = compile = exec = globals = print\n"
        "limit = names = text = program = check = contracted = 10**9\n"
        "def f(xs): return xs\n"
    )
    contract = (
        "import math\nlimit = 3\nassert len(xs) < math.inf\nassert max(xs) < limit\nxs.clear()"
    )
    inside, outside = asked(sandbox, contract, ([1, 2],), ([7],), code=code)
    assert inside.source == "[1, 2]"
    assert outside.fault is InvalidReason.OUTSIDE_CONTRACT
    [truth] = asked(sandbox, "import math", (4,), code="def f(n): return math.sqrt(n)")
    assert truth.fault is InvalidReason.RAISES
    assert "'math' is not defined" in truth.reason


@pytest.mark.parametrize(
    ("contract", "reason"),
    [
        ("assert m > 0", "the contract of the problem fails: NameError: name 'm' is not defined"),
        ("assert n >", "the contract of the problem fails: SyntaxError: "),
        ("raise SystemExit(3)", "the contract of the problem fails: SystemExit: 3"),
    ],
)
def test_a_broken_contract_is_a_reason_and_no_crash(sandbox, contract, reason):
    [truth] = asked(sandbox, contract, (4,))
    assert truth.reason.startswith(reason)
    assert truth.fault is InvalidReason.RAISES
    assert not truth.reply


def test_a_looping_contract_is_named(sandbox):
    [truth] = asked(sandbox, "while n: pass", (4,))
    assert truth.reason.startswith("takes too long on the reference: ")
    assert truth.fault is InvalidReason.TIMEOUT
    assert "contract" in truth.reason


def test_the_referee_pays_nobody_for_a_call_outside(sandbox: Sandbox) -> None:
    problem = Problem(
        "p", "def f(n: int) -> int: ...", "f", "def f(n): return n // 2", contract="assert n >= 0"
    )
    program = "def f(n): return int(n / 2)"
    suite = ["assert f(-3) == -2", "assert f(4) == 2"]
    for config, statuses in (
        (RefereeConfig(), ["invalid", "kept"]),
        (RefereeConfig(domain="any"), ["kept", "kept"]),  # as released
    ):
        [verdict] = Referee(sandbox, config).judge([Round(problem, program, [suite])])
        assert [test.status for test in verdict.suites[0].tests] == statuses
        assert bool(verdict.suites[0].failed) == (config.domain == "any")


@pytest.mark.parametrize(
    ("contract", "message"),
    [
        ("assert n > 0", ""),
        ("assert n > 7", "test 2: it is outside the contract: n > 7"),
        ("assert m", "test 1: the contract of the problem fails: NameError: name 'm'"),
    ],
)
def test_validate_names_a_broken_contract(sandbox, tmp_path, contract, message):
    tests = ("assert f(9) == 4", "assert f(7) == 3")
    problem = Problem("a", "def f(n): ...", "f", HALF, tests, contract=contract)
    path = tmp_path / "own.jsonl"
    path.write_text(json.dumps(row_of(problem)))
    report = validate_problems(str(path), sandbox, limits=LIMITS)
    found = [each for each in report.findings if each.kind is FindingKind.BROKEN_CONTRACT]
    assert len(found) == bool(message)
    for each in found:
        assert message in each.message
        assert each.where.endswith("own.jsonl, line 1")


def test_contracts_of_the_starter_set_take_their_golden_tests(sandbox: Sandbox) -> None:
    problems = [problem for problem in load_problems("starter") if problem.contract]
    assert len(problems) >= 120
    for problem in problems:
        calls = sandbox.analyse(literal_calls, list(problem.tests), problem.entry_point)
        assert len(calls) >= 10
        code, name = contracted(problem.reference, problem.entry_point, problem.contract)
        results = sandbox.call(code, name, calls)
        assert all(result.error is None for result in results), problem.task_id


OUTSIDE = {
    "sudoku_conflicts": [(["." * 9] * 8,), (["." * 8] * 9,), (["0" * 9] * 9,), ([],)],
    "life_after": [(["##", "#"], 1), (["ab"], 1), (["#"], 10**9)],
    "spiral_walk": [([[1, 2], [3]], 0, 0), ([[1]], 99, 0)],
    "sum_mixed_fractions": [([each],) for each in ("1/-2", "1  1/2", "01", "--1", "", "1/2/3")],
    "free_slots": [([], "9:00-10:00", 5), ([], "09:00-25:00", 5), (["x"], "09:00-10:00", 5)],
    "add_workdays": [("2024-02-30", 1, []), ("20240301", 1, []), ("2024-03-01", 1, ["soon"])],
    "replay_cache": [(2, ["put a"]), (2, ["get a b"]), (2, ["clear"]), (2, [""])],
    "transform_cost": [("a", "b", -1, 1, 1)],
    "cheapest_route": [({"a": {"b": 0}}, "a", "b")],
    "round_robin_finish": [([("a", 0, 1)], 0), ([("a", -1, 1)], 1)],
    "is_palindrome": [("\u0130",), ("\u03a3\u0391\u03a3",)],
    "letter_counts": [("\u212a",)],
    "late_fee": [(201,), (-(10**20),)],
    "repeat_text": [("a", -(10**20)), ("a" * 101, 1)],
    "average": [([10**20],), ([0] * 201,)],
    "initials": [("Ada\u2003Lovelace",), ("\u00df",)],
    "distance_to_segment": [((1.0, 2.0), (0.0, 0.0), (1e-300, 0.0))],
    "polygon_area": [([(0.0, 0.0), (2.0, 2.0), (2.0, 0.0), (0.0, 2.0)],)],
    "split_csv_line": [("a\x0bb",)],
}


def test_contracts_of_the_starter_set_refuse_what_their_text_excludes(sandbox: Sandbox) -> None:
    problems = {problem.entry_point: problem for problem in load_problems("starter")}
    for entry_point, calls in OUTSIDE.items():
        problem = problems[entry_point]
        subject = Subject.of(problem)
        tests = [Call(encoded_arguments(each, {}), b"", f"{each}", f"{each}", "") for each in calls]
        [found] = Oracle(sandbox, LIMITS).ask({subject: [tests]}).values()
        assert {truth.fault for truth in found.values()} == {InvalidReason.OUTSIDE_CONTRACT}, found


FREE = {
    "get_count.counts", "get_count.name", "first_character.text", "shout.text", "is_empty_list.items",
    "contains_item.wanted", "index_of.wanted", "partition_by_rule.rule", "cheapest_route.start",
    "cheapest_route.goal", "shelf_item_or_name.shelves", "shelf_item_or_name.name",
}  # fmt: skip
"""Parameters whose size changes nothing for any plain program."""


def far(value: Any) -> Any:
    """A value of the same type that is too large for a loop, a float or a recursion."""
    if isinstance(value, (int, float)):
        return type(value)(10**20)
    if isinstance(value, dict):
        items = itertools.islice(itertools.cycle(value.values()), 5000)
        return {type(next(iter(value)))(n): item for n, item in enumerate(items)}
    return (value * 20_000)[:20_000]


def test_contracts_of_the_starter_set_bound_every_number_and_length(sandbox: Sandbox) -> None:
    """Else a right program that loops, recurses or takes floats loses to a test that no sentence excludes."""
    unbounded = set()
    for problem in load_problems("starter"):
        [signature] = sandbox.analyse(
            read_signatures, [(problem.prompt, problem.entry_point, problem.reference, [])]
        )
        names = [row[0] for row in json.loads(signature)["parameters"]]
        calls = {}
        for place, name in enumerate(names):
            [arguments, *_] = [
                case.args
                for case in problem.cases
                if case.args[place] or type(case.args[place]) in (int, float)
            ]
            if type(arguments[place]) is not tuple:
                changed = (*arguments[:place], far(arguments[place]), *arguments[place + 1 :])
                calls[f"{problem.entry_point}.{name}"] = changed, {}
        code, name = contracted(
            problem.reference, problem.entry_point, problem.contract, answers=False
        )
        results = sandbox.call(code, name, list(calls.values())) if problem.contract else []
        refused = {
            parameter
            for parameter, result in zip(calls, results, strict=bool(problem.contract))
            if result.error == "CodeA1OutsideContract"
        }
        unbounded |= calls.keys() - refused
    assert unbounded == FREE


REFUSED = """

from math import inf, nan

{inputs}

def refused():
    found = []
    for arguments in inputs:
        try:
            {name}(*arguments)
        except Exception as error:
            found.append((str(arguments)[:100], str(error)))
    return found[:3]
"""


def test_contracts_of_public_sets_take_every_input_of_the_rows(sandbox, shared_data):
    """Of every 16th; and each contract belongs to a row."""
    text = resources.files("codea1_env.problem_sets").joinpath("contracts.toml").read_text("utf-8")
    contracts, checked = tomllib.loads(text), []
    for source in ("humanevalplus.jsonl.gz", "mbppplus.jsonl.gz"):
        with gzip.open(shared_data / source, "rt", encoding="utf-8") as lines:
            tests = {row["task_id"]: row["test"] for row in map(json.loads, lines)}
        with_contract = [each for each in public_set(shared_data / source) if each.contract]
        assert len(with_contract) >= 90
        for problem in with_contract:
            assert problem.contract == contracts.pop(problem.task_id).strip("\n")
            assert any(
                isinstance(each, ast.Assert) for each in ast.walk(ast.parse(problem.contract))
            )
        for problem in with_contract[::16]:
            name, contract = problem.entry_point, problem.contract
            code, name = contracted(problem.reference, name, contract, answers=False)
            [inputs] = re.findall(r"^ *(inputs = .*)$", tests[problem.task_id], re.MULTILINE)
            code += REFUSED.format(inputs=inputs, name=name)
            [result] = sandbox.call(code, "refused", [((), {})])
            checked.append((problem.task_id, result.value, result.message))
    assert contracts == {}
    assert [row for row in checked if row[1:] != ([], "")] == []


def test_the_contract_of_a_row_goes_before_ours() -> None:
    test = "def check(candidate):\n    assert candidate(2) == 4\n"
    row = {**LAYOUTS["humaneval+ hub"], "task_id": "HumanEval/55", "test": test}
    assert to_problem(Row(row, "one.jsonl, line 1")).contract == "assert 0 <= n <= 200"
    given = "\n    assert n >= 0 # $_CONTRACT_$\n"
    assert to_problem(Row({**row, "contract": given}, "one.jsonl, line 1")).contract == given
    with pytest.raises(ProblemsError, match="line 1: Expect 'contract' to be text, actually: list"):
        to_problem(Row({**row, "contract": ["n"]}, "one.jsonl, line 1"))


EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "tests_for_a_function.py"
FUNCTION = '''
import math

UNITS = {"h": 3600, "m": 60, "s": 1}


def seconds(text: str, least: int = 0) -> float:
    """Return the seconds of "1h 2m 3s", at least so many.

    >>> seconds("1m 5s")
    65
    >>> seconds("2s", 7)
    7
    """
    found = sum(int(part[:-1]) * UNITS[part[-1]] for part in text.split())
    return max(found, least) if found else math.nan


def half(x):
    return x / 2
'''
TESTER = """
class Wrong:
    text = "assert seconds('1h') == 1\\nassert seconds('x') == 2"
    def act(self, observations):
        return [self.text for _ in observations]

class NotANumber(Wrong):
    text = "assert half(float('nan')) == 1.0"
"""


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "durations.py").write_text(FUNCTION, encoding="utf-8")
    (tmp_path / "tester.py").write_text(TESTER, encoding="utf-8")
    return tmp_path


def test_the_printed_file_notices_a_change(folder: Path) -> None:
    done = python(folder, str(EXAMPLE), "durations.py:seconds")
    assert done.returncode == 0, done.stderr
    first, imported, *_ = done.stdout.split("\n")
    noticed, of, *_ = [int(word) for word in first.split() if word.isdecimal()]
    assert 0 < noticed <= of
    assert imported == "from durations import seconds"
    (folder / "test_durations.py").write_text(done.stdout, encoding="utf-8")
    assert python(folder, "-m", "pytest", "-q", "test_durations.py").returncode == 0
    changed = FUNCTION.replace("max(found, least)", "min(found, least)")
    (folder / "durations.py").write_text(changed, encoding="utf-8")
    assert python(folder, "-m", "pytest", "-q", "test_durations.py").returncode == 1


def test_wrong_values_are_corrected_and_what_says_nothing_is_left_out(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    main = runpy.run_path(str(EXAMPLE))["main"]

    def printed(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", [EXAMPLE.name, *arguments])
        main()
        return capsys.readouterr().out

    shown = printed("durations.py:seconds", "--tester", "tester.py:Wrong")
    assert "    assert seconds('1h') == 3600\n" in shown
    assert "seconds('x')" not in shown, "the function raises"
    shown = printed("durations.py:half", "--tester", "tester.py:NotANumber")
    assert shown.startswith("# 0 of "), "nan equals nothing"
    with pytest.raises(SystemExit, match=r"a function minutes at the top of durations\.py"):
        printed("durations.py:minutes")


def test_it_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) <= 80
