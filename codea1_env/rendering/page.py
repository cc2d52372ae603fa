"""An episode as one self-contained page: no scripts, no links, all text escaped."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from codea1_env.game import Episode
from codea1_env.rendering.display import DisplayRow, clean, code_lines, dropped_rows, verdict_rows
from codea1_env.responses import Program
from codea1_env.rounds import PlayedRound
from codea1_env.spaces import CODER, TESTER

MAX_LINES: Final = 500
LINE_CHARS: Final = 1_000
TEXT_CHARS: Final = 4_000
# No alternative backtracks over what it has read: linear time on any text.
TOKEN: Final = re.compile(
    r"""(?P<comment>\#.*)"""
    r"""|(?P<string>\"{3}[\s\S]*?(?:\"{3}|\Z)|'{3}[\s\S]*?(?:'{3}|\Z)"""
    r"""|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?)"""
    r"""|(?P<number>\b\d[\w.]*)|(?P<word>[^\W\d]\w*)"""
)
KEYWORDS: Final = frozenset(keyword.kwlist)

STYLE: Final = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1c2128; --dim: #626c7a; --line: #dfe3e8; --code: #f9fafb;
  --good: #1a7f4b; --good-bg: #e2f5ea; --bad: #c0262d; --bad-bg: #fde8e8; --warn: #8a5a00;
  --warn-bg: #fdf1d7; --word: #8250df; --text: #0a6847; --num: #0550ae; }
