"""Programs that look for expected values, test texts and secrets in all they can reach."""

from __future__ import annotations

from codea1_env.sandbox import Outcome

# Written in two parts, so that the programs that look for it do not find themselves.
SECRET_PARTS = ("expected-", "7319-value")
SECRET = "".join(SECRET_PARTS)
VALUE_TEST = f"assert f(1) == {SECRET!r}"

_FIND = f"""
import gc, inspect, os, sys, types
A, B = {SECRET_PARTS!r}
def has(value):
    try:
        return isinstance(value, (str, bytes)) and (A + B in value if isinstance(value, str) else (A + B).encode() in value)
    except Exception:
        return False
def search(roots, limit=400_000):
    seen, todo = set(), list(roots)
    while todo and len(seen) < limit:
        value = todo.pop()
        if id(value) in seen: continue
        seen.add(id(value))
        if has(value) and value is not A + B: return A + B
        todo.extend(gc.get_referents(value))
        if isinstance(value, types.FrameType): todo.extend(value.f_locals.values())
    return None
def frames():
    frame, found = sys._getframe(), []
    while frame is not None:
        found += [frame, frame.f_locals, frame.f_globals, frame.f_code]
        frame = frame.f_back
    return found
def read(path):
    try:
        with open(path, "rb") as file: data = file.read(1 << 20)
    except OSError:
        return None
    return A + B if has(data) else None
"""

SEARCHES = {
    "frames": "search(frames())",
    "garbage collector": "search(gc.get_objects())",
    "modules": "search(list(sys.modules.values()))",
    "the main module": "search([sys.modules['__main__']])",
    "the stack by inspect": "search([i.frame for i in inspect.stack()])",
    "a traceback": "search([raised()])",
    "other threads": "search(list(sys._current_frames().values()))",
    "arguments": "A + B if any(A + B in a for a in [*sys.argv, *sys.orig_argv]) else None",
    "environment": "search([dict(os.environ)])",
    "own command line": "read('/proc/self/cmdline') or read('/proc/self/environ')",
    "own script": "read(sys.argv[0] or '.') or read(getattr(sys.modules['__main__'], '__file__', '.'))",
    "files around": "next(filter(None, map(read, around())), None)",
    "pipes": "peek()",
}
_HELPERS = """
def around():
    try: return os.listdir('.') or ['.']
    except OSError: return ['.']
def raised():
    try: raise KeyError
    except KeyError as error: return error.__traceback__
def peek():
    found = None
    for number in range(3, 16):
        try:
            os.set_blocking(number, False)
            data = os.read(number, 1 << 16)
        except OSError: continue
        found = found or (A + B if has(data) else None)
    return found
"""


def test_expected_values_are_nowhere_in_reach(arena):
    found = {}
    for name, search in SEARCHES.items():
        for place in ("import", "call"):
            early = f"FOUND = {search}" if place == "import" else "FOUND = None"
            late = search if place == "call" else "FOUND"
            code = f"{_FIND}{_HELPERS}\n{early}\ndef f(x): return {late}"
            found[name, place] = arena.outcome(code, VALUE_TEST)
    assert Outcome.PASS not in found.values()
    fast = {key: value for key, value in found.items() if key[0] != "pipes"}
    assert fast == dict.fromkeys(fast, Outcome.FAIL)


def test_the_search_finds_what_is_in_reach(arena):
    """The attack itself works: a value that is in the program's process is found."""
    for search in ("search(gc.get_objects())", "search(frames())"):
        code = f"{_FIND}\nHERE = ['{SECRET}']\ndef f(x): return {search}"
        assert arena.outcome(code, VALUE_TEST) is Outcome.PASS


WRITERS = {
    "every name in every frame": (
        "    for value in frames():\n        if isinstance(value, dict):\n"
        "            for name in ('outcome', 'verdict', 'result', 'reply', 'stat', 'details'):\n"
        "                if name in value: value[name] = 'pass'"
    ),
    "every list": (
        "    for value in gc.get_objects():\n        if type(value) is list and len(value) < 5:\n"
        "            value.append('pass')"
    ),
}


def test_writing_verdicts_into_frames(arena):
    for name, body in WRITERS.items():
        for ending in ("os._exit(0)", "return 5"):
            code = f"{_FIND}\ndef f(x):\n{body}\n    {ending}"
            outcome = arena.outcome(code, VALUE_TEST)
            assert outcome not in (Outcome.PASS, Outcome.INFRA_ERROR), (name, ending)


def test_the_environment_holds_no_secret(arena):
    code = "import os\ndef f():\n    return sorted(os.environ)"
    (result,) = arena.sandbox.call(code, "f", [((), {})])
    assert "ATTACK_TOKEN" not in result.value
    assert set(result.value) <= {
        "PATH", "LANG", "TZ", "HOME", "TMPDIR", "PYTHONHASHSEED", "LC_CTYPE",
        "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
    }  # fmt: skip


def test_a_program_is_told_no_test_and_no_other_program(arena):
    """What its process is told is the program itself, the calls and the limits."""
    code = """
import sys
frame, TOLD = sys._getframe(), []
while frame is not None:
    if frame.f_code.co_name in ("main", "_answer"): TOLD.append(repr(frame.f_locals))
    frame = frame.f_back
def f(x): return TOLD
"""
    arena.one("SENTINEL = 'another program'\ndef f(x): return 1", VALUE_TEST)
    [result, _] = arena.sandbox.call(code, "f", [((1,), {}), ((2,), {})])
    assert len(result.value) == 3
    text = "".join(result.value)
    assert SECRET not in text
    assert "another program" not in text
