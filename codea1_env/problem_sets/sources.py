"""Where rows come from: files, the bundled set, the Hugging Face hub.

A broken row is yielded as the error that describes it, so that a check of a whole set can go on.
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

from codea1_env.problem_sets.problem import ProblemsError
from codea1_env.problem_sets.rows import Row
from codea1_env.support.extras import require

MAX_LINE = 64 << 20
"""Bytes of one row; a file of a few kB can unpack to a line that fills the memory."""

MAX_ARRAY = 1 << 30
"""Bytes of a file that is one JSON array."""


class HubSource(NamedTuple):
    """Where the hub, or the authors, keep a data set."""

    path: str
    """First argument of `datasets.load_dataset`."""
    name: str | None = None
    split: str | None = None
    """What to load when no split is asked for; None for all."""
    data_files: dict[str, str | list[str]] | None = None
    """Split -> its files, where the data set does not say so itself."""


_LIVECODEBENCH = "hf://datasets/livecodebench/code_generation_lite/test{}.jsonl"
_LIVECODEBENCH_FILES = [_LIVECODEBENCH.format(number) for number in ("", 2, 3, 4, 5, 6)]
"""Each release adds a file of newer problems to those before it."""

HUB_SOURCES = {
    "humaneval+": HubSource("evalplus/humanevalplus"),
    "mbpp+": HubSource("evalplus/mbppplus"),
    "mbpp": HubSource("google-research-datasets/mbpp", "full"),
    "kodcode": HubSource("KodCode/KodCode-V1", split="train"),
    "bigcodebench": HubSource("bigcode/bigcodebench", split="v0.1.4"),
    "bigcodebench-hard": HubSource("bigcode/bigcodebench-hard", split="v0.1.4"),
    "livecodebench": HubSource(
        "json",
        split="release_v6",
        data_files={
            **{f"v{n + 1}": file for n, file in enumerate(_LIVECODEBENCH_FILES)},
            **{f"release_v{n}": _LIVECODEBENCH_FILES[:n] for n in range(1, 7)},
        },
    ),
    # The authors publish UnLeakedTestBench in their repository, not on the hub.
    "ult": HubSource(
        "json",
        data_files={
            "test": "https://raw.githubusercontent.com/huangd1999/UnLeakedTestBench/main/datasets/ULT.jsonl"
        },
    ),
}
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
SUFFIXES = (".jsonl", ".jsonl.gz", ".parquet")
STARTER = {
    "starter": ("easy", "medium", "hard", "second"),
    "starter-104": ("easy", "medium", "hard"),
    **{f"starter-{tier}": (tier,) for tier in ("easy", "medium", "hard")},
    "planted": ("planted",),
    "starter-programs": ("programs_easy", "programs_medium"),
    **{f"starter-programs-{tier}": (f"programs_{tier}",) for tier in ("easy", "medium")},
}
"""Files of the bundled sets: all functions; those that older tables were measured on; their tiers; one-line functions; programs and their tiers."""


def rows(source: str, split: str | None = None) -> Iterator[Row | ProblemsError]:
    """Yield the rows of a source in order, and an error in the place of each row that is broken.

    Args:
        source: A name in `STARTER`, a name in `HUB_SOURCES`, a file, or a data set id of the hub.
        split: What to load from the hub; the rows of files are not filtered here.

    Raises:
        ProblemsError: The source is unknown, or the file as a whole cannot be used.
        OSError: The file cannot be opened.
        ImportError: A library that the source needs is not installed.
    """
    if not isinstance(source, str):
        raise TypeError(f"Expect source to be a str, actually: {type(source)}")
    if source in STARTER:
        return _starter_rows(STARTER[source])
    if source in HUB_SOURCES:
        return _hub_rows(source, HUB_SOURCES[source], split)
    path = Path(source)
    if source.endswith(SUFFIXES) or path.exists():
        return _file_rows(path)
    if _HUB_ID.fullmatch(source) and Path(source).suffix not in (".json", ".csv"):
        return _hub_rows(source, HubSource(source), split)
    names = [*STARTER, "cells", *HUB_SOURCES]
    near = difflib.get_close_matches(source.lower(), names, n=3, cutoff=0.4)
    raise ProblemsError(
        "",
        f"Expect the problems to be one of {', '.join(names)}, a hub id such as org/name, or a file that "
        f"ends in {', '.join(SUFFIXES)}, actually: {source!r:.200}. "
        + (f"Did you mean {' or '.join(near)}?" if near else "Check the name or the path."),
    )


def needs_network(source: str) -> bool:
    """Whether the rows of a source come from the hub."""
    a_file = source.endswith(SUFFIXES) or Path(source).exists()
    return source in HUB_SOURCES or (not a_file and _HUB_ID.fullmatch(source) is not None)


def _starter_rows(files: tuple[str, ...]) -> Iterator[Row | ProblemsError]:
    folder = resources.files("codea1_env.problem_sets").joinpath("starter")
    for name in files:
        file = folder.joinpath(f"{name}.jsonl")
        yield from _json_rows(file, str(file))


def _file_rows(path: Path) -> Iterator[Row | ProblemsError]:
    if path.is_dir():
        files = ", ".join(sorted(child.name for child in path.iterdir())[:5]) or "nothing"
        raise IsADirectoryError(
            f"Expect a file of problems, actually {path} is a folder that holds {files}."
        )
    if not path.exists():
        names = [child.name for child in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, names, n=1)
        hint = f" Did you mean {path.parent / near[0]}?" if near else ""
        raise FileNotFoundError(f"Expect a file of problems, actually there is no {path}.{hint}")
    if path.suffix == ".parquet":
        return _parquet_rows(path)
    if path.name.endswith((".jsonl", ".jsonl.gz", ".json.gz", ".ndjson")):
        return _json_rows(path, str(path))
    said = f"Expect a file name that ends in {', '.join(SUFFIXES)}."
    raise ProblemsError(str(path), said)


def _json_rows(file: Traversable, name: str) -> Iterator[Row | ProblemsError]:
    try:
        number = 0
        zipped = isinstance(file, Path) and file.suffix == ".gz"
        stream: Any
        with gzip.open(str(file)) if zipped else file.open("rb") as stream:
            while line := stream.readline(MAX_LINE + 1):
                number += 1
                if len(line) > MAX_LINE:
                    said = f"Expect at most {MAX_LINE:,} bytes in a line."
                    raise ProblemsError(f"{name}, line {number}", said)
                if number == 1:
                    line = line.removeprefix(codecs.BOM_UTF8)
                if number == 1 and line.lstrip().startswith(b"["):
                    yield from _json_array(line + stream.read(MAX_ARRAY), name)
                    return
                if line.strip():
                    yield _json_row(line, f"{name}, line {number}")
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        said = f"Expect a file that gzip can unpack, actually: {error}."
        raise ProblemsError(f"{name}, line {number + 1}", said) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise type(error)(f"Expect to read {name}, actually: {reason}.") from error


def _json_array(data: bytes, name: str) -> Iterator[Row | ProblemsError]:
    parsed = _json_row(data, name)
    if isinstance(parsed, ProblemsError):
        yield parsed
    else:
        for number, fields in enumerate(parsed.fields):
            yield Row(fields, f"{name}, item {number + 1}")


def _json_row(line: bytes, where: str) -> Row | ProblemsError:
    try:
        return Row(json.loads(line.decode("utf-8-sig")), where)
    except UnicodeDecodeError as error:
        return ProblemsError(where, f"Expect UTF-8, actually byte {error.start} is not.")
    except (ValueError, RecursionError) as error:
        said = f"Expect one JSON object a line, actually: {error} in {line[:60]!r}."
        return ProblemsError(where, said)


def _parquet_rows(path: Path) -> Iterator[Row | ProblemsError]:
    pyarrow: Any = require("pyarrow")
    parquet: Any = require("pyarrow.parquet")
    try:
        number = 0
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=256):
            for fields in batch.to_pylist():
                number += 1
                yield Row(fields, f"{path}, row {number}")
    except (pyarrow.ArrowException, OSError) as error:
        raise ProblemsError(str(path), f"Expect a parquet file, actually: {error}.") from error


def _hub_rows(name: str, hub: HubSource, split: str | None) -> Iterator[Row | ProblemsError]:
    datasets: Any = require("datasets")
    wanted = split or hub.split
    files = hub.data_files
    if files is not None and wanted is not None:
        if wanted not in files:
            raise _unknown_split(name, files, wanted)
        files = {wanted: files[wanted]}  # the others need not be fetched
    try:
        loaded = datasets.load_dataset(hub.path, hub.name, data_files=files)
    except Exception as error:  # the library passes on the errors of a dozen others
        cause = error.__cause__ or error
        raise ProblemsError(
            name,
            f"Expect the library datasets to load {files or hub.path}, "
            f"actually: {type(cause).__name__}: {cause!s:.300}. A downloaded file can be given by its path.",
        ) from error
    if wanted is not None and wanted not in loaded:
        raise _unknown_split(name, loaded, wanted)
    for key in loaded if wanted is None else [wanted]:
        for number, fields in enumerate(loaded[key]):
            yield Row(fields, f"{name} [{key}], row {number + 1}", key)


def _unknown_split(name: str, known: Iterable[str], wanted: str) -> ProblemsError:
    return ProblemsError(
        name, f"Expect the split to be one of {', '.join(known)}, actually: {wanted!r}."
    )
