"""What one hour of a GPU tells about training language models; also tried on a processor, with a small model.

    python benchmarks/gpu_hour.py --output gpu_hour                                   # Qwen2.5-Coder-1.5B
    python benchmarks/gpu_hour.py --output gpu_hour --model FOLDER --small FOLDER     # without a hub
    python benchmarks/gpu_hour.py --output /tmp/here --model smollm2-135m --minutes 20     # on a processor

Each part has its own time, and what is found is printed and appended to DIR/results.jsonl as it comes: an hour that ends
early has told something. Parts whose result is there are not done again. Exit code 1 if a part failed.

The parts two_gpus and eight_gpus are runs of the presets for so many, with small steps, and are skipped where there are fewer:

    python benchmarks/gpu_hour.py --output gpus --parts checks two_gpus eight_gpus

If all is well, each prints "status": "done", under "mismatch" two means below 0.05 (so the engines write with the weights
that were trained last) and, for each phase, its share of the time and its tokens per second. For eight_gpus "devices" is
"coder: 2 learn, 2 write; tester: 1 learn, 3 write", and "seconds/learn" is about the longer of the two updates, not their sum.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from codea1_env.training.summary import phase_totals

PACKAGES = ("codea1-env", "torch", "transformers", "trl", "peft", "accelerate", "vllm", "ray")
GPU = torch.cuda.is_available()
Result = dict[str, Any]


class SkippedError(Exception):
    """A part that says nothing on this machine."""


class Hour:
    """The runs of the hour, their folders and their time."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.folder: Path = given.output
        self.model, self.small = given.model, given.small or given.model
        self.backend = "vllm" if _version("vllm") and GPU else "transformers"
        self.limit = 0.0

    def train(
        self,
        name: str,
        *options: str,
        model: str = "",
        kill_after: int | None = None,
        preset: str = "smollm2-gpu" if GPU else "smollm2-cpu",
    ) -> tuple[list[Result], list[Result], str]:
        """Train once more; return the rows of metrics and timings, and the last lines of what was said.

        With `kill_after` the run is ended by SIGKILL after so many steps.
        """
        folder = self.folder / name
        command = [sys.executable, "-m", "codea1_env.cli", "train", "--preset", preset]
        command += ["--model", model or self.model, "--backend", self.backend, *_small()]
        if (folder / "config.toml").is_file():
            command = [*command[:4], "--resume"]
        with open(self.folder / f"{name}.log", "a") as log:
            process = subprocess.Popen(
                [*command, *options, "--output-dir", str(folder)],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        ends = time.monotonic() + self.limit
        try:
            while process.poll() is None:
                time.sleep(0.5)
                if kill_after is not None and len(_rows(folder / "metrics.jsonl")) > kill_after:
                    break
                if time.monotonic() > ends:
                    process.send_signal(signal.SIGINT)
                    process.wait(60)
                    raise TimeoutError(f"{name} took more than {self.limit / 60:.0f} minutes")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said = (self.folder / f"{name}.log").read_text(errors="replace").strip().splitlines()
        if kill_after is None and process.returncode:
            raise RuntimeError(f"exit code {process.returncode}: {' '.join(said[-3:])[-600:]}")
        return _rows(folder / "metrics.jsonl"), _rows(folder / "timings.jsonl"), said[-1]


def _small() -> list[str]:
    """Options for runs of minutes."""
    sizes = ["16", "4", "4"] if GPU else ["1", "2", "2"]
    length, seen = ("256", "32") if GPU else ("24", "2")
    names = ["--problems-per-step", "--num-generations", "--num-suites"]
    options = [word for pair in zip(names, sizes, strict=True) for word in pair]
    options += ["--problems", "starter", "--max-minutes", "None"]
    options += ["--prompts", "detailed"] if GPU else []
    options += ["--max-problems", seen, "--eval-trained", seen, "--eval-problems", "0"]
    options += ["--eval-samples", "1", "--save-steps", "1", "--workers", "2", "--overlap", "1"]
    for role in ("coder", "tester"):
        options += [f"--{role}.sampling.max-completion-length", length]
    return options


def checks(hour: Hour) -> Result:
    """Versions, device and memory, and the rate at which it multiplies."""
    found: Result = {name: _version(name) for name in PACKAGES}
    found |= {"python": platform.python_version(), "machine": platform.machine()}
    found |= {"cores": len(os.sched_getaffinity(0)), "backend": hour.backend}
    device = torch.device("cuda" if GPU else "cpu")
    if GPU:
        properties = torch.cuda.get_device_properties(0)
        found |= {"device": properties.name, "memory_gb": properties.total_memory / 1e9}
        found["bfloat16"] = torch.cuda.is_bf16_supported(including_emulation=False)
    one = torch.ones(2048, 2048, device=device, dtype=torch.bfloat16 if GPU else torch.float32)
    started, products = time.perf_counter(), 0
    while time.perf_counter() - started < 2:
        one = (one @ one).clamp(max=1)
        products += 1
        if GPU:
            torch.cuda.synchronize()
    rate = products * 2 * 2048**3 / (time.perf_counter() - started)
    return found | {"tflops": rate / 1e12}


def adapters(hour: Hour) -> Result:
    """Two steps with adapters at a high rate: does the engine follow the trained weights?"""
    rows, times, _ = hour.train("adapters", "--max-steps", "3", *_fast_learning())
    return _mismatch(rows) | _speeds(rows, times)


def whole(hour: Hour) -> Result:
    """The same with all weights of the coder."""
    options = ["--lora-rank", "0", "--tester.freeze", "--max-steps", "2"]
    rows, times, _ = hour.train("whole", *options)
    return _mismatch(rows) | _speeds(rows, times)


def sizes(hour: Hour) -> Result:
    """Tokens per second and shares of the phases at three sizes of a step."""
    found: Result = {}
    for problems in (8, 32, 64) if GPU else (1, 2, 3):
        options = ["--problems-per-step", str(problems), "--max-problems", str(problems)]
        rows, times, _ = hour.train(f"size-{problems}", *options, "--max-steps", "2")
        found[str(problems)] = _speeds(rows, times)
    return found


def memory(hour: Hour) -> Result:
    """A batch that does not fit is answered with what to lower."""
    if not GPU:
        raise SkippedError("needs a GPU: on a processor the kernel ends a process without a word")
    options = ["--coder.trainer", "per_device_train_batch_size = 4096", "--max-steps", "1"]
    try:
        hour.train("memory", *options, "--problems-per-step", "1024", "--num-generations", "4")
    except RuntimeError as error:
        if "memory" in str(error):
            return {"said": str(error)}
        raise
    raise RuntimeError("a batch of 4,096 answers fitted, so that nothing was shown")


def resume(hour: Hour) -> Result:
    """A run that is killed after a step goes on to the same metrics."""
    options = ["--max-steps", "2", "--seed", "1"]
    expected, _, _ = hour.train("uninterrupted", *options)
    hour.train("killed", *options, kill_after=1)
    found, _, _ = hour.train("killed")
    names = [name for name, value in expected[-1].items() if isinstance(value, float)]
    most = max(abs(found[-1][name] - expected[-1][name]) for name in names)
    if most > 1e-3 * (1 + GPU * 50):  # a GPU does not add up in the same order twice
        raise RuntimeError(f"metrics of the resumed run differ by up to {most}")
    return {"greatest_difference": most, "metrics": len(names)}


def learning(hour: Hour) -> Result:
    """30 steps against an opponent that learns, and against one that does not, measured on what is held back."""
    steps = "30" if GPU else "2"
    found: Result = {}
    for name, options in (("adversary", []), ("frozen-tester", ["--tester.freeze"])):
        given = [
            "--max-steps",
            steps,
            "--eval-steps",
            steps,
            "--eval-problems",
            "16" if GPU else "2",
        ]
        rows, _, _ = hour.train(f"learning-{name}", *given, *options, model=hour.small)
        names = [key for key in rows[0] if key.startswith(("held_out/", "unseen/"))]
        found[name] = {key: [rows[0][key], rows[-1].get(key)] for key in names}
    return found


def two_gpus(hour: Hour) -> Result:
    """One GPU for each player, on which it learns and writes."""
    return _several(hour, 2, coder=1, tester=1)


def eight_gpus(hour: Hour) -> Result:
    """Four GPUs for each player, of which some learn and some write."""
    return _several(hour, 8, coder=2, tester=1)


def _several(hour: Hour, gpus: int, **learners: int) -> Result:
    if (there := torch.cuda.device_count()) < gpus:
        raise SkippedError(f"needs {gpus} GPUs, here are {there}")
    options = ["--max-steps", "2", "--difficulty", "None"]
    for role, number in learners.items():  # 64 answers of a step, two at a time in each process
        sizes = f"per_device_train_batch_size = 2, gradient_accumulation_steps = {32 // number}"
        options += [f"--{role}.trainer", sizes]
    preset = f"qwen2.5-coder-1.5b-{gpus}gpu"
    rows, times, _ = hour.train(f"gpus-{gpus}", *options, preset=preset)
    log = (hour.folder / f"gpus-{gpus}.log").read_text(errors="replace")
    devices = [line for line in log.splitlines() if "learn, " in line and "write" in line]
    seconds = {"seconds/learn": times[-1]["seconds/learn"], "devices": devices[-1]}
    return _mismatch(rows) | seconds | _speeds(rows, times)


PARTS: Mapping[str, tuple[float, Callable[[Hour], Result]]] = {
    "checks": (2, checks),
    "adapters": (8, adapters),
    "whole": (8, whole),
    "sizes": (10, sizes),
    "memory": (4, memory),
    "resume": (8, resume),
    "learning": (20, learning),
    "two_gpus": (15, two_gpus),
    "eight_gpus": (15, eight_gpus),
}
"""Name -> minutes that it may take of an hour (the first seven; each of several GPUs has its own), and what it does."""


def main() -> int:
    """Do the parts that are not done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--model", default="Qwen/Qwen2.5-Coder-1.5B-Instruct")
    parser.add_argument("--small", help="model of the part learning; the same if left out")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--parts", nargs="+", choices=tuple(PARTS), default=tuple(PARTS))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    hour, results = Hour(given), given.output / "results.jsonl"
    done = {row["part"] for row in _rows(results) if row["status"] != "failed"}
    failed = 0
    for name in given.parts:
        if name in done:
            continue
        minutes, part = PARTS[name]
        hour.limit = 60 * minutes * given.minutes / 60
        started = time.monotonic()
        try:
            row: Result = {"status": "done", **part(hour)}
        except SkippedError as reason:
            row = {"status": "skipped", "why": str(reason)}
        except (RuntimeError, TimeoutError, OSError, KeyError, IndexError) as error:
            row, failed = {"status": "failed", "why": f"{type(error).__name__}: {error}"}, 1
        row = {"part": name, "seconds": round(time.monotonic() - started, 1), **row}
        with open(results, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row, indent=1), flush=True)
    return failed


def _fast_learning() -> list[str]:
    # An engine that keeps old weights shows at such a rate.
    return ["--coder.learning-rate", "1e-3", "--tester.learning-rate", "1e-3"]


def _mismatch(rows: list[Result]) -> Result:
    """Compare the engine's log probabilities with the trainer's, of the last step."""
    found = {name: value for name, value in rows[-1].items() if "sampling_logp_difference/" in name}
    if not found:
        return {"mismatch": "not measured: the trained model itself generated"}
    worst = max(value for name, value in found.items() if name.endswith("/mean"))
    if worst > 0.05:
        raise RuntimeError(f"the engine does not follow the trained weights: {found}")
    return {"mismatch": found}


def _speeds(rows: list[Result], times: list[Result]) -> Result:
    return {
        total.name: {"share": round(total.share, 3), "tokens_per_second": total.speed}
        for total in phase_totals(times, rows)
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _rows(path: Path) -> list[Result]:
    """Rows of a file that may be being written; a last line that is no JSON yet is left out."""
    if not path.is_file():
        return []
    lines = path.read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


if __name__ == "__main__":
    sys.exit(main())
