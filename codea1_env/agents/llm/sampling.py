"""Draws answers from a transformers model, token by token.

`model.generate` draws from torch's global random generator, computes equal prompts once for each answer, and goes on
with rows that are finished. Here the noise comes from a seed, equal prompts are computed once, and finished rows leave
the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.completions import SamplingConfig
from codea1_env.agents.llm.passes import Growing
from codea1_env.support.extras import Lazy

if TYPE_CHECKING:
    from torch import Tensor

torch: Any = Lazy("torch")
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
    return torch.rand(rows, length, generator=torch.Generator().manual_seed(seed))


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

    `noise` is what `draw_noise` returned for these prompts. One of `end_ids` ends an answer, and so does `stopped`, which
    sees its tokens. `tell` is told the share that is done.
    """
    length, noise = sampling.max_completion_length, noise.to(model.device)
    answers = [Sampled() for _ in prompts]
    rows = list(range(len(prompts)))
    state = Growing(model, prompts, length)
    for place in range(length):
        logprobs = log_probabilities(state.logits, sampling)
        tokens = _draw(logprobs, noise[rows, place])
        chosen = logprobs.gather(-1, tokens[:, None])[:, 0]
        for row, token, logprob in zip(rows, tokens.tolist(), chosen.tolist(), strict=True):
            answer = answers[row]
            if not answer.ended:
                answer.ids.append(token)
                answer.logprobs.append(logprob)
                answer.ended = token in end_ids or stopped(answer.ids)
        alive = [i for i, row in enumerate(rows) if not answers[row].ended]
        if not alive or place + 1 == length:
            break
        if len(alive) <= _SHRINK_AT * len(rows):
            rows = [rows[i] for i in alive]
            kept = torch.tensor(alive, device=model.device)
            state.select(kept)
            tokens = tokens[kept]
        # Most answers are much shorter than the longest may be: those that have ended count, too.
        tell(max(1 - len(alive) / len(answers), (place + 1) / length))
        state.step(tokens)
    return answers


def log_probabilities(logits: Tensor, sampling: SamplingConfig) -> Tensor:
    """Logarithms of the distribution that tokens are drawn from: temperature, top_k and top_p, in this order as in vLLM.

    `logits` and the result have the shape [rows, vocabulary].
    """
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


def _draw(logprobs: Tensor, noise: Tensor) -> Tensor:
    """Return the token at which the cumulative distribution passes the noise."""
    cumulative = logprobs.exp().cumsum(-1)
    wanted = noise[:, None] * cumulative[:, -1:]  # the last sum is 1 but for rounding
    tokens = torch.searchsorted(cumulative, wanted, right=True)[:, 0]
    return tokens.clamp(max=logprobs.shape[-1] - 1)
