"""Signatures: what a function takes, by annotations and by what was seen."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from codea1_env.reading.domains import described, is_in, merged, shape
from codea1_env.reading.signatures import Signature, read_signatures
from codea1_env.reading.suites import read_suites

NAN, INF = float("nan"), float("inf")


def signature(
    prompt: str, reference: str = "def f(x): pass", tests: list[str] | None = None
) -> Signature:
    return Signature(read_signatures([(prompt, "f", reference, tests or [])])[0])


def admits(
    prompt: str, value: Any, tests: list[str] | None = None, reference: str = "def f(x): pass"
) -> bool:
    return signature(prompt, reference, tests).outside([value], {}) == ""


@pytest.mark.parametrize(
    ("annotation", "inside", "outside"),
    [
        ("int", [1, -(10**30)], [True, 1.0, "a", None, [1]]),
        ("float", [1, 1.5, -1e308], [True, "a", None, NAN, INF, -INF]),
        ("str", ["", "é"], [b"", 1, ["a"]]),
        ("bytes", [b"a"], ["a"]),
        ("list[int]", [[], [1, 2]], [[1.5], [True], (1,), ["a"], [[1]], None, {1}]),
        ("List[List[float]]", [[[1, 2.5]], [[]], []], [[1], [["a"]], [[1.5, NAN]]]),
        ("Sequence[int]", [[1], (1,)], ["a", {1}, [1.5]]),
        ("Iterable[str]", [["a"], "abc", {"a"}, ("a",)], [[1], {"a": 1}]),
        ("tuple[int, str]", [(1, "a")], [(1,), ("a", 1), [1, "a"], (1, "a", 2)]),
        ("Tuple[int, ...]", [(), (1, 2, 3)], [("a",), [1]]),
        ("dict[str, list[int]]", [{}, {"a": [1]}], [{1: [1]}, {"a": 1}, []]),
        ("set[int]", [set(), {1}], [{"a"}, frozenset({1}), [1]]),
        ("Optional[int]", [None, 1], ["a"]),
        ("Union[int, str]", [1, "a"], [None, 1.5]),
        ("'list[int] | None'", [None, [1]], [["a"]]),
        ("Literal['a', 1]", ["a", 1], ["b", True, 2]),
        ("Any", [None, 1, [object]], []),
        ("Unheard[int]", [None, 1, "a"], []),
        ("list", [[1, "a"], []], [(1,), None]),
        ("Annotated[int, 'size']", [1], ["a"]),
        ("Callable[[int], int]", [], [1, None]),
        ("complex", [1j, 2, 2.5], ["a", None, True]),
        ("Hashable", ["a", 1, None, (1,)], [[1], {}]),
    ],
)
def test_annotations(annotation: str, inside: list[Any], outside: list[Any]) -> None:
    prompt = f"import typing\nfrom typing import *\n\ndef f(x: {annotation}):\n    '''Do it.'''\n"
    for value in inside:
        assert admits(prompt, value), value
    for value in outside:
        assert not admits(prompt, value), value
    # The reference's annotations count where the prompt has none.
    assert all(admits("Do it.", value, None, f"def f(x: {annotation}): pass") for value in inside)


HEAD = """from datetime import date
import numpy as np
from collections import deque
Matrix = list[list[int]]
Rows = "list[Matrix]"
UserId = NewType("UserId", int)
Tree = dict[str, "Tree"]
T = TypeVar("T")

class Node:
    pass

class Point(TypedDict):
    x: int
