"""Attacks that once worked. Each forged a pass, failed a right program, leaked a test, or reached the supervisor."""

from __future__ import annotations

import os
import resource
import time

import pytest

from codea1_env.sandbox import Limits, Outcome

# Who judges does not depend on how strongly programs are confined.
LEVELS = ("process", "kernel", "namespaces")

RIGHT = "def f(x): return x + 1"
_PEER = """
import sys
def peer_of():
    frame = sys._getframe()
    while frame:
        for value in frame.f_locals.values():
            if type(value).__name__ == "Peer": return value
        frame = frame.f_back
for name in [n for n in vars(sys.modules["inside.bridge.gate"].Gate) if n.startswith("check")]:
    setattr(sys.modules["inside.bridge.gate"].Gate, name, lambda *a: None)
"""


@pytest.mark.parametrize("name", ["range", "enumerate", "all", "len", "isinstance", "__builtins__"])
def test_a_program_that_offers_more_names_than_it_was_asked_for(arena, name):
    """An empty `range` would end the test's loop before its first assertion."""
    code = f"""
import sys
frame = sys._getframe()
while "job" not in frame.f_locals: frame = frame.f_back
frame.f_locals["job"]["names"].append({name!r})
def {name}(*a, **k): return []
def f(x): return None
"""
    test = "for i in range(3):\n    for _, x in enumerate([i]):\n        assert f(x) == i + 1"
    assert arena.outcome(code, test) is Outcome.FORBIDDEN


NUMPY_TESTS = {
    "allclose": "import numpy as np\nfor i in range(3):\n    assert np.allclose(f(i), i + 1)",
    "array_equal": "import numpy as np\nassert np.array_equal(f(1), [1, 2])",
    "equal": "import numpy as np\nassert (np.array([1, 2]) == f(1)).all()",
    "truth": "import numpy as np\nassert np.array([1]) == f(1)",
    "difference": "import numpy as np\nassert np.abs(np.array([1.0]) - f(1)).max() < 1e-6",
    "testing": "import numpy as np\nnp.testing.assert_allclose(f(1), [2.0])",
}


@pytest.mark.parametrize("place", ["instance", "class"])
def test_protocols_of_numpy_are_not_offered_to_a_returned_object(arena, place):
    code = f"""{_PEER}
class P:
    def __array_function__(self, *a, **k): return True
    def __array_ufunc__(self, *a, **k): return 0.0
    __array_priority__ = 1e9
    __array_interface__ = {{"data": (id(1) + 24, False), "shape": (1,), "typestr": "<i8", "version": 3}}
def f(x): return {"P()" if place == "instance" else "P"}
"""
    found = {name: arena.outcome(code, test) for name, test in NUMPY_TESTS.items()}
    assert Outcome.PASS not in found.values(), found


def test_a_class_in_the_place_of_a_function_decides_no_comparison(arena):
    code = (
        "class f:\n    def __init__(self, *a): pass\n    def __sub__(self, o): return 0.0\n"
        "    def __rsub__(self, o): return 0.0\n    def __lt__(self, o): return True\n"
        "    def __contains__(self, o): return True\n    def __abs__(self): return 0.0\n"
    )
    for check in ("abs(f(i) - (i + 1)) < 1e-6", "f(i) < i", "i in f(i)", "abs((i + 1) - f(i)) < 1"):
        test = f"for i in range(3):\n    assert {check}"
        assert arena.outcome(code, test) is Outcome.UNENCODABLE, check


@pytest.mark.parametrize("loop", ["map(lambda c: f(c) == c + 1, [1, 2])", "map(f, [])"])
def test_stop_iteration_ends_no_loop_of_the_test(arena, loop):
    code = "def f(x): raise StopIteration"
    # An empty loop calls nothing, and a test that does that does not pass.
    called = loop != "map(f, [])"
    result = arena.sandbox.run_tests(code, [f"assert all({loop})"], entry_point="f")[0]
    assert (result.outcome, result.called) == (Outcome.ERROR, called)


