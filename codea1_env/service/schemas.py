"""What requests say, what they may ask for, and what a run's result is in SandboxFusion's words."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, TypeVar

from codea1_env.sandbox import MAX_INPUT, Job, Limits, Outcome, ScriptResult
from codea1_env.support.extras import require

from .files import MAX_FILES

CEILING = Limits(
    call_cpu_time=600.0,
    call_wall_time=1200.0,
    run_cpu_time=1200.0,
    run_wall_time=2400.0,
    calls_per_test=100.0,
    memory=4 << 30,
    output=16 << 20,
    result=64 << 20,
)
"""The most that a request may ask for."""
MAX_TESTS = 10_000
MAX_CAPTURED = 64 << 20
"""Bytes that the tests of one request may have printed, where that is wanted back."""
MAX_ODD = 1 << 20
"""Bytes of a body with text that is no Unicode."""
_MIB = 1 << 20
_GRACE = 2.0
"""Wall-clock time for each second of CPU time, so that a busy machine does not decide."""
_RUN_STATUS = {
    Outcome.TIMEOUT: "TimeLimitExceeded",
    # Ended by the sandbox: there is no exit status of its own.
    Outcome.OUTPUT_LIMIT: "Error",
    Outcome.FORBIDDEN: "Error",
}

T = TypeVar("T")


class BadBodyError(ValueError):
    """A body that is no JSON."""


class AtMost:
    """Bounds a list or a mapping where pydantic reads it, and stops at its first mistake: each takes a kilobyte to report."""

    def __init__(self, most: int) -> None:
        self.most = most

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return {**handler(source), "max_length": self.most, "fail_fast": True}


@dataclass(frozen=True)
class RunCode:
    """The body of SandboxFusion's `/run_code`. What else clients send is ignored, as it is there."""

    code: str
    language: Literal["python"]
    stdin: str | None = None
    files: Annotated[dict[str, str | None], AtMost(MAX_FILES)] = field(default_factory=dict)
    fetch_files: Annotated[list[str], AtMost(MAX_FILES)] = field(default_factory=list)
    run_timeout: float = 10.0
    compile_timeout: float = 10.0
    """Nothing is compiled."""
    memory_limit_MB: float = -1.0  # noqa: N815 (SandboxFusion's name)
    """-1 is the sandbox's own limit."""

    def limits(self, default: Limits, ceiling: Limits) -> Limits:
        """Return the limits of the run; a ValueError if more is asked for than there may be."""
        if self.fetch_files:
            raise ValueError("Expect fetch_files to be empty: files are not given back")
        if len((self.stdin or "").encode("utf-8", "surrogatepass")) > MAX_INPUT:
            raise ValueError(f"Expect stdin of at most {MAX_INPUT} bytes, actually: more")
        time, memory = self.run_timeout, default.memory
        _check("run_timeout", time, ceiling.call_cpu_time)
        if self.memory_limit_MB != -1:
            _check("memory_limit_MB", self.memory_limit_MB, ceiling.memory / _MIB)
            memory = int(self.memory_limit_MB * _MIB)
        return replace(default, call_cpu_time=time, call_wall_time=time * _GRACE, memory=memory)


@dataclass(frozen=True)
class RunTests:
    """The body of `/run_tests`. Each field is that of `Job`."""

    # A word that nobody knows is a mistake that would change verdicts. Pydantic would report each of millions.
    __pydantic_config__ = {"extra": "allow"}  # noqa: RUF012 (read by pydantic, not a field)

    code: str
    tests: Annotated[list[str], AtMost(MAX_TESTS)]
    entry_point: str | None = None
    limits: Annotated[dict[str, float], AtMost(100)] = field(default_factory=dict)
    hash_seed: int = 0
    capture_output: bool = False


def job_of(body: RunTests, default: Limits, ceiling: Limits) -> Job:
    """Return the job that a request asks for; a ValueError if a word is unknown, or more is asked for than there may be."""
    names = _known("fields", vars(body), body)
    limits = limits_of(body.limits, default, ceiling)
    most = MAX_CAPTURED // (2 * max(1, len(body.tests)))
    if body.capture_output and limits.output > most:
        raise ValueError(
            f"Expect limits.output of at most {most} where what {len(body.tests)} tests print is captured, "
            f"actually: {limits.output}"
        )
    return Job(**{**{name: getattr(body, name) for name in names}, "limits": limits})