"""


@pytest.mark.parametrize(
    ("annotation", "seen", "inside", "outside"),
    [
        ("Matrix", [], [[[1]], []], [0, "", None, {}, [1]]),
        ("Matrix", ["[[1]]"], [[[2]]], [0, [1]]),
        ("list[Matrix]", [], [[[[1]]]], [[[1]]]),
        ("UserId", [], [1], ["a"]),
        ("Point", [], [{"x": 1}], [1, []]),
        ("T", [], [1, "a"], []),
        ("T", ["1"], [2], ["a"]),
        ("Tree", [], [{"a": {}}], [1, {1: {}}]),
        ("Optional[Node]", [], [None], [[], "", 0]),
        ("Optional[Node]", ["None"], [None], [[], "", 0]),
        ("'Node | None'", [], [None], [[], 0]),
        ("list[Node] | None", [], [None, []], [[1], 0]),
        ("list[Optional[Node]]", ["[None, 1]"], [[2, None]], [["a"], [[]]]),
        ("date", [], [], ["2024-01-01", 5, None]),
        ("date", ["'2024-01-01'"], ["2024-02-01"], [5, None]),
        ("np.ndarray", ["[1, 2]"], [[3]], ["ab", {}]),
        ("np.ndarray", [], [], [[3], "ab"]),
        ("deque[int]", [], [], [[1], "a"]),
        ("Iterator[int]", ["[1]"], [[2]], [5]),
        ("Unheard", ["[1]"], [[2]], [5]),
        ("Optional[Unheard]", ["[1]"], [[2], None], [5]),
        ("dict[str, date]", ["{'a': '2024'}"], [{"b": "x"}], [{"a": 1}]),
    ],
)
def test_types_that_a_text_names(
    annotation: str, seen: list[str], inside: list[Any], outside: list[Any]
) -> None:
    prompt = f"{HEAD}\ndef f(x: {annotation}):\n    ...\n"
    tests = [f"assert f({each}) == 0" for each in seen]
    assert [value for value in inside if not admits(prompt, value, tests)] == []
    assert [value for value in outside if admits(prompt, value, tests)] == []
    hidden = f"{HEAD}\ndef f(x: {annotation}): pass"
    assert [value for value in outside if admits("Do it.", value, tests, hidden)] == []


def test_types_that_stand_for_each_other_are_bounded() -> None:
    names = "ABCDEFGH"
    each = "".join(f"{name} = Union[{', '.join(names)}]\n" for name in names)
    assert admits(f"{each}def f(x: A): ...", 1)


@pytest.mark.parametrize(
    ("prompt", "reference", "tests", "calls"),
    [
        # The prompt shows no default: what only the reference has is none.
        ("def f(x, by):\n    'f(3, 2) == 6'", "def f(x, by=2): pass", [], {"3, 2": "3, 2", "3": None, "by=2, x=3": "3, 2"}),
        ("def f(x, by):\n    ...", "def f(a, b=2, *, k=1): pass", [], {"3, 2": "3, 2", "3, by=2": "3, 2", "3, 2, k=1": None}),
        ("def f(x, by=2):\n    ...", "def f(x, by=2): pass", [], {"3, 2": "3", "3": "3"}),
        ("def f(x, by=2):\n    ...", "def f(x, by=3): pass", [], {"3, 2": "3, 2", "3": None}),
        ("def f(x, by=2):\n    ...", "def f(x, by): pass", [], {"3, 2": "3, 2", "3": None}),
        # Nothing is shown: golden calls tell.
        ("Scale it: f(3, 2) == 6", "def f(x, by=2, *, k=1): pass", [], {"3, 2": "3, 2", "3": None, "3, 2, k=0": None}),
        ("Scale it.", "def f(x, by=2): pass", ["f(1)", "f(1, 3)"], {"3, 2": "3", "3": "3", "3, 4": "3, 4"}),
        ("Scale it.", "def f(x, memo={}): pass", ["f(1)"], {"3": "3", "3, {}": None}),
        ("Scale it.", "def f(x, a=1, b=2): pass", ["f(1)", "f(1, b=3)"], {"3, b=4": "3, 1, 4", "3, b=2": "3", "3, 4": "3, 4"}),
        ("Scale it.", "def f(x, by=2): pass", ["f(1)", f"f('{'a' * 30_000}', 3)"], {"3, 2": "3", "3": "3"}),
        ("Scale it.", "def f(x, by=2): pass", [], {"3, 2": "3", "3": "3"}),
        # A definition that its own golden calls contradict, or that says nothing.
        ("def f(x):\n    ...", "def f(x, by): pass", ["f(1, 3)"], {"3, 2": "3, 2"}),
        ("def f(*args):\n    ...", "def f(x, by=2): pass", ["f(1, 3)", "f(1)"], {"3, 2": "3"}),
    ],
)  # fmt: skip
def test_a_default_counts_where_it_is_shown(
    prompt: str, reference: str, tests: list[str], calls: dict[str, str | None]
) -> None:
    text = read_signatures([(prompt, "f", reference, [f"assert {test} == 1" for test in tests])])[0]
    for call, bound in calls.items():
        (((test,), _),) = json.loads(read_suites([("f", text, [f"assert f({call}) == 0"])]))
        assert test[2] == bound if bound else test[8].startswith("the signature does not take"), (
            call
        )


@pytest.mark.parametrize(
    ("seen", "inside", "outside"),
    [
        ([], [None, 1, [1, "a"]], []),
        (["[1, 2]", "[]"], [[], [3]], [["a"], [1.5], (1,), 1, None, [[1]]]),
        (["1.5"], [2, 2.5], ["a", True]),
        (["None", "1"], [None, 2], ["a"]),
        (["[1]", "['a']"], [[1, 2], ["b"]], [[1, "a"], [None]]),
        (["(1, 2)"], [(3, 4)], [(1,), (1, 2, 3), [1, 2]]),
        (["(1, 2)", "(1, 2, 3)"], [(1,), ()], [("a",)]),
        (["[('a', 1)]"], [[("b", 2)], []], [[("b",)], [(1, "b")]]),
        (["{'a': [1]}", "{}"], [{"b": [2]}, {"b": []}, {}], [{1: [1]}, {"a": ["b"]}]),
        (["[[], [1]]"], [[[2]], []], [[["a"]]]),
        (["{1, 2}"], [{3}, set()], [[1], {"a"}]),
        (["1", "'a'"], [2, "b"], [None, []]),
    ],
)
def test_shapes_of_golden_calls(seen: list[str], inside: list[Any], outside: list[Any]) -> None:
    tests = [f"assert f({each}) == 0" for each in seen]
    for prompt in ("Do it.", "def f(x):\n    '''Do it.'''\n"):
        for value in inside:
            assert admits(prompt, value, tests), value
        for value in outside:
            assert not admits(prompt, value, tests), value
    examples = (
        "def f(x):\n    '''Do it.\n\n"
        + "".join(f"    >>> f({each})\n    0\n" for each in seen)
        + "    '''\n"
    )
    assert all(admits(examples, value) for value in inside)
    assert not any(admits(examples, value) for value in outside)


def test_what_was_seen_counts_beside_annotations() -> None:
    seen = ["assert f([1, 2]) == 0"]
    assert admits("def f(x: list): ...", [3], seen)
    assert not admits("def f(x: list): ...", ["a"], seen)
    assert admits("from typing import Any\ndef f(x: list[Any]): ...", ["a"], seen)
    # What golden tests do is never outside, and nor is a default.
    assert admits("def f(x: int): ...", "a", ["assert f('b') == 0"])
    assert not admits("def f(x: int): ...", [1], ["assert f('b') == 0"])
    found = signature("def f(x: int = None): ...", "def f(x: int = None): pass")
    assert found.outside([None], {}) == ""
    assert found.outside(["a"], {}) == "x is a str, not int"
    humaneval = "def check(candidate):\n    assert candidate([1]) == 2\n    for n in range(3):\n        assert candidate([n]) == n\n"
    assert admits("def f(x): ...", [5], [humaneval])
    assert not admits("def f(x): ...", ["a"], [humaneval])


@pytest.mark.parametrize(
    "prompt",
    [
        "def f(x: int) -> int:\n    '''Doc.'''\n",
        "Write a function that does (something.\n\ndef f(x: int) -> int:\n    '''Unfinished",
        "Complete:\n\n    def f(\n        x: int,\n    ) -> int:\n        ...\n\nThank you!",
    ],
)
def test_definitions_are_found_in_prompts(prompt: str) -> None:
    assert admits(prompt, 1)
    assert not admits(prompt, "a")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prompt", "reference", "tests"),
    [
        ("", "", []),
        ("(" * 100_000, "[" * 100_000, ["{" * 100_000]),
        ("def f(" * 10_000, "def f(x): pass\n" * 10_000, ["assert f(1) == 1\n" * 10_000] * 50),
        ("def f(x: " + "list[" * 90 + "int" + "]" * 90 + "): ...", "def f(x): pass", ["assert f([[[[[[[[[[1]]]]]]]]]]) == 1"]),
        ("x" * 3_000_000, "def f(x): pass\n" + "#" * 3_000_000, ["f(1)" + " " * 3_000_000]),
        ("def f(x: 'int" + " | int" * 3_000 + "'): ...", "def f(x): pass", []),
    ],
)  # fmt: skip
def test_odd_problems_never_raise(prompt: str, reference: str, tests: list[str]) -> None:
    (text,) = read_signatures([(prompt, "f", reference, tests)])
    Signature(text).outside([1], {})


def test_shapes_take_what_they_are_made_of() -> None:
    rng = random.Random(1)

    def value(depth: int) -> Any:
        kind = rng.randrange(9 if depth else 5)
        if kind < 5:
            return rng.choice([None, True, 1, 2.5, "a", b"b", 1j])
        items = [value(depth - 1) for _ in range(rng.randrange(4))]
        return [items, tuple(items), {str(i): item for i, item in enumerate(items)}, [items] * 2][
            kind - 5
        ]

    for _ in range(500):
        values = [value(3) for _ in range(rng.randrange(1, 4))]
        domain = merged(map(shape, values))
        sent = json.loads(json.dumps(domain))
        assert all(is_in(each, sent) for each in values), (domain, values)
        assert described(domain)


@pytest.mark.parametrize("annotation", ["", ": float", ": list[float]", ": dict[str, float]"])
@pytest.mark.parametrize("odd", ["float('nan')", "-math.inf"])
def test_nan_and_infinities_are_inside_only_where_one_was_seen(annotation: str, odd: str) -> None:
    def wrapped(item: Any) -> Any:
        return [item] if "list" in annotation else {"a": item} if "dict" in annotation else item

    asked = f"def f(x{annotation}):\n"
    finite = f"assert f({wrapped(1.5)!r}) == 1"
    shown = f"assert f({wrapped(0)!r}) == 1".replace("0", odd)
    for value in (NAN, INF, -INF):
        assert not admits(asked, wrapped(value), [finite])
        assert admits(asked, wrapped(value), [finite, shown])
    assert admits(asked, wrapped(2.5), [shown])
    assert admits(asked, wrapped(2), [shown])
    assert not admits(asked, wrapped("a"), [finite, shown])


def test_nan_is_named_when_it_is_outside() -> None:
    found = signature("def f(x: float, y: float = float('inf')):\n")
    assert found.outside([NAN], {}) == "x is float('nan'), not float"
    assert found.outside([1.5, 2.5], {}) == ""
    found = signature("def f(x: list[float]):\n")
    assert found.outside([[1.5, INF]], {}) == "x is [1.5, float('inf')], not list[float]"


SAME = {
    "def f(x, factor=2.0): pass": ["f(1.0)", "f(1.0, 2.0)", "f(1, 2)", "f(x=1, factor=1 + 1)"],
    "def f(x, sep=' ', n=0): pass": ["f(1)", "f(1, ' ')", "f(1, n=0)", "f(1, ' ', False)"],
    "K = 3\ndef f(x, k=K, n=0): pass": ["f(1)", "f(1, 3)", "f(1, k=3, n=0)"],
    "def f(x, a=None, b=[], c=float('inf')): pass": ["f(1)", "f(1, None, [])", "f(1, c=float('inf'))"],
    "f = lambda a, b=3: a": ["f(1)", "f(1, 3)", "f(1, b=3)", "f(b=3, a=1)"],
    "f = print": ["f(a=1, b=2)", "f(b=2, a=1)"],
    "def f(a): pass": ["f(1)", "f(1 + 0j)", "f(complex(1, -0.0))", "f(True)"],
    "def f(x): pass": ["f({1, 2})", "f(frozenset({2, 1}))", "f(set([1, 2]))"],
    "def f(n): pass": ["f(2)", "f(n=2)", "f(1 + 1)", "f(*[2])", "f(**{'n': 2})"],
}  # fmt: skip


@pytest.mark.parametrize(("reference", "calls"), SAME.items(), ids=SAME.keys())
def test_a_default_said_again_is_no_other_call(reference: str, calls: list[str]) -> None:
    text = read_signatures([("", "f", reference, [])])[0]
    answer = "\n".join(f"assert {call} == 0" for call in calls)
    ((tests, _),) = json.loads(read_suites([("f", text, [answer])]))
    assert len(tests) == len(calls)
    assert len({test[3] for test in tests}) == 1


@pytest.mark.parametrize("decorator", ["", "@staticmethod"])
def test_a_method_is_bound_without_self(decorator: str) -> None:
    first = "" if decorator else "self, "
    reference = f"class Solution:\n  {decorator}\n  def f({first}n: int, k: int = 1): pass"
    for problem in ((reference, ""), ("Solve it.", reference), (f"{reference[:-5]}\n", reference)):
        bound = Signature(read_signatures([(problem[0], "Solution.f", problem[1], [])])[0])
        assert bound.bound([], {"n": 2, "k": 1}) == ([2], {}, ["2"])
        assert bound.outside(["a"], {}) == "n is a str, not int"


def test_a_keyword_may_be_named_like_a_positional_only_parameter() -> None:
    (text,) = read_signatures([("", "f", "def f(a=1, /, **others): return others", [])])
    signature = Signature(text)
    assert signature.bound([2], {"a": 1}) == ([2], {"a": 1}, ["2"])
    assert signature.same_as([2], {"a": 1.0}, "2, a=1.0") == "2, a=1"
