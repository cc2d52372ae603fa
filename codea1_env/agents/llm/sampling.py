"""Draws answers from a transformers model, token by token.

`model.generate` draws from torch's global random generator, computes equal prompts once for each answer, and goes on
with rows that are finished. Its growing cache copies everything for each token. Here the noise comes from a seed,
equal prompts are computed once, finished rows leave the batch, and a token is written into its place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.completions import BackendError, SamplingConfig
from codea1_env.agents.llm.fast_on_cpu import common_beginning
from codea1_env.support.extras import require

if TYPE_CHECKING:
    from torch import Tensor


_SHRINK_AT = 0.75
"""Finished rows leave when so many of a batch are left: leaving copies the cache of the others."""


@dataclass
class Sampled:
    """One answer while it grows."""

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ended: bool = False
    """Whether the model or a stop text ended it."""


def draw_noise(rows: int, length: int, seed: int) -> Tensor:
    """Uniform numbers, shape [rows, length]. A row's depend on the seed and its place alone, not on the size of batches."""
    torch: Any = require("torch")
    noise: Tensor = torch.rand(rows, length, generator=torch.Generator().manual_seed(seed))
    return noise


def sample(
    model: Any,
    prompts: Sequence[Sequence[int]],
    sampling: SamplingConfig,
    noise: Tensor,
    *,
    end_ids: Collection[int],
    stopped: Callable[[list[int]], bool],
    tell: Callable[[float], None] = lambda _: None,
) -> list[Sampled]:
    """Draw one answer to each prompt, all in one batch.

    Args:
        model: A causal language model of transformers, in evaluation mode.
        prompts: Tokens of each prompt, none empty.
        sampling: How tokens are drawn.
        noise: What `draw_noise` returned for these prompts.
        end_ids: Tokens that end an answer.
        stopped: Whether an answer has come to a stop text.
        tell: Is told the share that is done.
    """
    torch: Any = require("torch")
    device = model.device
    answers = [Sampled() for _ in prompts]
    rows = list(range(len(prompts)))
    state = _prefill(torch, model, prompts, sampling.max_completion_length)
    noise = noise.to(device)
    for place in range(sampling.max_completion_length):
        logprobs = log_probabilities(state.logits, sampling)
        tokens = _draw(torch, logprobs, noise[rows, place])
        chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
        for row, token, logprob in zip(rows, tokens.tolist(), chosen.tolist(), strict=True):
            answer = answers[row]
            if not answer.ended:
                answer.ids.append(token)
                answer.logprobs.append(logprob)
                answer.ended = token in end_ids or stopped(answer.ids)
        alive = [i for i, row in enumerate(rows) if not answers[row].ended]
        if not alive or place + 1 == sampling.max_completion_length:
            break
        if len(alive) <= _SHRINK_AT * len(rows):
            rows = [rows[i] for i in alive]
            kept = torch.tensor(alive, device=device)
            state.select(kept)
            tokens = tokens[kept]
        # Most answers are much shorter than the longest may be: those that have ended count, too.
        ended = 1 - len(alive) / len(answers)
        tell(max(ended, (place + 1) / sampling.max_completion_length))
        state.step(torch, model, tokens)
    return answers


def log_probabilities(logits: Tensor, sampling: SamplingConfig) -> Tensor:
    """Logarithms of the distribution that tokens are drawn from: temperature, top_k and top_p, in this order as in vLLM.

    `logits` and the result have the shape [rows, vocabulary].
    """
    torch: Any = require("torch")
    scores = logits.float()
    if sampling.temperature == 0:
        likeliest = scores.argmax(-1, keepdim=True)
        return torch.full_like(scores, -torch.inf).scatter(-1, likeliest, 0.0)
    scores = scores / sampling.temperature
    if 0 < sampling.top_k < scores.shape[-1]:
        least = scores.topk(sampling.top_k).values[:, -1:]
        scores = scores.masked_fill(scores < least, -torch.inf)
    if sampling.top_p < 1:
        ordered, order = scores.softmax(-1).sort(descending=True)
        # A token stays if those before it do not reach top_p, so the likeliest always does.
        over = ordered.cumsum(-1) - ordered >= sampling.top_p
        scores = scores.masked_fill(over.scatter(-1, order, over), -torch.inf)
    return scores.log_softmax(-1)


def _draw(torch: Any, logprobs: Tensor, noise: Tensor) -> Tensor:
    """Return the token at which the cumulative distribution passes the noise."""
    cumulative = logprobs.exp().cumsum(-1)
    wanted = noise[:, None] * cumulative[:, -1:]  # the last sum is 1 but for rounding
    tokens: Tensor = torch.searchsorted(cumulative, wanted, right=True)[:, 0]
    return tokens.clamp(max=logprobs.shape[-1] - 1)


