"""Does a language model learn to read a program and break it, one that it has never met?

    python benchmarks/reading_lm.py --output-dir runs/reading            # six runs, one after the other; goes on where it was
    python benchmarks/reading_lm.py --output-dir runs/reading --table    # the table of what is done

SmolLM2-135M (LoRA, GRPO) learns to test, against a script that plants faults in one-line functions: with the program in
view, and blind. Untrained and trained it meets a panel of programs that it has never met: of problems of training and of
others, with kinds of faults of training and with others. Scripts meet the same panel.

Rows that only this script has: `decoys` are programs of `copied_new` with four comparisons before the fault that decide
nothing, as many as a suite has tests; `around` has four more in a function behind it; `shuffled` are the same programs, of which the tester sees another one.

Expected, written before these runs (docs/results.md says what came of it):

- In view, the rows `a number of the text` rise from below 0.35 to above 0.8 with each seed, also for other problems and kinds.
- Blind, no row of planted faults rises above 0.2 when the panel is shown blind; `shuffled` stays below 0.05 in view.
- The script that tests every number has 1.0 on these rows, and the first number above 99 about 0.95: copying is enough there.
- `decoys`: `numbers` has 0. A tester that sees which comparison decides is above 0.3; we expect ours below.
- `next to a number of the text` and `to be worked out` stay below 0.15.
- Fewer than half of the breaking suites state the right value.

The first seed broke 17 of 24 `decoys`, against what was expected: it may just take the last number. Expected of `around` and
of two more scripts, written before they ran: `last above 99` has above 0.9 of `decoys` and 0 of `around`; `compared with the
argument` has 1.0 of both; ours is above 0.3 of `around` if it picks the comparison that decides, and below 0.1 if it takes
what stands last.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from codea1_env.agents.llm.engines import load_player
from codea1_env.agents.llm.prompts import make_wording
from codea1_env.agents.planted import NumbersTester
from codea1_env.agents.scripted import CopierTester
from codea1_env.evaluation.panel import ROWS, Panel, PanelCount, PanelProgram, draw_panel
from codea1_env.problems import load_problems
from codea1_env.referee import Referee
from codea1_env.rollout import Agent
from codea1_env.sandbox import Sandbox
from codea1_env.training import TrainConfig, train
from codea1_env.training.checkpoints import find_weights
from codea1_env.training.panel_table import cell
from codea1_env.training.settings import apply_table, preset_table

# The script measures by itself, with more rows.
BASE = apply_table(TrainConfig(), preset_table("reading") | {"panel_size": 0}, "preset reading")
WAYS = {"in view": False, "blind": True}
MORE_ROWS = {
    "decoys": "the same as 'other problems and kinds', behind comparisons that decide nothing",
    "around": "the same, and as many behind the function",
    "shuffled": "the same as 'other problems and kinds', shown another program",
}
DECOYS = 4
COMPARED = re.compile(r"(?:[<>=]=?|in) \(?\"?(\d+)")


class Picking(NumbersTester):
    """A script that tests some numbers of the text, or always the same ones."""

    def __init__(self, pick: Callable[[str], list[str]]) -> None:
        super().__init__(BASE.num_tests)
        self._pick = pick

    def numbers(self, code: str) -> list[str]:
        """Return what the script picks."""
        return self._pick(code)


SCRIPTS: dict[str, Agent] = {
    "numbers": NumbersTester(BASE.num_tests),
    "first compared": Picking(lambda code: COMPARED.findall(code)[:1]),
    "first above 99": Picking(lambda code: re.findall(r"\b\d{3,}\b", code)[:1]),
    "last above 99": Picking(lambda code: re.findall(r"\b\d{3,}\b", code)[-1:]),
    "compared with the argument": Picking(lambda code: _of_argument(code)),
    "fixed": Picking(lambda _: ["1", "0", "2", "10"]),
    "copier": CopierTester(BASE.num_tests),
}


def main() -> None:
    """Run what is not done, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--panel-size", type=int, default=24)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    console = Console(width=200)
    for seed in range(0 if given.table else given.seeds):
        for way, black_box in WAYS.items():
            config = replace(
                BASE,
                output_dir=folder_of(given.output_dir, way, seed),
                max_steps=given.steps,
                threads=given.threads,
                black_box=black_box,
                seed=seed,
            )
            if not run(config, console):
                return
            measure(config, given.panel_size, console)
    console.print(table(given.output_dir, given.seeds))


def folder_of(root: Path, way: str, seed: int) -> Path:
    """Return the folder of a run."""
    return root / f"{way.replace(' ', '_')}_{seed}"


