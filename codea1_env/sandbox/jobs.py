"""What goes into the sandbox: a job, and what its program may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple, TypeVar

T = TypeVar("T")
_MOST = 1 << 40
HASH_SEEDS = 4
"""How many seeds of hashes there are."""


@dataclass(frozen=True)
class Limits:
    """What a program may use. Times are in seconds, sizes in bytes.

    Raises:
        ValueError: A limit is not a positive number.

    Example:
        >>> Limits(call_cpu_time=0.5).test_cpu_time
        7.5
    """

    call_cpu_time: float = 2.0
    """CPU time of one call, or of an assertion that is judged outside."""
    call_wall_time: float = 10.0
    """Wall-clock time of the same. Larger than the CPU limit, so that a busy machine does not decide."""
    run_cpu_time: float = 20.0
    """CPU time of all tests, or all calls, of one job together; where one test may use more, that."""
    run_wall_time: float = 60.0
    """Wall-clock time of all tests, or all calls, of one job together; where one test may use more, that."""
    calls_per_test: float = 15.0
    """A test that is a program of its own may use the time of so many calls: a hundred inputs can take 17 s."""
    memory: int = 2 << 30
    """Address space of one process."""
    output: int = 1 << 20
    """Bytes that a script prints to stdout. Of what else is printed more is dropped, if it is kept at all."""
    result: int = 32 << 20
    """Bytes of one encoded value that crosses a process boundary."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if (
                isinstance(value, bool)
                or not isinstance(value, (int, float))
                or not 0 < value < _MOST
            ):
                raise ValueError(
                    f"Expect Limits.{field.name} to be a positive number below 2**40, actually: {value!r}"
                )

    @property
    def test_cpu_time(self) -> float:
        """CPU time of a test that is a program of its own, together with the program that it tests."""
        return self.call_cpu_time * self.calls_per_test

    @property
    def test_wall_time(self) -> float:
        """Wall-clock time of the same: what only sleeps need not be waited for so many times as long."""
        most = max(self.run_wall_time, 2 * self.test_cpu_time)
        return min(self.call_wall_time * self.calls_per_test, most)

    def with_room_for(self, calls: int) -> Limits:
        """The same limits, with run limits raised so that no call takes time from another.

        Example:
            >>> Limits(call_cpu_time=2.0, run_cpu_time=20.0).with_room_for(99).run_cpu_time
            200.0
        """
        return replace(
            self,
            run_cpu_time=max(self.run_cpu_time, self.call_cpu_time * (calls + 1)),
            run_wall_time=max(self.run_wall_time, self.call_wall_time * (calls + 1)),
        )

    def times(self, factor: float) -> Limits:
        """Return the same limits with so many times as much of all times."""
        times = ("call_cpu_time", "call_wall_time", "run_cpu_time", "run_wall_time")
        return replace(self, **{name: getattr(self, name) * factor for name in times})


@dataclass(frozen=True)
class Job:
    """A program and the tests to run on it.

    Attributes:
        code: Program text.
        tests: Test texts. Each is judged on its own: an assertion that compares a call with a literal outside, any other
            text inside.
        entry_point: The name that the tests may use from the program. None offers every name that the
            program defines and the test uses, except names of builtins and standard modules.
        limits: Overrides the sandbox's limits.
        hash_seed: 0 to 3. Runs with different seeds differ in the order of sets of strings.
    """

    code: str
    tests: Sequence[str] = ()
    entry_point: str | None = None
    limits: Limits | None = None
    hash_seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.tests, str):
            raise TypeError(
                f"Expect Job.tests to be a sequence of str, actually: {self.tests!r:.100}"
            )
        object.__setattr__(self, "tests", tuple(map(exact, self.tests)))
        object.__setattr__(self, "code", exact(self.code))
        check_seed("Job.hash_seed", self.hash_seed)


class WorkerKind(NamedTuple):
    """What a job needs of a worker.

    Attributes:
        hash_seed: See `Job.hash_seed`.
        with_packages: Whether it mentions a package outside the standard library; others fork faster.
        calls_only: Whether its program's function is only called, which needs a smaller worker still.
        scratch: Whether its children have a folder that they may write to, at level "namespaces".
        testing: Whether pytest runs program and tests together.
    """

    hash_seed: int = 0
    with_packages: bool = True
    calls_only: bool = False
    scratch: bool = False
    testing: bool = False


def exact(given: T) -> T:
    """Return a text of a derived class, such as numpy's, as a plain one, and anything else as it is.

    Each door by which texts come in calls it: behind them a text is what marshal and the codec write.
    """
    is_derived = isinstance(given, str) and type(given) is not str
    return str.__str__(given) if is_derived else given  # type: ignore[return-value]


def check_seed(name: str, seed: object) -> None:
    """Refuse another hash seed than there is."""
    if isinstance(seed, bool) or seed not in range(HASH_SEEDS):
        raise ValueError(
            f"Expect {name} to be an integer from 0 to {HASH_SEEDS - 1}, actually: {seed!r}"
        )
