"""A language model so small that tests can train it: random weights, bytes as tokens."""

from __future__ import annotations

from typing import Any

CHAT_TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tiny_tokenizer(*, words: bool = False) -> Any:
    """Bytes as tokens, or as few tokens for prompts of the game as may be: then the model needs 700."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    letters = [*special, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if words:
        tokenizer.train_from_iterator(
            _texts(),
            trainers.BpeTrainer(
                vocab_size=700,
                special_tokens=special,
                initial_alphabet=letters[len(special) :],
                show_progress=False,
            ),
        )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<|pad|>", eos_token="<|end|>"
    )
    fast.add_special_tokens({"additional_special_tokens": special[2:]})
    fast.chat_template = CHAT_TEMPLATE
    return fast


def _texts() -> list[str]:
    """Prompts of both players, as many times as make them the most frequent words."""
    from codea1_env.agents.llm.prompts import DEFAULT
    from codea1_env.problems import load_problems
    from codea1_env.spaces import observe

    shown = [
        observe(problem, code=problem.reference * turn, turn=turn)
        for problem in load_problems("starter", "train")[:3]
        for turn in (0, 1)
    ]
    return [message["content"] for seen in shown for message in DEFAULT(seen)] * 3


def save_tiny(folder: Any, seed: int = 0, *, words: bool = True, **changes: Any) -> str:
    """Write a model for whole runs, whose prompts are short in tokens; returns the folder's name."""
    tiny_model(seed, **({"vocab_size": 700} if words else {}) | changes).save_pretrained(folder)
    tiny_tokenizer(words=words).save_pretrained(folder)
    return str(folder)


def tiny_model(seed: int = 0, **changes: Any) -> Any:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = {
        "vocab_size": 261,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return LlamaForCausalLM(LlamaConfig(**settings | changes))


def log_probs(model: Any, prompt: Any, answer: Any, temperature: float = 1.0) -> Any:
    """Log-probability of each token of an answer, by one pass over all of it, without padding or cache."""
    import torch

    logits = model(input_ids=torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
    return (logits.float() / temperature).log_softmax(-1)[range(len(answer)), list(answer)]


def descend(model: Any, loss: Any, rate: float) -> float:
    """One step of gradient descent; returns the loss before it."""
    import torch

    gradients = torch.autograd.grad(loss, list(model.parameters()))
    with torch.no_grad():
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter -= rate * gradient
    return float(loss.detach())
