from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from codea1_env import CODER, TESTER
from codea1_env.code_a1_v1 import parallel_env
from codea1_env.problems import Problem
from codea1_env.rendering import terminal as rendering
from codea1_env.rendering.display import clean
from codea1_env.sandbox import Sandbox

ADD = Problem(
    task_id="test/<add>",
    prompt='def add(a, b):\n    """Return the <b>sum</b> of a & b."""\n',
    entry_point="add",
    reference="def add(a, b):\n    return a + b\n",
)
WRONG = 'def add(a, b):\n    """It\'s\n    if & <script>alert(1)</script>"""\n    return a - b  # wrong\n'
SUITE = "assert add(1, 2) == 3\nassert add(0, 0) == 0\nassert add(1, 1) == 3\nassert add(1, 1) > 0"


@pytest.fixture
def play(sandbox: Sandbox) -> Callable[..., Any]:
    """Plays rounds of (program, tests) and returns the environment."""

    def play(*turns: str, render_mode: str = "ansi", max_rounds: int = 1) -> Any:
        game = parallel_env(
            problems=[ADD], sandbox=sandbox, render_mode=render_mode, max_rounds=max_rounds
        )
        game.reset(seed=0)
        for number, text in enumerate(turns):
            game.step({(CODER, TESTER)[number % 2]: text})
        return game

    return play


def without_colour(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_ansi_shows_problem_program_verdicts_and_rewards(play: Any) -> None:
    text = without_colour(play(WRONG, SUITE).render())
    for part in ("test/<add>", "Return the <b>sum</b>", "   4 │     return a - b  # wrong"):
        assert part in text
    assert re.search(r"✗ fail +assert add\(1, 2\) == 3\n +.*3.*-1|✗ fail +.*\n +.*-1.*3", text)
    assert re.search(r"✓ pass +assert add\(0, 0\) == 0", text)
    assert "corrected, as written it predicts 3, the reference returns 2" in text
    assert re.search(r"– (invalid|no test) +assert add\(1, 1\) > 0", text)
    assert re.search(r"coder_0 +0\.\d\d\d\n", text)
    assert re.search(r"tester_0 +0\.\d\d\d  validity 0\.\d\d\d, adversarial 0\.\d\d\d", text)
    assert text.endswith("The episode is over.")


def test_every_stage_of_an_episode_can_be_shown(play: Any) -> None:
    turns = [WRONG, SUITE, "", "", WRONG, SUITE]
    endings = []
    for stage in range(len(turns) + 1):
        game = play(*turns[:stage], max_rounds=3)
        endings.append(without_colour(game.render()).split("\n")[-1])
    assert endings == ["coder_0 is to act.", "tester_0 is to act."] * 3 + ["The episode is over."]


def test_characters_that_terminals_act_on_are_shown_as_escapes(play: Any) -> None:
    program = "def add(a, b):\n    return '\x1b[2J\x07\u202e\x9b' and a\n"
    game = play(program, "assert add('\x1b]0;x\x07', '') == ''\nassert add(1, 0) == '\u2066'")
    text = without_colour(game.render())
    assert "\\x1b[2J\\x07\\u202e\\x9b" in text
    assert all(c == "\n" or c.isprintable() for c in text)


def test_clean_keeps_all_that_can_be_printed() -> None:
    assert clean("a é 漢 🎉\n\tb\r\nc") == "a é 漢 🎉\n    b\nc"
    assert clean("\x00\ud800\r\xa0\u200b") == "\\x00\\ud800\\r\\xa0\\u200b"


def test_long_programs_are_cut_and_say_so(play: Any) -> None:
    lines = [f"x{n} = {n}" for n in range(1999)]
    program = "\n".join(["def add(a, b):\n    return a", f"# {'a' * 258}", *lines])
    game = play(program, "")
    text = game.render()
    assert "more lines" in text
    assert len(text.split("\n")) < 120
    assert "1942 more lines" in text
    assert f"{'a' * 40} ... (100 more)\n" in text


def test_human_prints_each_judged_round_once(play: Any, capsys: pytest.CaptureFixture[str]) -> None:
    game = play(WRONG, render_mode="human", max_rounds=2)
    assert capsys.readouterr().out == ""
    game.step({TESTER: SUITE})
    printed = capsys.readouterr().out
    assert printed.count("Rewards") == 1
    assert "\x1b" not in printed  # not a terminal
    assert "return a - b  # wrong" in printed
    assert game.render() is None
    assert capsys.readouterr().out == printed
    game.step({CODER: WRONG})
    game.step({TESTER: SUITE})
    second = capsys.readouterr().out
    assert second.count("Rewards") == 1
    assert "round 2 of 2" in second
    assert "Problem\n" not in second


def test_a_terminal_that_knows_only_ascii_gets_escapes(play, monkeypatch, tmp_path):
    game = play(WRONG, SUITE)
    with open(tmp_path / "out", "w", encoding="ascii") as out:
        monkeypatch.setattr("sys.stdout", out)
        rendering.show(game.game.episode)
    assert "\\u2717 fail" in (tmp_path / "out").read_text()


def test_render_without_a_mode_warns(sandbox: Sandbox) -> None:
    game = parallel_env(problems=[ADD], sandbox=sandbox)
    game.reset(seed=0)
    with pytest.warns(UserWarning, match="without a render mode"):
        assert game.render() is None
