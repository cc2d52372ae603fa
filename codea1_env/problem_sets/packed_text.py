"""Text that a data set stores as base64 of zlib of a pickle of one str. Nothing is unpickled.

A pickle is a program. The one of a single str needs few of its instructions; any other is refused.
"""

from __future__ import annotations

import base64
import binascii
import pickletools
import zlib

MAX_TEXT = 256 << 20
"""Bytes: a few kB can unpack to something that fills the memory."""
_FRAMING = frozenset({"PROTO", "FRAME", "PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"})
"""Instructions that do not build anything: version, framing, and a note for later use."""
_STRING = frozenset({"UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"})


def unpack_text(packed: str) -> str:
    """Return the text.

    Args:
        packed: base64 of zlib of a pickle of one str.

    Raises:
        ValueError: It is something else, or larger than `MAX_TEXT`.
    """
    try:
        data = base64.b64decode(packed, validate=True)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"Expect base64, actually: {error}") from error
    return _pickled_text(_decompressed(data))


def _decompressed(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    try:
        pickled = stream.decompress(data, MAX_TEXT + 1)
    except zlib.error as error:
        raise ValueError(f"Expect data that zlib can unpack, actually: {error}") from error
    if len(pickled) > MAX_TEXT:
        raise ValueError(f"Expect at most {MAX_TEXT:,} bytes when unpacked, actually more")
    if not stream.eof or stream.unused_data:
        raise ValueError("Expect one whole zlib stream, actually it is cut off or goes on")
    return pickled


def _pickled_text(pickled: bytes) -> str:
    found: list[str] = []
    end = -1
    try:
        for opcode, argument, position in pickletools.genops(pickled):
            if opcode.name in _STRING:
                found.append(str(argument))
            elif opcode.name == "STOP":
                end = position or 0
            elif opcode.name not in _FRAMING:
                raise ValueError(f"the instruction {opcode.name}, which is not executed")
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(f"Expect the pickle of one str, actually: {error}") from error
    if len(found) != 1 or end != len(pickled) - 1:
        raise ValueError(
            f"Expect the pickle of one str and nothing else, actually: {len(found)} texts in {len(pickled)} bytes"
        )
    return found[0]
