"""The application: SandboxFusion's `/run_code`, our `/run_tests`, and what operators ask."""

from __future__ import annotations

import dataclasses
from collections import Counter
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from codea1_env.sandbox import Job, JobResult, Limits, Outcome, SandboxError, ScriptResult
from codea1_env.support.extras import require

from .files import with_files
from .gate import Admission, App, Handler, Headers, HttpAnswer, HttpGate, json_answer
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


@dataclass
class Metrics:
    """Counts of requests and outcomes."""

    responses: Counter[tuple[str, int]] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    cpu_seconds: float = 0.0

    def answered(self, route: str, status: int) -> None:
        """Count a response."""
        self.responses[route, status] += 1

    def judged(self, outcome: Outcome, cpu_time: float = 0.0) -> None:
        """Count an outcome."""
        self.outcomes[outcome] += 1
        self.cpu_seconds += cpu_time

    def text(self, **gauges: int) -> str:
        """All counts, with the gauges, in Prometheus' text format."""
        lines = []
        for name, value in gauges.items():
            lines += [f"# TYPE codea1_{name} gauge", f"codea1_{name} {value}"]
        lines.append("# TYPE codea1_responses_total counter")
        for (route, status), count in sorted(self.responses.items()):
            lines.append(f'codea1_responses_total{{route="{route}",code="{status}"}} {count}')
        lines.append("# TYPE codea1_outcomes_total counter")
        for outcome in Outcome:
            lines.append(f'codea1_outcomes_total{{outcome="{outcome}"}} {self.outcomes[outcome]}')
        lines.append("# TYPE codea1_program_cpu_seconds_total counter")
        lines.append(f"codea1_program_cpu_seconds_total {self.cpu_seconds:.6f}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Service:
    """Answers requests that have passed the gate."""

    runner: Runner
    admission: Admission
    metrics: Metrics
    ceiling: Limits
    """The most that a request may ask for."""

    async def run_code(self, headers: Headers, content: bytes) -> HttpAnswer:
        """Run a program once."""
        try:
            body = _read(RunCode, headers, content)
            code = with_files(body.code, body.files)
            limits = body.limits(self.runner.limits, self.ceiling)
        except ValueError as error:
            return _bad_request(error)

        def start() -> Future[ScriptResult]:
            return self.runner.submit_script(
                code, body.stdin or "", limits=limits, scratch=code != body.code
            )

        try:
            result = await self.admission.run(start)
        except SandboxError as error:
            return json_answer(failure_response(str(error)))
        self.metrics.judged(result.outcome, result.cpu_time)
        return json_answer(run_response(result))

    async def run_tests(self, headers: Headers, content: bytes) -> HttpAnswer:
        """Judge tests on one program."""
        try:
            job = job_of(_read(RunTests, headers, content), self.runner.limits, self.ceiling)
        except ValueError as error:
            return _bad_request(error)
        try:
            result = await self.admission.run(lambda: self.runner.submit(job))
        except SandboxError as error:  # in a shape that nobody can take for verdicts
            return json_answer({"detail": str(error)}, 503)
        for test in result.tests:
            self.metrics.judged(test.outcome, test.cpu_time)
        judged = [test.judged for test in result.tests]
        return json_answer(
            {
                "load": dataclasses.asdict(result.load),
                "tests": [dataclasses.asdict(test) for test in result.tests],
                # How many verdicts a hostile program can forge, and how many not.
                "judged": {where: judged.count(where) for where in ("outside", "inside")},
            }
        )

    async def health(self, headers: Headers, content: bytes) -> HttpAnswer:
        """Say that requests are answered."""
        return json_answer({"status": "ok", "level": self.runner.level})

    async def counts(self, headers: Headers, content: bytes) -> HttpAnswer:
        """Say what Prometheus asks for."""
        queue = {"queue_capacity": self.admission.capacity, "queue_used": self.admission.admitted}
        text = self.metrics.text(**queue).encode()
        return HttpAnswer(200, text, {"content-type": "text/plain; charset=utf-8"})


def _read(kind: type[T], headers: Headers, content: bytes) -> T:
    # Also so that no page in a browser can ask: with this header it needs leave, which it does not get.
    said = headers.get(b"content-type", b"none").decode("latin-1")
    if said.partition(";")[0].strip().lower() != "application/json":
        raise ValueError(
            f"Expect the header Content-Type: application/json, actually: {said!r:.50}"
        )
    return read_body(kind, content)


def _bad_request(error: ValueError) -> HttpAnswer:
    return json_answer({"detail": str(error)}, 400 if isinstance(error, BadBodyError) else 422)


def make_app(
    runner: Runner, admission: Admission, *, token: str | None = None, ceiling: Limits = CEILING
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
    require("pydantic", "service")
    metrics = Metrics()
    service = Service(runner, admission, metrics, ceiling)
    routes: dict[str, tuple[str, Handler]] = {
        "/run_code": ("POST", service.run_code),
        "/run_tests": ("POST", service.run_tests),
        "/health": ("GET", service.health),
        "/metrics": ("GET", service.counts),
    }
    return HttpGate(routes, admission, metrics.answered, token)
