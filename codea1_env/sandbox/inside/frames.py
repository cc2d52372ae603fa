"""Length-prefixed frames on a pair of pipes, read and written with plain blocking calls."""

from __future__ import annotations

import os
import struct

PREFIX = struct.Struct("<I")
MAX_FRAME = 1 << 27

# Kept here, since foreign code may replace the functions of the module `os`.
_read, _write = os.read, os.write


class ChannelClosedError(Exception):
    """The other side has gone, or what it sent is not a frame."""


def write_frame(descriptor: int, payload: bytes) -> None:
    """Writes one frame.

    Raises:
        ChannelClosedError: Nobody reads any more.
    """
    data = memoryview(PREFIX.pack(len(payload)) + payload)
    try:
        while data:
            data = data[_write(descriptor, data) :]
    except OSError as error:
        raise ChannelClosedError(str(error)) from None


def _read_exactly(descriptor: int, size: int) -> bytes:
    parts = []
    while size:
        try:
            part = _read(descriptor, min(size, 1 << 20))
        except OSError as error:
            raise ChannelClosedError(str(error)) from None
        if not part:
            raise ChannelClosedError("end of file")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def read_frame(descriptor: int, limit: int = MAX_FRAME) -> bytes:
    """Reads one frame.

    Raises:
        ChannelClosedError: End of file, or a frame longer than `limit` bytes was announced.
    """
    (size,) = PREFIX.unpack(_read_exactly(descriptor, PREFIX.size))
    if size > limit:
        raise ChannelClosedError(f"a frame of {size} bytes was announced, the limit is {limit}")
    return _read_exactly(descriptor, size)
