"""Generation by any server that speaks OpenAI's chat protocol.

vllm serve MODEL --logprobs-mode processed_logprobs      # tokens and probabilities, for learners
VLLM_ALLOW_RUNTIME_LORA_UPDATING=True vllm serve MODEL --enable-lora --logprobs-mode processed_logprobs
"""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codea1_env.agents.llm.completions import (
    BackendError,
    Completion,
    Messages,
    SamplingConfig,
    encode_chat,
    report,
)
from codea1_env.support.extras import Lazy

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

httpx: Any = Lazy("httpx", "evaluation")
_AGAIN = frozenset([408, 409, 425, 429, 500, 502, 503, 504])
"""Answers after which the same request may succeed."""
CONCURRENCY = 32
"""Requests at a time."""
_PATIENCE = 300.0
"""Seconds to wait for one answer."""
FIRST_DELAY = 0.5
"""Seconds before the second attempt; each further delay is twice as long."""
_CLOSING = 5.0
"""Seconds that a server has to unload an adapter at the end."""
_COPIES = "codea1-adapters-"
_SHOWN = 300
"""Characters of a server's error message that are repeated."""
_GIVE_KEY = "Give the server's key in the environment as OPENAI_API_KEY"
_HINTS = {
    401: _GIVE_KEY,
    403: _GIVE_KEY,
    404: "Check the server's address (it usually ends with /v1) and the model's name",
}
_OWN = re.compile(r"https?://(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?(/|$)", re.IGNORECASE)
"""This machine's own servers, which no proxy of the environment reaches."""


class _RefusedError(BackendError):
    """There is a server, which does not do what it was asked for."""


class _NotSentError(BackendError):
    """A request was not sent, because another one has failed for good."""