def run(config: TrainConfig, console: Console) -> bool:
    """Train, or go on; a run that is finished is left as it is. Returns whether it is finished."""
    folder = config.output_dir
    assert folder is not None
    begun = (folder / "config.toml").exists()
    done = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").open()] if begun else []
    if config.max_steps in done:
        return True
    return train(config, resume=begun, console=console).step == config.max_steps


def measure(config: TrainConfig, size: int, console: Console) -> None:
    """Let the tester of a finished run, and beside a run in view the untrained one and the scripts, meet what they have not met."""
    assert config.output_dir is not None
    told = config.output_dir / "whole_panel.json"
    counts = json.loads(told.read_text())["counts"] if told.exists() else {}
    names = ["trained"] if config.black_box else ["trained", "untrained", *SCRIPTS]
    with Sandbox() as sandbox:
        referee = Referee(sandbox)
        trained_on = load_problems("planted", "train")
        panel = draw_panel(load_problems("starter"), trained_on, referee, config.seed, size)
        panel = Panel((*panel.programs, *more_programs(panel, config.seed)))
        for name in names:
            known = counts.setdefault(name, {})
            left = Panel(tuple(each for each in panel.programs if each.row not in known))
            if not left.programs:
                continue
            console.print(f"{config.output_dir}: {name} on {len(left.programs)} programs")
            tester = SCRIPTS.get(name) or tester_of(config, trained=name == "trained")
            found = left.measure(tester, referee)
            known |= {row: astuple(count) for row, count in found.items()}
            told.write_text(json.dumps({"panel": panel.digest, "counts": counts}))


def tester_of(config: TrainConfig, *, trained: bool) -> Agent:
    """Load the tester, and ask it as in its run."""
    assert config.output_dir is not None
    name = str(find_weights(config.output_dir, "tester", None)) if trained else config.model
    wording = make_wording(config.prompts, config.num_tests, config.tester_examples)
    sampling = config.tester.sampling
    return load_player(name, config.seed, sampling, write=wording)


def more_programs(panel: Panel, seed: int) -> Iterator[PanelProgram]:
    """Make the rows that only this script has."""
    rng, other_rng = random.Random(f"{seed} decoys"), random.Random(f"{seed} around")
    known = [each for each in panel.programs if each.row == "copied_new"]
    for each, other in zip(known, [*known[1:], *known[:1]], strict=True):
        head, rest = each.code.split("\n", 1)
        code = "\n".join([head, "    mode = 0", *_idle(rng), rest])
        behind = ["", "", "def choose(mode: int) -> int:", *_idle(other_rng), "    return mode", ""]
        yield replace(each, row="decoys", code=code)
        yield replace(each, row="around", code=code.rstrip() + "\n".join(behind))
        yield replace(each, row="shuffled", instead=other.code)


def _idle(rng: random.Random) -> list[str]:
    """Comparisons that decide nothing."""
    return [f"    if mode == {rng.randint(112, 999)}: return {i}" for i in range(DECOYS)]


def _of_argument(code: str) -> list[str]:
    """Numbers on lines that name the argument of the first function, behind its head."""
    head, *rest = code.splitlines() or [""]
    name = head.partition("(")[2].partition(":")[0] or "-"
    lines = [line for line in rest if re.search(rf"\b{re.escape(name)}\b", line)]
    return re.findall(r"\b\d{3,}\b", "\n".join(lines))


def table(root: Path, seeds: int) -> Table:
    """Add up the panels of all seeds."""
    sums: dict[tuple[str, str], PanelCount] = defaultdict(lambda: PanelCount(0, 0))
    columns = ["untrained", "trained in view", "trained blind", *SCRIPTS]
    for seed, way in itertools.product(range(seeds), WAYS):
        path = folder_of(root, way, seed) / "whole_panel.json"
        found = json.loads(path.read_text())["counts"] if path.exists() else {}
        for name, counts in found.items():
            column = f"trained {way}" if name == "trained" else name
            for row, count in counts.items():
                sums[row, column] += PanelCount(*count)
    made = Table("", title=f"{seeds} seeds: share, 95% interval, counts (by a right value)")
    for column in columns:
        made.add_column(column, justify="right")
    for row, label in {**ROWS, **MORE_ROWS}.items():
        counts = [sums.get((row, column)) for column in columns]
        made.add_row(label, *(f"{cell(each)} ({each.right})" if each else "-" for each in counts))
    return made


if __name__ == "__main__":
    main()
