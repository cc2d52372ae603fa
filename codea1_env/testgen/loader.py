"""Imports a module and puts another definition into it. Its text stands in every program and runs in the sandbox."""

from __future__ import annotations
import __future__

import contextlib
import importlib
import sys
from typing import Any


def load(module: str, path: str, text: str, name: str) -> dict[str, Any]:
    """Return the names of a module, with one defined anew wherever its package has it.

    Args:
        module: Its name.
        path: Its file.
        text: What defines the name anew; "" to leave it as it is.
        name: The function or class.
    """
    space = vars(importlib.import_module(module))
    if text:
        nothing = object()
        before = space.get(name, nothing)
        derived: list[Any] = type.__subclasses__(before) if isinstance(before, type) else []
        # As the file does: what it has from __future__ decides whether annotations are evaluated.
        features = [each for each in space.values() if isinstance(each, __future__._Feature)]
        flags = sum({each.compiler_flag for each in features})
        exec(compile(text, path, "exec", flags, dont_inherit=True), space)
        top = module.partition(".")[0]
        for key, other in list(sys.modules.items()):
            if key.partition(".")[0] == top:
                names = vars(other)
                for each in [each for each, value in names.items() if value is before]:
                    names[each] = space[name]
        for child in derived:
            with contextlib.suppress(TypeError):  # a fault has given it other slots
                child.__bases__ = tuple(
                    space[name] if base is before else base for base in child.__bases__
                )
    return {
        key: value
        for key, value in space.items()
        if not (key.startswith("__") and key.endswith("__")) and not key.startswith("_codea1")
    }
