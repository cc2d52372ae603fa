"""Draws answers from a transformers model, token by token.

`model.generate` draws from torch's global random generator, computes equal prompts once for each answer, and goes on
with rows that are finished. Here the noise comes from a seed, equal prompts are computed once, and finished rows leave
the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.completions import BackendError, SamplingConfig
from codea1_env.agents.llm.decoder import Decoder, looks_back_at_all
from codea1_env.agents.llm.decoding import Decoding, ReadPrompts
from codea1_env.agents.llm.shared_prompts import Packed, common_beginning, pack, suits
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
    decoder: Decoder | None = None,
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
        decoder: Computes the passes of the model for one token a row; None for the model itself.
        tell: Is told the share that is done.
    """
    torch: Any = require("torch")
    device = model.device
    answers = [Sampled() for _ in prompts]
    rows = list(range(len(prompts)))
    read = read_prompts(model, prompts)
    state = _State(model, read) if decoder is None else Decoding(decoder, read)
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
        state.step(tokens)
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


class _State:
    """Answers of any model while they grow."""

    def __init__(self, model: Any, read: ReadPrompts) -> None:
        self._model = model
        self._cache, self._mask, self.logits = read.cache, read.mask, read.logits
        self._positions = read.mask.sum(-1)
        self.select(read.rows)

    def select(self, kept: Tensor) -> None:
        """Keep these rows; a row may be taken several times."""
        self._cache.batch_select_indices(kept)
        self.logits, self._mask = self.logits[kept], self._mask[kept]
        self._positions = self._positions[kept]

    def step(self, tokens: Tensor) -> None:
        """Append a token to each row, and compute the logits of the next."""
        torch: Any = require("torch")
        self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=-1)
        self.logits = self._model(
            input_ids=tokens[:, None],
            attention_mask=self._mask,
            position_ids=self._positions[:, None],
            past_key_values=self._cache,
            use_cache=True,
        ).logits[:, -1]
        self._positions = self._positions + 1


def read_prompts(model: Any, prompts: Sequence[Sequence[int]]) -> ReadPrompts:
    """Compute each different prompt once, and what prompts begin with only once where that is less work."""
    torch: Any = require("torch")
    different = {tuple(prompt): None for prompt in prompts}
    places = {prompt: i for i, prompt in enumerate(different)}
    longest = max(map(len, different))
    common = longest if len(different) == 1 else 0
    # Without positions as numbers, or with a window of attention, the padding behind what is common would count.
    if len(different) > 1 and hasattr(model.config, "rope_parameters") and looks_back_at_all(model):
        # The first and the last in alphabetical order differ earliest. Every prompt keeps a token of its own.
        common = common_beginning(min(different), max(different))
        common = min(common, min(map(len, different)) - 1)
    # Padding stands behind what is common and before the rest, so that all answers begin at the same place.
    gaps = [[0] * (longest - len(prompt)) for prompt in different]
    both = list(zip(different, gaps, strict=True))
    ids = torch.tensor([[*each[:common], *gap, *each[common:]] for each, gap in both])
    mask = torch.tensor([[1] * common + gap + [1] * (len(each) - common) for each, gap in both])
    ids, mask = ids.to(model.device), mask.to(model.device)
    packed = pack(ids, mask, model) if suits(model) else None
    cache, logits = _read(model, ids, mask) if packed is None else _read_packed(model, packed)
    rows = torch.tensor([places[tuple(prompt)] for prompt in prompts], device=model.device)
    return ReadPrompts(cache, logits, mask, common, rows)


def _read(model: Any, ids: Tensor, mask: Tensor) -> tuple[Any, Tensor]:
    """Keys and values of rows of tokens, and logits behind the last."""
    torch: Any = require("torch")
    output = model(
        input_ids=ids,
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        use_cache=True,
        # An index. For 1 transformers takes a slice, for which torch copies the head once for each row.
        logits_to_keep=torch.tensor([ids.shape[1] - 1], device=model.device),
    )
    if getattr(output, "past_key_values", None) is None:
        raise BackendError(
            f"Expect a decoder, which keeps keys and values of what it has read, actually: {type(model).__name__}. Choose "
            "another model."
        )
    return output.past_key_values, output.logits[:, -1]


def _read_packed(model: Any, packed: Packed) -> tuple[Any, Tensor]:
    last = packed.places[:, -1]
    kept, where = (last % packed.ids.shape[1]).unique(return_inverse=True)
    output = model(
        input_ids=packed.ids,
        attention_mask=packed.sees,
        position_ids=packed.positions,
        use_cache=True,
        logits_to_keep=kept,
    )
    for layer in output.past_key_values.layers:
        for name in ("keys", "values"):
            found = getattr(layer, name).transpose(1, 2).flatten(0, 1)[packed.places]
            setattr(layer, name, found.transpose(1, 2))
    return output.past_key_values, output.logits[last // packed.ids.shape[1], where]
