"""`codea1 watch`: a run in the terminal while it goes on; one picture, for 80 columns and more."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from codea1_env.cli.errors import InputError
from codea1_env.cli.parsing import parse
from codea1_env.rendering.display import clean, clock
from codea1_env.training.config import RunError
from codea1_env.training.metrics import Row
from codea1_env.training.progress import PHASES
from codea1_env.training.run_folder import no_run
from codea1_env.training.summary import SUMMARY, figure, phase_totals, start_and_end

if TYPE_CHECKING:
    from codea1_env.report.live import LastEpisode, LiveRun, Pace

_PAUSE = 1.0  # seconds between two looks at the folder, at least
_REST = 9.0  # pause after a look, in lengths of the look: no run of many steps must be slowed down
EPISODES = 12  # that are shown at most
_FEWEST = 3  # that are shown however low the terminal is
_LONGEST = 300  # characters of a text that are looked at
_BARS, _PLAIN_BARS = "▁▂▃▄▅▆▇█", "_.-=+*%#"
_TONES = {"coder": "green", "tester": "red", "nobody": "yellow"}


@dataclass(frozen=True)
class WatchCommand:
    """Show a run in the terminal while it goes on: curves, last episodes, phases, speed and remaining time.

    It ends with the run, or with Ctrl-C, which does nothing to the run. Without a terminal it shows the run once.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of the run. Its logs need not be there yet."""
    once: bool = False
    """Show the run as it stands, and end."""


def run(arguments: Sequence[str]) -> int:
    """Run `codea1 watch`; returns the exit code."""
    command = parse(WatchCommand, arguments, name="watch")
    # Here, so that a wrong word is told before the rest is loaded.
    from codea1_env.report.live import read_live

    if not (command.run / "config.toml").is_file():
        raise InputError(
            f"expect {command.run} to be the folder of a run, actually: {no_run(command.run)}"
        )
    console = Console()
    try:
        name = command.run.resolve().name
        now = read_live(command.run, name, EPISODES)
        if command.once or not console.is_terminal:
            console.print(screen(now, console))
            return 0
        live, took = Live(screen(now, console), console=console, auto_refresh=False), 0.0
        with live, suppress(KeyboardInterrupt):  # how one leaves; the last picture stays
            while not now.finished:
                time.sleep(max(_PAUSE, _REST * took))
                began = time.perf_counter()
                now = read_live(command.run, name, EPISODES)
                live.update(screen(now, console), refresh=True)
                took = time.perf_counter() - began
    except RunError as error:
        raise InputError(str(error)) from error
    return 0


def screen(now: LiveRun, console: Console) -> RenderableType:
    """Return the picture of a run for a terminal."""
    above = [*_head(now), _speed(now.pace)]
    curves = _curves(now.run.metrics, "->" if console.options.ascii_only else "→")
    if curves.row_count == 0:
        above.append(Text("Nothing is logged yet: the run gets ready.", style="dim"))
    above += [Text(""), curves, Text(""), _phases(now)]
    lines = 6 + curves.row_count + 3
    shown = now.episodes[: max(_FEWEST, min(EPISODES, console.size.height - lines))]
    return Group(*above, Text(""), _episodes(shown)) if shown else Group(*above)


def _head(now: LiveRun) -> list[RenderableType]:
    """Return what the run is, and how far."""
    run, config = now.run, now.run.config
    roles = {role: config.player(role).player for role in ("coder", "tester")}
    names = (config.model_of(role) if name == "llm" else name for role, name in roles.items())
    about = _line(f"  {config.problems}, {' against '.join(names)}, seed {config.seed}")
    parts = ((_line(run.name), "bold"), (about, "dim"))
    state = run.state
    if not now.finished and now.age is not None:
        state += f", last line {clock(now.age)} ago"
    if run.damaged:
        state += f", {sum(run.damaged.values())} damaged lines"
    line = Table.grid(padding=(0, 1))
    share = run.step / config.max_steps if config.max_steps else 1.0
    line.add_row(ProgressBar(total=1.0, completed=min(share, 1.0), width=20), Text(state))
    return [Text.assemble(*parts, overflow="ellipsis", no_wrap=True), line]


def _speed(pace: Pace) -> Text:
    known = [
        "" if pace.steps is None else f"{pace.steps:.3g} steps/s",
        "" if pace.verdicts is None else f"{pace.verdicts:.3g} verdicts/s",
        f"{clock(pace.spent)} of steps so far" if pace.spent else "",
        f"about {clock(pace.left)} left" if pace.left else "",
    ]
    return Text(", ".join(filter(None, known)), style="dim")


def _curves(rows: Sequence[Row], arrow: str) -> Table:
    """Return a line for each measure that the run has."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(max_width=48, no_wrap=True, overflow="ellipsis")
    table.add_column(ratio=1, min_width=8)
    table.add_column(justify="right", no_wrap=True)
    if not rows:
        return table
    start, end = start_and_end(rows)
    for group in _beside_controls():
        points = {
            name: [(row["step"], row[name]) for row in rows if row.get(name) is not None]
            for name in group
        }
        values = [value for each in points.values() for _, value in each]
        for name in group:
            if points[name]:
                curve = _Curve(points[name], rows[-1]["step"], min(values), max(values))
                ends = f"{figure(start[name])} {arrow} {figure(end[name])}"
                table.add_row(Text(SUMMARY[name]), curve, Text(ends))
    return table


def _beside_controls() -> list[list[str]]:
    """Return the measures, each with the controls below it: they share a scale, so that they can be compared."""
    groups: list[list[str]] = []
    for name, label in SUMMARY.items():
        groups += [] if label.startswith(" ") else [[]]
        groups[-1].append(name)
    return groups


class _Curve:
    """A curve in one line; a value stays until the next one."""

    def __init__(
        self, points: Sequence[tuple[int, float]], last: int, low: float, high: float
    ) -> None:
        self._points, self._last = points, last
        self._low, self._range = low, high - low

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from codea1_env.report.charts import bin_means

        width = -(-max(self._last, 1) // max(options.max_width - 1, 1))
        means = bin_means(self._points, width)
        bars = _PLAIN_BARS if options.ascii_only else _BARS
        shown, bar = "", " "
        for step in range(0, self._last + width, width):
            if step in means:
                height = (means[step] - self._low) / self._range if self._range else 0.5
                bar = bars[min(int(height * len(bars)), len(bars) - 1)]
            shown += bar
        yield Text(shown[: options.max_width], style="cyan", no_wrap=True)


def _phases(now: LiveRun) -> Text:
    """Where the time went, the longest first."""
    shown = []
    for name, _, share, _, speed in phase_totals(now.run.timings, now.run.metrics):
        tokens = f" ({speed:.0f} tokens/s)" if speed else ""
        # Words of a phase stay together.
        shown.append(f"{PHASES.get(name, name)} {share:.0%}{tokens}".replace(" ", "\u00a0"))
    return Text("   ".join(shown), style="dim")


def _episodes(episodes: Sequence[LastEpisode]) -> Table:
    """Return the last episodes: who won, at which problem, and a test that broke the program."""
    table = Table.grid(padding=(0, 2, 0, 0), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", width=24)
    table.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    for each in episodes:
        winner = "nobody" if each.winner == "nobody" else f"{each.winner} wins"
        test = Text(_line(each.test or each.outcome), style="" if each.test else "dim")
        step, won = Text(f"step {each.step}", style="dim"), Text(winner, style=_TONES[each.winner])
        table.add_row(step, won, Text(_line(each.task_id)), test)
    return table


def _line(text: str) -> str:
    return clean(text[:_LONGEST]).replace("\n", " ")
