"""`codea1 sandbox serve` as a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

COMMAND = [sys.executable, "-m", "codea1_env.cli", "sandbox", "serve"]


class Server(NamedTuple):
    process: subprocess.Popen[str]
    url: str


@contextmanager
def serving(*options: str, **environment: str) -> Iterator[Server]:
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"(http://\S+): ", line)
        assert found, line + process.communicate(timeout=30)[1]
        yield Server(process, found[1])
    finally:
        process.terminate()
        process.communicate(timeout=60)
