"""Wrong programs that try to look right: objects that always please, patches, payloads."""

from __future__ import annotations

import pytest
from attacking import TESTS

from codea1_env.sandbox import Outcome

# Who judges does not depend on how strongly programs are confined.
LEVELS = ("process", "kernel", "namespaces")
# What runs together with the program can be forged, and says so.
VALUE = TESTS["value"]
UNENCODABLE = Outcome.UNENCODABLE
_PLEASING = "".join(
    f"    def __{name}__(self, *others): return {value}\n"
    for names, value in {
        "eq ne bool lt le gt ge contains instancecheck": "True",
        "sub rsub abs round float hash": "0",
        "add radd mul rmul neg getitem getattr": "self",
    }.items()
    for name in names.split()
)
_AS_TYPES = "".join(f"    {line}\n" for line in ("@property", "def __class__(self): return int"))
COMPARISONS = {
    "==": "f(1) == 2",
    "reflected": "2 == f(1)",
    "identity": "f(1) is True",
    "truth": "f(1)",
}
FORGED = ("abs(f(1) - 2) < 1e-6", "f(1) <= 2", "2 in f(1)", "f(1) in [2]")
"""Assertions that run with the program."""


@pytest.mark.parametrize("lie", ["", _AS_TYPES], ids=["plain", "lying class"])
def test_an_object_that_always_pleases(arena, lie):
    code = f"class Liar:\n{_PLEASING}{lie}def f(x): return Liar()"
    found = {name: arena.outcome(code, f"assert {test}") for name, test in COMPARISONS.items()}
    assert found == dict.fromkeys(COMPARISONS, UNENCODABLE)
    close = arena.outcome(code, "import math\nassert math.isclose(f(1), 2)")
    assert close is UNENCODABLE
    tests = [f"assert {test}" for test in FORGED]
    forged = arena.sandbox.run_tests(code, tests, entry_point="f")
    assert {(each.outcome, each.judged) for each in forged} == {(Outcome.PASS, "inside")}


def test_liars_inside_containers(arena):
    code = f"class Liar:\n{_PLEASING}    def __hash__(self): return 2\n"
    for inner, expected in {"[Liar()]": "[2]", "{2: Liar()}": "{2: 2}", "{Liar()}": "{2}"}.items():
        program = f"{code}def f(x): return {inner}"
        assert arena.outcome(program, f"assert f(1) == {expected}") is UNENCODABLE


VALUES = {
    "nan": ("float('nan')", Outcome.FAIL),
    "signalling nan": ("__import__('decimal').Decimal('sNaN')", Outcome.ERROR),
    "a mock": ("__import__('unittest.mock').mock.ANY", UNENCODABLE),
    "numpy nan": ("__import__('numpy').array([float('nan')])", Outcome.FAIL),
    "empty array": ("__import__('numpy').array([])", Outcome.FAIL),
    "masked": ("__import__('numpy').ma.masked", UNENCODABLE),
    "not implemented": ("NotImplemented", UNENCODABLE),
    "a generator": ("(y for y in [2])", UNENCODABLE),
    "a class": ("int", UNENCODABLE),
    "a function": ("lambda *a: True", UNENCODABLE),
    "the argument's class": ("type(x)", UNENCODABLE),
    "a module": ("__import__('operator')", UNENCODABLE),
}
CYCLIC = {
    "list in itself": "v = []\nv.append(v)",
    "dict in itself": "v = {}\nv[1] = v",
    "two lists": "v = []\nw = [v]\nv.append(w)",
    "101 deep": "v = 2\nfor _ in range(101): v = [v]",
    "100,000 deep": "v = 2\nfor _ in range(100_000): v = (v,)",
}
BASES = ("int", "float", "str", "tuple", "list", "dict", "set", "bytes")


def test_odd_values(arena):
    rows = {name: (f"def f(x): return {value}", end) for name, (value, end) in VALUES.items()}
    for name, code in CYCLIC.items():
        rows[name] = (f"{code}\ndef f(x): return v", UNENCODABLE)
    for base in BASES:
        rows[base] = (f"class Liar({base}):\n{_PLEASING}def f(x): return Liar()", UNENCODABLE)
    found = arena.outcomes({name: code for name, (code, _) in rows.items()}, VALUE)
    assert found == {name: end for name, (_, end) in rows.items()}


CHANGING = {
    "a thread": (
        "import threading, time\nv = [2]\ndef later():\n    while True: v[0] ^= 1\n"
        "def f(x):\n    threading.Thread(target=later, daemon=True).start()\n"
        "    time.sleep(0.02)\n    return [5, *v]"
    ),
    "a destructor": (
        "v = [5]\nclass C:\n    def __del__(self): v[0] = 2\n"
        "def f(x):\n    c = C()\n    v[0] = 5\n    del c\n    v[0] = 5\n    return v"
    ),
    "a later call": "v = [5]\ndef f(x):\n    v.append(2)\n    return v",
}


def test_values_that_change_after_they_were_returned(arena):
    assert arena.outcomes(CHANGING, "assert f(1) == [2]") == dict.fromkeys(CHANGING, Outcome.FAIL)


