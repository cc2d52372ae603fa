"""A chat as tokens, in the form that its model was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from codea1_env.agents.llm.completions import Messages

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def encode_chat(tokenizer: PreTrainedTokenizerBase, messages: Messages) -> tuple[int, ...]:
    """Tokens of a chat up to where the model's turn begins."""
    text = tokenizer.apply_chat_template(
        [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
    )
    # The template writes the special tokens itself.
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_all(
    tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Messages]
) -> list[tuple[int, ...]]:
    """Tokens of each prompt; a prompt that stands several times is encoded once."""
    known: dict[tuple[tuple[str, str], ...], tuple[int, ...]] = {}
    encoded = []
    for messages in prompts:
        key = tuple((message["role"], message["content"]) for message in messages)
        if key not in known:
            known[key] = encode_chat(tokenizer, messages)
        encoded.append(known[key])
    return encoded
