"""A referee whose answers are judged in several places at once, each of which remembers its problems' references.

What is judged where decides nothing but the time: a verdict depends on its round alone. The places are those of
`codea1_env.cluster`: actors on the nodes of a cluster, for when one Python process is the limit.
"""

from __future__ import annotations

import traceback
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from threading import Lock, Thread
from typing import Protocol, Self

from codea1_env.judging.verdicts import AttackAnswers, Counters, Judged, RefereeConfig
from codea1_env.oracle import gather
from codea1_env.referee import Referee
from codea1_env.sandbox import Sandbox

_LOOK = 2.0  # seconds between looks at whether places have joined

Reply = tuple[list[Judged], Counters]
"""What came of the answers to one problem, and what it took."""


class Place(Protocol):
    """Where answers are judged, one problem at a time."""

    def ask(self, part: AttackAnswers) -> Reply:
        """Have answers judged.

        Raises:
            InfraError: Nobody could, though it was tried again.
        """

    def ready(self) -> bool:
        """Prepare to be asked, where that takes long; whether it can be."""

    def hang_up(self) -> None:
        """Say that nothing more will be asked."""

    def close(self) -> None:
        """Wait for the end."""


class SpreadReferee(Referee):
    """A referee whose `judge_answers` is done in several places. All else happens here, as with any `Referee`.

    Each problem has a place that it goes to; one that has nothing left to do takes what waits for another.
    """

    def __init__(
        self, sandbox: Sandbox, config: RefereeConfig | None, places: Sequence[Place]
    ) -> None:
        super().__init__(sandbox, config)
        self._places = list(places)
        self._joining = Lock()

    def join(self) -> list[Place]:
        """Add places that can be had since the last time, where there may be such; which ones."""
        return []

    def judge_parts(self, parts: Sequence[AttackAnswers]) -> list[Judged]:
        """Have them judged in the places."""
        places = list(self._places)
        homes = _homes([part.problem.task_id for part in parts], len(places))
        work = _Work(parts, homes)
        with ThreadPoolExecutor(len(places), "judging") as threads:
            for number in sorted(set(homes)):
                threads.submit(work.do, number, places[number])
            work.wait(self.join)
            answers = gather(work.futures)
        with self._counting:
            for _, counters in answers:
                self.counters += counters
        return [item for found, _ in answers for item in found]

    def close(self) -> None:
        """End all places."""
        for place in self._places:
            place.hang_up()
        for place in self._places:
            place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def answer(referee: Referee, part: AttackAnswers) -> Reply | Exception:
    """Judge answers, in the place itself."""
    referee.counters = Counters()
    try:
        return referee.judge_parts([part]), referee.counters
    except Exception as error:
        error.add_note(f"Where it was judged:\n{traceback.format_exc()}")
        return error


def _homes(names: Sequence[str], places: int) -> list[int]:
    """Return the place of each problem: always the same one, unless that has its share of problems already."""
    most = -(-len(names) // places)
    number = [0] * places
    homes = []
    for name in names:
        home = zlib.crc32(name.encode(errors="replace")) % places
        if number[home] >= most:
            home = number.index(min(number))
        number[home] += 1
        homes.append(home)
    return homes


class _Work:
    """Answers that wait for a place."""

    def __init__(self, parts: Sequence[AttackAnswers], homes: Sequence[int]) -> None:
        self.futures: list[Future[Reply]] = [Future() for _ in parts]
        self._parts = parts
        self._waiting = dict(enumerate(homes))
        self._lock = Lock()

    def do(self, number: int, place: Place) -> None:
        """Let a place work until nothing waits any more."""
        while (next_one := self._take(number)) is not None:
            future = self.futures[next_one]
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(place.ask(self._parts[next_one]))
            except BaseException as error:
                future.set_exception(error)

    def wait(self, join: Callable[[], Iterable[Place]]) -> None:
        """Wait until all is answered, or something cannot be. Places that join meanwhile help."""
        try:
            while True:
                for place in join():
                    # Nobody waits for one that is not ready before the others have done it all.
                    Thread(target=self._help, args=(place,), name="judging", daemon=True).start()
                done, rest = wait(self.futures, _LOOK, FIRST_EXCEPTION)
                if not rest or any(each.exception() for each in done):
                    return
        except BaseException:
            for future in self.futures:
                future.cancel()
            raise

    def _help(self, place: Place) -> None:
        if place.ready():
            self.do(-1, place)  # nobody's home

    def _take(self, number: int) -> int | None:
        with self._lock:
            if not self._waiting:
                return None
            mine = (index for index, home in self._waiting.items() if home == number)
            chosen = next(mine, next(reversed(self._waiting)))
            del self._waiting[chosen]
            return chosen