@dataclass
class _State:
    """What the model has computed for the rows that are still alive."""

    cache: Any
    logits: Tensor
    """Of the next token: [rows, vocabulary]."""
    mask: Tensor
    """Which places of the cache count: [rows, places]."""
    positions: Tensor
    """Of the next token: [rows]."""

    def select(self, kept: Tensor) -> None:
        """Keep these rows; a row may be taken several times."""
        self.cache.batch_select_indices(kept)
        self.logits, self.mask = self.logits[kept], self.mask[kept]
        self.positions = self.positions[kept]

    def step(self, torch: Any, model: Any, tokens: Tensor) -> None:
        """Append a token to each row."""
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(tokens), 1)], dim=-1)
        self.logits = model(
            input_ids=tokens[:, None],
            attention_mask=self.mask,
            position_ids=self.positions[:, None],
            past_key_values=self.cache,
            use_cache=True,
        ).logits[:, -1]
        self.positions = self.positions + 1


def _prefill(torch: Any, model: Any, prompts: Sequence[Sequence[int]], room: int) -> _State:
    """Compute each different prompt once, what all begin with only once, and give every row its own copy."""
    different = {tuple(prompt): None for prompt in prompts}
    places = {prompt: i for i, prompt in enumerate(different)}
    longest = max(map(len, different))
    cache = growing_cache(model, longest + room)
    shared = 0
    # A window of attention, which has no such cache, would count the padding behind what is shared.
    if cache is not None and len(different) > 1:
        # The first and the last in alphabetical order differ earliest. Every prompt keeps a token of its own.
        common = common_beginning(min(different), max(different))
        shared = min(common, min(map(len, different)) - 1)
    if cache is not None and shared:
        start = torch.tensor([next(iter(different))[:shared]], device=model.device)
        model(input_ids=start, past_key_values=cache, use_cache=True, logits_to_keep=1)
        cache.batch_select_indices(
            torch.zeros(len(different), dtype=torch.long, device=model.device)
        )
    # Padding stands behind what is shared and before the rest, so that all answers begin at the same place.
    ids = [[0] * (longest - len(prompt)) + list(prompt[shared:]) for prompt in different]
    counts = [
        [1] * shared + [0] * (longest - len(prompt)) + [1] * (len(prompt) - shared)
        for prompt in different
    ]
    mask = torch.tensor(counts, device=model.device)
    output = model(
        input_ids=torch.tensor(ids, device=model.device),
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0)[:, shared:],
        past_key_values=cache,
        use_cache=True,
        # An index. For 1 transformers takes a slice, for which torch copies the head once for each row.
        logits_to_keep=torch.tensor([longest - shared - 1], device=model.device),
    )
    if getattr(output, "past_key_values", None) is None:
        raise BackendError(
            f"Expect a decoder, which keeps keys and values of what it has read, actually: {type(model).__name__}. Choose "
            "another model."
        )
    state = _State(output.past_key_values, output.logits[:, -1], mask, mask.sum(-1))
    rows = [places[tuple(prompt)] for prompt in prompts]
    if rows != list(range(len(different))):
        state.select(torch.tensor(rows, device=model.device))
    return state


def growing_cache(model: Any, length: int) -> Any | None:
    """Make an empty `transformers.DynamicCache` with room for so many tokens at first.

    None for a model with other layers than those that look back at everything.
    """
    transformers: Any = require("transformers")
    cache_utils: Any = require("transformers.cache_utils")
    cache = transformers.DynamicCache(config=model.config)
    if not all(type(layer) is cache_utils.DynamicLayer for layer in cache.layers):
        return None
    cache.layers = [_layer_class()(length) for _ in cache.layers]
    return cache


@lru_cache(maxsize=1)
def _layer_class() -> Any:
    """Class of the layers; made when transformers is there."""
    cache_utils: Any = require("transformers.cache_utils")

    class GrowingLayer(cache_utils.DynamicLayer):  # type: ignore[misc]  # its module is not known to mypy
        """Keys and values of one layer, [rows, heads, tokens, size], as views of larger tensors."""

        def __init__(self, room: int) -> None:
            super().__init__()
            self._room = room
            self._length = 0

        def update(self, keys: Tensor, values: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
            start, self._length = self._length, self._length + keys.shape[-2]
            if not self.is_initialized:
                self.lazy_initialization(keys, values)
                self._stores = [self._with_room(each[:, :, :0]) for each in (keys, values)]
            elif self._length > self._stores[0].shape[-2]:
                self._room = 2 * self._length
                self._stores = [self._with_room(old[:, :, :start]) for old in self._stores]
            for store, new in zip(self._stores, (keys, values), strict=True):
                store[:, :, start : self._length] = new
            self._look()
            return self.keys, self.values

        def get_seq_length(self) -> int:
            return self._length

        def batch_select_indices(self, indices: Tensor) -> None:
            both = (self.keys, self.values)
            self._stores = [self._with_room(each.index_select(0, indices)) for each in both]
            self._look()

        def _with_room(self, begun: Tensor) -> Tensor:
            """Return a tensor that begins with these keys or values and has room for more."""
            room = max(self._room, self._length)
            store = begun.new_zeros((*begun.shape[:2], room, begun.shape[3]))
            store[:, :, : begun.shape[2]] = begun
            return store

        def _look(self) -> None:
            self.keys, self.values = (store[:, :, : self._length] for store in self._stores)
            self.keys.whole, self.values.whole = self._stores  # for `grouped_attention`

    return GrowingLayer
