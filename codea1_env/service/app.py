"""The application: SandboxFusion's `/run_code`, our `/run_tests`, and what operators ask."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from codea1_env.sandbox import (
    Job,
    JobResult,
    Limits,
    Outcome,
    SandboxError,
    ScriptResult,
)
from codea1_env.support.extras import require

from .files import Parcel
from .gate import Admission, App, HttpGate
from .schemas import (
    CEILING,
    BadBodyError,
    RunCode,
    RunTests,
    failure_response,
    job_of,
    read_body,
    run_response,
)

T = TypeVar("T")


class Runner(Protocol):
    """What runs the jobs: a `Sandbox`, or what has the same methods."""

    @property
    def limits(self) -> Limits:
        """What a job may use unless it says otherwise."""

    @property
    def level(self) -> str:
        """How strongly programs are confined."""

    def submit(self, job: Job) -> Future[JobResult]:
        """Start a job and return at once."""

    def submit_script(
        self, code: str, stdin: str = "", *, limits: Limits | None = None, scratch: bool = False
    ) -> Future[ScriptResult]:
        """Start a program and return at once."""


class Metrics:
    """Counts of requests and outcomes."""

    def __init__(self) -> None:
        self._responses: Counter[tuple[str, int]] = Counter()
        self._outcomes: Counter[str] = Counter()
        self._cpu_seconds = 0.0

    def answered(self, route: str, status: int) -> None:
        """Count a response."""
        self._responses[route, status] += 1

    def judged(self, outcome: Outcome, cpu_time: float = 0.0) -> None:
        """Count an outcome."""
        self._outcomes[outcome] += 1
        self._cpu_seconds += cpu_time

    def text(self, **gauges: int) -> str:
        """All counts, with the gauges, in Prometheus' text format."""
        lines = []
        for name, value in gauges.items():
            lines += [f"# TYPE codea1_{name} gauge", f"codea1_{name} {value}"]
        lines.append("# TYPE codea1_responses_total counter")
        for (route, status), count in sorted(self._responses.items()):
            lines.append(f'codea1_responses_total{{route="{route}",code="{status}"}} {count}')
        lines.append("# TYPE codea1_outcomes_total counter")
        for outcome in Outcome:
            lines.append(f'codea1_outcomes_total{{outcome="{outcome}"}} {self._outcomes[outcome]}')
        lines.append("# TYPE codea1_program_cpu_seconds_total counter")
        lines.append(f"codea1_program_cpu_seconds_total {self._cpu_seconds:.6f}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Service:
    """Answers requests that have passed the gate.

    Attributes:
        runner: Runs the jobs.
        admission: The queue before it.
        metrics: What is counted.
        ceiling: The most that a request may ask for.
    """

    runner: Runner
    admission: Admission
    metrics: Metrics
    ceiling: Limits

    async def run_code(self, request: Any) -> Any:
        """Run a program once."""
        try:
            body = await _read(RunCode, request)
            body.check()
            parcel = Parcel(body.code, body.files, body.fetch_files)
            limits = body.limits(self.runner.limits, self.ceiling)
        except ValueError as error:
            return _bad_request(error)
        limits = replace(limits, output=limits.output + parcel.extra_output)

        def start() -> Future[ScriptResult]:
            return self.runner.submit_script(
                parcel.code, body.stdin or "", limits=limits, scratch=parcel.needs_folder
            )

        try:
            result = await self.admission.run(start)
        except SandboxError as error:
            return _response(failure_response(str(error)))
        self.metrics.judged(result.outcome, result.cpu_time)
        return _response(run_response(result, *parcel.unpack(result.stdout)))

    async def run_tests(self, request: Any) -> Any:
        """Judge tests on one program."""
        try:
            body = await _read(RunTests, request)
            job = job_of(body, self.runner.limits, self.ceiling)
        except ValueError as error:
            return _bad_request(error)
        try:
            result = await self.admission.run(lambda: self.runner.submit(job))
        except SandboxError as error:  # in a shape that nobody can take for verdicts
            return _response({"detail": str(error)}, 503)
        for test in result.tests:
            self.metrics.judged(test.outcome, test.cpu_time)
        judged = [test.judged for test in result.tests]
        return _response(
            {
                "load": dataclasses.asdict(result.load),
                "tests": [dataclasses.asdict(test) for test in result.tests],
                # How many verdicts a hostile program can forge, and how many not.
                "judged": {where: judged.count(where) for where in ("outside", "inside")},
            }
        )

    async def health(self, request: Any) -> Any:
        """Say that requests are answered."""
        return _response({"status": "ok", "level": self.runner.level})

    async def counts(self, request: Any) -> Any:
        """Say what Prometheus asks for."""
        queue = {"queue_capacity": self.admission.capacity, "queue_used": self.admission.admitted}
        responses = require("starlette.responses", "service")
        return responses.PlainTextResponse(self.metrics.text(**queue))


def _response(content: object, status: int = 200) -> Any:
    # Escaped: of hostile text not everything can be encoded as UTF-8.
    responses = require("starlette.responses", "service")
    return responses.Response(json.dumps(content), status, media_type="application/json")


async def _read(kind: type[T], request: Any) -> T:
    # Also so that no page in a browser can ask: with this header it needs leave, which it does not get.
    said = request.headers.get("content-type", "none")
    if said.partition(";")[0].strip().lower() != "application/json":
        raise ValueError(
            f"Expect the header Content-Type: application/json, actually: {said!r:.50}"
        )
    return read_body(kind, await request.body())


def _bad_request(error: ValueError) -> Any:
    return _response({"detail": str(error)}, 400 if isinstance(error, BadBodyError) else 422)


def make_app(
    runner: Runner,
    admission: Admission,
    *,
    token: str | None = None,
    ceiling: Limits = CEILING,
) -> App:
    """Return an ASGI application before a sandbox, which stays its caller's to close.

    Args:
        runner: Runs the jobs.
        admission: The queue before it.
        token: What clients have to say; None asks for nothing.
        ceiling: The most that a request may ask for.

    Raises:
        MissingExtraError: The extra `service` is not installed.
    """
    fastapi = require("fastapi", "service")
    app = fastapi.FastAPI(openapi_url=None)
    metrics = Metrics()
    service = Service(runner, admission, metrics, ceiling)
    routes: dict[str, tuple[str, Callable[..., Any]]] = {
        "/run_code": ("POST", service.run_code),
        "/run_tests": ("POST", service.run_tests),
        "/health": ("GET", service.health),
        "/metrics": ("GET", service.counts),
    }
    for path, (method, answer) in routes.items():
        app.add_route(path, answer, methods=[method])
    return HttpGate(app, admission, metrics.answered, token)
