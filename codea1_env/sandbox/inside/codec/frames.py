"""Length-prefixed frames on a pair of pipes, read and written with plain blocking calls."""

from __future__ import annotations

import os
import struct

PREFIX = struct.Struct("<I")
MAX_FRAME = 1 << 27
_AHEAD = 1 << 16

# Kept here, since foreign code may replace the functions of the module `os`.
_read, _write = os.read, os.write


class ChannelClosedError(Exception):
    """The other side has gone, or what it sent is not a frame."""


READY = b""
"""The first frame of every child: what it does for us is done, and foreign code begins. A child that ends before has
failed for a reason of ours."""

END = b""
"""Nothing more will come. Said, since the end of a pipe shows only when no copy of this process holds it any more."""


def write_frame(descriptor: int, payload: bytes) -> None:
    """Write one frame."""
    data = PREFIX.pack(len(payload)) + payload
    try:
        sent = _write(descriptor, data)
        while sent < len(data):  # the pipe is full
            sent += _write(descriptor, memoryview(data)[sent:])
    except OSError as error:
        raise ChannelClosedError(str(error)) from None


class FrameReader:
    """Reads the frames of one pipe, several bytes ahead: one system call for a small frame."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._ahead = b""

    def frame(self) -> bytes:
        """Return the next frame."""
        self._fill(PREFIX.size)
        (size,) = PREFIX.unpack_from(self._ahead)
        if size > MAX_FRAME:
            raise ChannelClosedError(
                f"a frame of {size} bytes was announced, of at most {MAX_FRAME}"
            )
        end = PREFIX.size + size
        self._fill(end)
        frame, self._ahead = self._ahead[PREFIX.size : end], self._ahead[end:]
        return frame

    def _fill(self, size: int) -> None:
        parts, missing = [self._ahead], size - len(self._ahead)
        while missing > 0:
            try:
                part = _read(self._descriptor, max(_AHEAD, min(missing, 1 << 20)))
            except OSError as error:
                raise ChannelClosedError(str(error)) from None
            if not part:
                raise ChannelClosedError("end of file")
            parts.append(part)
            missing -= len(part)
        self._ahead = b"".join(parts)
