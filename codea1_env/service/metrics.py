"""What a service counts, as Prometheus reads it."""

from __future__ import annotations

from collections import Counter

from codea1_env.sandbox import Outcome


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
        lines += [
            f'codea1_outcomes_total{{outcome="{outcome}"}} {self._outcomes[outcome]}'
            for outcome in Outcome
        ]
        lines += [
            "# TYPE codea1_program_cpu_seconds_total counter",
            f"codea1_program_cpu_seconds_total {self._cpu_seconds:.6f}",
        ]
        return "\n".join(lines) + "\n"
