"""The process that parses hostile text with our own functions, so that a parser crash is not ours.

One request frame in, one reply frame out: (file, function, arguments) -> ("ok", value) or
("raised", message). The file is one of this package's own; it is loaded by path, as the process has no
site-packages, and may import only the standard library and what is in this folder. A file of the package's room
`reading` may also import its neighbours there.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from . import codec, frames
from .errors import message_of
from .privileges import gain_nothing, hide, limit_child, limit_job, limit_resources

_MEMORY = 2 << 30
_CPU_SECONDS = 1 << 20  # the supervisor's clock ends a request that takes too long
_SERVED_BETWEEN_COLLECTIONS = 50
_PACKAGE = "codea1_env"
_ROOMS = ("reading",)
"""Packages beside the sandbox whose files import each other."""


def _load(file: str, function: str) -> Callable[..., Any]:
    name = os.path.basename(file).removesuffix(".py")
    folder = os.path.dirname(os.path.abspath(__file__))
    root = os.path.dirname(os.path.dirname(folder))
    room = os.path.relpath(os.path.dirname(file), root)
    _offer_packages(root)
    if os.path.dirname(file) == folder:  # one of our neighbours, with relative imports
        module: Any = importlib.import_module(f".{name}", __package__)
    elif room in _ROOMS:
        module = importlib.import_module(f"{_PACKAGE}.{room}.{name}")
    else:
        spec = importlib.util.spec_from_file_location(f"analysis_{name}", file)
        if spec is None or spec.loader is None:
            raise ImportError(f"cannot load {file}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
    found: Callable[..., Any] = getattr(module, function)
    return found


def _offer_packages(root: str) -> None:
    """Lets files of this package import each other by their names, without running what its packages run.

    `codea1_env/__init__.py` imports the whole environment, for which there is nothing here.
    """
    for name in (_PACKAGE, f"{_PACKAGE}.sandbox"):
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [os.path.join(root, *name.split(".")[1:])]
            sys.modules[name] = package


def main(arguments: list[str]) -> None:
    """Serves requests on the two pipes whose numbers are given until one is closed."""
    receive, send = (int(argument) for argument in arguments)
    limit_job(_MEMORY, _CPU_SECONDS)
    limit_resources()
    limit_child(own_user=False)
    gain_nothing()
    hide()
    # Syntax trees are many objects and no cycles: looking for cycles in them takes a tenth of the time.
    gc.disable()
    served = 0
    functions: dict[tuple[str, str], Callable[..., Any]] = {}
    requests = frames.Reader(receive)
    while True:
        try:
            request = requests.frame()
        except frames.ChannelClosedError:
            return
        try:
            file, function, values = codec.decode(request)
            if (file, function) not in functions:
                functions[file, function] = _load(file, function)
            reply = codec.encode(("ok", functions[file, function](*values)), limit=frames.MAX_FRAME)
        except Exception as error:  # whatever the text provokes is the answer
            reply = codec.encode(("raised", f"{type(error).__name__}: {message_of(error)}"))
        frames.write_frame(send, reply)
        served += 1
        if served % _SERVED_BETWEEN_COLLECTIONS == 0:
            gc.collect()
