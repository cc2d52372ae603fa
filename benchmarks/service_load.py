"""Clients ask `codea1 sandbox serve` for minutes: how fast it answers, and whether it grows.

    python benchmarks/service_load.py --minutes 10 --clients 32

Prints, minute by minute, programs a second, waiting times, refused requests (429, sent again), and descriptors, processes and memory of the
server; then the same programs, each in a fresh `python`, as many at a time as the server has workers. Answers that the clients have are counted
against those that the server says it gave. Exit code 1 if one was wrong or lost. With a small --queue most requests are refused at first.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import quantiles

import httpx

WORKERS = len(os.sched_getaffinity(0))
PROGRAM = "n = int(input())\nprint(sum(i * i for i in range(n)))"
FRESH_SECONDS = 20.0


def expected(n: int) -> str:
    return f"{(n - 1) * n * (2 * n - 1) // 6}\n"


def size_of(pid: int) -> tuple[int, int, int]:
    """Descriptors, processes and resident MiB of a process with all below it."""
    pids, memory = [pid], 0
    for each in pids:
        try:
            for task in Path(f"/proc/{each}/task").iterdir():
                pids += map(int, (task / "children").read_text().split())
            found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{each}/status").read_text())
            memory += int(found[1]) if found else 0
        except OSError:  # it has ended meanwhile
            continue
    return len(os.listdir(f"/proc/{pid}/fd")), len(pids), memory >> 10


def ask(client: httpx.Client, url: str, n: int, statuses: Counter[int]) -> bool:
    body = {"code": PROGRAM, "language": "python", "stdin": str(n)}
    while True:
        answer = client.post(f"{url}/run_code", json=body)
        statuses[answer.status_code] += 1
        if answer.status_code != 429:
            return bool(answer.json()["run_result"]["stdout"] == expected(n))
        time.sleep(0.2)


def given(client: httpx.Client, url: str) -> Counter[int]:
    """Return the answers of each status that the server says it gave."""
    text = client.get(f"{url}/metrics").text
    rows = re.findall(r'responses_total{route="/run_code",code="(\d+)"} (\d+)', text)
    return Counter({int(status): int(number) for status, number in rows})


def run_fresh(n: int) -> bool:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=str(n), capture_output=True, text=True
    )
    return done.stdout == expected(n)


class Load:
    """Clients that ask one thing after another.

    Args:
        one: Asks for the answer to a number; says whether it was right.
        clients: How many.
    """

    def __init__(self, one: Callable[[int], bool], clients: int) -> None:
        self.waited: list[float] = []
        self.wrong = 0
        self._one = one
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(clients)
        self._clients = [self._pool.submit(self._ask, number) for number in range(clients)]

    def _ask(self, number: int) -> None:
        n = number
        while not self._stop.is_set():
            n = (n * 7 + 1) % 5000
            start = time.monotonic()
            self.wrong += not self._one(n)
            self.waited.append(time.monotonic() - start)

    def lap(self, name: str, seconds: float) -> str:
        """Wait, and say what was answered meanwhile."""
        self.waited.clear()
        time.sleep(seconds)
        waited = list(self.waited)
        cuts = quantiles(waited, n=100) if len(waited) > 1 else [0.0] * 99
        return f"{name:<10} {len(waited) / seconds:>10.1f} {cuts[49]:>8.3f} {cuts[98]:>8.3f}"

    def end(self) -> None:
        """Let the clients finish; raises what one of them raised."""
        self._stop.set()
        for client in self._clients:
            client.result()
        self._pool.shutdown()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--queue", type=int, default=256, help="of the server")
    options = parser.parse_args()
    command = [sys.executable, "-m", "codea1_env.cli", "sandbox", "serve", "--port", "0"]
    server = subprocess.Popen(
        [*command, "--workers", str(WORKERS), "--queue", str(options.queue)],
        stdout=subprocess.PIPE,
        text=True,
    )
    statuses: Counter[int] = Counter()
    try:
        assert server.stdout is not None
        url = server.stdout.readline().partition(": ")[0]
        print(f"{'':<10} programs/s median s   99% s  refused descriptors processes MiB")
        # One for all threads: to make one takes longer than a run.
        client = httpx.Client(timeout=120, limits=httpx.Limits(max_connections=None))
        load = Load(lambda n: ask(client, url, n, statuses), options.clients)
        laps = max(1, round(options.minutes))
        for number in range(laps):
            before = statuses[429]
            row = load.lap(f"minute {number + 1}", options.minutes * 60 / laps)
            row += f"{statuses[429] - before:>9}"
            descriptors, processes, memory = size_of(server.pid)
            print(f"{row} {descriptors:>11} {processes:>9} {memory:>3}", flush=True)
        load.end()
        lost = sum(abs(statuses[one] - number) for one, number in given(client, url).items())
    finally:
        server.terminate()
        code = server.wait()
    fresh = Load(run_fresh, WORKERS)
    print(fresh.lap("fresh", FRESH_SECONDS))
    fresh.end()
    wrong = load.wrong + fresh.wrong
    print(
        f"{statuses[200]} answers, {wrong} wrong, {lost} lost; the server ended with {code}; "
        f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}"
    )
    return int(bool(wrong or lost or code))


if __name__ == "__main__":
    raise SystemExit(main())