@functools.cache
def _adapter(kind: Any) -> Any:
    return require("pydantic", "service").TypeAdapter(kind)


def read_body(kind: type[T], body: bytes) -> T:
    """Return what a body says.

    It is read straight into its fields: what nobody asked for takes no memory while the request waits. Errors are one line,
    without the input, which may be long and hostile.
    """
    pydantic = require("pydantic", "service")
    named: Any = kind  # of a type mypy does not know that it can be hashed
    adapter = _adapter(named)
    try:
        try:
            found: T = adapter.validate_json(body)
        except pydantic.ValidationError as error:
            # Half of a surrogate pair, which Python's json writes and reads, and pydantic does not.
            if (
                error.errors(include_input=False)[0]["type"] != "json_invalid"
                or len(body) > MAX_ODD
            ):
                raise
            try:
                data = json.loads(body)
            except (ValueError, RecursionError):
                raise error from None
            found = adapter.validate_python(data)
    except pydantic.ValidationError as error:
        rows = error.errors(include_input=False, include_url=False)[:5]
        what = [
            ": ".join(filter(None, (".".join(map(str, row["loc"])), row["msg"]))) for row in rows
        ]
        wrong = BadBodyError if rows[0]["type"] == "json_invalid" else ValueError
        raise wrong("; ".join(what)[:1000]) from None
    return found


def limits_of(asked: Mapping[str, float], default: Limits, ceiling: Limits) -> Limits:
    """Return the limits that a request asks for; of others, the sandbox's own.

    Example:
        >>> limits_of({"call_cpu_time": 1e9}, Limits(), Limits())
        Traceback (most recent call last):
            ...
        ValueError: Expect call_cpu_time to be above 0 and at most 2, actually: 1e+09
    """
    _known("limits", asked, default)
    for name, value in asked.items():
        _check(name, value, getattr(ceiling, name))
    whole = {name: int(asked[name]) for name in ("memory", "output", "result") if name in asked}
    changes: dict[str, Any] = {**asked, **whole}
    return replace(default, **changes)


def _known(what: str, said: Iterable[str], kind: Any) -> list[str]:
    """Return the fields of a dataclass, which all that is said has to be."""
    names = [each.name for each in fields(kind)]
    for name in said:
        if name not in names:
            raise ValueError(
                f"Expect {what} to be some of: {', '.join(names)}, actually: {name!r:.50}"
            )
    return names


def _check(name: str, value: float, most: float) -> None:
    if not 0 < value <= most:  # so is no number
        raise ValueError(f"Expect {name} to be above 0 and at most {most:g}, actually: {value:g}")


def run_response(result: ScriptResult) -> dict[str, Any]:
    """Return what became of a program and what it printed, in SandboxFusion's shape."""
    if result.outcome is Outcome.UNJUDGED:
        return failure_response(result.message)
    ok = result.outcome is Outcome.PASS
    # The sandbox says in one line what the interpreter would have printed at the end.
    apart = "\n" if result.stderr and not result.stderr.endswith("\n") else ""
    run = {
        "status": _RUN_STATUS.get(result.outcome, "Finished"),
        "execution_time": result.cpu_time,
        "cpu_time": result.cpu_time,
        "return_code": None if result.outcome is Outcome.TIMEOUT else int(not ok),
        "stdout": result.stdout,
        "stderr": result.stderr if ok else f"{result.stderr}{apart}{result.message}\n",
    }
    return _response("Success" if ok else "Failed", result.message, run)


def failure_response(message: str) -> dict[str, Any]:
    """Our own failure, in SandboxFusion's shape: clients try again."""
    return _response("SandboxError", message, None)


def _response(status: str, message: str, run: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "status": status,
        "message": message,
        "compile_result": None,
        "run_result": run,
        "executor_pod_name": None,
        "files": {},
    }
