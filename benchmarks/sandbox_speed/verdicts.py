"""Whether verdicts are right: references pass their tests, a program that returns None does not."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from codea1_env.problems import Problem
from codea1_env.sandbox import Job, Sandbox, TestResult
from sandbox_speed.baselines import BareFork
from sandbox_speed.config import Progress, SpeedConfig, SpeedFigure
from sandbox_speed.jobs import check_program

MAY_FAIL = 1
"""References of a public set that may fail: HumanEval+ has a wrong test. MBPP+ is allowed the same."""
_NAMED = 10


def nothing(problem: Problem) -> str:
    """Return a program that returns None whatever it is asked."""
    return f"def {problem.entry_point}(*args, **kwargs):\n    return None\n"


def measure(
    problems: Sequence[Problem], config: SpeedConfig, level: str | None, progress: Progress
) -> Iterator[SpeedFigure]:
    """Judge references and programs that do nothing, inside, and compare with plain Python."""
    tests = {problem.task_id: check_program(problem) for problem in problems}
    programs = {problem.task_id: problem.reference for problem in problems}
    empty = {problem.task_id: nothing(problem) for problem in problems}
    names = {problem.task_id: problem.entry_point for problem in problems}

    def judged(sandbox: Sandbox, what: str) -> dict[str, TestResult]:
        """All verdicts of a run; those on programs that do nothing as "None ID"."""
        found: dict[str, TestResult] = {}
        for prefix, codes in (("", programs), ("None ", empty)):
            progress(f"verdicts: {prefix.strip() or 'references'}, {what}")
            jobs = [Job(codes[i], [tests[i]], names[i], config.generous) for i in codes]
            results = zip(codes, sandbox.run_many(jobs), strict=True)
            found |= {f"{prefix}{i}": row[0] for i, row in results}
        return found

    with Sandbox(config.pool_size, level=level) as sandbox:
        times = config.verdict_runs
        runs = [judged(sandbox, f"{number}/{times}") for number in range(1, times + 1)]
    if times > 1:
        many = 4 * len(os.sched_getaffinity(0))
        with Sandbox(many, level=level) as sandbox:
            runs.append(judged(sandbox, f"{many} workers"))
    failed = [i for i in programs if not runs[0][i].passed]
    passed = [i for i in empty if runs[0][f"None {i}"].passed]
    with BareFork([*programs.values(), *tests.values()]) as bare:
        progress("verdicts: the exceptions in plain Python")
        seconds = config.time_limit
        wrongly_failed = [
            i for i in failed if bare.check(programs[i], tests[i], seconds=seconds).passed
        ]
        wrongly_passed = [
            i for i in passed if not bare.check(empty[i], tests[i], seconds=seconds).passed
        ]
    yield SpeedFigure(
        "verdicts", f"references that pass, of {len(programs)}", len(programs) - len(failed),
        at_least=len(programs) - MAY_FAIL,
        note=_list("failing", [f"{i} ({_why(runs[0][i])})" for i in failed]),
    )  # fmt: skip
    yield SpeedFigure(
        "verdicts", "references that pass in plain Python only", len(wrongly_failed), at_most=MAY_FAIL,
        note=_list("these", wrongly_failed),
    )  # fmt: skip
    yield SpeedFigure(
        "verdicts", "`return None` passes, and not in plain Python", len(wrongly_passed), at_most=0,
        note=_list("passing in both", [i for i in passed if i not in wrongly_passed])
        + _list("; WRONG", wrongly_passed),
    )  # fmt: skip
    if len(runs) > 1:
        unlike = [i for i in runs[0] if len({each[i].outcome for each in runs}) > 1]
        yield SpeedFigure(
            "verdicts", "verdicts that differ between runs", len(unlike), at_most=0,
            note=f"{config.verdict_runs} runs with {config.pool_size} workers, one with four per core"
            + _list("; these", unlike),
        )  # fmt: skip


def _why(result: TestResult) -> str:
    return f"{result.outcome.value}: {result.message:.80}".rstrip(": ")


def _list(title: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return f"{title}: {', '.join(items[:_NAMED])}{more}"
