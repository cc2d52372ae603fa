"""Packed text: what the packers of data sets write is read, and nothing else, least of all a program."""

from __future__ import annotations

import base64
import os
import pickle
import pickletools
import zlib
from pathlib import Path
from typing import Any

import pytest
from problem_rows import packed

from codea1_env.problem_sets import livecodebench
from codea1_env.problem_sets.livecodebench import unpack_text


def pack(pickled: bytes) -> str:
    return base64.b64encode(zlib.compress(pickled)).decode()


@pytest.mark.parametrize("text", ["", "é\n'\\", "a" * 300, "b" * 100_000])
def test_a_text_of_every_protocol_is_read(text: str) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        pickled = pickle.dumps(text, protocol)
        for each in (pickled, pickletools.optimize(pickled)):
            assert unpack_text(pack(each)) == text


class Runs:
    """Unpickling it makes a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def test_a_program_is_refused_and_not_run(tmp_path: Path) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        hostile = pack(pickle.dumps(Runs(tmp_path / "made"), protocol))
        with pytest.raises(ValueError, match="which is not executed"):
            unpack_text(hostile)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "pickled",
    [
        pickle.dumps(["a"]),
        pickle.dumps(b"a"),
        pickle.dumps(3),
        pickle.dumps("a") + b"x",  # something after the end
        pickle.dumps("a")[:-1],  # no end
        pickle.dumps("a" * 1000)[:40],
        pickle.dumps("a", 2)[:-1] + pickle.dumps("b", 2)[2:],  # two texts
        b"\x80\x04.",
        b"",
        b"\x80\x04X\xff\xff\xff\x7fab.",  # says that it is longer than it is
        b"\x80\x04\x8d" + b"\xff" * 8 + b"ab.",
        b"Pabc\n.",  # a persistent id
        b"\x82\x01.",  # an extension
        b"\x80\x04\x97.",  # a buffer from outside
        b"Vab\\ud8\n.",
        b"\x00\xff",
    ],
)
def test_other_pickles_are_refused(pickled: bytes) -> None:
    with pytest.raises(ValueError, match="the pickle of one str"):
        unpack_text(pack(pickled))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no base64!", "Expect base64"),
        ("é", "Expect base64"),
        ("YWJj", "that zlib can unpack"),
        ("", "one whole zlib stream"),
        (base64.b64encode(zlib.compress(pickle.dumps("a" * 99))[:-4]).decode(), "one whole zlib stream"),
        (base64.b64encode(zlib.compress(pickle.dumps("a")) + b"more").decode(), "one whole zlib stream"),
    ],
)  # fmt: skip
def test_other_packings_are_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unpack_text(text)


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(livecodebench, "MAX_TEXT", 10_000)
    assert len(unpack_text(packed("a" * 9_000))) == 9_000
    with pytest.raises(ValueError, match="at most 10,000 bytes when unpacked, actually more"):
        unpack_text(packed("a" * 10_000_000))
