"""Generation with transformers, in this process, with the very module that is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.completions import (
    BackendError,
    Completion,
    Messages,
    SamplingConfig,
    encode_all,
    encode_chat,
    report,
)
from codea1_env.agents.llm.computing import Dtype, thread_number
from codea1_env.agents.llm.passes import grouped_attention, weights_to_write
from codea1_env.agents.llm.sampling import Sampled, draw_noise, sample
from codea1_env.agents.smollm2 import quiet_loading
from codea1_env.support.extras import Lazy

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

torch: Any = Lazy("torch")
transformers: Any = Lazy("transformers")
peft: Any = Lazy("peft")
_STOP_WINDOW = 8
"""A stop text is looked for in so many last tokens, and one more for each of its characters."""


class TransformersBackend:
    """Generates with a model that is loaded already, and leaves its mode, adapter and trained parameters as they were.

    A learner that trains this very module, or adapters of it, has nothing to update. One call at a time: the adapter is
    switched inside the model.

    Args:
        model: A causal language model of transformers, or a `peft.PeftModel` around one with an adapter for
            each role.
        tokenizer: The model's, with a chat template.
        batch_size: Answers that grow at the same time. More is faster, and needs more memory.
        compute_dtype: Format of all parameters while answers are written; None for their own.
        threads: Cores that write, on a CPU; None for as many as torch takes.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: PreTrainedTokenizerBase,
        batch_size: int = 64,
        compute_dtype: Dtype | None = None,
        threads: int | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.compute_dtype = compute_dtype
        self.threads = threads

    @property
    def context_length(self) -> int:
        """Tokens that prompt and answer together may have."""
        return int(self.model.config.max_position_embeddings)

    def count_tokens(self, messages: Messages) -> int:
        """Length in tokens of a chat, as the engine's prompt."""
        return len(encode_chat(self.tokenizer, messages))

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None = None,
        first: int = 0,
    ) -> list[Completion]:
        """Answer every prompt once, in order. See `Backend.generate`."""
        ids = encode_all(self.tokenizer, prompts)
        # Neighbours of one length waste least on padding, and equal prompts come together.
        order = sorted(range(len(ids)), key=lambda i: (len(ids[i]), ids[i]))
        noise = draw_noise(first + len(ids), sampling.max_completion_length, seed)[first:]
        completions: dict[int, Completion] = {}
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(self._generating(adapter))
            stack.enter_context(thread_number(self.threads))
            stack.enter_context(weights_to_write(self.model, self.compute_dtype))
            stack.enter_context(grouped_attention(self.model))
            stack.enter_context(torch.inference_mode())  # a tenth of the time of small models
            for start in range(0, len(order), self.batch_size):
                rows = order[start : start + self.batch_size]

                def tell(share: float, start: int = start, number: int = len(rows)) -> None:
                    report((start + share * number) / len(order))

                answers = sample(
                    self.model,
                    [ids[row] for row in rows],
                    sampling,
                    noise[rows],
                    end_ids=self._end_ids(),
                    stopped=lambda answer: self._stopped(answer, sampling.stop),
                    tell=tell,
                )
                for row, answer in zip(rows, answers, strict=True):
                    completions[row] = self._completion(ids[row], answer)
        return [completions[row] for row in range(len(ids))]

    def update(self, folder: Path, adapter: str | None = None) -> None:
        """Use the weights in this folder from now on. See `Backend.update`."""
        try:
            if adapter is None:
                self._load_weights(folder)
            else:
                self._load_adapter(folder, adapter)
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            what = "this model" if adapter is None else f"an adapter ({adapter}) of this model"
            raise BackendError(
                f"Expect {folder} to hold weights of {what}, actually: {str(error)[:500]}"
            ) from error

    def close(self) -> None:
        """Do nothing: the model belongs to the caller."""

    def _completion(self, prompt: tuple[int, ...], answer: Sampled) -> Completion:
        return Completion(
            prompt_ids=prompt,
            completion_ids=tuple(answer.ids),
            logprobs=tuple(answer.logprobs),
            text=self.tokenizer.decode(answer.ids, skip_special_tokens=True),
            truncated=not answer.ended,
            prompt_tokens=len(prompt),
            completion_tokens=len(answer.ids),
        )

    def _end_ids(self) -> set[int]:
        """Tokens that end a turn: a model may have several."""
        ends = self.model.generation_config.eos_token_id
        more = ends if isinstance(ends, list) else [ends]
        return {self.tokenizer.eos_token_id, *more} - {None}

    def _stopped(self, answer: list[int], stop: tuple[str, ...]) -> bool:
        if not stop:
            return False
        # The last token completes the text: looking at the end alone is enough, and quick.
        window = answer[-(_STOP_WINDOW + max(map(len, stop))) :]
        text = self.tokenizer.decode(window, skip_special_tokens=True)
        return any(end in text for end in stop)

    @contextmanager
    def _generating(self, adapter: str | None) -> Iterator[None]:
        """Set evaluation mode and the right adapter; all as before afterwards."""
        model = self.model
        adapters = getattr(model, "peft_config", {})
        if adapter is not None and adapter not in adapters:
            raise ValueError(
                f"Expect the adapter to be one of {sorted(adapters)}, actually: {adapter!r}"
            )
        if any(config.is_prompt_learning for config in adapters.values()):
            raise ValueError("Prompt-tuning adapters are not supported. Use LoRA.")
        modes = [(module, module.training) for module in model.modules()]
        # peft decides by itself what is to be trained whenever the adapter changes.
        trained = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
        active: list[str] = model.active_adapters if adapters else []
        without = model.disable_adapter() if adapters and adapter is None else nullcontext()
        model.eval()
        try:
            if adapter is not None:
                model.set_adapter(adapter)
            with without:
                yield
        finally:
            if adapter is not None:
                model.set_adapter(active[0])
                if len(active) > 1:
                    model.base_model.set_adapter(active)
            for parameter, requires_grad in trained:
                parameter.requires_grad_(requires_grad)
            for module, training in modes:
                module.training = training

    def _load_weights(self, folder: Path) -> None:
        with quiet_loading():
            loaded = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype=self.model.dtype, local_files_only=True
            )
        self.model.load_state_dict(loaded.state_dict())

    def _load_adapter(self, folder: Path, adapter: str) -> None:
        if adapter in getattr(self.model, "peft_config", {}):
            weights = peft.load_peft_weights(str(folder), device=str(self.model.device))
            result = peft.set_peft_model_state_dict(self.model, weights, adapter_name=adapter)
            if result.unexpected_keys:
                raise ValueError(f"it has other parameters, such as {result.unexpected_keys[0]}")
        elif isinstance(self.model, peft.PeftModel):
            self.model.load_adapter(str(folder), adapter_name=adapter)
        else:
            self.model = peft.PeftModel.from_pretrained(
                self.model, str(folder), adapter_name=adapter
            )
