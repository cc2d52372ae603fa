"""What programs do, as it is seen from outside: also programs that do not end or are not the same twice."""

from __future__ import annotations

import re

from codea1_env.sandbox import Limits, Outcome
from codea1_env.testgen import observing
from codea1_env.testgen.observing import Observer, differ, is_stable
from codea1_env.testgen.parameters import samples
from codea1_env.testgen.texts import Trial

TRIALS = [Trial((n,)) for n in range(40)]


def test_a_program_that_does_not_end_costs_little(sandbox, monkeypatch):
    monkeypatch.setattr(observing, "PATIENT", Limits(call_cpu_time=0.1, call_wall_time=5))
    monkeypatch.setattr(observing, "_GROUP", 8)
    observer = Observer("f", (), sandbox)
    program = "def f(n):\n    while n > 2:\n        pass\n    return n\n"
    seen = observer.twice(program, TRIALS)
    assert 3 < len(seen) < len(TRIALS)  # it is given up
    assert [one.outcome is Outcome.PASS for one, _ in seen[:5]] == [True] * 3 + [False] * 2
    [row] = observer.on_many([program], TRIALS)
    assert [each is not None for each in row] == [True] * 4 + [False] * 36
    assert row[3].outcome is Outcome.TIMEOUT


def test_what_depends_on_earlier_calls_shows(sandbox):
    observer = Observer("f", (), sandbox)
    program = "seen = []\ndef f(n):\n    seen.append(n)\n    return len(seen) if n else 0\n"
    seen = observer.twice(program, TRIALS[:4])
    assert [differ(*pair) for pair in seen] == [False, True, True, True]
    assert [one.last for one in observer.alone(program, TRIALS[:3])] == [
        ("value", 0),
        ("value", 1),
        ("value", 1),
    ]


def test_the_program_may_use_any_names(sandbox):
    program = (
        "def repr(*a): return 1\ndef list(*a): return 2\nobserve = isinstance = hasattr = None\n"
        "class dict: pass\ndef f(n): return n + repr()\n"
    )
    [(one, other)] = Observer("f", (), sandbox).twice(program, [Trial((2,))])
    assert one.last == other.last == ("value", 3)


def test_differences_are_those_that_a_test_would_see(sandbox):
    observer = Observer("f", (), sandbox)

    def look(body):
        [row] = observer.on_many([f"def f(n):\n    {body}\n"], [Trial((2,))])
        return row[0]

    for one, other, expected in [
        ("return 1", "return 1", False),
        ("return 1", "return 1.0", False),
        ("return 1", "return True", False),
        ("return True", "return 1", True),
        ("return None", "return 0", True),
        ("return 1 / 3", "return 1 / 3 + 1e-12", False),
        ("return 1 / 3", "return 1 / 3 + 1e-3", True),
        ("return 1j / 3", "return 1j / 3 + 1e-12", False),
        ("return 1j / 3", "return 1j / 3 + 1e-3", True),
        ("raise ValueError(1)", "raise ValueError(2)", False),
        ("raise ValueError(1)", "raise KeyError(1)", True),
        ("return [1]", "return iter([1])", True),
        ("return 1", "return object()", True),
    ]:
        assert differ(look(one), look(other)) is expected, (one, other)


def test_samples_of_regular_expressions_mostly_match():
    for pattern in (
        r"\d{3}-\d{4}",
        r"(?P<h>\d+)h(?:(\d+)m)?",
        r"[A-Z][a-z]+( [A-Z][a-z]+)*",
        r"[\w.]+@\w+\.(com|org)",
        r"(a|b)\1",
        r"[^,]+",
    ):
        made = samples([pattern])
        assert len(made) >= 2
        assert sum(re.fullmatch(pattern, text) is not None for text in made) >= 0.7 * len(made)
    assert samples(["(", "(?P<a>", r"(a{1000}){1000}"]) == []


def test_integers_that_python_does_not_write_are_left_out(sandbox):
    observer = Observer("f", (), sandbox)
    for result in ("10 ** n", "[10 ** n]", "{10 ** n: 1}"):
        seen = observer.twice(f"def f(n): return {result}\n", [Trial((3,)), Trial((5000,))])
        assert [one.outcome is Outcome.PASS for one, _ in seen] == [True, False], result
    method = "class f:\n    def power(self, n): return 10 ** n\n"
    trials = [Trial(steps=(("power", (n,), {}),)) for n in (3, 5000)]
    seen = observer.twice(method, trials)
    assert [one.outcome is Outcome.PASS for one, _ in seen] == [True, False]
    answer = "{'made': True, 'results': [('value', 10 ** 5000)], 'after': {}, 'attributes': {}}"
    forged = (
        "import builtins\ndef f(n): pass\n"
        f"builtins.exec = lambda text, names: names.update(observe=lambda *a: {answer})\n"
    )
    [(one, _)] = observer.twice(forged, [Trial((3,))])
    assert one.outcome is Outcome.FORBIDDEN


def test_what_differs_by_a_little_time_is_not_stable(sandbox):
    observer = Observer("f", (), sandbox)
    for body, stable in [
        ("return 1795315506.55 + (__import__('time').time_ns() % 10**9) * 1e-9", False),
        ("return sum({str(i): 0.1 * i for i in range(9)}[k] for k in set('012345678'))", True),
    ]:
        [pair] = observer.twice(f"def f(n):\n    {body}\n", [Trial((1,))])
        assert is_stable(*pair) is stable, body
        assert not differ(*pair)


def test_a_program_that_waits_is_given_up(sandbox):
    observer = Observer("f", (), sandbox)
    program = "import time\ndef f(n):\n    time.sleep(0.8 if n else 60 * wait)\n    return n\n"
    [short, long] = observer.on_many([f"wait = {wait}\n{program}" for wait in (0, 1)], TRIALS)
    known = [each for each in short if each is not None]
    assert [each.last for each in known] == [("value", n) for n in range(len(known))]
    assert 1 < len(known) < 8  # what it took too long for is nothing that a test would see
    assert long[0].outcome is Outcome.TIMEOUT
    assert long[1:] == [None] * 39
