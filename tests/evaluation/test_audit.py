"""The audit of tests: which wrong programs pass, which right programs fail, and what cannot be known."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from codea1_env.cli.app import run
from codea1_env.evaluation.audit import AuditConfig, audit_of, audit_problem, summary
from codea1_env.evaluation.statistics import proportion
from codea1_env.problems import Problem, ProblemsError, StdinTest
from codea1_env.sandbox import Case, Sandbox

CLIP = "def clip(n: int) -> int:\n    if n < 0:\n        return 0\n    return min(n, 9)\n"
PROMPT = 'def clip(n: int) -> int:\n    """Clip n to 0..9.\n\n    >>> clip(5)\n    5\n    >>> clip(12)\n    9\n    """\n'
STRONG = [f"assert clip({n}) == {min(max(n, 0), 9)}" for n in (-20, -1, 0, 1, 5, 8, 9, 10, 40)]
QUICK = AuditConfig(mutants=5, calls=40)
THIRD = [Case((1,), {}, 1 / 3), Case((2,), {}, 2 / 3)]


def problem(tests: list[str], **changes: Any) -> Problem:
    fields = {"prompt": PROMPT, "entry_point": "clip", "reference": CLIP} | changes
    return Problem("demo/clip", tests=tests, **fields)


def test_strong_tests_let_nothing_pass(sandbox: Sandbox) -> None:
    found = audit_problem(
        problem(STRONG), sandbox, QUICK, answers=[CLIP, "def clip(n): return n", "\0"]
    )
    assert (found.wrong, found.rejected, found.note) == (frozenset(), {}, "")
    assert {kind: found.tried[kind] for kind in ("stub", "constant", "examples", "answer")} == {
        "stub": 1, "constant": 3, "examples": 2, "answer": 2,
    }  # fmt: skip
    assert found.tried["mutant"] >= 5
    assert audit_of(json.loads(json.dumps(found.row()))) == found


@pytest.mark.parametrize(
    ("tests", "kinds"),
    [
        (["assert clip(5) == 5", "assert clip(12) == 9"], {"examples", "mutant"}),
        (["assert clip(9) == 9", "assert clip(12) == 9"], {"constant", "examples", "mutant"}),
    ],
)
def test_weak_tests(tests: list[str], kinds: set[str], sandbox: Sandbox) -> None:
    config = AuditConfig(mutants=20, calls=40, all_calls=True)
    found = audit_problem(problem(tests), sandbox, config)
    assert found.wrong >= kinds - {"examples"}
    assert ("examples" in kinds) == ("examples" in found.wrong)
    for each in found.accepted:
        if each.witness:
            call, _, rest = each.witness.partition(" is ")
            assert call.startswith("clip(")
            assert "not" in rest


@pytest.mark.slow
def test_a_call_beyond_what_tests_span_shows_nothing(sandbox: Sandbox) -> None:
    """`clip(-3)` is outside of 5 to 12: where no contract speaks of it, the text need not either."""
    weak = problem(["assert clip(5) == 5", "assert clip(12) == 9"])
    negative = "def clip(n):\n    return min(n, 9)\n"
    asked: dict[str, Any] = {"answers": [negative]}
    assert "answer" not in audit_problem(weak, sandbox, QUICK, **asked).wrong
    everything = dataclasses.replace(QUICK, all_calls=True)
    assert "answer" in audit_problem(weak, sandbox, everything, **asked).wrong
    bounded = dataclasses.replace(weak, contract="assert -50 <= n <= 50")
    found = audit_problem(bounded, sandbox, QUICK, **asked)
    assert "answer" in found.wrong
    bounded = dataclasses.replace(weak, contract="assert n >= 0")
    assert "answer" not in audit_problem(bounded, sandbox, everything, **asked).wrong


def test_right_programs_that_fail(sandbox: Sandbox) -> None:
    fails = audit_problem(problem(["assert clip(3) == 4"]), sandbox, QUICK)
    assert set(fails.rejected) == {"reference"}
    assert "returned 3, not 4" in fails.rejected["reference"]
    given = audit_problem(
        problem([*STRONG, "assert clip(2.5) == 2.5"]),
        sandbox,
        QUICK,
        right=["def clip(n): return sorted([0, int(n), 9])[1]"],
    )
    assert set(given.rejected) == {"given"}
    third = {"entry_point": "third", "reference": "def third(n): return n / 3"}
    exact = problem([], cases=THIRD, compare="exact", **third)
    assert set(audit_problem(exact, sandbox, QUICK).rejected) == {"rounded otherwise"}
    assert audit_problem(problem([], cases=THIRD, **third), sandbox, QUICK).rejected == {}


def test_a_recursive_reference_is_run_twice_and_no_oftener(sandbox: Sandbox) -> None:
    code = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
    fib = Problem("demo/fib", "def fib(n: int):", "fib", code, [f"assert fib({n}) == {v}" for n, v in [(1, 1), (2, 1), (20, 6765)]])  # fmt: skip
    found = audit_problem(fib, sandbox, QUICK)
    assert found.tried["run twice"] == 1
    assert found.rejected == {}


def test_without_a_reference_only_what_pretends_is_known(sandbox: Sandbox) -> None:
    nothing = problem(["assert clip(5) == 5", "assert clip(5) == 5"], reference="")
    found = audit_problem(nothing, sandbox, QUICK, answers=["def clip(n): return 5"])
    assert found.wrong == {"constant", "examples"}
    assert "no reference, so no mutants" in found.note
    assert "reference" not in found.tried
    printing = Problem(
        "demo/echo", "Print 3.", "main", "", stdin_tests=(StdinTest("1", "3"), StdinTest("2", "3"))
    )
    assert audit_problem(printing, sandbox).wrong == {"constant"}


def test_what_nothing_can_tell_is_in_no_share(sandbox: Sandbox) -> None:
    weak = Problem("demo/weak", "def weak(x: int):", "weak", "def weak(x): return abs(x)", ["assert weak(1) == 1", "assert weak(2) == 2"])  # fmt: skip
    found = audit_problem(weak, sandbox, QUICK, answers=["def weak(x): return x"])
    assert (found.compared, found.wrong) == (False, frozenset())
    assert "answer" in found.untold
    report = summary([found, audit_problem(problem(STRONG), sandbox, QUICK)])
    assert (report["untold"], report["wrong"]["problems"]) == (1, 1)
    assert "answer" not in report["wrong_by_kind"]


def test_a_checker_that_accepts_everything_is_weak(sandbox: Sandbox) -> None:
    checker = "def check(args, output, expected): return True"
    assert "stub" in audit_problem(problem(STRONG, checker=checker), sandbox, QUICK).wrong


def test_summary_counts_only_what_can_judge(sandbox: Sandbox) -> None:
    audits = [
        audit_problem(problem(STRONG), sandbox, QUICK),
        audit_problem(problem([]), sandbox, QUICK),
    ]
    report = summary(audits)
    assert (report["problems"], report["used"], report["without_tests"]) == (2, 1, 1)
    assert report["wrong"] == {"problems": 1, "found": 0, **vars(proportion(0, 1))}
    with pytest.raises(ProblemsError, match=r"none of 1 has such tests: it has no tests"):
        summary(audits[1:])


def test_wilson_interval():
    estimate = proportion(14, 49)  # as many as the 28.5% of arXiv 2606.16062
    assert (round(estimate.low, 3), round(estimate.high, 3)) == (0.178, 0.424)
    assert proportion(3, 3).high == 1.0


# The command


def rows(path: Path, number: int) -> str:
    tests = ["assert clip(5) == 5", "assert clip(12) == 9"]
    lines = [
        {"task_id": f"d/{n}", "prompt": PROMPT + "#" * n, "entry_point": "clip", "reference": CLIP, "tests": tests if n % 2 else STRONG}
        for n in range(number)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def audited(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert run(["problems", "audit", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    found.pop("seconds")
    return found


@pytest.mark.slow
def test_command_and_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, folder = rows(tmp_path / "set.jsonl", 4), tmp_path / "out"
    again = [source, "--mutants", "4", "--calls", "40", "--output-dir", str(folder)]
    whole = audited(again, capsys)
    assert (whole["wrong"]["problems"], whole["wrong"]["found"]) == (4, 2)
    log = folder / "audits.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(lines[:2]) + lines[2][:30])  # as a kill leaves it
    assert run(["problems", "audit", *again]) == 2
    assert "--resume" in capsys.readouterr().err
    assert audited([*again, "--resume"], capsys) == whole
    assert len(log.read_text().splitlines()) == 4
    assert run(["problems", "audit", *again, "--resume", "--mutants", "3"]) == 2
    assert "mutants was 4, now 3" in capsys.readouterr().err
    assert run(["problems", "audit", *again, "--resume"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"a wrong program passes +│ 4 +│ 2 +│ 0\.500 \[0\.150, 0\.850\]", shown)
    assert (
        run(
            [
                "problems",
                "audit",
                source,
                "--max-problems",
                "2",
                "--output-dir",
                str(tmp_path / "few"),
            ]
        )
        == 0
    )
    assert "2 of 4 problems, 0 without tests" in capsys.readouterr().out


def test_the_screen_says_what_was_not_compared(tmp_path, capsys):
    path = Path(rows(tmp_path / "set.jsonl", 2))
    bare = [json.loads(line) | {"reference": ""} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in bare))
    assert run(["problems", "audit", str(path), "--output-dir", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert (
        "2 problems: nothing to compare programs with: it has no reference, so no mutants" in shown
    )
    assert (
        "other calls in 0; in the others only a stub, constants and the examples count as wrong. "
        in shown
    )
    assert "no share" not in shown, "none has only other programs that pass"


@pytest.mark.slow
def test_answers_of_an_agent_and_right_programs(tmp_path, capsys):
    source = rows(tmp_path / "set.jsonl", 2)
    right = tmp_path / "right.jsonl"
    right.write_text(json.dumps({"task_id": "d/0", "solution": "def clip(n): return 0"}) + "\n")
    found = audited(
        [source, "--mutants", "2", "--calls", "40", "--agent", "mutant", "--right-programs", str(right), "--output-dir", str(tmp_path / "o")], capsys
    )  # fmt: skip
    assert found["wrong_by_kind"]["answer"]["problems"] == 2
    assert found["right_by_kind"]["given"]["found"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "none.jsonl"),
        (["starter", "--resume"], "--output-dir DIR with --resume"),
        (["starter", "--right-programs", "none.jsonl"], "none.jsonl"),
    ],
)
def test_bad_input(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(["problems", "audit", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
