"""What an engine is asked for, what it returns and how far it has come: the interface that all engines share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class Message(TypedDict):
    """One turn of a chat."""

    role: str
    """"system", "user" or "assistant"."""
    content: str


Messages = Sequence[Message]
"""A chat that ends with the user's turn: what a model answers to."""


@dataclass(frozen=True)
class SamplingConfig:
    """How answers are drawn. Raises a ValueError if a value is out of its range."""

    temperature: float = 1.0
    """Divides the logits. 0 always takes the likeliest token; else from 0.01 to 100."""
    top_p: float = 1.0
    """Draw from the likeliest tokens that together have this probability."""
    top_k: int = 0
    """Draw from so many likeliest tokens; 0 for all."""
    max_prompt_length: int = 1024
    """Tokens of a prompt. Longer ones are shortened by the agent, program first."""
    max_completion_length: int = 256
    """Tokens of an answer. Longer ones are cut off and marked."""
    stop: tuple[str, ...] = ()
    """Texts that end an answer. They are part of it: the model is trained on what it wrote."""

    def __post_init__(self) -> None:
        heat = self.temperature == 0 or 0.01 <= self.temperature <= 100
        checks = (
            # Below, logits overflow; vLLM takes 0.01 for anything smaller.
            ("temperature", heat, "0, or from 0.01 to 100"),
            ("top_p", 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("top_k", self.top_k >= 0, "at least 0"),
            ("max_prompt_length", self.max_prompt_length >= 1, "at least 1"),
            ("max_completion_length", self.max_completion_length >= 1, "at least 1"),
            ("stop", all(self.stop), "texts that are not empty"),
        )
        for name, right, wanted in checks:
            if not right:
                raise ValueError(f"Expect {name} to be {wanted}, actually: {getattr(self, name)!r}")

    def check_for_learning(self) -> None:
        """Raise a ValueError if rewards of answers that are drawn like this teach nothing.

        The loss has the probabilities of all tokens. To draw from some of them is another policy.
        """
        if self.temperature <= 0:
            raise ValueError(
                "Expect a temperature above 0: a player that always gives the same answer has nothing to "
                f"learn from, actually: {self.temperature!r}"
            )
        if self.top_p < 1 or self.top_k > 0:
            raise ValueError(
                "Expect top_p=1 and top_k=0 of a player that learns from rewards, since its loss is that of drawing from "
                f"all tokens, actually: top_p={self.top_p!r}, top_k={self.top_k!r}. Leave them out, or freeze the player"
            )


@dataclass(frozen=True)
class Completion:
    """One answer, as it was sampled."""

    prompt_ids: tuple[int, ...]
    """Tokens of the prompt, without padding. Empty where a server does not tell them."""
    completion_ids: tuple[int, ...]
    """Tokens that were sampled, the end-of-turn token included. Empty where a server does not tell them."""
    logprobs: tuple[float, ...] | None
    """Log-probability of each token as it was drawn (after temperature, top_k and top_p); None where an engine does not say."""
    text: str
    """The answer without special tokens."""
    truncated: bool
    """Whether it was cut off at `max_completion_length`."""
    prompt_tokens: int
    completion_tokens: int


class Backend(Protocol):
    """An engine that generates. One engine serves both roles, each with its own adapter."""

    @property
    def context_length(self) -> int:
        """Tokens that prompt and answer together may have."""
        ...

    def count_tokens(self, messages: Messages) -> int:
        """Length in tokens of a chat, as the engine's prompt. A server's may be an estimate from above."""
        ...

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None = None,
        first: int = 0,
    ) -> list[Completion]:
        """Answer every prompt once, in order.

        Args:
            prompts: Chats; equal ones may stand side by side, as many as answers are wanted.
            sampling: How answers are drawn.
            seed: Equal seeds give equal answers (engines on a GPU: nearly always).
            adapter: The adapter to use; None for the model without one.
            first: Place of the first prompt where these are a part of more.

        Raises:
            BackendError: The engine cannot answer.
        """
        ...

    def update(self, folder: Path, adapter: str | None = None) -> None:
        """Use the weights in this folder from now on: of an adapter, new or known, or for None of the model itself.

        The folder is as `save_pretrained` writes it. Raises a BackendError if the engine cannot take them.
        """
        ...

    def close(self) -> None:
        """Free processes and memory. The engine cannot be used afterwards."""
        ...


