"""Whether codea1-suite tells bad algorithms from GRPO in the track that each experiment is about.

    python benchmarks/suite_instrument.py

GRPO's shipped numbers and rates; the bad rows are GRPO with these rates and a fault. Prints how much less than GRPO each scores,
paired by seed (0 to 9), with a 95% interval. docs/leaderboard.md has the same of track both.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

from codea1_env.suite.players import FAULTY, find_entry
from codea1_env.suite.running import play, with_rates
from codea1_env.suite.scores import paired, shipped
from codea1_env.suite.tasks import SEEDS, tasks


def main() -> None:
    """Print the table."""
    grpo = shipped()["grpo"]
    rates, random = grpo["settings"]["rates"], shipped()["random"]["values"]
    print(f"| id | track | {' | '.join(FAULTY)} | random |")
    with ProcessPoolExecutor(2) as pool:
        for task in tasks().values():
            if not task.separates:
                continue
            track, cells = task.about, []
            games = {}
            for name in FAULTY:
                entry = with_rates(find_entry(name), rates, track, task.experiment)
                games[name] = [pool.submit(play, entry, task, seed, track) for seed in SEEDS]
            values = {
                name: {str(seed): each.result()[0] for seed, each in zip(SEEDS, found, strict=True)}
                for name, found in games.items()
            }
            values["random"] = random[track][task.id]
            for name in (*FAULTY, "random"):
                less = paired(task, track, values[name], grpo["values"][track][task.id])
                assert less is not None
                mark = "" if less.high < 0 else "**"
                cells.append(f"{mark}{less.value:+.2f} [{less.low:+.2f}, {less.high:+.2f}]{mark}")
            print(f"| {task.id} | {track} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
