"""The game behind OpenEnv's interface: reset, step and state over a web socket, the opponent inside.

    app = make_openenv_app(OneSide("tester", "mutant"))             # or: codea1 serve env --side tester
    with OpenEnvClient("http://127.0.0.1:8000").sync() as env:
        result = env.reset(task_id="starter/add_numbers")
        result = env.step(AnswerAction(text="assert add_numbers(1, 2) == 3"))

All sessions share one sandbox and are judged together. Importing this module needs the extra `openenv`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from gymnasium.error import ResetNeeded

from codea1_env.integrations.side import OneSide
from codea1_env.support.extras import check_version

check_version("openenv-core", "0.3.0", "openenv")

from openenv.core import EnvClient  # noqa: E402
from openenv.core.client_types import StepResult  # noqa: E402
from openenv.core.env_server import (  # noqa: E402
    Action,
    ConcurrencyConfig,
    Environment,
    Observation,
    State,
    create_fastapi_app,
)
from starlette.requests import Request  # noqa: E402
from starlette.responses import JSONResponse  # noqa: E402


class AnswerAction(Action):  # type: ignore[misc]
    """A player's turn."""

    text: str
    """The answer as the model wrote it: a program, or tests."""


class ChatObservation(Observation):  # type: ignore[misc]
    """What a player is asked, and what came of its last turn."""

    messages: list[dict[str, str]]
    """The next question as a chat; empty when the episode is over."""
    task_id: str
    code: str = ""
    """The program under attack, for a tester."""
    feedback: str = ""
    """What came of the last turn, in words."""
    parts: dict[str, float] = {}  # noqa: RUF012  pydantic copies it
    """Other measures of the last turn by name, as in `SideScore.parts`."""


class EpisodeState(State):  # type: ignore[misc]
    """Where an episode stands."""

    side: str
    task_id: str | None = None


class ServedGame(Environment):  # type: ignore[misc]
    """A session: one game, with a Mistake Book of its own."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, side: OneSide) -> None:
        super().__init__()
        self._side, self._game = side, side.game(own_book=True)
        self._state = EpisodeState(side=side.side)
        self._ended = False

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        task_id: str | None = None,
        **_: Any,
    ) -> ChatObservation:
        """Start an episode of a random problem or of a given one."""
        self._check_open()
        options = {} if task_id is None else {"problem_id": task_id}
        self._side.begin_one(self._game, seed, options)
        name = self._game.running().problem.task_id
        self._state = EpisodeState(
            side=self._side.side, task_id=name, episode_id=episode_id or uuid4().hex
        )
        return self._seen(None, {})

    def step(
        self, action: AnswerAction, timeout_s: float | None = None, **_: Any
    ) -> ChatObservation:
        """Play a turn. The sandbox has time limits of its own for every program."""
        self._check_open()
        reward = self._side.step_one(self._game, action.text)
        self._state.step_count += 1
        return self._seen(reward, self._side.last_score(self._game).parts)

    @property
    def state(self) -> EpisodeState:
        """Where the episode stands."""
        return self._state

    def close(self) -> None:
        """End the session: its client went away, or asked for nothing for too long."""
        self._ended = True

    def _check_open(self) -> None:
        if self._ended:
            raise RuntimeError(
                "Expect requests before the time limit of idle sessions, actually: this one has ended. Connect again"
            )

    def _seen(self, reward: float | None, parts: Any) -> ChatObservation:
        seen = self._game.observation()
        over = self._game.actor is None
        messages: Any = [] if over else self._side.messages(seen)
        return ChatObservation(
            done=over,
            reward=reward,
            messages=messages,
            task_id=self._state.task_id or "",
            code=seen["code"] if self._side.side == "tester" and not over else "",
            feedback=seen["feedback"],
            parts=dict(parts),
        )


class OpenEnvClient(EnvClient[AnswerAction, ChatObservation, EpisodeState]):  # type: ignore[misc]
    """Plays on a server of `codea1 serve env`; `.sync()` gives one without async."""

    def _step_payload(self, action: AnswerAction) -> dict[str, Any]:
        return {"text": action.text}

    def _parse_result(self, payload: dict[str, Any]) -> Any:
        reward, done = payload.get("reward"), payload.get("done", False)
        seen = ChatObservation(**payload["observation"], reward=reward, done=done)
        return StepResult(observation=seen, reward=reward, done=done)

    def _parse_state(self, payload: dict[str, Any]) -> EpisodeState:
        return EpisodeState(**payload)


def make_openenv_app(side: OneSide, max_sessions: int = 256, idle_timeout: float = 600.0) -> Any:
    """Return OpenEnv's application for one side.

    Args:
        side: The side that clients play. They share it.
        max_sessions: Sessions at a time; one more is refused.
        idle_timeout: Seconds after which a session without a request ends.
    """
    limits = ConcurrencyConfig(max_concurrent_envs=max_sessions, session_timeout=idle_timeout)
    app = create_fastapi_app(
        lambda: ServedGame(side), AnswerAction, ChatObservation, concurrency_config=limits
    )

    @asynccontextmanager
    async def running(_: Any) -> AsyncIterator[None]:
        # OpenEnv ends idle sessions in a task that it starts by events, which newer versions of Starlette ignore.
        for start in app.router.on_startup:
            await start()
        yield
        for stop in app.router.on_shutdown:
            await stop()

    async def refused(_: Request, error: Exception) -> JSONResponse:
        return JSONResponse(
            {"detail": f"{error}. Episodes are played over the web socket /ws"}, 409
        )

    app.add_exception_handler(ResetNeeded, refused)
    app.add_exception_handler(ValueError, refused)
    app.router.lifespan_context = running
    return app
