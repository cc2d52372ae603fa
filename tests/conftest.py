"""Fixtures for all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from codea1_env.sandbox import Sandbox

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"

SLOW = (
    "agents/llm", "baselines", "evaluation/test_code_generation.py",
    "evaluation/test_public_sets.py", "evaluation/test_sandbox_speed.py", "evaluation/test_suite_judging.py",
    "integrations/test_openenv.py", "integrations/test_verifiers.py",
    "report/test_report_in_chromium.py", "sandbox/attacks", "sandbox/test_budgets.py", "sandbox/test_busy_machine.py", "sandbox/test_forked_owner.py",
    "reading/test_golden.py", "sandbox/test_assertions.py", "sandbox/test_as_a_part.py", "sandbox/test_codec.py", "sandbox/test_judging.py",
    "sandbox/test_literals.py", "sandbox/test_packages.py", "sandbox/test_pool.py", "sandbox/test_result_endings.py",
    "sandbox/test_killed.py", "sandbox/test_killed_at_start.py",
    "sandbox/test_levels.py", "sandbox/test_limits.py", "sandbox/test_ordinary_user.py",
    "sandbox/test_outside_causes.py", "sandbox/test_repeating.py", "sandbox/test_test_modules.py",
    "test_cli_bench.py", "test_cli_eval.py", "test_cli_eval_agents.py", "test_cli_eval_select.py",
    "test_cli_eval_sets.py", "test_cli_eval_tests.py", "test_cli_train.py",
    "test_baselines.py", "test_contracts.py", "test_problems.py", "test_readme.py", "test_starter.py",
    "test_judging_answers.py", "test_mutant_kills.py", "test_packaging.py", "test_referee_hostile.py",
    "test_tests_for_a_function.py", "test_validate.py", "training",
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
