"""What a hostile program does to write to the channel of its results."""

from __future__ import annotations

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
