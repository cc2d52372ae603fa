"""Generation with transformers: adapters, new weights, and a model that is left as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from test_grpo_learner import adapter, make_learner, play
from test_trainer_drive import REWARDS, log_probs, make_drive, make_rows, step_by_hand
from tiny import tiny_model, tiny_tokenizer

from codea1_env.agents.llm.completions import BackendError, Message, SamplingConfig, listening
from codea1_env.agents.llm.trainer_drive import TrainingRow, rollout_of
from codea1_env.agents.llm.transformers_backend import TransformersBackend

SAMPLING = SamplingConfig(max_completion_length=8)


def chat(text: str) -> list[Message]:
    return [Message(role="user", content=text)]


CHATS = [chat(text) for text in ("one", "two", "a longer question", "one", "5")]


def peft_model(std: float = 0.3, rank: int = 4, base: Any = None) -> Any:
    """A model with an adapter for each role, each with an effect of its own."""
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=rank, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(base or tiny_model(), config, adapter_name="coder")
    model.add_adapter("tester", config)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            parameter.data.normal_(std=std, generator=generator)
    return model


def texts(backend: TransformersBackend, adapter: str | None = None) -> list[tuple[int, ...]]:
    answers = backend.generate(CHATS, SAMPLING, seed=0, adapter=adapter)
    return [answer.completion_ids for answer in answers]


def test_answers_are_complete() -> None:
    tokenizer = tiny_tokenizer()
    backend = TransformersBackend(tiny_model(), tokenizer)
    answers = backend.generate(CHATS, SAMPLING, seed=0)
    assert len(answers) == len(CHATS)
    for messages, answer in zip(CHATS, answers, strict=True):
        assert tokenizer.decode(answer.prompt_ids) == (
            f"<|user|>{messages[0]['content']}<|end|><|assistant|>"
        )
        assert answer.prompt_tokens == len(answer.prompt_ids) == backend.count_tokens(messages)
        assert answer.completion_tokens == len(answer.completion_ids) == len(answer.logprobs or ())
        assert answer.truncated == (answer.completion_ids[-1] != tokenizer.eos_token_id)
        assert answer.text == tokenizer.decode(answer.completion_ids, skip_special_tokens=True)


def test_end_of_turn_is_kept_as_a_token_and_left_out_of_the_text() -> None:
    model = tiny_model()
    first = TransformersBackend(model, tiny_tokenizer()).generate(CHATS, SAMPLING, seed=0)
    tokenizer = tiny_tokenizer()
    end = first[0].completion_ids[3]
    tokenizer.eos_token = tokenizer.convert_ids_to_tokens(end)
    answer = TransformersBackend(model, tokenizer).generate(CHATS, SAMPLING, seed=0)[0]
    place = first[0].completion_ids.index(end)
    assert answer.completion_ids == first[0].completion_ids[: place + 1]
    assert not answer.truncated


def test_stop_text_ends_an_answer_and_belongs_to_it() -> None:
    backend = TransformersBackend(tiny_model(), tiny_tokenizer())
    whole = backend.generate(CHATS, SAMPLING, seed=0)[1]
    stop = backend.tokenizer.decode(whole.completion_ids[2:4])
    sampling = SamplingConfig(max_completion_length=8, stop=(stop,))
    answer = backend.generate(CHATS, sampling, seed=0)[1]
    assert answer.completion_ids == whole.completion_ids[: len(answer.completion_ids)]
    assert len(answer.completion_ids) <= 4
    assert answer.text.endswith(stop)
    assert not answer.truncated


def test_size_of_batches_has_no_influence() -> None:
    model, tokenizer = tiny_model(), tiny_tokenizer()
    every = [texts(TransformersBackend(model, tokenizer, size)) for size in (1, 2, 64)]
    assert every[0] == every[1] == every[2]


def test_each_role_answers_with_its_adapter() -> None:
    backend = TransformersBackend(peft_model(), tiny_tokenizer())
    plain = texts(TransformersBackend(tiny_model(), tiny_tokenizer()))
    assert texts(backend) == plain
    assert plain != texts(backend, "coder") != texts(backend, "tester") != plain


def test_model_is_left_as_it_was_also_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    model = peft_model()
    model.train()
    model.set_adapter("tester")
    for name, parameter in model.named_parameters():  # as a learner might want it
        parameter.requires_grad_("coder" in name)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    backend = TransformersBackend(model, tiny_tokenizer())
    for name in (None, "coder", "tester"):
        texts(backend, name)
        found = model.training, model.active_adapter, model.config._attn_implementation
        assert found == (True, "tester", "sdpa")
        assert trained == [n for n, p in model.named_parameters() if p.requires_grad]
    with pytest.raises(ValueError, match="Expect the adapter to be one of"):
        texts(backend, "judge")

    def interrupt(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(model.base_model.model.model.layers[1].mlp, "forward", interrupt)
    with pytest.raises(KeyboardInterrupt):
        texts(backend, "coder")
    found = model.training, model.active_adapter, model.config._attn_implementation
    assert found == (True, "tester", "sdpa")


def test_weights_of_an_adapter_are_taken_from_a_folder(tmp_path: Path) -> None:
    trained = peft_model()
    trained.save_pretrained(tmp_path)
    expected = texts(TransformersBackend(trained, tiny_tokenizer()), "coder")
    fresh = TransformersBackend(tiny_model(), tiny_tokenizer())
    fresh.update(tmp_path / "coder", "coder")  # an adapter that it did not have
    assert texts(fresh, "coder") == expected
    known = TransformersBackend(peft_model(std=0.0), tiny_tokenizer())
    assert texts(known, "coder") != expected
    known.update(tmp_path / "coder", "coder")
    assert texts(known, "coder") == expected


def test_weights_of_the_model_are_taken_from_a_folder(tmp_path: Path) -> None:
    other = tiny_model(seed=9)
    other.save_pretrained(tmp_path)
    backend = TransformersBackend(tiny_model(), tiny_tokenizer())
    before = texts(backend)
    backend.update(tmp_path)
    assert texts(backend) == texts(TransformersBackend(other, tiny_tokenizer())) != before


def test_what_is_no_adapter_of_the_model_is_refused(tmp_path: Path) -> None:
    peft_model(base=tiny_model(hidden_size=48)).save_pretrained(tmp_path)
    for model in (tiny_model(), peft_model()):
        backend = TransformersBackend(model, tiny_tokenizer())
        with pytest.raises(BackendError, match=r"an adapter \(coder\) of this model"):
            backend.update(tmp_path / "coder", "coder")
        with pytest.raises(BackendError, match=r"Expect .* to hold weights"):
            backend.update(tmp_path / "nothing", "coder")


@pytest.mark.parametrize("adapter", [None, "tester"])
def test_answers_of_several_processes_are_those_of_one(adapter: str | None) -> None:
    model = peft_model()
    told: dict[int, list[float]] = {}
    found = {}
    for cores in (1, 2, 4):
        backend = TransformersBackend(model, tiny_tokenizer(), threads=cores)
        with listening(told.setdefault(cores, []).append):
            found[cores] = backend.generate(CHATS * 4, SAMPLING, 3, adapter)
        assert backend.generate(CHATS * 4, SAMPLING, 3, adapter) == found[cores]
    for cores in (2, 4):
        for one, other in zip(found[1], found[cores], strict=True):
            assert other.completion_ids == one.completion_ids
            assert other.logprobs == pytest.approx(one.logprobs, abs=1e-4)
        assert told[cores] == sorted(told[cores])
        assert len(told[cores]) <= SAMPLING.max_completion_length


END = 1


def rows_of_three_kinds() -> list[TrainingRow]:
    """Of each group of four: two ended by a stop text, one by the end token, one cut off."""
    rows = []
    for i, row in enumerate(make_rows(REWARDS)):
        if i % 4 == 1:
            rows.append(row)
        else:
            rows.append(replace(row, completion_ids=row.completion_ids[:-1], truncated=i % 4 == 3))
    return rows


def with_probabilities(rows: list[TrainingRow]) -> list[TrainingRow]:
    model = tiny_model()
    return [replace(row, logprobs=tuple(log_probs(model, row).tolist())) for row in rows]


def test_only_what_a_stop_text_ended_gets_an_end_token_and_that_is_masked() -> None:
    rows = with_probabilities(rows_of_three_kinds())[:4]
    given = rollout_of(rows, [END], END)
    for i, row in enumerate(rows):
        added = i in (0, 2)
        assert given["completion_ids"][i] == [*row.completion_ids, *[END] * added]
        assert given["env_mask"][i] == [1] * len(row.completion_ids) + [0] * added
        assert len(given["logprobs"][i]) == len(given["completion_ids"][i])
    assert "env_mask" not in rollout_of(make_rows(REWARDS), [END], END)


def test_the_trainer_counts_those_that_were_cut_off(tmp_path: Path) -> None:
    rows = rows_of_three_kinds()
    metrics = make_drive(tmp_path).update(rows)
    assert metrics["completions/clipped_ratio"] == 2 / 8
    lengths = [len(row.completion_ids) for row in rows]
    assert metrics["completions/mean_length"] == pytest.approx(sum(lengths) / 8)
    ended = [len(row.completion_ids) for row in rows if not row.truncated]
    assert metrics["completions/mean_terminated_length"] == pytest.approx(sum(ended) / 6)


@pytest.mark.parametrize(("loss_type", "batch"), [("dapo", 2), ("grpo", 8)])
def test_the_end_token_is_not_learned(tmp_path: Path, loss_type: str, batch: int) -> None:
    trained, by_hand = tiny_model(seed=3), tiny_model(seed=3)
    rows = rows_of_three_kinds()
    drive = make_drive(
        tmp_path,
        model=trained,
        loss_type=loss_type,
        epsilon_high=0.28,
        per_device_train_batch_size=batch,
    )
    loss = drive.update(rows)["loss"]
    # Of the answers as they were drawn: TRL's KL term is off.
    wanted = step_by_hand(by_hand, tiny_model(seed=3), rows, loss_type, weigh_kl=False, beta=0.0)
    assert loss == pytest.approx(wanted, abs=1e-5)
    for found, expected in zip(trained.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-3)


def test_the_end_token_has_no_part_in_importance_sampling(tmp_path: Path) -> None:
    mode = "sequence_mask"
    rows = with_probabilities(rows_of_three_kinds())
    drive = make_drive(tmp_path, engine_samples=True, vllm_importance_sampling_mode=mode)
    metrics = drive.update(rows)
    assert metrics["sampling/importance_sampling_ratio/min"] == pytest.approx(1, abs=1e-4)
    assert metrics["sampling/importance_sampling_ratio/max"] == pytest.approx(1, abs=1e-4)
    assert metrics["sampling/sampling_logp_difference/max"] == pytest.approx(0, abs=1e-4)


def test_a_player_with_stop_texts() -> None:
    stops = tuple("abcdefghijklmnopqrstuvwxyz")
    sampling = SamplingConfig(max_completion_length=6, max_prompt_length=2000, stop=stops)
    learner = make_learner(
        sampling=sampling, peft_config=adapter(), mask_truncated_completions=True
    )
    experience, _ = play(learner)
    answers = learner.agent.completions
    cut = sum(answer.truncated for answer in answers) / len(answers)
    stopped = [answer for answer in answers if answer.text.endswith(stops)]
    assert stopped
    assert 0 < cut < 1
    assert all(answer.completion_ids[-1] != END for answer in stopped)
    metrics = learner.learn(experience)
    assert metrics["completions/clipped_ratio"] == pytest.approx(cut)
    assert metrics["grad_norm"] > 0
