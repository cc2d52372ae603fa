"""What a step at the paper's size takes, on paper, and how many nodes give how many verdicts.

    python benchmarks/cluster_capacity.py
    python benchmarks/cluster_capacity.py --parameters 1.54e9 --gpus 4 --slow-programs 0

Judging is counted with what `cluster_costs.py` measured. Nothing here was measured on a GPU: speeds follow from the number of
parameters and from shares of a GPU's peak, which are assumptions, as are the lengths of answers. All are options.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields

from cluster_simulation import TESTS, Costs, run_judges


@dataclass(frozen=True)
class Assumptions:
    """A step, and what it runs on."""

    parameters: float = 7.6e9
    """Of each of the two models (Qwen2.5-Coder-7B)."""
    gpus: int = 8
    """Of both roles together; each has half of them, at the same time."""
    peak: float = 989e12
    """Operations a second of a GPU (H100 SXM, bfloat16, dense: its data sheet)."""
    generating: float = 0.1
    """Share of the peak while answers are written: assumed."""
    learning: float = 0.3
    """Share of the peak while a model is updated: assumed."""
    problems: int = 256
    programs: int = 8
    suites: int = 8
    tests: int = 8
    coder_prompt: int = 300
    """Tokens: assumed."""
    coder_answer: int = 400
    """Tokens: assumed. The paper allows 4,096."""
    tester_prompt: int = 800
    """Tokens: assumed."""
    tester_answer: int = 350
    """Tokens: assumed."""
    nodes: int = 1
    """For judging."""
    cores: int = 16
    """Of each."""
    slow_programs: float = 0.02
    """Share of the programs that reach the time limit: assumed."""
    time_limit: float = 2.0
    """Seconds of CPU time of a call."""
    timeouts: int = 2
    """Calls of a suite that may reach it."""
    weights_bandwidth: float = 25e9
    """Bytes a second from a learner to its generator: assumed (200 Gbit/s)."""


def seconds_of(step: Assumptions) -> dict[str, tuple[float, str]]:
    """Return what each phase takes, and why."""
    each = step.gpus / 2
    coder = step.problems * step.programs
    tester = coder * step.suites
    learned = step.problems * step.suites  # suites of one program of each problem
    speed = step.generating * step.peak / (2 * step.parameters)
    update = step.learning * step.peak / (10 * step.parameters)
    written = coder * step.coder_answer, tester * step.tester_answer
    taught = (
        coder * (step.coder_prompt + step.coder_answer),
        learned * (step.tester_prompt + step.tester_answer),
    )
    costs = Costs()
    verdicts = tester * step.tests
    cpu = verdicts * costs.problem / TESTS
    slow = coder * step.slow_programs * step.suites * step.timeouts * step.time_limit
    controller = step.problems * costs.judged_elsewhere
    carried = step.problems * costs.problem_bytes
    return {
        "coder writes": (written[0] / speed / each, f"{coder:,} answers, {written[0]:,} tokens"),
        "tester writes": (
            written[1] / speed / each,
            f"{tester:,} answers, {written[1]:,} tokens; {speed:,.0f} tokens/s on each GPU",
        ),
        "judging": (
            max((cpu + slow) / (step.nodes * step.cores), controller),
            f"{verdicts:,} verdicts, {cpu:.0f} s of CPU, and {slow:.0f} s of programs that do not end; controller "
            f"{controller:.1f} s",
        ),
        "answers and verdicts on the network": (
            carried / costs.bandwidth,
            f"{carried / 1e6:.0f} MB at 1 Gbit/s",
        ),
        "both learn": (
            max(taught) / update / each,
            f"{taught[0]:,} and {taught[1]:,} tokens, at once; {update:,.0f} tokens/s on each GPU",
        ),
        "new weights": (
            2 * step.parameters / step.weights_bandwidth,
            f"{2 * step.parameters / 1e9:.1f} GB each",
        ),
    }


def nodes_for(step: Assumptions) -> None:
    """Print how many verdicts nodes give."""
    print("| nodes | verdicts/s | the step's, all programs end | with those that do not |")
    print("|---:|---:|---:|---:|")
    coder = step.problems * step.programs
    slow = coder * step.slow_programs * step.suites * step.timeouts * step.time_limit
    for nodes in (1, 2, 4, 8, 16):
        run = run_judges(Costs(), nodes * step.cores, step.problems)
        seconds = step.problems / run.rate
        print(
            f"| {nodes} | {TESTS * run.rate:,.0f} | {seconds:.1f} s | {seconds + slow / (nodes * step.cores):.1f} s |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for each in fields(Assumptions):
        name = f"--{each.name.replace('_', '-')}"
        parser.add_argument(name, type=type(each.default), default=each.default)
    step = Assumptions(**vars(parser.parse_args()))
    print(f"{step}\n\n| phase | seconds | what |\n|---|---:|---|")
    phases = seconds_of(step)
    for name, (seconds, why) in phases.items():
        print(f"| {name} | {seconds:.1f} | {why} |")
    total = sum(seconds for seconds, _ in phases.values())
    print(f"| one after the other | {total:.1f} | |\n\n{step.cores} cores in each node:\n")
    nodes_for(step)


if __name__ == "__main__":
    main()
