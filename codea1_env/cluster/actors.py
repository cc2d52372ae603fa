"""What runs on a node: a sandbox that answers batches."""

from __future__ import annotations

from typing import Any

from codea1_env.cluster.requests import Failure, packed, unpacked
from codea1_env.judging.spread import answer
from codea1_env.judging.verdicts import RefereeConfig
from codea1_env.referee import Referee
from codea1_env.sandbox import Limits, Sandbox


class SandboxActor:
    """A sandbox that is asked from elsewhere.

    Args:
        workers: How many programs run at the same time.
        limits: See `Sandbox`.
        level: See `Sandbox`; None chooses the strongest that this node offers.
        packages: See `Sandbox`.

    Raises:
        LevelUnavailableError: This node cannot contain programs.
    """

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

    def level(self) -> str:
        """How strongly programs are confined here."""
        return self._sandbox.level

    def run(self, requests: bytes) -> bytes:
        """Do a batch of `Request`, each packed for itself, all at once.

        Returns:
            What each returned, or its `Failure`; packed for itself, so that one that cannot be read costs no other.
        """
        futures = [_started(request, self._sandbox) for request in unpacked(requests)]
        return packed([_packed_answer(future) for future in futures])

    def alive(self) -> bool:
        """Answer, which a node that hangs does not."""
        return True

    def close(self) -> None:
        """End all processes."""
        self._sandbox.close()


class JudgeActor:
    """A referee that is asked from elsewhere, with a sandbox of one worker. It remembers the references of its problems.

    Args:
        limits: See `Sandbox`.
        level: See `Sandbox`.
        packages: See `Sandbox`.
        config: How rounds are judged.
    """

    def __init__(
        self, limits: Limits, level: str | None, packages: tuple[str, ...], config: RefereeConfig
    ) -> None:
        self._referee = Referee(Sandbox(1, limits, level=level, packages=packages), config)

    def judge(self, part: bytes) -> bytes:
        """Judge answers.

        Args:
            part: A packed `AttackAnswers`.

        Returns:
            What `codea1_env.judging.spread.answer` makes of it, packed.
        """
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
    result = _answer(future)
    try:
        return packed([result])
    except Exception as error:
        return packed([Failure(TypeError(f"the answer cannot be sent: {error}"))])


def _answer(future: Any) -> Any:
    if isinstance(future, Failure):
        return future
    try:
        return future.result()
    except Exception as error:
        return Failure(error)