SWALLOWED = {
    "a group": "async with asyncio.TaskGroup() as group:\n        for x in (1, 2): group.create_task(check(x))",
    "waiting": "await asyncio.wait([asyncio.create_task(check(x)) for x in (1, 2)])",
}


@pytest.mark.parametrize("name", SWALLOWED)
@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_task_of_the_test_is_not_cancelled_by_the_program(arena, name, kind):
    """A group takes such a task for one that was to end, and its assertions with it."""
    call = "await f(x)" if kind == "async def" else "f(x)"
    test = (
        f"import asyncio\nasync def check(x):\n    assert {call} == x + 1\n"
        f"async def main():\n    {SWALLOWED[name]}\nasyncio.run(main())"
    )
    code = f"import asyncio\n{kind} f(x): raise asyncio.CancelledError"
    assert arena.outcome(code, test) is Outcome.UNENCODABLE
    assert arena.outcome(f"{kind} f(x): return x + 1", test) is Outcome.PASS


def test_generator_exit_closes_no_generator_of_the_test(arena):
    test = (
        "def check():\n    try: yield\n    finally:\n        assert f(1) == 2\n"
        "each = check()\nnext(each)\neach.close()"
    )
    assert arena.outcome("def f(x): raise GeneratorExit", test) is Outcome.ERROR
    assert arena.outcome(RIGHT, test) is Outcome.PASS


REACHES = {
    "attributes of data": 'peer_of().ask("get", "{0}", "format")',
    "a method of an array": 'ask("get", __import__("numpy").arange(2), "ctypes")',
    "globals": 'ask("get", callback, "__globals__")',
    "code": 'ask("set", callback, "__code__", None)',
    "globals by format": '"{0._peer}".format(callback)',
    "a number that nobody has given": 'ask("call", number(1), 1)',
    "a builtin": 'ask("call", number(0, "len"), [])',
    "other operations": 'ask("getitem", callback, 0)',
    "setting": 'ask("set", callback, "x", 1)',
    "fields": 'ask("data", callback)',
}


def test_a_test_serves_only_what_it_handed_over(arena):
    """Through numpy's ctypes a program could write the memory of its test's process."""
    test = "want = 'expected-7319'\nr = f(lambda a: a)\nassert r == 1, repr(r)"
    for name, expression in REACHES.items():
        code = f"""{_PEER}
def f(callback):
    def ask(*request): return peer_of().ask(*request)
    def number(found, *_):
        made = object.__new__(type(callback))
        for slot in type(callback).__slots__[1:]:
            value = found if slot == "_number" else getattr(callback, slot)
            object.__setattr__(made, slot, value)
        return made
    return ('reached', repr({expression}))"""
        outcome, message = arena.one(code, test)
        assert "expected-7319" not in message, name
        assert outcome in (Outcome.UNENCODABLE, Outcome.ERROR) or "object at" in message, (
            name,
            message,
        )


FINGERPRINTS = {
    "variables": "'secret' not in f.__code__.co_varnames",
    "constants": "12345 not in f.__code__.co_consts",
    "documentation": "'hidden' not in (f.__doc__ or '')",
    "globals": "'helper' not in f.__globals__",
    "closure": "f.__closure__ is None",
    "defaults": "f.__defaults__ is None",
    "attributes": "not hasattr(f, 'cache_info')",
    "text": "'program' not in repr(f)",
    "directory": "'__wrapped__' not in dir(f)",
    "dictionary": "not vars(f)",
    "code that runs there": "f.__globals__['__builtins__']['eval']('1') == 2",
    "patching": "f.__globals__.clear() or False",
    "rebinding": "setattr(f, '__code__', None) or False",
}


def test_a_test_cannot_read_how_a_right_program_is_written(arena):
    """Such a test is valid on the reference, and fails exactly the program that its author has seen."""
    code = (
        "import functools\ndef helper(x): return x\n@functools.cache\ndef f(x, y=12345):\n"
        "    'hidden'\n    secret = helper(x) + 1\n    return secret"
    )
    reference = "def f(x): return x + 1"
    found = {}
    for name, check in FINGERPRINTS.items():
        test = f"assert f(1) == 2\nassert {check}"
        found[name] = arena.outcome(reference, test) is arena.outcome(code, test)
    assert found == dict.fromkeys(FINGERPRINTS, True)


