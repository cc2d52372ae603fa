"""What pytest collects, and how its tests share the processor (`make test` runs two at a time)."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from importlib.util import find_spec

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

# Two of them at once may need more memory than there is.
_LANGUAGE_MODELS = (
    "tests/agents/llm/",
    "tests/cluster/",
    "tests/training/test_language_models.py",
    "tests/training/test_training_examples.py",
)


@pytest.fixture(autouse=True)
def _forget_the_last_value() -> Iterator[None]:
    """Forget the last value of an example, which a docstring leaves in `builtins._`, where tyro stumbles over it."""
    yield
    vars(builtins).pop("_", None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Each file goes to one process, and all files that load language models to the same one."""
    from xdist.scheduler import LoadFileScheduling  # pytest works without it

    class OneLanguageModelAtATime(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file: str = super()._split_scope(nodeid)
            return "language models" if file.startswith(_LANGUAGE_MODELS) else file

    return OneLanguageModelAtATime(config, log)
