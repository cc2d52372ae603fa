"""What `import codea1_env` does besides naming what there is.

It makes the game known to the registries of PettingZoo and Gymnasium. While the command `codea1` is loading, Ctrl-C ends it at once, with the
exit code that shells have for it: Python would show where it was in the imports, which helps nobody. Whoever imports the
package gets nothing of this.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

ENV_ID = "codea1_env/code_a1_v1"
ONE_SIDE = {"codea1_env/OneSide-v1": "OneSide", "codea1_env/OneSidePool-v1": "Pool"}
"""Ids of Gymnasium, and what the names of their classes begin with."""
SUITE = "codea1_env/Suite-v1"
"""Id of Gymnasium for one side of the benchmark."""
_INTERRUPTED = 130
_SPINS = "1000"
"""Turns that a waiting thread of GNU's OpenMP, which torch brings, spins before it sleeps. Its own number is 300 times as many."""


def leave_on_interrupt() -> None:
    """Leave quietly on Ctrl-C from now on, if this process is the command."""
    words = sys.orig_argv[1:3]  # sys.argv has only "-m" by now
    command = words == ["-m", "codea1_env.cli"] or Path(*words[:1]).name == "codea1"
    # A shell that puts the command into the background has it ignore Ctrl-C: that stays.
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if command and is_default and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _leave)


def interrupt_is_an_exception() -> None:
    """Let Ctrl-C be an exception again: what runs now has something to tidy up."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def spin_briefly() -> None:
    """Let threads of torch wait without turning for long, unless the user has decided that; before torch is loaded.

    A thread that spins at each barrier takes the time of the one that it waits for, if something else runs, too.
    """
    if not {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY"} & set(os.environ):
        os.environ["GOMP_SPINCOUNT"] = _SPINS


def register_environments() -> None:
    """Register the game under `ENV_ID`, for ``pettingzoo.make("aec", ...)`` and ``("parallel", ...)``, and one side, once.

    Example:
        >>> import pettingzoo
        >>> register_environments()
        >>> pettingzoo.spec("parallel", ENV_ID).entry_point
        'codea1_env.code_a1_v1:parallel_env'
    """
    import gymnasium
    import pettingzoo  # type: ignore[import-untyped]  # it takes long

    # PettingZoo files ids under a normalised form ("-v1"); EnvSpec tells which.
    name = pettingzoo.EnvSpec(ENV_ID).id
    for kind, registry, function in (
        ("aec", pettingzoo.aec_registry, "env"),
        ("parallel", pettingzoo.parallel_registry, "parallel_env"),
    ):
        if name not in registry:
            pettingzoo.register(kind, ENV_ID, entry_point=f"codea1_env.code_a1_v1:{function}")
    for name, kind in ONE_SIDE.items():
        if name not in gymnasium.registry:
            home = f"codea1_env.integrations.one_side:{kind}"
            gymnasium.register(
                name, entry_point=f"{home}Env", vector_entry_point=f"{home}VectorEnv"
            )
    if SUITE not in gymnasium.registry:
        home = "codea1_env.suite.environments:one_side"
        gymnasium.register(SUITE, entry_point=home, vector_entry_point=home)


def _leave(*_: object) -> None:
    os._exit(_INTERRUPTED)
