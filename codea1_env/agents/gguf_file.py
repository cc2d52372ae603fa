"""Reads a GGUF file, the format of llama.cpp, as far as the default model needs it.

    metadata, tensors = read_gguf(path)

The library for this format reads tokens one numpy object at a time, which takes longer than all the rest of
the conversion; transformers does so four times. Here it takes a second.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Weights = NDArray[np.float32]

_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}  # fmt: skip
_STRING, _ARRAY = 8, 9
_BLOCK = 32  # weights that share a scale


class GGUFError(ValueError):
    """A file is not in the expected form."""


class GGUFFile(NamedTuple):
    """What is in a file.

    Attributes:
        metadata: Numbers, texts and lists of them, by name.
        tensors: Weights by name, as float32.
    """

    metadata: dict[str, Any]
    tensors: dict[str, Weights]


def read_gguf(path: Path) -> GGUFFile:
    """Read a file of version 3 with tensors of the types F32, Q4_1 and Q8_0.

    Raises:
        GGUFError: It is another kind of file, or has been cut off.
    """
    try:
        return _Cursor(path.read_bytes()).file()
    except (struct.error, KeyError, UnicodeDecodeError, ValueError) as error:
        raise GGUFError(
            f"Expect {path.name} to be a GGUF file as llama.cpp writes it, actually: {error}"
        ) from error


class _Cursor:
    """Goes through the bytes of a file from front to back."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def file(self) -> GGUFFile:
        magic, version, tensor_count, metadata_count = self._numbers("4sIQQ")
        if (magic, version) != (b"GGUF", 3):
            raise ValueError(f"it begins with {magic!r}, version {version}")
        metadata = {self._text(): self._value(*self._numbers("I")) for _ in range(metadata_count)}
        infos = [self._tensor_info() for _ in range(tensor_count)]
        alignment = metadata.get("general.alignment", 32)
        start = math.ceil(self._at / alignment) * alignment
        tensors = {
            name: self._weights(_TYPES[kind], shape, start + offset)
            for name, shape, kind, offset in infos
        }
        return GGUFFile(metadata, tensors)

    def _numbers(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def _text(self) -> str:
        (size,) = self._numbers("Q")
        self._at += size
        return self._data[self._at - size : self._at].decode()

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind == _ARRAY:
            item, count = self._numbers("IQ")
            return [self._value(item) for _ in range(count)]
        return self._numbers(_NUMBERS[kind])[0]

    def _tensor_info(self) -> tuple[str, tuple[int, ...], int, int]:
        name = self._text()
        (dimensions,) = self._numbers("I")
        shape = self._numbers(f"{dimensions}Q")
        kind, offset = self._numbers("IQ")
        return name, shape[::-1], kind, offset  # rows first, as everywhere else

    def _weights(self, form: _Form, shape: tuple[int, ...], start: int) -> Weights:
        count = math.prod(shape) // form.weights
        blocks = np.frombuffer(self._data, form.block, count, start)
        return form.decode(blocks).astype(np.float32, copy=False).reshape(shape)


class _Form(NamedTuple):
    """How weights are stored: blocks of so many, of a type, and what they mean."""

    weights: int
    block: np.dtype[Any]
    decode: Callable[[NDArray[Any]], NDArray[Any]]


def _four_bits(blocks: NDArray[Any]) -> Weights:
    packed = blocks["packed"]
    numbers = np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32)
    scaled: Weights = numbers * _column(blocks["scale"]) + _column(blocks["least"])
    return scaled


def _eight_bits(blocks: NDArray[Any]) -> Weights:
    scaled: Weights = blocks["numbers"].astype(np.float32) * _column(blocks["scale"])
    return scaled


def _column(numbers: NDArray[Any]) -> Weights:
    return numbers.astype(np.float32)[:, None]


_TYPES = {
    0: _Form(1, np.dtype("<f4"), lambda blocks: blocks),
    3: _Form(
        _BLOCK, np.dtype([("scale", "<f2"), ("least", "<f2"), ("packed", "u1", 16)]), _four_bits
    ),
    8: _Form(_BLOCK, np.dtype([("scale", "<f2"), ("numbers", "i1", _BLOCK)]), _eight_bits),
}
