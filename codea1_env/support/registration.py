"""Makes the game known to PettingZoo's registry."""

from __future__ import annotations

from pettingzoo import (  # type: ignore[import-untyped]
    EnvSpec,
    aec_registry,
    parallel_registry,
    register,
)

ENV_ID = "codea1_env/code_a1_v0"


def register_environments() -> None:
    """Register the game under `ENV_ID`, for ``pettingzoo.make("aec", ...)`` and ``("parallel", ...)``.

    The entry points are strings, so that nothing of the game is imported before an environment is made.
    A second call changes nothing.

    Example:
        >>> import pettingzoo
        >>> register_environments()
        >>> pettingzoo.spec("parallel", ENV_ID).entry_point
        'codea1_env.code_a1_v0:parallel_env'
    """
    # PettingZoo files ids under a normalised form ("-v0"); EnvSpec tells which.
    if EnvSpec(ENV_ID).id not in aec_registry:
        register("aec", ENV_ID, entry_point="codea1_env.code_a1_v0:env")
    if EnvSpec(ENV_ID).id not in parallel_registry:
        register("parallel", ENV_ID, entry_point="codea1_env.code_a1_v0:parallel_env")
