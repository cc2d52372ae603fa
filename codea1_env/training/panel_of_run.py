"""The panel of a run: drawn once from its seed, and met by the tester in each measurement."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from importlib import resources

from codea1_env.agents import Learner
from codea1_env.agents.llm.agent import LanguagePlayer
from codea1_env.agents.llm.learners import GRPOLearner
from codea1_env.agents.planted import NumbersTester
from codea1_env.agents.scripted import CopierTester
from codea1_env.evaluation.panel import ROWS, RUN_ROWS, Panel, PanelCount, draw_panel
from codea1_env.problems import Problem, load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import Agent
from codea1_env.spaces import observe
from codea1_env.training.config import TrainConfig
from codea1_env.training.metrics import Row

UNTRAINED = "untrained.json"
"""Key -> counts of models that have learned nothing, measured beforehand, so that a run measures its end alone."""


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
        self._key = ""
        self._scripts: dict[str, Agent] = {
            "copier": CopierTester(config.num_tests),
            "numbers": NumbersTester(config.num_tests),
        }
        if config.panel_size and isinstance(tester, LanguagePlayer):
            source = load_problems(config.problems)
            self._panel = draw_panel(
                source, problems, referee, config.seed, config.panel_size, RUN_ROWS
            )
            self._key = _key(config, tester, self._panel)
        known = {row["player"] for row in before if row["panel"] == self._panel.digest}
        self.is_new = bool(self._panel.programs) and not known
        """Whether this run has not met the panel yet."""
        self._scripts = {name: it for name, it in self._scripts.items() if name not in known}

    @property
    def programs(self) -> int:
        """Number of programs that the tester meets."""
        return len(self._panel.programs)

    @property
    def left_out(self) -> list[str]:
        """Lines about rows that have no programs, and problems that cannot be used: they are not measured."""
        rows = {ROWS[row]: why for row, why in self._panel.left_out.items()}
        left = rows | dict(self._panel.unusable)
        return [f"Left out of the panel: {name} ({why})." for name, why in left.items()]

    @cached_property
    def untrained(self) -> Mapping[str, PanelCount]:
        """What was measured beforehand of this model, asked in this way; empty if nothing was."""
        found = resources.files("codea1_env.training").joinpath(UNTRAINED).read_text("utf-8")
        known = json.loads(found).get(self._key, {})
        return {row: PanelCount(*counts) for row, counts in known.get("counts", {}).items()}

    def measure(self, tester: Agent, step: int) -> tuple[Row, list[Row]]:
        """Return `panel/ROW` for metrics.jsonl, and counts for panel.jsonl; those of scripts once."""
        if not self._panel.programs:
            return {}, []
        counts = self.untrained if step == 0 else {}
        counts = counts or self._panel.measure(tester, self._referee)
        rows = [{**row, "asked": self._key} for row in self._rows("tester", counts)]
        for name, script in self._scripts.items():
            rows += self._rows(name, self._panel.measure(script, self._referee))
        self._scripts = {}
        shares = {name: each.hits / each.of for name, each in counts.items() if each.of}
        return {f"panel/{name}": shares.get(name) for name in ROWS if name in counts}, rows

    def _rows(self, player: str, counts: Mapping[str, PanelCount]) -> Iterable[Row]:
        for name, count in counts.items():
            about = {"player": player, "row": name, "panel": self._panel.digest}
            yield about | dataclasses.asdict(count)


def _key(config: TrainConfig, tester: LanguagePlayer, panel: Panel) -> str:
    """Digest of all that the figures of an untrained model depend on; "" for a model that may have learned."""
    if not isinstance(tester, GRPOLearner):
        return ""
    asked = [
        tester.agent.chat(observe(each.problem, code=each.shown, turn=1)) for each in panel.programs
    ]
    parts = [tester.base, panel.digest, asked, dataclasses.asdict(config.tester.sampling)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
