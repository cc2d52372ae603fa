"""What pytest collects, and how its tests share the processor (`make test` runs two at a time)."""

from __future__ import annotations

import builtins
import compileall
import gc
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

# The links point into codea1_env, where the same modules are collected under their real names. This file
# itself has no examples to collect, and tests/conftest.py has its name.
collect_ignore = ["agents", "baselines", "sandbox", "conftest.py"]
# Classes of these libraries are the bases of what these modules define.
for _library, _modules in {
    "verifiers": ["code_a1.py", "codea1_env/integrations/verifiers_env.py"],
    "inspect_ai": ["codea1_env/integrations/inspect_tasks.py"],
    "openenv": ["codea1_env/integrations/openenv_game.py"],
}.items():
    collect_ignore += _modules if find_spec(_library) is None else []

# Two files of a group at once may need more memory than there is, or two clusters.
_GROUPS = {
    "language models": (
        "tests/agents/llm/",
        "tests/training/test_language_models.py",
        "tests/training/test_tracked_language_models.py",
        "tests/training/test_training_examples.py",
    ),
    "a cluster": ("tests/training/test_ray",),
}


def pytest_configure(config: pytest.Config) -> None:
    """Compile the package once: hundreds of commands and sandboxes are started, none of which keeps what it compiles."""
    if not hasattr(config, "workerinput"):
        compileall.compile_dir(Path(__file__).parent / "codea1_env", quiet=2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, after the language models: at the end no process waits for another one's last file."""
    long = ("tests/training/test_ray", "tests/sandbox/", "tests/training/", "tests/test_cli")
    items.sort(key=lambda item: not item.nodeid.startswith(("tests/agents/llm/", *long)))


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what was imported: trainers of TRL call it each time, and it took seconds."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _forget_the_last_value() -> Iterator[None]:
    """Forget the last value of an example, which a docstring leaves in `builtins._`, where tyro stumbles over it."""
    yield
    vars(builtins).pop("_", None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Each file goes to one process, and all files of a group to the same one."""
    from xdist.scheduler import LoadFileScheduling  # pytest works without it

    class OneOfAGroupAtATime(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            groups = (name for name, files in _GROUPS.items() if file.startswith(files))
            return next(groups, file)

    return OneOfAGroupAtATime(config, log)
