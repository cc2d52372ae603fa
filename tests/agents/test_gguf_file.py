"""A file as llama.cpp writes it, made by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from codea1_env.agents.gguf_file import GGUFError, read_gguf


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


METADATA = [
    text("general.architecture") + struct.pack("<I", 8) + text("llama"),
    text("llama.block_count") + struct.pack("<II", 4, 30),
    text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("é"),
]
PLAIN = struct.pack("<6f", 1, 2, 3, 4, 5, 6) + b"\0" * 8  # each tensor begins at a multiple of 32
FOUR_BITS = struct.pack("<ee", 0.5, -1.0) + bytes(i | (15 - i) << 4 for i in range(16)) + b"\0" * 12
EIGHT_BITS = struct.pack("<e", 0.25) + struct.pack("<32b", *range(-16, 16))
TENSORS = [
    text("plain") + struct.pack("<IQQIQ", 2, 3, 2, 0, 0),
    text("four") + struct.pack("<IQIQ", 1, 32, 3, 32),
    text("eight") + struct.pack("<IQIQ", 1, 32, 8, 64),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(TENSORS), len(METADATA))
    header += b"".join(METADATA + TENSORS)
    header += b"\0" * (-len(header) % 32)
    path = tmp_path / "model.gguf"
    path.write_bytes(header + PLAIN + FOUR_BITS + EIGHT_BITS)
    return path


def test_what_is_in_it(file: Path) -> None:
    metadata, tensors = read_gguf(file)
    assert metadata == {
        "general.architecture": "llama",
        "llama.block_count": 30,
        "tokens": ["a", "é"],
    }
    assert tensors["plain"].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert tensors["four"].tolist() == [i / 2 - 1 for i in [*range(16), *range(15, -1, -1)]]
    assert tensors["eight"].tolist() == [i / 4 for i in range(-16, 16)]
    assert {each.dtype for each in tensors.values()} == {np.dtype(np.float32)}


@pytest.mark.parametrize("size", [0, 10, 30, 100, 200, -1])
def test_a_file_that_is_cut_off(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(GGUFError, match=r"Expect model\.gguf to be a GGUF file"):
        read_gguf(file)


def test_another_file(file: Path) -> None:
    file.write_bytes(b"PK" + bytes(100))
    with pytest.raises(GGUFError, match="it begins with"):
        read_gguf(file)