@media (prefers-color-scheme: dark) { :root {
  --page: #0f1318; --card: #171c23; --ink: #e4e8ee; --dim: #97a1af; --line: #2a323d; --code: #12171d;
  --good: #56d490; --good-bg: #12301f; --bad: #ff8a85; --bad-bg: #3b1819; --warn: #e5b95c;
  --warn-bg: #33280f; --word: #c8a2ff; --text: #7ee2b0; --num: #8cc2ff; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.5rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .8rem; margin: 0; padding: .6rem 1rem; color: var(--dim); font-weight: 600;
  letter-spacing: .04em; text-transform: uppercase; border-bottom: 1px solid var(--line); }
p { margin: .25rem 0; }
.dim { color: var(--dim); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; margin: .75rem 0;
  overflow: hidden; }
.card > p { padding: .5rem 1rem; }
.scores { display: flex; flex-wrap: wrap; gap: .75rem; margin: .75rem 0; }
.score { flex: 1 1 12rem; padding: .75rem 1rem; margin: 0; }
.score b { display: block; font-size: 1.6rem; font-variant-numeric: tabular-nums; line-height: 1.2; }
pre, code { font: .85rem/1.55 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { margin: 0; padding: .75rem 0; overflow-x: auto; background: var(--code); }
pre i { display: inline-block; width: 3.5rem; padding-right: 1rem; text-align: right; font-style: normal;
  color: var(--dim); user-select: none; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-size: .8rem; color: var(--dim); font-weight: 600; }
th, td { padding: .5rem 1rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
td { font-size: .9rem; }
td code { white-space: pre-wrap; overflow-wrap: anywhere; }
.badge { display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-size: .8rem;
  font-weight: 600; white-space: nowrap; }
.good { color: var(--good); background: var(--good-bg); }
.bad { color: var(--bad); background: var(--bad-bg); }
.warn { color: var(--warn); background: var(--warn-bg); }
.t-word { color: var(--word); } .t-string { color: var(--text); } .t-number { color: var(--num); }
.t-comment { color: var(--dim); font-style: italic; }
"""


def html(episode: Episode) -> str:
    """Return the episode as a self-contained HTML page, light or dark as the reader prefers."""
    title = escape(clean(episode.problem.task_id))
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            # Should any text ever get through unescaped, the browser still runs and loads nothing.
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>Code-A1 · {title}</title><style>{STYLE}</style></head><body><main>",
            *_body(episode, title),
            "</main></body></html>",
        ]
    )


def _body(episode: Episode, title: str) -> Iterator[str]:
    actor = episode.actor
    status = "finished" if actor is None else f"{actor} is to act"
    yield f"<header><h1>{title}</h1>"
    yield (
        f'<p class="dim">Code-A1 · {len(episode.rounds)} of {episode.max_rounds} '
        f"round{'' if episode.max_rounds == 1 else 's'} played · {status}</p></header>"
    )
    yield _card("Problem", _code(episode.problem.prompt))
    for number, played in enumerate(episode.rounds, start=1):
        yield f"<section><h2>Round {number}</h2>"
        yield from _round(played)
        yield "</section>"
    if episode.program is not None:
        yield f"<section><h2>Round {len(episode.rounds) + 1}</h2>"
        yield _card(f"Program by {CODER}", _program(episode.program))
        yield f'<p class="dim">Waiting for the tests of {TESTER}.</p></section>'


def _round(played: PlayedRound) -> Iterator[str]:
    verdict = played.verdict
    parts = verdict.suites[0].rewards
    scored = verdict.code_reward is not None
    coder_note = "share of tests passed" if scored else "no test could score it"
    tester_note = f"validity {parts.validity:.3f} · adversarial {parts.adversarial:.3f}"
    yield '<div class="scores">'
    for agent, note in ((CODER, coder_note), (TESTER, tester_note)):
        yield (
            f'<div class="card score">{agent}<b>{played.rewards[agent]:.3f}</b>'
            f'<span class="dim">{note}</span></div>'
        )
    yield "</div>"
    problem = ""
    if played.program.problem is None and not verdict.code_executes:
        message = escape(clean(verdict.load.message[:TEXT_CHARS]))
        outcome = escape(verdict.load.outcome.value.replace("_", " "))
        problem = f'<p><span class="badge bad">does not run: {outcome}</span> {message}</p>'
    yield _card(f"Program by {CODER}", problem + _program(played.program))
    rows = [*verdict_rows(verdict.suites[0].tests), *dropped_rows(played.dropped)]
    yield _card(f"Tests by {TESTER}", _table(rows))
    if verdict.history:
        yield _card("Tests from the Mistake Book", _table(verdict_rows(verdict.history)))


def _card(title: str, content: str) -> str:
    return f'<div class="card"><h3>{title}</h3>{content}</div>'


def _program(program: Program) -> str:
    if program.problem is not None:
        reason = escape(clean(program.problem[:TEXT_CHARS]))
        return f'<p><span class="badge bad">no program</span> {reason}</p>'
    return _code(program.code)


def _code(code: str) -> str:
    shown, left_out = code_lines(code.strip("\n"), MAX_LINES, LINE_CHARS)
    coloured = _coloured("\n".join(shown)).split("\n")
    lines = [f"<i>{number}</i>{line}" for number, line in enumerate(coloured, start=1)]
    if left_out:
        lines.append(f'<i></i><span class="dim">... {left_out} more lines</span>')
    return f"<pre>{chr(10).join(lines)}</pre>"


def _coloured(code: str) -> str:
    """Python as HTML, roughly coloured. The text may be anything."""
    parts = []
    end = 0
    for match in TOKEN.finditer(code):
        kind, text = match.lastgroup, match[0]
        parts.append(escape(code[end : match.start()]))
        end = match.end()
        if kind == "word" and text not in KEYWORDS:
            parts.append(escape(text))
        else:
            # A string may go over several lines, each of which gets a number of its own.
            spans = [f'<span class="t-{kind}">{escape(line)}</span>' for line in text.split("\n")]
            parts.append("\n".join(spans))
    parts.append(escape(code[end:]))
    return "".join(parts)


def _table(rows: Sequence[DisplayRow]) -> str:
    if not rows:
        return '<p class="dim">No tests.</p>'
    cells = [
        f'<tr><td class="dim">{number}</td><td><span class="badge {row.tone}">{escape(row.verdict)}</span>'
        f"</td><td><code>{_cut(row.text)}</code></td><td>{_cut(row.detail)}</td></tr>"
        for number, row in enumerate(rows, start=1)
    ]
    head = "<tr><th>#</th><th>Verdict</th><th>Test</th><th>Detail</th></tr>"
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(cells)}</tbody></table></div>'


def _cut(text: str) -> str:
    more = f" ... ({len(text) - TEXT_CHARS} more characters)" if len(text) > TEXT_CHARS else ""
    return escape(text[:TEXT_CHARS]) + more
