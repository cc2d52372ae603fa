"""What attacks share: how a hostile program writes to the channel of its results, tests and limits."""

from __future__ import annotations

from codea1_env.sandbox import Limits

WRITER = """
import os, struct, sys, threading, time
encode = sys.modules["inside.codec.encoding"].encode
def frame(payload):
    return struct.pack("<I", len(payload)) + payload
def ok(value):
    return frame(encode(("ok", value)))
def of_main(name):
    frame = sys._getframe()
    while name not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals[name]
pipe = of_main("reply_pipe")
def write(data):
    while data:
        data = data[os.write(pipe, data):]
"""

TESTS = {"value": "assert f(1) == 2", "program": "for x in [1]:\n    assert f(x) == 2"}
RIGHT = "def f(x):\n    return x + 1"
WRONG = "def f(x):\n    return x - 1"
LITTLE = Limits(
    call_cpu_time=0.1, call_wall_time=0.5, output=10_000, memory=256 << 20, calls_per_test=1
)
