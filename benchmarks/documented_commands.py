"""Runs every command that README and docs show, as a reader would, and says which failed.

    python benchmarks/documented_commands.py                              # all pages: hours, most of them in benchmarks
    python benchmarks/documented_commands.py docs/tutorials/*.md
    python benchmarks/documented_commands.py --list                       # what is run, what is not, and why

A command is a line of a block of code. Each page has a folder of its own, with what its reader would have: runs, evaluations,
files; a block of Python that begins with "# NAME.py" is written to that file. What only large machines, other hosts or days
could run is in `LEFT_OUT`; what takes long is run with less to do (`SHORTER`). Exit code 1 if a command failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if "_made" not in page.parts]
PROGRAM = r"(?:codea1|make|python|pip|vllm|evalplus\.evaluate) "

LEFT_OUT = {
    r"pip (un)?install": "changes this environment; tests/test_packaging.py installs the wheel",
    r"--engine ray": "needs Ray: tests/training/test_ray.py makes a cluster",
    r"\dgpu|coder-7b|vllm serve": "needs GPUs",
    r"--problems (humaneval\+|mbpp\+|livecodebench|ult --agent smol)|ULT_Lite|Qwen/": "needs the hub",
    r"\.jsonl\.gz|evalplus\.evaluate": "needs files of public sets",
    r"serve env": "serves until Ctrl-C: tests/integrations",
    r"trl_reward_function": "a language model: tests/training/test_training_examples.py does it with a tiny one",
    r"--num-iterations 1|--seeds 3|^codea1 bench algorithms$|algorithms code-a1 .*(sft|no-book)": "hours; with --quick it is run",
    r"--algorithms grpo rloo --seeds 2": "hours; tests/test_cli_bench.py does it with a tiny model",
    r"--resume --output-dir runs/algorithms-": "goes on with a folder that a reader has: tests/test_cli_bench.py",
    r"--baseline (golden-tests|self-play) --seed|make train ARGS": "how a figure of the results was made: hours",
}
"""Pattern of a command -> why it is not run here. Whether its options exist is checked by tests/test_docs.py."""

SHORTER = {
    "--preset (smollm2|qwen)(?!.*--dry-run)": "--max-steps 1 --max-problems 2 --problems-per-step 1 --eval-problems 1",
    "train --resume": "--max-steps 2",
    "right_lines --agent mutant$": "--num-samples 1 --max-problems 8",
    "--select": "--max-problems 2 --num-samples 2",
    "--agent tester-adapter": "--max-problems 2 --num-samples 1",
    "-o report.html": "--force",  # the page may have written one already
    "RUN RUN2": "--max-problems 4",
}
"""Pattern of a command -> options that are added to it."""

FOR_EXAMPLE = {
    "SOURCE": "mine.jsonl",
    "NAME": "golden-tests",
    "RUN2": "runs/b",
    "RUN": "runs/a",
    "ult": "starter",
    "smollm2-gpu": "smollm2-cpu",
    "qwen2.5-coder-1.5b-lora": "smollm2-cpu",
}
"""A word for something of the reader's -> what is there. Presets for GPUs are only planned with as they are."""

FILES = {
    "mine.jsonl": '{"task_id": "mine/half", "prompt": "def half(n: int) -> int:\\n    ...", "entry_point": "half", '
    '"reference": "def half(n: int) -> int:\\n    return n // 2", "tests": ["assert half(4) == 2", "assert half(3) == 1"]}\n',
}
RUNS = [
    *(f"codea1 train --quick --seed {seed} --output-dir runs/{name}" for seed, name in enumerate(["a", "b", "c", "NAME"])),
    *(f"codea1 eval code --agent {agent} --max-problems 4 --num-samples 2 --k 1 --output-dir runs/{name}"
      for agent, name in [("mutant", "eval-before"), ("reference", "eval-after"), ("mutant", "eval-code")]),
]  # fmt: skip
"""What a reader has before: files, and commands that make runs."""


