"""Levels of confinement, also on machines that lack something: never weaker than was asked for, without a word."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from processes import environment, run_python

from codea1_env.sandbox import Outcome, Sandbox, examine, strongest_level

POORER = Path(__file__).with_name("poorer_machine.py")
USE = """
from codea1_env.sandbox import LevelUnavailableError, Sandbox
for level in {levels!r}:
    try:
        with Sandbox(level=level) as sandbox:
            (result,) = sandbox.run_tests("def f(x): return x", ["assert f(1) == 1"])
            print(sandbox.level, result.outcome.value)
    except LevelUnavailableError as error:
        print("unavailable:", error)
"""


def run_without(what: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python on a machine that lacks something."""
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("numbers of system calls of x86-64 and aarch64")
    if what == "proc" and os.geteuid() != 0:
        pytest.skip("only root can hide /proc")
    done = run_python(str(POORER), what, "-W", "ignore", *arguments)
    if "cannot hide /proc" in done.stderr:
        pytest.skip("this root user may not mount")
    return done


def use_without(what: str, *levels: str | None) -> list[str]:
    """What came of using a sandbox of each level there."""
    return run_without(what, "-c", USE.format(levels=levels)).stdout.splitlines()


def require(level: str) -> None:
    if not examine(level).works:
        pytest.skip(f"level {level} does not work here: {examine(level).error}")


LANDLOCK = "the kernel does not offer Landlock"
MISSING = {
    "landlock": {
        "namespaces": ("unavailable: Expect ", LANDLOCK, "CONFIG_SECURITY_LANDLOCK"),
        None: ("unavailable: Expect ", LANDLOCK, 'Sandbox(level="process")'),
        "process": ("process pass",),
    },
    "namespaces": {
        "namespaces": (
            "unavailable: Expect ",
            "unshare: Operation not permitted",
            "max_user_namespaces",
        ),
        None: ("kernel pass",),
    },
    "proc": {None: ("unavailable: Expect ", "there is none", "mount -t proc")},
}
"""What a machine lacks -> what comes of each level there."""


@pytest.mark.parametrize("what", MISSING)
def test_what_is_missing_is_named_with_its_remedy(what: str) -> None:
    """A weaker level works by its name, and without namespaces by default."""
    if what == "namespaces":
        require("kernel")
    for said, parts in zip(use_without(what, *MISSING[what]), MISSING[what].values(), strict=True):
        assert said.startswith(parts[0])
        for part in parts:
            assert part in said


def test_where_nobody_may_write_the_sandbox_works() -> None:
    levels = [level for level in ("process", "kernel") if examine(level).works]
    assert use_without("writing", *levels) == [f"{level} pass" for level in levels]


def test_a_command_ends_with_exit_code_2() -> None:
    command = ["-m", "codea1_env.cli", "play", "--sandbox-level", "kernel"]
    done = run_without("landlock", *command)
    assert done.returncode == 2, done.stderr
    assert "the kernel does not offer Landlock" in done.stderr
    assert "codea1: Expect a machine" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_doctor_names_what_is_missing() -> None:
    done = run_without("landlock", "-m", "codea1_env.cli", "sandbox", "doctor")
    assert done.returncode == 1
    assert "kernel: [Errno 38] the kernel does not offer Landlock. Level 'kernel' needs" in (
        done.stdout
    )
    assert 'Sandbox(level="process")' in done.stdout


def test_a_weak_level_warns_and_works() -> None:
    with pytest.warns(UserWarning, match="level 'process': programs can read files"):
        sandbox = Sandbox(level="process")
    with sandbox:
        results = sandbox.run_tests("def f(x): return x", ["assert f(1) == 1", "assert f(1) == 2"])
    assert [result.outcome for result in results] == [Outcome.PASS, Outcome.FAIL]


def test_a_strong_level_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for level in ("kernel", "namespaces", None):
            Sandbox(level=level).close()


def test_the_strongest_level_is_one_that_works() -> None:
    require("kernel")
    level = strongest_level()
    assert level == ("namespaces" if examine("namespaces").works else "kernel")
    with Sandbox() as sandbox:
        assert sandbox.level == level


@pytest.mark.parametrize(("user", "level"), [("0", "kernel"), ("1000", None)])
def test_it_works_in_a_user_namespace_with_one_user(user: str, level: str | None) -> None:
    """As bubblewrap and apptainer make it, with root's number or an ordinary one."""
    require("kernel")
    inside = ["unshare", "--user", f"--map-user={user}", "--map-group=0"]
    try:
        subprocess.run([*inside, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no user namespaces here, or no unshare")
    done = subprocess.run(
        [*inside, sys.executable, "-W", "ignore", "-c", USE.format(levels=[level])],
        capture_output=True, text=True, timeout=120, cwd="/", env=environment(),
    )  # fmt: skip
    assert done.stdout.split() in (["kernel", "pass"], ["namespaces", "pass"]), done.stderr
