"""A Llama-like model on a processor, made ready for passes of few tokens.

transformers computes seven products a layer, each with two small ones for an adapter. Here products of the same input are
one product, whose matrix is laid out once. `decoding` makes the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.packed import MadeOfWeights, Multiply, laid_out
from codea1_env.agents.llm.shared_prompts import without_adapter
from codea1_env.agents.llm.trl_internals import own_forward
from codea1_env.support.extras import require

if TYPE_CHECKING:
    from torch import Tensor

_KNOWN = {"LlamaForCausalLM", "MistralForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"}
_CHANGING = {"dynamic", "longrope"}
"""Rotations that depend on the length of the text."""
_MARKS = {"make_inputs_require_grad", "make_inputs_require_grads"}
"""Hooks of transformers and peft that change no number."""
_LAYOUTS = MadeOfWeights()


class Decoder:
    """The layers of a model with its active adapter, ready for passes of few tokens.

    Args:
        model: A model for which `suits` is true; its weights must not change while this is used.
        dtype: Format of products (`torch.dtype`); None for the weights' own.
        lasting: Whether frozen weights get the best layout, which takes seconds to make. Layouts are kept with weights.
    """

    def __init__(self, model: Any, dtype: Any = None, *, lasting: bool = False) -> None:
        plain = without_adapter(model)
        config, backbone = plain.config, plain.model
        self.dtype = dtype or plain.lm_head.weight.dtype
        self._lasting = lasting
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.size = backbone.layers[0].self_attn.head_dim
        self.embed, self.rotary = backbone.embed_tokens, backbone.rotary_emb
        with ThreadPoolExecutor(require("torch").get_num_threads()) as threads:
            self.layers = list(threads.map(self._layer, backbone.layers))
        self.norm = Norm(backbone.norm)
        self.head = self._multiply([plain.lm_head])

    def _layer(self, layer: Any) -> Layer:
        attention, mlp = layer.self_attn, layer.mlp
        turned = self.heads + self.kv_heads
        pairs = pair_order(self.size)
        order = require("torch").arange((turned + self.kv_heads) * self.size)
        order = order.view(-1, self.size)
        order[:turned] = order[:turned, pairs]
        norms = [getattr(attention, name, None) for name in ("q_norm", "k_norm")]
        return Layer(
            Norm(layer.input_layernorm),
            self._multiply([attention.q_proj, attention.k_proj, attention.v_proj], order.flatten()),
            self._norms_of_heads(norms, pairs) if all(norms) else None,
            self._multiply([attention.o_proj]),
            Norm(layer.post_attention_layernorm),
            self._multiply([mlp.gate_proj, mlp.up_proj]),
            self._multiply([mlp.down_proj]),
        )

    def _multiply(self, layers: Sequence[Any], order: Tensor | None = None) -> Multiply:
        return _multiply(layers, self.dtype, order, self._lasting)

    def _norms_of_heads(self, norms: Sequence[Any], pairs: Tensor) -> Norm:
        torch: Any = require("torch")
        counts = (self.heads, self.kv_heads)
        weights = [
            norm.weight[pairs].expand(count, -1) for norm, count in zip(norms, counts, strict=True)
        ]
        return Norm(norms[0], torch.cat(weights))


def suits(model: Any) -> bool:
    """Whether a model is built as `Decoder` computes it: on a processor, and with no more than a plain adapter."""
    torch: Any = require("torch")
    plain = without_adapter(model)
    if type(plain).__name__ not in _KNOWN or model.device.type != "cpu":
        return False
    rotary, layers = plain.model.rotary_emb, plain.model.layers
    every, others = [plain.lm_head], [plain, plain.model, plain.model.norm, rotary]
    for layer in layers:
        one, two = layer.self_attn, layer.mlp
        others += [layer, one, two, layer.input_layernorm, layer.post_attention_layernorm]
    # Whoever has put another part in its place has other computations in mind.
    source = type(plain).__module__
    if not source.startswith("transformers.") or {type(each).__module__ for each in others} != {
        source
    }:
        return False
    for one, two in ((layer.self_attn, layer.mlp) for layer in layers):
        every += [one.q_proj, one.k_proj, one.v_proj, one.o_proj]
        every += [two.gate_proj, two.up_proj, two.down_proj]
    size = layers[0].self_attn.head_dim
    return (
        plain.dtype in (torch.float32, torch.bfloat16)
        and plain.config.hidden_act == "silu"
        and looks_back_at_all(plain)
        and rotary.rope_type not in _CHANGING
        and 2 * rotary.inv_freq.numel() == size
        and all(layer.self_attn.scaling == size**-0.5 for layer in layers)
        and all(_is_usual(layer) for layer in every)
        and not any(map(_is_changed, plain.modules()))
    )


def _is_changed(module: Any) -> bool:
    own = own_forward(module)
    # The class's own method may be left behind where another one stood for a while.
    replaced = own is not None and getattr(own, "__func__", None) is not type(module).forward
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return replaced or any(not _marks_gradients(hook) for hook in hooks)


def _marks_gradients(hook: Any) -> bool:
    """Whether a hook only says that gradients are wanted, as is set where layers are computed again for them."""
    known = getattr(hook, "__qualname__", "").rpartition(".")[2]
    source = getattr(hook, "__module__", None) or ""
    return known in _MARKS and source.startswith(("transformers.", "peft."))


def looks_back_at_all(model: Any) -> bool:
    """Whether each layer looks back at all tokens, and no layer only at the last ones."""
    transformers: Any = require("transformers")
    cache_utils: Any = require("transformers.cache_utils")
    cache = transformers.DynamicCache(config=model.config)
    return all(type(layer) is cache_utils.DynamicLayer for layer in cache.layers)


def pair_order(size: int) -> Tensor:
    """Order of a head's numbers in which the two that are turned together are neighbours."""
    order: Tensor = require("torch").arange(size).view(2, size // 2).t().reshape(-1)
    return order


class Norm:
    """RMS norm, computed in float32."""

    def __init__(self, norm: Any, weight: Any = None) -> None:
        self._weight = (norm.weight if weight is None else weight).detach().float()
        self._epsilon = norm.variance_epsilon

    def __call__(self, states: Tensor) -> Tensor:
        """Normalise the last dimension."""
        torch: Any = require("torch")
        # torch's own takes twice as long on a processor.
        squares = torch.linalg.vector_norm(states, dim=-1, keepdim=True).square_()
        scale = squares.div_(states.shape[-1]).add_(self._epsilon).rsqrt_()
        found: Tensor = (states * scale).mul_(self._weight)
        return found


@dataclass(frozen=True)
class Layer:
    """Products and norms of one layer."""

    attention_norm: Norm
    queries_keys_values: Multiply
    heads_norm: Norm | None
    attended: Multiply
    mlp_norm: Norm
    gate_up: Multiply
    down: Multiply


def _base(layer: Any) -> Any:
    return getattr(layer, "base_layer", layer)


def _is_usual(layer: Any) -> bool:
    torch: Any = require("torch")
    base = _base(layer)
    if type(base) is not torch.nn.Linear or not base.weight.is_floating_point():
        return False
    if base is layer:
        return True
    names = layer.active_adapters
    usual = type(layer) is require("peft.tuners.lora.layer").Linear and not layer.merged
    if layer.disable_adapters:
        return usual
    return bool(usual and len(names) == 1 and not layer.fan_in_fan_out) and (
        names[0] not in layer.lora_A
        or (names[0] not in layer.lora_variant and not layer.lora_bias[names[0]])
    )


def _multiply(layers: Sequence[Any], dtype: Any, order: Tensor | None, lasting: bool) -> Multiply:
    """One product for layers of the same input, their outputs side by side, in this order."""
    torch: Any = require("torch")
    bases = [_base(layer) for layer in layers]
    weights = [base.weight for base in bases]
    biases = [base.bias for base in bases]
    sources = [*weights, *(bias for bias in biases if bias is not None)]
    lasting = lasting and not any(source.requires_grad for source in sources)

    def make() -> Multiply:
        whole = torch.cat([weight.detach().to(dtype) for weight in weights])
        bias = None
        if any(each is not None for each in biases):
            bias = torch.cat(
                [
                    weight.new_zeros(len(weight)) if each is None else each.detach()
                    for each, weight in zip(biases, weights, strict=True)
                ]
            ).to(dtype)
        if order is not None:
            whole, bias = whole[order], None if bias is None else bias[order]
        return laid_out(whole, bias, lasting=lasting)

    base: Multiply = _LAYOUTS.of(sources, (dtype, lasting), make, better=(dtype, True))
    adapted = [layer for layer in layers if _adapter(layer)]
    if not adapted:
        return base
    down, up = _adapters(layers, dtype, order)

    def with_adapter(states: Any) -> Any:
        return base(states).addmm_(states @ down, up)

    return with_adapter


def _adapter(layer: Any) -> str | None:
    if layer is _base(layer) or layer.disable_adapters:
        return None
    name = str(layer.active_adapters[0])
    return name if name in layer.lora_A else None


def _adapters(layers: Sequence[Any], dtype: Any, order: Tensor | None) -> tuple[Tensor, Tensor]:
    """Both matrices of the adapters, [inputs, ranks] and [ranks, outputs], with blocks for the layers."""
    torch: Any = require("torch")
    downs, ups = [], []
    for layer in layers:
        name, base = _adapter(layer), _base(layer).weight
        if name is None:
            ups.append(base.new_zeros(len(base), 0).float())
            continue
        downs.append(layer.lora_A[name].weight.detach().float())
        ups.append(layer.lora_B[name].weight.detach().float() * layer.scaling[name])
    up = torch.block_diag(*ups)
    up = up if order is None else up[order]
    return torch.cat(downs).t().contiguous().to(dtype), up.t().contiguous().to(dtype)
