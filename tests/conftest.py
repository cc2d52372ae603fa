"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path

import pytest

from codea1_env.sandbox import Limits, Sandbox

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

SLOW = (
    "agents/llm", "baselines", "evaluation/test_code_generation.py",
    "evaluation/test_sandbox_speed.py", "evaluation/test_suite_judging.py",
    "integrations/test_openenv.py", "integrations/test_verifiers.py",
    "report/test_report_in_chromium.py", "sandbox/attacks", "sandbox/test_budgets.py", "sandbox/test_busy_machine.py", "sandbox/test_forked_owner.py",
    "reading/test_golden.py", "sandbox/test_assertions.py", "sandbox/test_as_a_part.py", "sandbox/test_codec.py", "sandbox/test_judging.py",
    "sandbox/test_literals.py", "sandbox/test_packages.py", "sandbox/test_pool.py", "sandbox/test_result_endings.py",
    "sandbox/test_killed.py", "sandbox/test_killed_at_start.py",
    "sandbox/test_levels.py", "sandbox/test_limits.py", "sandbox/test_ordinary_user.py",
    "sandbox/test_outside_causes.py", "sandbox/test_repeating.py", "sandbox/test_test_modules.py",
    "test_cli_bench.py", "test_cli_eval.py", "test_cli_eval_agents.py",
    "test_cli_eval_sets.py", "test_cli_eval_tests.py", "test_cli_train.py",
    "test_contracts.py", "test_problems.py", "test_readme.py", "test_starter.py",
    "test_judging_answers.py", "test_packaging.py", "test_referee_hostile.py",
    "test_validate.py", "training",
)  # fmt: skip
"""What `make test-fast` leaves out, as a whole: what takes long there is what it tests."""

# Several tests run at a time, and so do the processes of some: threads of torch would wait for a processor, spinning.
os.environ.setdefault("OMP_NUM_THREADS", "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts background jobs so, and all processes of the tests would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    slow = tuple(str(here / name) for name in SLOW)
    for item in items:
        if str(item.path).startswith(slow):
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def shared_data() -> Path:
    """The folder of public data sets that lies beside the project, where there is one."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the public data sets are not on this machine")
    return SHARED_DATA


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A sandbox shared by all tests; tests that change or break a sandbox make their own."""
    with Sandbox(workers=2) as shared:
        yield shared


class OpenSandboxes:
    """Stands for the class `Sandbox` where commands run in this process: those that are alike share one, which stays open."""

    def __init__(self, sandbox: Sandbox, stack: ExitStack) -> None:
        self._stack = stack
        self._made = {(Limits(), ("numpy",)): sandbox}

    def __call__(
        self,
        workers: int = 1,
        limits: Limits | None = None,
        *,
        level: str | None = None,
        packages: Sequence[str] = ("numpy",),
    ) -> AbstractContextManager[Sandbox]:
        if level is not None:
            return Sandbox(workers, limits, level=level, packages=packages)
        alike = (limits or Limits(), tuple(packages))
        if alike not in self._made:
            self._made[alike] = self._stack.enter_context(Sandbox(2, alike[0], packages=alike[1]))
        return nullcontext(self._made[alike])


@pytest.fixture(scope="session")
def open_sandboxes(sandbox: Sandbox) -> Iterator[OpenSandboxes]:
    with ExitStack() as stack:
        yield OpenSandboxes(sandbox, stack)


@pytest.fixture
def sandboxes_stay_open(open_sandboxes: OpenSandboxes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare the commands of a test what it takes to start a sandbox."""
    for module in ("cli.cross_play", "cli.play", "cli.players", "cli.problems", "training.run", "baselines.bench.worker"):  # fmt: skip
        monkeypatch.setattr(f"codea1_env.{module}.Sandbox", open_sandboxes)
