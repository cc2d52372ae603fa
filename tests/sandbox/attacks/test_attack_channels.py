"""Attacks on the pipes and on the decoder: forged, missing, extra, late and malformed replies."""

from __future__ import annotations

import pytest
from attacking import TESTS, WRITER

from codea1_env.sandbox import Limits, Outcome

# Who judges does not depend on how strongly programs are confined.
LEVELS = ("process", "kernel", "namespaces")
# What runs together with the program can be forged, and says so.
VALUE = TESTS["value"]


def raw(statement: str) -> str:
    """A program that writes to its result channel in the call."""
    return f"{WRITER}\ndef f(x):\n    {statement}\n    return 5"


F, E = Outcome.FORBIDDEN, Outcome.EXITED
VALUE_MODE = {
    "the right shape, a wrong value": ("write(ok(5)); os._exit(0)", Outcome.FAIL),
    "a verdict": ("write(frame(encode(('pass', '')))); os._exit(0)", F),
    "a bare value": ("write(frame(encode(2))); os._exit(0)", F),
    "no value": ("write(frame(encode(('ok',)))); os._exit(0)", F),
    "two values": ("write(frame(encode(('ok', 2, 2)))); os._exit(0)", F),
    "an unknown outcome": ("write(frame(encode(('infra_error', 'x')))); os._exit(0)", F),
    "an extra frame": ("write(ok(2) + ok(2))", F),
    "a frame beside the reply": ("write(ok(2))", F),
    "half a frame after the reply": ("write(ok(2) + b'\\x05'); os._exit(0)", F),
    "half a frame, then the end": ("write(ok(2)[:-1]); os._exit(0)", E),
    "half a frame, then a stall": ("write(ok(2)[:-1]); time.sleep(60)", Outcome.TIMEOUT),
    "half a length": ("write(b'\\x01\\x00'); os._exit(0)", E),
    "an endless length": ("write(b'\\xff\\xff\\xff\\xff')", Outcome.OUTPUT_LIMIT),
    "text": ("write(b'PASS' * 1000)", Outcome.OUTPUT_LIMIT),
    "closes it": ("os.close(pipe)", E),
    "closes it and waits": ("os.close(pipe); time.sleep(60)", E),
    "closes everything": ("os.closerange(0, 64)", E),
    "turns it around": ("os.dup2(0, pipe)", E),
    "swaps it for its output": ("os.dup2(1, pipe); time.sleep(60)", E),
    "an empty frame": ("write(frame(b'')); os._exit(0)", F),
}


def test_forged_frames_in_value_mode(arena):
    limits = Limits(call_wall_time=0.4, call_cpu_time=1.0, result=1 << 20, calls_per_test=1)
    programs = {name: raw(statement) for name, (statement, _) in VALUE_MODE.items()}
    found = arena.outcomes(programs, VALUE, limits=limits)
    assert found == {name: expected for name, (_, expected) in VALUE_MODE.items()}


def test_replies_written_before_they_are_asked_for(arena):
    """Answers to all calls at once, from the program's first line: they are answers, and wrong."""
    code = f"{WRITER}\nwrite(frame(encode(('ok',))) + ok(5) * 3)\nos._exit(0)\ndef f(x): return 5"
    tests = [f"assert f({x}) == {x + 1}" for x in range(3)]
    results = arena.sandbox.run_tests(code, tests, entry_point="f")
    assert [result.outcome for result in results] == [Outcome.FAIL] * 3


def test_an_extra_frame_spoils_the_forger_alone(arena):
    programs = [raw("write(ok(2))"), "def f(x): return x + 1"] * 2
    assert [arena.outcome(code, VALUE) for code in programs] == [F, Outcome.PASS] * 2


def _u32(number: int) -> bytes:
    return number.to_bytes(4, "little")