MARKERS = "PASS__0_1 PASS passed OK __CODEA1_OK__ {'outcome': 'pass'} 1 passed in 0.01s"
PRINTS = ("print(M)", "import sys; sys.stderr.write(M)", "import os; os.write(1, M.encode())")


def test_printed_markers(arena):
    for act in PRINTS:
        code = f"M = {MARKERS!r} * 20\n{act}\ndef f(x):\n    {act}\n    return 5"
        assert arena.outcome(code, VALUE) is Outcome.FAIL, act


PATCHES = {
    "builtins": (
        "import builtins\nfor n in ('repr', 'print', 'isinstance', 'type', 'len', 'str', 'all'):\n"
        "    setattr(builtins, n, lambda *a, **k: 2)"
    ),
    "stdout": "import sys\nsys.stdout = sys.stderr = sys.__stdout__ = None",
    "comparison helpers": (
        "import math, operator, json\nmath.isclose = operator.eq = lambda *a, **k: True\n"
        "json.loads = json.dumps = lambda *a, **k: 2"
    ),
    "unittest": (
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n"
        "unittest.TestCase.failureException = KeyError"
    ),
    "assertion error": "import builtins\nbuiltins.AssertionError = SystemExit",
    "a tracer": (
        "import sys\ndef trace(frame, event, arg):\n    for n in frame.f_locals:\n"
        "        if isinstance(frame.f_locals[n], int): frame.f_locals[n] = 2\n    return trace\n"
        "sys.settrace(trace)\nsys.setprofile(lambda *a: None)"
    ),
    "an audit hook": "import sys\nsys.addaudithook(lambda *a: None)",
    "modules": (
        "import sys, types\nfake = types.ModuleType('math')\nfake.isclose = lambda *a: True\n"
        "sys.modules['math'] = sys.modules['unittest'] = sys.modules['pytest'] = fake"
    ),
    "finders": (
        "import sys\nclass Finder:\n    def find_spec(self, *a): raise SystemExit(0)\n"
        "sys.meta_path.insert(0, Finder())\nsys.path.insert(0, '.')\nsys.path_hooks.clear()"
    ),
    "files beside it": (
        "import sys\nsys.path.insert(0, '')\nfor n in ('math', 'unittest', 'test', 'sitecustomize'):\n"
        "    try: open(n + '.py', 'w').write('def isclose(*a): return True')\n"
        "    except OSError: pass"
    ),
    "int cache": (
        "import ctypes\nctypes.c_uint32.from_address(id(2) + 24).value = 5\n"
        "ctypes.c_uint32.from_address(id(5) + 24).value = 5"
    ),
    "our codec": (
        "import sys\ncodec = sys.modules['inside.codec']\nhonest = codec.encode\n"
        "codec.encode = lambda value, **k: honest(('ok', True), **k)"
    ),
    "our codec's code": (
        "import sys\ncodec = sys.modules['inside.codec']\n"
        "codec._Encoder.value.__code__ = (lambda self, value, depth=0: self.put(b'T')).__code__"
    ),
}
PATCHED_TESTS = {
    "value": VALUE,
    "tolerance": "import math\nassert math.isclose(f(1), 2)",
}


# These break the program's own process in ways that depend on the Python version; the others change nothing.
BREAKING = {"int cache", "our codec", "our codec's code", "builtins", "finders", "a tracer"}


@pytest.mark.parametrize("test", PATCHED_TESTS)
def test_patches_reach_no_verdict(arena, test):
    programs = {name: f"{patch}\ndef f(x): return 5.0" for name, patch in PATCHES.items()}
    found = arena.outcomes(programs, PATCHED_TESTS[test])
    assert {name for name, outcome in found.items() if outcome is Outcome.PASS} == set()
    harmless = {name: outcome for name, outcome in found.items() if name not in BREAKING}
    assert harmless == dict.fromkeys(harmless, Outcome.FAIL)


def test_payload_that_runs_where_it_is_unpacked(arena):
    # In its own process a program may do what the level allows, also when it is asked for a copy.
    code = (
        "import builtins\nbuiltins.at_home = True\n"
        'elsewhere = \'import builtins, os\\nif not hasattr(builtins, "at_home"): os.system("touch /tmp/attack-payload")\'\n'
        "class Payload:\n    def __reduce__(self):\n        return (exec, (elsewhere,))\n"
        "    __reduce_ex__ = lambda self, p: self.__reduce__()\n"
        "def f(x): return Payload()"
    )
    assert arena.outcome(code, VALUE) is UNENCODABLE


LYING_EXCEPTIONS = {
    "assertion": ("raise AssertionError", {Outcome.ERROR, Outcome.FAIL}),
    "keyboard": ("raise KeyboardInterrupt", {Outcome.ERROR}),
    "generator exit": ("raise GeneratorExit", {Outcome.ERROR}),
    "stop": ("raise StopIteration(2)", {Outcome.ERROR}),
    "ours": (
        "raise __import__('sys').modules['inside.codec.frames'].ChannelClosedError",
        {Outcome.ERROR, Outcome.EXITED},
    ),
}


def test_exceptions_are_no_answers(arena):
    for name, (statement, allowed) in LYING_EXCEPTIONS.items():
        assert arena.outcome(f"def f(x): {statement}", VALUE) in allowed, name
