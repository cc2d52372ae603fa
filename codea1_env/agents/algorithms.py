"""The algorithms by name, for tabular players and for language models alike.

An algorithm is a class, made from those settings of a run that its `__init__` names. What it can teach follows from what
it has. Tabular players need

- `update(policy, samples) -> metrics`, which changes the tables (`codea1_env.agents.policy`).

Language models are trained by TRL's GRPOTrainer, as far as the class does not say otherwise with

- `trainer`: fields of `trl.GRPOConfig`;
- `advantages(rewards) -> advantages`: arrays of shape (groups, size of a group), NaN for an answer without reward;
- `loss(log_probs, old_log_probs, advantages, mask) -> loss`: tensors of shape (answers, tokens), but for the advantages,
  which have one column, and the loss, which is one number.

Either may have `extra_rounds`, the rounds in which groups that teach nothing are replaced (dynamic sampling).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

from codea1_env.agents.grpo import DAPO, GRPO, DrGRPO
from codea1_env.agents.rloo import RLOO, ReinforcePlusPlus
from codea1_env.support.plugins import find_class

Player = Literal["tabular", "llm"]
"""What learns."""

_FORMS: Mapping[Player, tuple[str, ...]] = {
    "tabular": ("update",),
    "llm": ("trainer", "advantages", "loss"),
}
_WORDS = {"tabular": "tabular players", "llm": "language models"}


class GSPO:
    """Group sequence policy optimisation (Zheng et al. 2025, arXiv 2507.18071).

    One probability ratio for an answer, the geometric mean of its tokens', and so much narrower bounds. As long as each
    batch is learned from in one optimizer step all ratios are 1, and it is GRPO with the mean over answers.
    """

    trainer: Mapping[str, Any] = {
        "importance_sampling_level": "sequence",
        "loss_type": "grpo",
        "epsilon": 3e-4,
        "epsilon_high": 4e-4,
    }


class CISPO:
    """Clipped importance sampling (MiniMax-M1, arXiv 2506.13585; the bound of ScaleRL, 2510.13786).

    Ratios are weights, clipped from above; no token's gradient is cut off, however far its probability has moved.
    """

    trainer: Mapping[str, Any] = {"loss_type": "cispo", "epsilon_high": 5.0}


ALGORITHMS: dict[str, Callable[..., Any]] = {
    "grpo": GRPO,
    "dapo": DAPO,
    "dr_grpo": DrGRPO,
    "gspo": GSPO,
    "cispo": CISPO,
    "rloo": RLOO,
    "reinforce++": ReinforcePlusPlus,
}
"""Name -> class. Add a class here, and `TrainConfig(algorithm=...)` finds it."""


def teaches(kind: Any, player: Player) -> bool:
    """Whether an algorithm has what players of a kind need.

    Example:
        >>> [name for name, kind in ALGORITHMS.items() if not teaches(kind, "tabular")]
        ['gspo', 'cispo']
    """
    return any(hasattr(kind, name) for name in _FORMS[player])


def make_algorithm(name: str, settings: Mapping[str, Any], player: Player = "tabular") -> Any:
    """Make an algorithm from those settings that it has a parameter for.

    Args:
        name: One of `ALGORITHMS`, or `module:Class` or `FILE.py:Class` for one of your own.
        settings: Name -> value. The algorithm's own `trainer` goes before them.
        player: What is to learn.

    Raises:
        ValueError: There is no algorithm of this name, it is not one for such players, or it needs what is no setting.

    Example:
        >>> make_algorithm("rloo", {"learning_rate": 0.5, "epsilon": 0.2})
        RLOO(learning_rate=0.5)
    """
    if name not in ALGORITHMS and ":" not in name:
        raise ValueError(
            f"Expect the algorithm to be one of {', '.join(ALGORITHMS)}, module:Class or FILE.py:Class, actually: {name!r}"
        )
    kind: Callable[..., Any] = ALGORITHMS[name] if name in ALGORITHMS else find_class(name)
    if not teaches(kind, player):
        able = ", ".join(each for each, one in ALGORITHMS.items() if teaches(one, player))
        raise ValueError(
            f"Expect an algorithm for {_WORDS[player]}: {able}, or a class with {' or '.join(_FORMS[player])}; actually: "
            f"{name!r}, which has none. (A class with act and learn is a player, no algorithm.)"
        )
    known = inspect.signature(kind).parameters
    needed = [
        each.name
        for each in known.values()
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    unknown = [each for each in needed if each not in settings]
    if unknown:
        raise ValueError(
            f"Expect {name} to be made from settings of the run ({', '.join(sorted(settings))}), actually it needs: "
            f"{', '.join(unknown)}. Give these a default."
        )
    given = {**settings, **getattr(kind, "trainer", {})}
    return kind(**{key: given[key] for key in given if key in known})