PRIVATE = {
    "format": "ask('call', ask('get', S('{0.__globals__}'), 'format'), g)",
    "format of the class": "ask('call', ask('get', S, 'format'), S('{0.__globals__}'), g)",
    "format_map": "ask('call', ask('get', S('{g.__globals__}'), 'format_map'), {'g': g})",
    "dictionary": "ask('get', f(1), '__dict__')",
    "an attribute": "ask('get', f(1), '_hidden')",
    "no name": "ask('get', f(1), 'a b')",
    "globals": "ask('get', g, '__globals__')",
    "name": "ask('name', g)",
}


@pytest.mark.parametrize("name", PRIVATE)
def test_a_test_that_forges_requests_learns_nothing_private(arena, name):
    code = (
        "class S(str): pass\nclass V:\n    def __init__(self): self._hidden = 1\n"
        "hidden_name = 5\ndef f(x): return V()\ndef g(x): return x"
    )
    test = f"ask = f(1)._codea1_peer.ask\nraise LookupError(repr({PRIVATE[name]}))"
    (result,) = arena.sandbox.run_tests(code, [test])
    expected = Outcome.ERROR if name == "name" else Outcome.UNENCODABLE
    assert result.outcome is expected, result
    assert "hidden" not in result.message.replace("'_hidden' is not public", "")


@pytest.mark.parametrize(
    "check",
    [
        "2.5 in f(1)",
        "'a' in f(1)",
        "'a' not in f(1)",
        "sum(f(1)) == 1",
        "sorted(f(1)) == [1]",
        "max(f(1)) == 1",
        "set(f(1)) == {1}",
    ],
)
def test_an_endless_range_does_not_hold_us(arena, check):
    started = time.process_time()
    outcome = arena.outcome("def f(x): return range(10**18)", f"assert {check}")
    assert outcome is not Outcome.INFRA_ERROR
    assert (outcome is Outcome.PASS) == (check == "'a' not in f(1)")
    assert time.process_time() - started < 1.0


SLOW_TO_PLAN = {
    "a product": "assert f(" + "*".join(["(9**300)**1000"] * 200) + ") == 1",
    "a list of lists": "assert f([[None]*100000]*160) == 1",
    "a list of strings": "assert f(['a'*100000]*700) == 1",
    "sums of strings": "assert f(" + "+".join(["'a'*99999"] * 3000) + ") == 1",
}


@pytest.mark.parametrize("name", SLOW_TO_PLAN)
def test_literals_that_are_larger_than_they_look(arena, name):
    limits = Limits(call_cpu_time=0.2, memory=256 << 20, calls_per_test=1)
    started = time.monotonic()
    tests = [SLOW_TO_PLAN[name], "assert f(1) == 2"]
    results = arena.sandbox.run_tests(RIGHT, tests, entry_point="f", limits=limits)
    assert results[0].outcome not in (Outcome.PASS, Outcome.INFRA_ERROR)
    assert results[1].outcome is Outcome.PASS
    assert time.monotonic() - started < 20.0


def test_more_than_1024_descriptors_of_ours(arena, test_text):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this process may not open enough descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2000, hard))
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        assert arena.outcome(RIGHT, test_text) is Outcome.PASS
        assert arena.outcome("import os\ndef f(x): os._exit(0)", test_text) is Outcome.EXITED
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_test_that_ends_itself_does_not_put_it_on_the_program(arena):
    outcome, message = arena.one(RIGHT, "f(1)\nimport os\nos._exit(71)")
    assert outcome is Outcome.EXITED
    assert message.startswith("in the test: ")


def test_a_repeated_keyword_is_a_syntax_error(arena):
    assert arena.outcome("def f(a): return a", "assert f(a=1, a=2) == 2") is Outcome.SYNTAX_ERROR
