"""The process that parses hostile text with our own functions, so that a parser crash is not ours.

One request frame in, one reply frame out: (file, function, arguments) -> ("ok", value) or
("raised", message). The file is one of this package's own. The process has no site-packages: the file may
import only the standard library, and files of this package that do the same.
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

from .. import codec
from ..codec import frames
from ..confine.privileges import gain_nothing, hide, limit_child, limit_job, limit_resources
from ..errors import message_of

_MEMORY = 2 << 30
_CPU_SECONDS = 1 << 20  # the supervisor's clock ends a request that takes too long
_SERVED_BETWEEN_COLLECTIONS = 50
_PACKAGE = "codea1_env"
_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


def _load(file: str, function: str) -> Callable[..., Any]:
    path = os.path.relpath(file, _ROOT).removesuffix(".py")
    if path.startswith(os.pardir):
        module = _alone(file, os.path.basename(path))
    else:
        names = (_PACKAGE, *path.split(os.sep))
        _offer_packages(names[:-1])
        module = importlib.import_module(".".join(names))
    found: Callable[..., Any] = getattr(module, function)
    return found


def _alone(file: str, name: str) -> types.ModuleType:
    _offer_packages((_PACKAGE, "sandbox"))
    spec = importlib.util.spec_from_file_location(f"analysis_{name}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _offer_packages(names: tuple[str, ...]) -> None:
    """Let files of this package import each other by their names, without running what its packages run.

    `codea1_env/__init__.py` imports the whole environment, for which there is nothing here.
    """
    for count in range(1, len(names) + 1):
        name = ".".join(names[:count])
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__ = [os.path.join(_ROOT, *names[1:count])]
            sys.modules[name] = package


def main(arguments: list[str]) -> None:
    """Serve requests on the two pipes whose numbers are given until one is closed."""
    receive, send = (int(argument) for argument in arguments)
    limit_job(_MEMORY, _CPU_SECONDS)
    limit_resources()
    limit_child(counted_apart=False)
    gain_nothing()
    hide()
    # Syntax trees are many objects and no cycles: looking for cycles in them takes a tenth of the time.
    gc.disable()
    served = 0
    functions: dict[tuple[str, str], Callable[..., Any]] = {}
    requests = frames.FrameReader(receive)
    while True:
        try:
            request = requests.frame()
        except frames.ChannelClosedError:
            return
        try:
            file, function, values = codec.decode(request)
            if (file, function) not in functions:
                functions[file, function] = _load(file, function)
                gc.freeze()  # it stays: no collection need look through it
            reply = codec.encode(("ok", functions[file, function](*values)), limit=frames.MAX_FRAME)
        except Exception as error:  # whatever the text provokes is the answer
            reply = codec.encode(("raised", f"{type(error).__name__}: {message_of(error)}"))
        frames.write_frame(send, reply)
        served += 1
        if served % _SERVED_BETWEEN_COLLECTIONS == 0:
            gc.collect()
