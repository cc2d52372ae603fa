"""Loading models without the libraries' own progress bars and advice."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from codea1_env.support.extras import require


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
