"""The layers hold without privileges, too. `as_ordinary_user.py` runs any other tests likewise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = os.geteuid() == 0


def rights() -> int:
    """The capabilities of this process, as a bit set."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))


@pytest.mark.slow
@pytest.mark.skipif(not ROOT, reason="every test here is run by an ordinary user already")
def test_the_kernel_refuses_attacks_on_an_ordinary_user() -> None:
    threads = "test_attack_resources.py::test_threads_are_not_taken_from_a_neighbour"
    files = [HERE / "attacks" / name for name in ("test_attack_kernel.py", threads)]
    files.append(Path(__file__))
    done = subprocess.run(
        [sys.executable, str(HERE / "as_ordinary_user.py"), "-q", *map(str, files)],
        capture_output=True,
        text=True,
        timeout=280,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr


@pytest.mark.skipif(ROOT, reason="the test above runs this one")
def test_an_ordinary_user_has_no_rights() -> None:
    assert rights() == 0
    with pytest.raises(PermissionError):
        os.setgroups([])
