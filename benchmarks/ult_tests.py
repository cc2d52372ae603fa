"""UnLeakedTestBench with the tests of its rows, which a model wrote, as golden tests.

    codea1 problems audit benchmarks/ult_tests.py:problems       # ULT_Lite.jsonl.gz, or the file that ULT names

`codea1` itself leaves these tests out, because few of them hold.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
from pathlib import Path

from codea1_env.problems import Problem, load_problems

FILE = Path(os.environ.get("ULT", "ULT_Lite.jsonl.gz"))


def problems() -> list[Problem]:
    """Return the problems with their tests."""
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        tests = {f"ULT/{row['task_id']}": row["test_list"] for row in map(json.loads, lines)}
    return [
        dataclasses.replace(each, tests=tests[each.task_id]) for each in load_problems(str(FILE))
    ]
