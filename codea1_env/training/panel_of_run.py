"""The panel of a run: drawn once from its seed, and met by the tester in each measurement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from codea1_env.agents import Learner
from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.agents.planted import NumbersTester
from codea1_env.agents.scripted import CopierTester
from codea1_env.evaluation.panel import ROWS, Panel, PanelCount, draw_panel
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import Agent
from codea1_env.training.config import TrainConfig
from codea1_env.training.metrics import Row


class PanelOfRun:
    """Measures a language model that tests, and two scripts beside it. Nothing of it is a reward."""

    def __init__(
        self,
        config: TrainConfig,
        problems: Sequence[Problem],
        tester: Learner,
        referee: Referee,
        before: Iterable[Row] = (),
    ) -> None:
        """Draw the panel; `before` are the rows of panel.jsonl, if the run goes on."""
        self._referee = referee
        self._panel = Panel(())
        self._scripts: dict[str, Agent] = {
            "copier": CopierTester(config.num_tests),
            "numbers": NumbersTester(config.num_tests),
        }
        if config.panel_size and isinstance(tester, LanguagePlayer):
            source = load_problems(config.problems)
            self._panel = draw_panel(source, problems, referee, config.seed, config.panel_size)
        known = {row["player"] for row in before if row["panel"] == self._panel.digest}
        self._scripts = {name: it for name, it in self._scripts.items() if name not in known}

    def measure(self, tester: Agent) -> tuple[Row, list[Row]]:
        """Return `panel/ROW` for metrics.jsonl, and counts for panel.jsonl; those of scripts once."""
        if not self._panel.programs:
            return {}, []
        counts = self._panel.measure(tester, self._referee)
        rows = list(_rows("tester", self._panel, counts))
        for name, script in self._scripts.items():
            rows += _rows(name, self._panel, self._panel.measure(script, self._referee))
        self._scripts = {}
        shares = {name: each.hits / each.of for name, each in counts.items() if each.of}
        return {f"panel/{name}": shares.get(name) for name in ROWS}, rows


def _rows(player: str, panel: Panel, counts: dict[str, PanelCount]) -> Iterable[Row]:
    for name, count in counts.items():
        yield {
            "player": player, "row": name, "hits": count.hits, "of": count.of, "panel": panel.digest,
        }  # fmt: skip
