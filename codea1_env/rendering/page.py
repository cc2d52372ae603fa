"""An episode as a row of blocks, which every rendering shows; and as one self-contained page: no scripts, no links, all text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from codea1_env.game import Episode
from codea1_env.rendering.display import (
    DisplayRow,
    Tone,
    clean,
    code_lines,
    dropped_rows,
    verdict_rows,
)
from codea1_env.responses import Program
from codea1_env.rounds import PlayedRound
from codea1_env.spaces import CODER, TESTER


class ShownLine(NamedTuple):
    """A line of text, and how it is meant."""

    text: str
    tone: Tone | None = None


class ShownBlock(NamedTuple):
    """A part of an episode: lines, then code, then rows of tests."""

    title: str
    lines: Sequence[ShownLine] = ()
    code: str = ""
    rows: Sequence[DisplayRow] = ()


def blocks(episode: Episode, first_round: int = 1) -> Iterator[ShownBlock]:
    """Yield the parts of an episode from a round on, in order; before the first stands the problem."""
    if first_round == 1:
        yield ShownBlock("Problem", code=episode.problem.prompt)
    for number, played in enumerate(episode.rounds[first_round - 1 :], start=first_round):
        yield from _round(number, played, episode.max_rounds)
    if episode.program is not None:
        yield _program(len(episode.rounds) + 1, episode.program, episode.max_rounds)


def state(episode: Episode) -> str:
    """Return whose turn it is, in words."""
    return "The episode is over." if episode.actor is None else f"{episode.actor} is to act."


def _round(number: int, played: PlayedRound, max_rounds: int) -> Iterator[ShownBlock]:
    verdict = played.verdict
    lines = []
    if played.program.problem is None and not verdict.code_executes:
        outcome = verdict.load.outcome.value.replace("_", " ")
        said = f"The program does not run: {outcome} {clean(verdict.load.message)}"
        lines.append(ShownLine(said.rstrip(), "bad"))
    yield _program(number, played.program, max_rounds, lines)
    rows = [*verdict_rows(verdict.suites[0].tests), *dropped_rows(played.dropped)]
    yield ShownBlock(
        f"Tests by {TESTER}", [] if rows else [ShownLine("no tests", "warn")], rows=rows
    )
    if verdict.history:
        yield ShownBlock("Tests from the Mistake Book", rows=verdict_rows(verdict.history))
    parts = verdict.suites[0].rewards
    unscorable = "" if verdict.code_reward is not None else " (could not be scored)"
    of_tester = f"validity {parts.validity:.3f}, adversarial {parts.adversarial:.3f}"
    yield ShownBlock(
        "Rewards",
        [
            ShownLine(f"{CODER:<10}{played.rewards[CODER]:6.3f}{unscorable}"),
            ShownLine(f"{TESTER:<10}{played.rewards[TESTER]:6.3f}  {of_tester}"),
        ],
    )


def _program(
    number: int, program: Program, max_rounds: int, lines: Sequence[ShownLine] = ()
) -> ShownBlock:
    title = f"Program by {CODER}" + (f", round {number} of {max_rounds}" if max_rounds > 1 else "")
    if program.problem is not None:
        return ShownBlock(title, [ShownLine(f"no program: {clean(program.problem)}", "bad")])
    return ShownBlock(title, lines, program.code)


MAX_LINES: Final = 500
LINE_CHARS: Final = 1_000
TEXT_CHARS: Final = 4_000

STYLE: Final = """
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1c2128; --dim: #626c7a; --line: #dfe3e8;
  --good: #1a7f4b; --bad: #c0262d; --warn: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1318; --card: #171c23; --ink: #e4e8ee; --dim: #97a1af;
  --line: #2a323d; --good: #56d490; --bad: #ff8a85; --warn: #e5b95c; } }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: .9rem; margin: 0; padding: .6rem 1rem; color: var(--dim); border-bottom: 1px solid var(--line); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; margin: .75rem 0; overflow-x: auto; }
.card p { margin: 0; padding: .5rem 1rem; white-space: pre-wrap; }
.dim { color: var(--dim); } .good { color: var(--good); } .bad { color: var(--bad); } .warn { color: var(--warn); }
pre, code { font: .85rem/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { margin: 0; padding: .75rem 0; }
pre i { display: inline-block; width: 3.5rem; padding-right: 1rem; text-align: right; font-style: normal;
  color: var(--dim); user-select: none; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .5rem 1rem; border-bottom: 1px solid var(--line); vertical-align: top; text-align: left; font-size: .9rem; }
td code { white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def html(episode: Episode) -> str:
    """Return the episode as a self-contained HTML page, light or dark as the reader prefers."""
    title = escape(clean(episode.problem.task_id))
    rounds = f"{len(episode.rounds)} of {episode.max_rounds} rounds played. {state(episode)}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Should any text ever get through unescaped, the browser still runs and loads nothing.
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>Code-A1 · {title}</title><style>{STYLE}</style></head><body><main>",
            f'<h1>{title}</h1><p class="dim">Code-A1 · {rounds}</p>',
            *map(_card, blocks(episode)),
            "</main></body></html>",
        ]
    )


def _card(block: ShownBlock) -> str:
    return f'<div class="card"><h2>{block.title}</h2>{"".join(_content(block))}</div>'


def _content(block: ShownBlock) -> Iterator[str]:
    for line in block.lines:
        yield f'<p class="{line.tone or "plain"}">{_cut(line.text)}</p>'
    if block.code:
        yield _code(block.code)
    if block.rows:
        yield _table(block.rows)


def _code(code: str) -> str:
    shown, left_out = code_lines(code.strip("\n"), MAX_LINES, LINE_CHARS)
    lines = [f"<i>{number}</i>{escape(line)}" for number, line in enumerate(shown, start=1)]
    if left_out:
        lines.append(f'<i></i><span class="dim">... {left_out} more lines</span>')
    return f"<pre>{chr(10).join(lines)}</pre>"


def _table(rows: Sequence[DisplayRow]) -> str:
    cells = [
        f'<tr><td class="dim">{number}</td><td class="{row.tone}">{escape(row.verdict)}</td>'
        f"<td><code>{_cut(row.text)}</code></td><td>{_cut(row.detail)}</td></tr>"
        for number, row in enumerate(rows, start=1)
    ]
    head = "<tr><th>#</th><th>Verdict</th><th>Test</th><th>Detail</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{''.join(cells)}</tbody></table>"


def _cut(text: str) -> str:
    more = f" ... ({len(text) - TEXT_CHARS} more characters)" if len(text) > TEXT_CHARS else ""
    return escape(text[:TEXT_CHARS]) + more
