"""A program's own files are there while it runs, whatever ended just before."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Outcome, Sandbox

FILES = """
import os
for n in range(200):
    os.makedirs('a/b')
    with open('a/b/text', 'w') as file: file.write('x')
    os.rename('a', str(n))
def f(x): return x + len(os.listdir('.')) - 199
"""


@pytest.mark.parametrize("level", ["process", "kernel", "namespaces"])
@pytest.mark.filterwarnings("ignore:.*level")
def test_files_of_a_run_stay_while_it_runs(level: str) -> None:
    with Sandbox(level=level) as sandbox:
        for _ in range(10):
            (proxied,) = sandbox.run_tests(
                "def f(x): return x", ["for x in [1]:\n    assert f(x) == 1"]
            )
            assert proxied.outcome is Outcome.PASS
            (result,) = sandbox.run_tests(FILES, ["assert f(1) == 2"])
            assert result.outcome is Outcome.PASS, result
