"""Optional dependencies: imported where they are used, and named where they are missing."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


class MissingExtraError(ImportError):
    """A package of an extra is not installed."""


def require(module: str, extra: str = "llm") -> ModuleType:
    """Import a module of an extra.

    Args:
        module: Its name.
        extra: The extra of this project that installs it.

    Raises:
        MissingExtraError: It is not installed. The message names the extra.

    Example:
        >>> require("no_such_module")
        Traceback (most recent call last):
            ...
        codea1_env.agents.llm.extras.MissingExtraError: Expect the package no_such_module to be installed, ...
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != package:
            raise  # it is there, but something that it needs is not
        raise MissingExtraError(
            f"Expect the package {package} to be installed, actually: it is not. "
            f"Run: pip install 'codea1-env[{extra}]'"
        ) from error


@contextmanager
def quiet_loading() -> Iterator[None]:
    """No progress bars and no advice of transformers and the hub: what happens is said by our own lines."""
    models: Any = require("transformers").utils.logging
    hub: Any = require("huggingface_hub.utils")
    bars = models.is_progress_bar_enabled()
    levels = models.get_verbosity(), hub.logging.get_verbosity()
    bars_of_hub = not hub.are_progress_bars_disabled()
    models.disable_progress_bar()
    models.set_verbosity_error()
    hub.logging.set_verbosity_error()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hub.disable_progress_bars()
        try:
            yield
        finally:
            models.set_verbosity(levels[0])
            hub.logging.set_verbosity(levels[1])
            if bars_of_hub:
                hub.enable_progress_bars()
            if bars:
                models.enable_progress_bar()