class BackendError(RuntimeError):
    """An engine cannot be started, or fails to do what it is asked. The message says what to do."""


def encode_chat(tokenizer: PreTrainedTokenizerBase, messages: Messages) -> tuple[int, ...]:
    """Tokens of a chat up to where the model's turn begins."""
    text = tokenizer.apply_chat_template(
        [dict(message) for message in messages], tokenize=False, add_generation_prompt=True
    )
    text = text.encode(
        "utf-8", "replace"
    ).decode()  # models write lone surrogates, which no tokenizer takes
    # The template writes the special tokens itself.
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def encode_all(
    tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Messages]
) -> list[tuple[int, ...]]:
    """Tokens of each prompt; a prompt that stands several times is encoded once."""
    keys = [tuple((each["role"], each["content"]) for each in messages) for messages in prompts]
    chats = dict(zip(keys, prompts, strict=True))
    encoded = {key: encode_chat(tokenizer, messages) for key, messages in chats.items()}
    return [encoded[key] for key in keys]


Listener = Callable[[float], None]
"""Is told the share of the present piece of work that is done, from 0 to 1."""
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Be told how far the work inside has come.

    Example:
        >>> with listening(print):
        ...     report(0.5)
        0.5
        >>> report(1.0)  # nobody listens
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(share: float) -> None:
    """Tell the listener, if there is one, what share is done."""
    listener = _listener.get()
    if listener is not None:
        listener(share)


_PATIENCE = timedelta(days=7)
"""The others wait for as long as one answers its share."""


def world_size() -> int:
    """Return the number of processes."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def rank() -> int:
    """Return the number of this process; the first is 0."""
    return int(os.environ.get("RANK", "0"))


def share_of(items: int, number: int, of: int) -> range:
    """Places of one of the nearly equal shares of so many items."""
    return range(items * number // of, items * (number + 1) // of)


class SharedBackend:
    """An engine of which every process has one, and answers its share: the answers are those of one process.

    With `alone` the first process answers everything: its engine has several machines itself.
    """

    def __init__(self, backend: Backend, *, alone: bool = False) -> None:
        self._own, self._alone = backend, alone
        self.context_length = backend.context_length
        self.count_tokens = backend.count_tokens
        self.update = backend.update
        self.close = backend.close

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None = None,
        first: int = 0,
    ) -> list[Completion]:
        """Answer every prompt, together with the other processes, which must call this, too."""
        mine = share_of(len(prompts), rank(), world_size())
        if self._alone:
            mine = range(len(prompts) if rank() == 0 else 0)
        found: list[Completion] | BackendError
        try:
            chats = [prompts[place] for place in mine]
            found = self._own.generate(chats, sampling, seed, adapter, first + mine.start)
        except BackendError as error:
            found = error  # the others wait
        gathered: list[list[Completion] | BackendError] = [[] for _ in range(world_size())]
        group, distributed = _group()
        distributed.all_gather_object(gathered, found, group=group)
        answers: list[Completion] = []
        for each in gathered:
            if isinstance(each, BackendError):
                raise each
            answers += each
        return answers


def shared_backend(backend: Backend) -> Backend:
    """Let each of several processes answer its share."""
    shared = world_size() == 1 or isinstance(backend, SharedBackend)
    return backend if shared else SharedBackend(backend)


@lru_cache(maxsize=1)
def _group() -> tuple[Any, Any]:
    """Group for answers: on processors, and patient."""
    from torch import distributed

    return distributed.new_group(backend="gloo", timeout=_PATIENCE), distributed
