"""Makes the pictures of the site, from real episodes and runs.

python docs/gallery.py FOLDER                  a report and a leaderboard, as pages (minutes)
python docs/gallery.py --picture FILE.svg      one episode as it looks in a terminal (a second)
"""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

PLAY = ["play", "--problem", "starter/is_leap_year", "--render", "ansi"]
TABULAR = ["train", "--preset", "tabular", "--max-steps", "30"]
BENCH = ["bench", "algorithms", "--quick", "--algorithms", "code-a1", "golden-tests"]

# Colours that can be told from their ground: at least 4.5 to 1.
THEME = TerminalTheme(
    (22, 27, 34),
    (220, 226, 234),
    [
        (22, 27, 34), (255, 135, 130), (95, 215, 145), (230, 190, 95),
        (130, 180, 255), (205, 165, 255), (100, 205, 225), (220, 226, 234),
    ],
)  # fmt: skip

# Rich's own frame fetches its font from another host.
FRAME = """\
<svg viewBox="0 0 {terminal_width} {terminal_height}" xmlns="http://www.w3.org/2000/svg" role="img">
<title>codea1 play: a program, the tests that judge it, and the rewards</title>
<style>
.{unique_id}-matrix {{ font: {char_height}px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; }}
{styles}
</style>
<rect width="{terminal_width}" height="{terminal_height}" rx="10" fill="#161b22"/>
<g transform="translate(18, 12)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def codea1(*arguments: str) -> str:
    """Run a command line in a process of its own, and return what it prints."""
    command = [sys.executable, "-m", "codea1_env.cli", *arguments]
    print("$ codea1", *arguments, file=sys.stderr, flush=True)
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def picture() -> str:
    """Return an episode as SVG: the same bytes from the same version of rich."""
    shown = "$ codea1 play --problem starter/is_leap_year\n" + codea1(*PLAY).rstrip("\n")
    width = 3 + max(len(line) for line in Text.from_ansi(shown).plain.split("\n"))
    console = Console(
        record=True, width=width, file=io.StringIO(), force_terminal=True, legacy_windows=False
    )
    console.print(Text.from_ansi(f"{shown}\n"), soft_wrap=True)
    svg = console.export_svg(theme=THEME, code_format=FRAME, unique_id="t")
    # Rich cuts each line off at the frame, where none is so long, and writes each line's end as a text of its own.
    return re.sub(r' clip-path="[^"]*"|<text[^>]*>\n</text>|\.\d{6,}(?=")', "", svg)


def finished(run: Path, *command: str) -> Path:
    """Return a run's folder, made by a command if it is not there; what was interrupted begins anew."""
    if not run.exists():
        part = run.with_name(f"{run.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        codea1(*command, "--output-dir", str(part))
        part.rename(run)
    return run


def gallery(folder: Path) -> None:
    """Write two pages; runs that are finished are not made again."""
    pages, runs = folder / "gallery", folder.parent / "gallery-runs"
    pages.mkdir(parents=True, exist_ok=True)
    seeds = [finished(runs / f"seed-{seed}", *TABULAR, "--seed", str(seed)) for seed in (0, 1)]
    bench = finished(runs / "leaderboard", *BENCH)
    for name, of in (("report", seeds), ("leaderboard", [bench])):
        codea1("report", *map(str, of), "--force", "-o", str(pages / f"{name}.html"))


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("folder", nargs="?", type=Path)
    what.add_argument("--picture", type=Path)
    options = parser.parse_args()
    if options.picture is None:
        gallery(options.folder)
    else:
        options.picture.write_text(picture(), "utf-8")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:  # it has said why
        sys.exit(error.returncode)
    except KeyboardInterrupt:
        sys.exit(130)
