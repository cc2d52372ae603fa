"""The algorithms by name, one file each, for tabular players and for language models alike.

An algorithm is a class. Its hyperparameters are its own: their defaults, or what `--algorithm-args` says. Of the run it gets
`learning_rate`, and what its `of_run` names. It may have

- `advantages(rewards) -> advantages`: arrays of shape (groups, size of a group), NaN for an answer without reward;
- for tables, `update(policy, samples) -> metrics`, which changes them; without it they take a step of the policy gradient
  with these advantages (`codea1_env.agents.policy.policy_gradient`);
- for language models, which TRL's GRPOTrainer trains, `trainer`: fields of `trl.GRPOConfig`; and
  `loss(log_probs, old_log_probs, advantages, mask) -> loss`: tensors of shape (answers, tokens), but for the advantages,
  which have one column, and the loss, which is one number;
- `extra_rounds`: rounds in which groups that teach nothing are replaced (dynamic sampling);
- `state_dict` and `load_state_dict`: plain data, arrays or tensors, which come back as lists.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

from codea1_env.agents.algorithms.cispo import CISPO
from codea1_env.agents.algorithms.dapo import DAPO
from codea1_env.agents.algorithms.dr_grpo import DrGRPO
from codea1_env.agents.algorithms.grpo import GRPO
from codea1_env.agents.algorithms.gspo import GSPO
from codea1_env.agents.algorithms.ppo import PPO
from codea1_env.agents.algorithms.reinforce import Reinforce
from codea1_env.agents.algorithms.reinforce_plus_plus import ReinforcePlusPlus
from codea1_env.agents.algorithms.rloo import RLOO
from codea1_env.agents.algorithms.rrtf import RRTF
from codea1_env.agents.state import load_saved_state, saved_state
from codea1_env.support.plugins import explained, find_class, required_parameters

__all__ = [
    "ALGORITHMS", "CISPO", "DAPO", "GRPO", "GSPO", "PPO", "RLOO", "RRTF", "DrGRPO", "Player", "Reinforce",
    "ReinforcePlusPlus", "make_algorithm", "no_algorithm", "teaches",
]  # fmt: skip

ALGORITHMS: dict[str, Callable[..., Any]] = {
    "grpo": GRPO,
    "dapo": DAPO,
    "dr_grpo": DrGRPO,
    "gspo": GSPO,
    "cispo": CISPO,
    "rloo": RLOO,
    "reinforce++": ReinforcePlusPlus,
    "reinforce": Reinforce,
    "ppo": PPO,
    "rrtf": RRTF,
}
"""Name -> class. Add a class here, and `TrainConfig(algorithm=...)` finds it."""

Player = Literal["tabular", "llm"]
"""What learns."""

_FORMS: Mapping[Player, tuple[str, ...]] = {
    "tabular": ("update", "advantages"),
    "llm": ("trainer", "advantages", "loss"),
}
_WORDS = {"tabular": "tabular players", "llm": "language models"}


def teaches(kind: Any, player: Player) -> bool:
    """Whether an algorithm has what players of a kind need.

    Example:
        >>> [name for name, kind in ALGORITHMS.items() if not teaches(kind, "tabular")]
        ['gspo', 'cispo']
    """
    return any(hasattr(kind, name) for name in _FORMS[player])


def make_algorithm(
    name: str,
    settings: Mapping[str, Any],
    player: Player = "tabular",
    own: Mapping[str, Any] | None = None,
) -> Any:
    """Make an algorithm.

    Args:
        name: One of `ALGORITHMS`, or `module:Class` or `FILE.py:Class` for one of your own.
        settings: Settings of the run, of which it gets `learning_rate` and those that its `of_run` names.
        player: Kind of player that is to learn.
        own: Its own hyperparameters, which go before its `trainer`, and that before the settings.

    Raises:
        ValueError: It cannot be had for such players, or with such hyperparameters.

    Example:
        >>> make_algorithm("rloo", {"learning_rate": 0.5, "epsilon": 0.2})
        RLOO(learning_rate=0.5)
        >>> make_algorithm("reinforce", {"learning_rate": 0.5}, own={"entropy": 0.02})
        Reinforce(learning_rate=0.5, entropy=0.02)
    """
    if name not in ALGORITHMS and ":" not in name:
        raise ValueError(no_algorithm("the algorithm", name))
    kind = ALGORITHMS[name] if name in ALGORITHMS else find_class(name)
    if not teaches(kind, player):
        able = ", ".join(each for each, one in ALGORITHMS.items() if teaches(one, player))
        raise ValueError(
            f"Expect an algorithm for {_WORDS[player]}: {able}, or a class with {' or '.join(_FORMS[player])}; actually: "
            f"{name!r}, which has none. (A class with act and learn is a player, no algorithm.)"
        )
    arguments = _arguments(kind, name, settings, own or {})
    with explained(kind if isinstance(kind, type) else type(kind), "__init__", ValueError):
        made = kind(**arguments)
    rounds = getattr(made, "extra_rounds", 0)
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
        raise ValueError(
            f"Expect extra_rounds of {name} to be a number of rounds, 0 or more, actually: {rounds!r:.200}"
        )
    # What cannot be saved or loaded is an error now, not at a checkpoint.
    load_saved_state(made, saved_state(made))
    return made


def _arguments(
    kind: Callable[..., Any], name: str, settings: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """Choose the arguments that a class takes, by the names of its parameters."""
    known = inspect.signature(kind).parameters
    open_ended = any(each.kind is each.VAR_KEYWORD for each in known.values())
    if strange := [] if open_ended else [key for key in own if key not in known]:
        near = difflib.get_close_matches(strange[0], known, n=1)
        raise ValueError(
            f"Expect hyperparameters of {name} ({', '.join(known) or 'it has none'}), actually: {strange[0]!r:.60}"
            + (f". Did you mean {near[0]}?" if near else "")
        )
    of_run = ("learning_rate", *getattr(kind, "of_run", ()))
    given = {key: settings[key] for key in of_run if key in settings}
    given |= {**getattr(kind, "trainer", {}), **own}
    if missing := [each for each in required_parameters(kind) if each not in given]:
        raise ValueError(
            f"Expect {name} to be made from learning_rate and its own hyperparameters, actually it needs: "
            f"{', '.join(missing)}. Give these a default, or say them with --algorithm-args"
        )
    return {key: given[key] for key in sorted(given) if key in known or key in own}


def no_algorithm(place: str, name: str) -> str:
    """Say that there is no algorithm of this name, and which may be meant."""
    near = difflib.get_close_matches(name.replace("-", "_"), ALGORITHMS, n=1)
    hint = f". Did you mean {near[0]}?" if near else ""
    known = ", ".join(ALGORITHMS)
    return f"Expect {place} to be one of {known}, module:Class or FILE.py:Class, actually: {name!r}{hint}"
