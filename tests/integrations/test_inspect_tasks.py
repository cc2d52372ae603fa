"""The task of inspect_ai, found by its entry point and played by its model for tests."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

inspect_ai = pytest.importorskip("inspect_ai")
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402

from codea1_env.integrations.inspect_tasks import code_a1  # noqa: E402


def prepared(text: str) -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", text)
    output.usage = ModelUsage(
        input_tokens=1, output_tokens=1, total_tokens=2
    )  # else counted by a download
    return output


@pytest.mark.parametrize(
    ("side", "opponent", "text", "reward"),
    [
        ("coder", "copier", "def absolute_difference(a, b): return abs(a - b)", 1.0),
        ("tester", "reference", "assert absolute_difference(3, 10) == 7", 0.5 * 1 / 8),
    ],
)
def test_the_referee_scores_an_answer(side, opponent, text, reward, tmp_path) -> None:
    model = get_model("mockllm/model", custom_outputs=[prepared(text)] * 3)
    made = code_a1(side=side, opponent=opponent)
    [log] = inspect_ai.eval(made, model=model, log_dir=str(tmp_path), display="none", limit=3)
    assert log.status == "success"
    scores = {each.id: each.scores["referee"] for each in log.samples}
    assert scores["starter/absolute_difference"].value == pytest.approx(reward)
    assert log.results.scores[0].metrics["mean"].value < 1


def test_its_entry_point_is_where_inspect_looks() -> None:
    found = {each.name: each.value for each in entry_points(group="inspect_ai")}
    if "codea1_env" not in found:
        pytest.skip("the project is not installed here")
    assert found["codea1_env"] == "codea1_env.integrations.inspect_tasks"


def test_a_wrong_side() -> None:
    with pytest.raises(ValueError, match='Expect side to be "coder" or "tester"'):
        code_a1(side="judge")
