"""Mutants: which faults there are, and that each is one fault in a program that still compiles."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.mutation import operators as mutation_operators
from codea1_env.mutation.operators import mutants
from codea1_env.problem_sets.judging import limits_beside
from codea1_env.problems import load_problems
from codea1_env.sandbox import AnalysisError, JobResult, Outcome, Sandbox, TestResult

SEARCH = '''"""Module text."""
from bisect import bisect_left

LIMIT: int = 10


def search(items: list[int], wanted: int = 3) -> int:
    """Find it: 1 + 1 < 3."""
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle] < wanted:
            low = middle + 1
        elif not items or -low < 3:
            low += 1
        else:
            high = middle
    for index in range(len(items)):
        if index in (1, 2):
            break
        best = max(low, high) if index else f"{index + 1}-{low!r:>3}"
    return low if low < LIMIT and items[low] == wanted else -1


if __name__ == "__main__":
    print(search([1, 2], 2))
'''
REFERENCES = [problem.reference for problem in load_problems("starter")[::8]]


def faults(body: str) -> set[tuple[str, str]]:
    """Operator and description of the mutants of a function with this body."""
    text = "def f(a, b=None, *c):\n" + "".join(f"    {line}\n" for line in body.split("\n"))
    return {(operator, description) for _, operator, _, description in mutants(text)}


@pytest.mark.parametrize(
    ("body", "operator", "description"),
    [
        ("return a + b", "AOR", "a + b -> a - b"),
        ("a += b\nreturn a", "AOR", "a += b -> a -= b"),
        ("a += b\nreturn a", "ASR", "a += b -> a = b"),
        ("return a & b", "BOR", "a & b -> a | b"),
        ("return a < b", "ROR", "a < b -> a <= b"),
        ("return 0 < a <= b", "ROR", "0 < a <= b -> 0 < a < b"),
        ("return a in b", "ROR", "a in b -> a not in b"),
        ("return a and b", "LCR", "a and b -> a or b"),
        ("if a:\n    return 1", "COI", "a -> not a"),
        ("return [x for x in a if x]", "COI", "x -> not x"),
        ("return not a", "UOD", "not a -> a"),
        ("return -a", "UOD", "-a -> a"),
        ("return a + 5", "CRP", "5 -> 6"),
        ("return True", "CRP", "True -> False"),
        ("return 'abc'", "CRP", "'abc' -> ''"),
        ("return a in (1, 2, 3)", "CRP", "(1, 2, 3) -> (1, 2)"),
        ("return {'a': 1, 'b': 2}[a]", "CRP", "{'a': 1, 'b': 2} -> {'b': 2}"),
        ("return a", "RVR", "return a -> return None"),
        ("return a and b", "RVR", "return a and b -> return not (a and b)"),
        ("if a:\n    return 1\nreturn 2", "SDL", "return 1 -> pass"),
        ("a.append(b)\nreturn a", "SDL", "a.append(b) -> pass"),
        ("for x in a:\n    if x:\n        break\n    b = x\nreturn b", "BCR", "break -> continue"),
        ("for x in a:\n    if x:\n        continue\n    b = x\nreturn b", "BCR", "continue -> break"),
        ("return a[1:b]", "SIR", "1:b -> 1:"),
        ("return list(range(1, b))", "SIR", "range(1, b) -> range(b)"),
        ("return min(a, b)", "FNR", "min(a, b) -> max(a, b)"),
        ("return sorted(a, reverse=True)", "FNR", "sorted(a, reverse=True) -> list(a)"),
        ("return a.startswith('x')", "FNR", "a.startswith('x') -> a.endswith('x')"),
        ("return abs(a)", "FND", "abs(a) -> a"),
        ("return a.strip()", "FND", "a.strip() -> a"),
        ("return sorted(a, reverse=True)", "ARD", "sorted(a, reverse=True) -> sorted(a)"),
        ("return [0] + a", "AOR", "[0] + a -> a"),
    ],
)  # fmt: skip
def test_operator(body: str, operator: str, description: str) -> None:
    assert (operator, description) in faults(body)


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("'''1 + 1 < 2'''\nreturn a", "1"),  # the docstring
        ("x: list[1 + 1] = a\nreturn x", "1 + 1"),  # an annotation
        ("raise ValueError('text')", "'text' ->"),  # which error
        ("import math\nreturn math.pi", "import"),
        ("x = 5\nreturn x", "x = 5 -> pass"),  # would only be an unbound name
        ("while a < 5:\n    a += 1\nreturn a", "a += 1 -> pass"),  # endless
        ("while a < 5:\n    a += 1\nreturn a", "a += 1 -> a -= 1"),  # endless
        ("return [1] + a", "[1] - a"),  # would only be a TypeError
    ],
)
def test_not_mutated(body: str, description: str) -> None:
    found = faults(body)
    assert found
    assert not [fault for fault in found if description in fault[1]]


def test_main_block_imports_and_docstrings_stay() -> None:
    tail = SEARCH[SEARCH.index("if __name__") :]
    for code, *_ in mutants(SEARCH):
        assert code.startswith('"""Module text."""\nfrom bisect import bisect_left\n')
        assert '    """Find it: 1 + 1 < 3."""\n' in code
        assert code.endswith(tail)
        assert "(items: list[int], wanted: int = " in code


def test_each_mutant_compiles_and_is_one_of_a_kind() -> None:
    for source in [SEARCH, *REFERENCES]:
        trees = [ast.dump(ast.parse(code)) for code, *_ in mutants(source)]
        assert len({*trees, ast.dump(ast.parse(source))}) == len(trees) + 1


@pytest.mark.slow
def test_text_of_a_mutant_is_the_mutated_tree() -> None:
    """Brackets, spacing and positions: the text must mean what the tree with the fault means."""
    checked = 0
    for source in [SEARCH, *REFERENCES]:
        tree, text = ast.parse(source), mutation_operators._Text(source)
        for site in list(mutation_operators._sites(tree, text)):
            code = text.render(site)
            site.put(site.new)
            meant = ast.unparse(ast.parse(ast.unparse(tree)))  # a negative number is two nodes then
            assert ast.unparse(ast.parse(code)) == meant, code
            site.put(site.old)
            checked += 1
        assert ast.unparse(tree) == ast.unparse(ast.parse(source))
    assert checked > 500


@pytest.mark.parametrize(
    ("source", "fault", "mutant"),
    [
        ("def f(a):\n  return(a)\n", "return(a)", "return None"),
        ("def f(a):\n  return 1if a else 2\n", "1if a else 2", "2 if a else 2"),
        ("def f(a, b):\n  return (a + b) * 2\n", "(a + b) * 2", "(a - b) * 2"),
        ("def f(a):\n  if a: return 1\n  return 2\n", "if a: return 1", "if not a: return 1"),
        ("def f(é):\n  return 'é' * é, é + 1\n", "é + 1", "é - 1"),
        ("def f(a):\r\n  x = '''a\r\nb'''\r\n  return a + 1\r\n", "a + 1", "a - 1"),
        ("def f(a):\n  return f'{a + 1}-{a!r:>3}'\n", "f'{a + 1}-{a!r:>3}'", "f'{a - 1}-{a!r:>3}'"),
        ("def f(a):\n  return ('x'\n    f'{a + 1}')\n", "('x'\n    f'{a + 1}')", "(f'x{a - 1}')"),
        ("def f(a):\n  a.b(); return 1\n", "a.b(); return", "pass; return"),
        ("def f(a):\n  if a:\n    return 1\n  elif a > 2:\n    return 3\n", "a > 2", "a >= 2"),
        ("def f(a):\n  return a[1:2, 3]\n", "1:2, 3", ":2, 3"),
        ("def f(a):\n  return [x for x in a if x]\n", "if x", "if (not x)"),
    ],
)  # fmt: skip
def test_fault_is_written_into_the_original_text(source: str, fault: str, mutant: str) -> None:
    normal = source.replace("\r\n", "\n")
    assert normal.count(fault) == 1
    assert normal.replace(fault, mutant) in [code for code, *_ in mutants(source)]


def test_mutants_that_compile_to_the_same_code_are_left_out() -> None:
    # `return None` and no return are the same program; so are `2 * 3` and `6`.
    codes = [code for code, *_ in mutants("def f(a):\n    a.sort()\n    return None\n")]
    assert "def f(a):\n    a.sort()\n    pass\n" not in codes


def test_order_is_the_order_of_the_text_and_stays() -> None:
    found = mutants(SEARCH)
    assert [line for _, _, line, _ in found] == sorted(line for _, _, line, _ in found)
    again = subprocess.run(
        [sys.executable, "-c", "import sys, runpy; m = runpy.run_path(sys.argv[1]); print(m['mutants'](sys.stdin.read()))",
         mutation_operators.__file__],
        input=SEARCH, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert again.stdout.strip() == repr(found)


@pytest.mark.parametrize("limit", [1, 8, 30])
def test_limit_takes_an_even_selection(limit: int) -> None:
    chosen = mutants(SEARCH, limit)
    assert len(chosen) == limit
    lines = [line for _, _, line, _ in chosen]
    assert lines == sorted(lines)
    # 74 faults in 18 lines: an even selection of 8 or more takes one from each quarter of them.
    if limit >= 8:
        assert all(any(low <= line < low + 5 for line in lines) for low in (4, 9, 14, 18))


def test_generate_mutants_runs_in_a_helper_process(sandbox: Sandbox) -> None:
    found = generate_mutants(SEARCH, sandbox)
    assert found == [Mutant(*row) for row in mutants(SEARCH)]
    assert generate_mutants(SEARCH, sandbox, limit=5) == [Mutant(*r) for r in mutants(SEARCH, 5)]


@pytest.mark.parametrize(
    "source",
    ["def f(:", "x = 1\0", "(" * 100_000 + ")" * 100_000, "x = '\ud800'", "-" * 50_000 + "1"],
)
def test_hostile_text_is_an_analysis_error(source: str, sandbox: Sandbox) -> None:
    with pytest.raises(AnalysisError, match=r"Expect source to be a Python program, actually: \w"):
        generate_mutants(source, sandbox)
    assert generate_mutants("x = 1", sandbox)[0].description == "1 -> 2"


def test_limits_follow_the_reference_in_steps():
    def took(*seconds: float) -> JobResult:
        tests = tuple(TestResult(Outcome.PASS, cpu_time=each) for each in seconds)
        return JobResult(TestResult(Outcome.PASS, cpu_time=0.01), tests)

    assert limits_beside(took(0.001)).run_cpu_time == 0.5
    assert limits_beside(took(0.2, 0.1)).run_cpu_time == 1.5
    assert limits_beside(took(0.2, 0.12)) == limits_beside(took(0.2, 0.1))