class Command(NamedTuple):
    """A command line of a page."""

    page: Path
    text: str

    @property
    def left_out(self) -> str | None:
        """Why it is not run, or None."""
        return next((why for what, why in LEFT_OUT.items() if re.search(what, self.text)), None)

    @property
    def to_run(self) -> str:
        """The command as it is run: on things that are there, with less to do."""
        words = shlex.split(self.text)
        if "--dry-run" not in words:
            words = [FOR_EXAMPLE.get(word, word) for word in words]
        added = [less for what, less in SHORTER.items() if re.search(what, self.text)]
        return " ".join([shlex.join(words), *added])


def commands(page: Path) -> Iterator[Command]:
    """Yield the command lines of a page, in order."""
    text = re.sub(r"^```\w+\n.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    text = text.replace("\\\n", " ")
    for line in re.findall(rf"^(?: {{4}}|\$ |)((?:\w+=\S+ )*{PROGRAM}.+)$", text, re.MULTILINE):
        found = re.split(r"\s+#", line)[0].strip()
        if not re.match(r"(make|python|pip|vllm) \w+[ ,].*[,.]$", found):
            yield Command(page, found)


def files(page: Path) -> dict[str, str]:
    """Return the files that a page has its reader write."""
    blocks = re.findall(
        r"^```python\n(# (\w+\.py)\n.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    return {name: text for text, name in blocks}


class Workshop:
    """Folders in which the commands of pages are run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        programs = folder / "bin"
        programs.mkdir(parents=True)
        for name, command in {"python": "", "codea1": "-m codea1_env.cli"}.items():
            (programs / name).write_text(f'#!/bin/sh\nexec {sys.executable} {command} "$@"\n')
            (programs / name).chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }

    def prepare(self, page: Path) -> Path:
        """Return a folder with what the reader of a page has."""
        folder = self.folder / str(page.relative_to(ROOT)).replace("/", "_")
        folder.mkdir()
        for name in ("examples", "benchmarks"):
            (folder / name).symlink_to(ROOT / name)
        for name, text in {**FILES, **files(page)}.items():
            (folder / name).write_text(text, "utf-8")
        if any(re.search(r"runs/|RUN", item.text) for item in commands(page) if not item.left_out):
            self.make_runs()
            shutil.copytree(self.folder / "runs", folder / "runs", dirs_exist_ok=True)
        return folder

    def make_runs(self) -> None:
        """Make the runs that pages speak of, once."""
        if not (self.folder / "runs").exists():
            for command in RUNS:
                self.run(command, self.folder).check_returncode()

    def run(
        self, command: str, folder: Path, limit: float = 3600.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a command line; one that takes too long counts as failed."""
        if command.startswith("make "):
            folder = ROOT
        process = subprocess.Popen(
            command,
            shell=True,
            cwd=folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # so that it ends as a whole
        )
        try:
            said = process.communicate(timeout=limit)[0]
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said = f"{process.communicate()[0]}\nstopped after {limit:.0f} s"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return subprocess.CompletedProcess(command, process.returncode, said)


def main() -> int:
    """Run the pages that were asked for; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: README.md and docs")
    parser.add_argument("--list", action="store_true", help="only say what would be done")
    options = parser.parse_args()
    pages = [path.resolve() for path in options.pages] or PAGES
    for page in pages:
        if page.suffix != ".md" or not page.is_file() or ROOT not in page.parents:
            parser.error(f"Expect a page of {ROOT}, such as docs/report.md, actually: {page}")
    failed = []
    with tempfile.TemporaryDirectory(prefix="codea1-pages-") as name:
        workshop = Workshop(Path(name) / "w")
        for page in pages:
            folder = None
            for command in commands(page):
                where = f"{page.relative_to(ROOT)}: {command.text}"
                if command.left_out or options.list:
                    print(f"{where}\n    {command.left_out or command.to_run}", flush=True)
                    continue
                folder = folder or workshop.prepare(page)
                begun = time.monotonic()
                done = workshop.run(command.to_run, folder)
                print(f"{where}\n    exit {done.returncode}, {time.monotonic() - begun:.0f} s", flush=True)  # fmt: skip
                if done.returncode:
                    failed.append(where)
                    print(done.stdout[-2000:], flush=True)
    print("\n".join(["Failed:", *failed]) if failed else "Every command ran.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