class OpenAIBackend:
    """Asks a server, many prompts at a time. It repeats requests that fail, with growing pauses.

    Args:
        base_url: Like "http://127.0.0.1:8000/v1".
        model: The model's name at the server; None for the server's first model.
        tokenizer: The model's, to know how long prompts are. Without it, lengths are estimated from above.
        context_length: Tokens that prompt and answer together may have.
        vllm: The server is vLLM, which tells tokens and probabilities, and loads adapters. Others refuse what this takes.
        attempts: Attempts of a request before giving up.
        fields: More fields of every request for an answer, such as reasoning_effort; None leaves a field out.
    """

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        *,
        tokenizer: PreTrainedTokenizerBase | None = None,
        context_length: int = 4096,
        vllm: bool = False,
        attempts: int = 5,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(
                f"Expect base_url to begin with http:// or https://, actually: {base_url!r}"
            )
        key = os.environ.get("OPENAI_API_KEY")
        self._client = httpx.Client(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=_PATIENCE,
            follow_redirects=True,
            limits=httpx.Limits(max_connections=None),  # as many as there are threads
            trust_env=_OWN.match(base_url) is None,
            verify=ssl.create_default_context(),  # what the machine trusts
        )
        self._base_url = base_url.rstrip("/")
        self._attempts = attempts
        self._more = dict(fields or {})
        self.model = model or self._first_model()
        self.tokenizer = tokenizer
        self.context_length = context_length
        self._vllm = vllm
        self._copies = tempfile.TemporaryDirectory(prefix=_COPIES)
        self._adapters: dict[str, Path] = {}
        self._updates = 0

    def count_tokens(self, messages: Messages) -> int:
        """Length in tokens of a chat; without a tokenizer an estimate from above."""
        if self.tokenizer is not None:
            return len(encode_chat(self.tokenizer, messages))
        # Tokenizers make a token of two bytes or more of nearly any text; templates add some for each turn.
        return 32 + sum(8 + len(message["content"].encode()) // 2 for message in messages)

    def generate(
        self,
        prompts: Sequence[Messages],
        sampling: SamplingConfig,
        seed: int,
        adapter: str | None = None,
        first: int = 0,
    ) -> list[Completion]:
        """Answer every prompt once, in order. See `Backend.generate`.

        Whether equal seeds give equal answers is up to the server. It knows each version of an adapter as a model.
        """
        fields = self._fields(sampling, adapter)
        bodies = [
            {**fields, "messages": list(messages), "seed": (seed + first + row) % 2**31}
            for row, messages in enumerate(prompts)
        ]
        cancelled = threading.Event()
        pool = ThreadPoolExecutor(max_workers=CONCURRENCY)
        try:
            answers = [pool.submit(self._ask, body, cancelled) for body in bodies]
            report(0.0)
            for come, answer in enumerate(as_completed(answers), 1):
                if not isinstance(answer.exception(), _NotSentError):  # because of another
                    answer.result()
                    report(come / len(answers))
            return [answer.result() for answer in answers]
        finally:
            # After a failure or Ctrl-C nothing is worth waiting for.
            cancelled.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def update(self, folder: Path, adapter: str | None = None) -> None:
        """Let a vLLM server on this machine use an adapter. The folder may be changed or removed afterwards."""
        if not self._vllm or adapter is None:
            raise BackendError(
                "Expect weights to be updated as adapters of a vLLM server (vllm=True), actually: "
                f"vllm={self._vllm}, adapter={adapter!r}"
            )
        # The server reads the files again whenever it has dropped an adapter, and ends if they are gone. What it has
        # computed for a prompt it keeps by the adapter's name, so that each version, of each run, needs one of its own.
        self._updates += 1
        folders = Path(self._copies.name)
        copy = folders / f"{adapter}-{folders.name.removeprefix(_COPIES)}-{self._updates}"
        try:
            shutil.copytree(folder, copy)
        except OSError as error:
            raise BackendError(f"Expect {folder} to hold an adapter, actually: {error}") from error
        body = {"lora_name": copy.name, "lora_path": str(copy)}
        try:
            # vLLM answers with a sentence.
            self._request("load_lora_adapter", body, decode=False)
        except BackendError as error:
            raise BackendError(
                f"{error}. The server must run on this machine, with --enable-lora and the environment variable "
                "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True"
            ) from error
        old, self._adapters[adapter] = self._adapters.get(adapter), copy
        if old is not None:
            self._unload(old)
            shutil.rmtree(old)

    def _unload(self, copy: Path) -> None:
        with suppress(BackendError):  # there is nothing more to do about it
            self._request("unload_lora_adapter", {"lora_name": copy.name}, decode=False)

    def close(self) -> None:
        """Unload adapters and remove their copies. The server belongs to someone else, and goes on without them."""
        self._attempts, self._client.timeout = 1, _CLOSING
        for copy in self._adapters.values():
            self._unload(copy)
        self._client.close()
        self._copies.cleanup()

    def check_reached(self) -> None:
        """Raise a BackendError if nothing answers at the address, whatever it answers."""
        with suppress(_RefusedError):
            self._request("models")

    def _first_model(self) -> str:
        answer = self._request("models")
        try:
            return str(answer["data"][0]["id"])
        except (LookupError, TypeError) as error:
            raise BackendError(
                f"Expect {self._base_url}/models to name a model, actually: {answer!s:.200}. Give its name"
            ) from error

    def _fields(self, sampling: SamplingConfig, adapter: str | None) -> dict[str, Any]:
        version = self._adapters.get(adapter or "")
        fields: dict[str, Any] = {
            "model": version.name if version else adapter or self.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_completion_length,
        }
        if sampling.stop:
            fields["stop"] = list(sampling.stop)
        if self._vllm:
            fields |= {
                "top_k": sampling.top_k,
                "logprobs": True,
                "return_token_ids": True,
                "include_stop_str_in_output": True,
                # Else the server takes those of the model's generation_config.json, which no learner knows of.
                "repetition_penalty": 1.0,
                "min_p": 0.0,
            }
        elif sampling.top_k:
            raise BackendError(
                f"Expect top_k=0 with a server that is not vLLM, actually: {sampling.top_k}"
            )
        fields |= self._more
        return {name: value for name, value in fields.items() if value is not None}

    def _ask(self, body: Mapping[str, Any], cancelled: threading.Event) -> Completion:
        if cancelled.is_set():
            raise _NotSentError
        try:
            answer = self._request("chat/completions", body, cancelled)
        except BackendError:
            cancelled.set()  # at once: the next request may begin before anybody looks at this one
            raise
        try:
            return _completion(answer)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise BackendError(
                f"Expect a chat completion from {self._base_url}, actually: {str(answer)[:200]!r}"
            ) from error

    def _request(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        cancelled: threading.Event | None = None,
        *,
        decode: bool = True,
    ) -> Any:
        """Post a document, or get one for None; returns the answer, as text if it is not to be decoded.

        Once `cancelled` is set, there are no further attempts.

        Raises:
            BackendError: The server cannot be reached, or answers with an error, also after all attempts.
        """
        method = "GET" if body is None else "POST"
        # Not httpx' own encoding: it refuses the lone surrogates that models write.
        data = None if body is None else json.dumps(body).encode()
        url = f"{self._base_url}/{path.lstrip('/')}"
        headers = {"Content-Type": "application/json"}
        delay, reason = FIRST_DELAY, ""
        for attempt in range(self._attempts):
            if attempt and (cancelled or threading.Event()).wait(delay):
                break
            delay *= 2
            try:
                answer = self._client.request(method, url, content=data, headers=headers)
                if answer.is_success:
                    return answer.json() if decode else answer.text
            except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
                reason = str(error) or type(error).__name__
                continue
            code = answer.status_code
            reason = f"{code} {_message(answer)}"
            if code not in _AGAIN:
                message = f"Expect {url} to accept the request, actually: {reason}. "
                raise _RefusedError((message + _HINTS.get(code, "")).rstrip())
            asked = answer.headers.get("Retry-After", "")
            delay = max(delay, float(asked)) if asked.isdigit() else delay
        raise BackendError(
            f"Expect an answer from {url}, actually after {self._attempts} attempts: {reason}. Start the server, "
            "or check its address"
        )


def _completion(answer: Any) -> Completion:
    choice = answer["choices"][0]
    usage = answer.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    prompt_ids = tuple(answer.get("prompt_token_ids") or ())
    completion_ids = tuple(choice.get("token_ids") or ())
    content = (choice.get("logprobs") or {}).get("content")
    logprobs = None if content is None else tuple(float(token["logprob"]) for token in content)
    if logprobs is not None and len(logprobs) != len(completion_ids):
        logprobs = None  # of no use without the tokens
    return Completion(
        prompt_ids=prompt_ids,
        completion_ids=completion_ids,
        logprobs=logprobs,
        text=choice["message"]["content"] or "",
        truncated=choice["finish_reason"] == "length",
        prompt_tokens=_count(usage.get("prompt_tokens"), len(prompt_ids)),
        completion_tokens=_count(usage.get("completion_tokens"), len(completion_ids)),
    )


def _count(said: Any, counted: int) -> int:
    return said if type(said) is int and 0 <= said < 1 << 53 else counted


def _message(answer: Any) -> str:
    text: str = answer.text
    try:
        found = answer.json()
        found = found.get("error", found)
        text = str(found.get("message", found))
    except (ValueError, AttributeError):
        pass
    return text.strip()[:_SHOWN] or str(answer.reason_phrase)
