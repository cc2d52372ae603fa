"""What runs on a node: a sandbox that answers batches, or a referee; and what it is asked: plain values, which can be sent."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from codea1_env.judging.spread import answer
from codea1_env.judging.verdicts import RefereeConfig
from codea1_env.referee import Referee
from codea1_env.sandbox import Limits, Sandbox


@dataclass(frozen=True)
class Request:
    """A call of one of the methods of `Sandbox` that start a job and return its future."""

    method: str
    """"submit", "submit_cases", "submit_calls", "submit_encoded", "submit_script" or "submit_test_module"."""
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def start(self, sandbox: Sandbox) -> Future[Any]:
        """Start it here."""
        future: Future[Any] = getattr(sandbox, self.method)(*self.arguments, **self.keywords)
        return future


@dataclass(frozen=True)
class Failure:
    """An answer: the sandbox raised."""

    error: Exception


def packed(items: Sequence[Any]) -> bytes:
    """Pickle a batch as one: Ray sends small bytes along with the call, and many small objects slowly."""
    return pickle.dumps(list(items), pickle.HIGHEST_PROTOCOL)


def unpacked(data: bytes) -> list[Any]:
    """Read what `packed` made. Both ends are this package's own code."""
    items: list[Any] = pickle.loads(data)
    return items


class SandboxActor:
    """A sandbox that is asked from elsewhere."""

    def __init__(
        self, workers: int, limits: Limits, level: str | None, packages: tuple[str, ...]
    ) -> None:
        self._sandbox = Sandbox(workers, limits, level=level, packages=packages)
        # A program is run before any is trusted to be contained here: what a level lacks shows only then.
        [result] = self._sandbox.run_tests("def f(): return 1", ["assert f() == 1"])
        if not result.passed:
            raise RuntimeError(
                f"a right program was judged {result.outcome.value}: {result.message}"
            )

    def run(self, requests: bytes) -> bytes:
        """Do a batch of `Request`, each packed for itself, all at once."""
        futures = [_started(request, self._sandbox) for request in unpacked(requests)]
        return packed([_packed_answer(future) for future in futures])

    def alive(self) -> bool:
        """Answer, which a node that hangs does not."""
        return True

    def close(self) -> None:
        """End all processes."""
        self._sandbox.close()


class JudgeActor:
    """A referee that is asked from elsewhere, with a sandbox of one worker. It remembers the references of its problems."""

    def __init__(
        self, limits: Limits, level: str | None, packages: tuple[str, ...], config: RefereeConfig
    ) -> None:
        self._referee = Referee(Sandbox(1, limits, level=level, packages=packages), config)

    def judge(self, part: bytes) -> bytes:
        """Judge answers."""
        [answers] = unpacked(part)
        return packed([answer(self._referee, answers)])

    def alive(self) -> bool:
        """Answer, which a node that hangs does not."""
        return True

    def close(self) -> None:
        """End all processes."""
        self._referee.sandbox.close()


def _started(data: bytes, sandbox: Sandbox) -> Any:
    try:
        [request] = unpacked(data)
        return request.start(sandbox)
    except Exception as error:
        return Failure(error)


def _packed_answer(future: Any) -> bytes:
    try:
        result = future if isinstance(future, Failure) else future.result()
    except Exception as error:
        result = Failure(error)
    try:
        return packed([result])
    except Exception as error:
        return packed([Failure(TypeError(f"the answer cannot be sent: {error}"))])