_OK = b"t" + _u32(2) + b"s" + _u32(2) + b"ok"
_COLLIDING = b"".join(
    b"i" + _u32(16) + (k * (2**61 - 1)).to_bytes(16, "little") for k in range(1000)
)
MALFORMED = {
    "empty": b"",
    "unknown tag": _OK + b"?",
    "pickle": __import__("pickle").dumps(("ok", 2)),
    "marshal": __import__("marshal").dumps(("ok", 2)),
    "json": b'["ok", 2]',
    "trailing byte": _OK + b"NN",
    "missing value": _OK,
    "100,000 lists deep": _OK + (b"l" + _u32(1)) * 100_000 + b"N",
    "a billion items": _OK + b"l" + _u32(1 << 30),
    "items overflow": _OK + b"l" + _u32(0xFFFFFFFF) + b"N",
    "text longer than the frame": _OK + b"s" + _u32(1 << 31),
    "an integer of 2 MiB": _OK + b"i" + _u32(1 << 21),
    "invalid text": _OK + b"s" + _u32(1) + b"\xff",
    "odd dict": _OK + b"d" + _u32(1) + b"N",
    "list as a key": _OK + b"d" + _u32(2) + b"l" + _u32(0) + b"N",
    "list in a set": _OK + b"S" + _u32(1) + b"l" + _u32(0),
    "1,000 equal hashes": _OK + b"S" + _u32(1000) + _COLLIDING,
    "a Decimal that is none": _OK + b"D" + _u32(3) + b"abc",
    "a Decimal of a million digits": _OK + b"D" + _u32(9) + b"1E9999999",
    "fraction by zero": _OK + b"R" + _u32(2) + (b"i" + _u32(1) + b"\1") + (b"i" + _u32(1) + b"\0"),
    "fraction of text": _OK + b"R" + _u32(2) + b"NN",
    "a range without a step": _OK + b"r" + _u32(3) + (b"i" + _u32(1) + b"\0") * 3,
    "February 30": _OK + b"y" + _u32(10) + b"2024-02-30",
    "a long time": _OK + b"e" + _u32(3) + (b"i" + _u32(8) + b"\xff" * 7 + b"\x7f") * 3,
    "a deque of minus one": _OK + b"q" + _u32(1) + b"i" + _u32(1) + b"\xff",
    "a factory that runs": _OK + b"g" + _u32(4) + b"exit" + b"d" + _u32(0),
    "an array of objects": _OK + b"a" + b"N" * 3,
    "a named tuple of nothing": _OK + b"n" + _u32(0),
    "a reference": _OK + b"x" + b"NN",
}


def test_malformed_replies_are_forbidden(arena):
    programs = {
        name: raw(f"write(frame({payload!r})); os._exit(0)")
        for name, payload in MALFORMED.items()
        if len(payload) < 10_000
    }
    found = arena.outcomes(programs, VALUE)
    assert found.pop("an integer of 2 MiB") is Outcome.OUTPUT_LIMIT  # it would cost too much
    assert found == dict.fromkeys(found, Outcome.FORBIDDEN)
    deep = f"write(frame({_OK!r} + (b'l' + {_u32(1)!r}) * 100_000 + b'N')); os._exit(0)"
    assert arena.outcome(raw(deep), VALUE) is Outcome.FORBIDDEN


BIG = {
    "2.6 million digits": ("1 << (1 << 23)", Outcome.OUTPUT_LIMIT),
    "10,000 digits": ("10 ** 10_000", Outcome.FAIL),
    "a long string": ("'x' * (2 << 20)", Outcome.OUTPUT_LIMIT),
    "many items": ("[0] * 1_000_000", Outcome.OUTPUT_LIMIT),
    "a list of one list": ("[[0] * 1000] * 1000", Outcome.OUTPUT_LIMIT),
    "a large Decimal": ("__import__('decimal').Decimal('1E+999999')", Outcome.OUTPUT_LIMIT),
    "colliding keys": ("{k * (2**61 - 1): 0 for k in range(1, 1001)}", Outcome.OUTPUT_LIMIT),
}


def test_large_values_are_refused_or_compared(arena):
    programs = {name: f"def f(x): return {value}" for name, (value, _) in BIG.items()}
    found = arena.outcomes(programs, VALUE)
    assert found == {name: expected for name, (_, expected) in BIG.items()}


@pytest.mark.parametrize("descriptor", ["1", "2", "pipe"])
def test_floods_are_stopped(arena, descriptor):
    code = raw(f"while True: os.write({descriptor}, bytes([255]) * 65536)")
    limits = Limits(call_cpu_time=0.2, call_wall_time=1.0, output=64 << 10, calls_per_test=1)
    expected = Outcome.OUTPUT_LIMIT if descriptor == "pipe" else Outcome.TIMEOUT
    assert arena.outcome(code, VALUE, limits=limits) is expected


def test_output_is_no_part_of_a_verdict(arena):
    code = "def f(x):\n    print('x' * 300_000, flush=True)\n    return x + {}"
    limits = Limits(output=10_000)
    assert arena.outcome(code.format(1), VALUE, limits=limits) is Outcome.PASS
    assert arena.outcome(code.format(2), VALUE, limits=limits) is Outcome.FAIL


def test_writing_everywhere_changes_no_verdict(arena):
    quietly = "def quietly(n):\n    try: os.write(n, b'PASS')\n    except OSError: pass\ndef f(x)"
    code = raw("[quietly(n) for n in range(64) if n != pipe]").replace("def f(x)", quietly)
    outcome = arena.outcome(code, VALUE, limits=Limits(call_wall_time=1.0, calls_per_test=1))
    assert outcome not in (Outcome.PASS, Outcome.INFRA_ERROR)
