"""How well players do on what training never showed them, while they train.

Golden tests and mutants of every problem are split. Players may train with one part; the other part is only
for measuring: the coder by golden tests that no tester could attack it with, the tester by faults that no
coder could show it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.mutation.operators import lines_before_loops_end
from codea1_env.oracle import BrokenReferenceError
from codea1_env.problem_sets.golden import read_statements
from codea1_env.problem_sets.judging import submit_to_tests
from codea1_env.problems import Problem
from codea1_env.reading.examples import RUN, split_examples
from codea1_env.referee import Referee, Round, Verdict
from codea1_env.responses import Suite, parse_suites, read_programs
from codea1_env.rollout import Agent, RolloutEpisode, ask
from codea1_env.sandbox import AnalysisError, Case, Outcome, Sandbox, TestResult
from codea1_env.spaces import observe

Flag = bool | None
"""Whether a test is passed, or a mutant killed; None if the sandbox could not judge it."""
JudgedRound = tuple[Round, Verdict]


@dataclass(frozen=True)
class HeldOut:
    """A problem whose golden tests and mutants are split in two."""

    problem: Problem
    train_cases: tuple[Case, ...]
    train_mutants: tuple[str, ...]
    cases: tuple[Case, ...]
    """Golden tests for measuring coders; about a third."""
    mutants: tuple[str, ...]
    """Mutants of the reference for measuring testers; about a half."""

    @property
    def train_tests(self) -> tuple[str, ...]:
        """The golden tests for training as statements."""
        return _texts(self.problem, self.train_cases)

    @property
    def tests(self) -> tuple[str, ...]:
        """The golden tests for measuring as statements."""
        return _texts(self.problem, self.cases)


def hold_out(problems: Iterable[Problem], sandbox: Sandbox, seed: int = 0) -> list[HeldOut]:
    """Split golden tests and mutants of every problem. A problem's split depends only on it and the seed."""
    return [_hold_out(problem, sandbox, seed) for problem in problems]


def mutants_of(problem: Problem, sandbox: Sandbox) -> list[Mutant]:
    """Return the mutants of a problem's reference. Raises a BrokenReferenceError if that cannot be parsed."""
    try:
        return generate_mutants(problem.reference, sandbox)
    except AnalysisError as error:
        cause = error.__cause__ or error
        raise BrokenReferenceError(
            f"Expect the reference of problem {problem.task_id!r} to be a Python program, actually: {cause}. "
            "Check the data with `codea1 problems validate`."
        ) from error


def train_cases(problem: Problem, seed: int = 0) -> tuple[Case, ...]:
    """Return the golden tests of a problem that training may know, as `hold_out` does, and make no mutants."""
    return _split_cases(problem, _rng(problem, seed))[0]


def train_tests(problem: Problem, seed: int = 0) -> tuple[str, ...]:
    """Return `train_cases` as statements."""
    return _texts(problem, train_cases(problem, seed))


def _texts(problem: Problem, cases: tuple[Case, ...]) -> tuple[str, ...]:
    return tuple(replace(problem, cases=cases, base=0, test_module="").tests)


def _rng(problem: Problem, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(problem.task_id.encode())])


def _split_cases(
    problem: Problem, rng: np.random.Generator
) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    cases = [problem.cases[i] for i in rng.permutation(len(problem.cases))]
    held = len(cases) // 3
    return tuple(cases[held:]), tuple(cases[:held])


def _hold_out(problem: Problem, sandbox: Sandbox, seed: int) -> HeldOut:
    rng = _rng(problem, seed)
    known, held = _split_cases(problem, rng)
    made = mutants_of(problem, sandbox)
    # Mutants that never end are slow to judge, and every test kills them: they would only blur the measure.
    risky = set(sandbox.analyse(lines_before_loops_end, problem.reference))
    found = [mutant.code for mutant in made if mutant.line not in risky]
    mutants = [found[i] for i in rng.permutation(len(found))]
    half = len(mutants) // 2
    return HeldOut(problem, known, tuple(mutants[half:]), held, tuple(mutants[:half]))


@dataclass(frozen=True)
class PassRates:
    """Shares of tests that a coder's programs for one problem pass; None where there are no tests.

    What the sandbox could not judge is in no share.
    """

    held_out: float | None
    also: float | None
    solved: tuple[bool, ...] = ()
    """Which programs pass all held-out tests, of those whose tests were judged; empty where there are no tests."""
    unjudged: int = 0
    """Held-back tests of programs that could not be judged."""


def pass_rates(
    coder: Agent,
    held_out: Sequence[HeldOut],
    sandbox: Sandbox,
    samples: int = 4,
    also: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, PassRates]:
    """Return for each problem the shares of tests that a coder's programs pass; `also` has more tests by problem."""
    asked = [item.problem for item in held_out for _ in range(samples)]
    answers = ask(coder, "coder", list(map(observe, asked)))
    programs = read_programs(asked, answers, sandbox)
    pairs = [(of.task_id, each.code) for of, each in zip(asked, programs, strict=True)]
    kept, more = {}, {}
    for item in held_out:
        name = item.problem.task_id
        kept[name] = _only(item.problem, item.cases)
        more[name] = _cases_in(item, (also or {}).get(name, ()), sandbox)
    held, others = _passed(kept, pairs, sandbox), _passed(more, pairs, sandbox)
    return {
        name: PassRates(
            _share(held[name]),
            _share(others[name]),
            tuple(each for flags in held[name] if (each := _solves(flags)) is not None),
            sum(flags.count(None) for flags in held[name]),
        )
        for name in kept
    }


def _only(problem: Problem, cases: Sequence[Case]) -> Problem:
    """Return the problem with these cases and no other tests; programs that were read have its preamble."""
    reference = problem.reference or "pass"  # nobody asks it, and there may be no cases
    return replace(
        problem, cases=tuple(cases), base=0, test_module="", preamble="", reference=reference
    )


def _cases_in(item: HeldOut, tests: Sequence[str], sandbox: Sandbox) -> Problem:
    golden = read_statements(tests, item.problem.entry_point or RUN, sandbox.analyse)
    problem = _only(item.problem, golden.cases)
    return problem if problem.kind == "program" else replace(problem, compare="equal", checker="")


def _passed(
    problems: Mapping[str, Problem], pairs: Sequence[tuple[str, str]], sandbox: Sandbox
) -> dict[str, list[list[Flag]]]:
    """Return for each problem which cases each of its programs passes; None for what could not be judged."""
    runs = {
        (name, code): submit_to_tests(problems[name], code, sandbox.limits, sandbox)
        for name, code in dict.fromkeys(pairs)
        if problems[name].cases
    }
    found: dict[str, list[list[Flag]]] = {name: [] for name in problems}
    for pair in pairs:
        tests: Sequence[TestResult] = ()
        if pair in runs:
            result = runs[pair].result()
            missing = len(problems[pair[0]].cases) - len(result.tests)  # it does not load
            tests = (*result.tests, *[result.load] * missing)
        flags = [None if each.outcome is Outcome.UNJUDGED else each.passed for each in tests]
        found[pair[0]].append(flags)
    return found


def _solves(flags: Sequence[Flag]) -> Flag:
    """Return whether a program passes all tests; None without tests, or if that depends on one that was not judged."""
    if False in flags:
        return False
    return True if flags and None not in flags else None


def pass_rate(
    coder: Agent, held_out: Sequence[HeldOut], sandbox: Sandbox, samples: int = 4
) -> float | None:
    """Mean over problems of `pass_rates`; None if no problem has held-out tests."""
    rates = pass_rates(coder, held_out, sandbox, samples).values()
    known = [each.held_out for each in rates if each.held_out is not None]
    return float(np.mean(known)) if known else None


def kills(
    tester: Agent,
    held_out: Sequence[HeldOut],
    referee: Referee,
    samples: int = 4,
    seen: list[JudgedRound] | None = None,
) -> dict[str, list[Flag]]:
    """Return for each problem which held-out mutants, the first `samples`, a tester breaks with a valid test.

    The tester sees a mutant and writes one suite against it. Only tests that are right as written count. A flag is None
    where it depends on a test that could not be judged. `seen` gets the verdicts, for `youden_j`.
    """
    rounds = _rounds(tester, held_out, referee, samples)
    verdicts = referee.judge(rounds)
    if seen is not None:
        seen += zip(rounds, verdicts, strict=True)
    return _killed(verdicts)


def kills_beside(
    tester: Agent,
    tests: Sequence[tuple[HeldOut, Sequence[str]]],
    referee: Referee,
    samples: int = 4,
    seen: list[JudgedRound] | None = None,
) -> tuple[dict[str, list[Flag]], dict[str, list[Flag]]]:
    """Return what `kills` finds, and the same for given tests of each problem, such as those of the Mistake Book."""
    rounds = _rounds(tester, [item for item, _ in tests], referee, samples)
    size = referee.config.rewards.num_tests  # a longer suite would end there
    given = [
        Round(item.problem, mutant, [texts[i : i + size] for i in range(0, len(texts), size)])
        for item, texts in tests
        for mutant in item.mutants[:samples]
    ]
    verdicts = referee.judge([*rounds, *given])
    if seen is not None:
        seen += zip(rounds, verdicts, strict=False)
    return _killed(verdicts[: len(rounds)]), _killed(verdicts[len(rounds) :])


def youden_j(seen: Iterable[JudgedRound], referee: Referee) -> float | None:
    """Youden's J of one drawn test as it was written, from -1 to 1; None if no test was written.

    That is how much more often a right program passes it than a wrong one: `mu` of `codea1 eval tests`. A coder can
    learn from tests if it is above 0.
    """
    drawn = right = passed = 0
    asked: list[Round] = []
    for played, verdict in seen:
        suite = played.suites[0]
        assert isinstance(played.code, str)  # a mutant
        assert isinstance(suite, Suite)
        ruled = verdict.suites[0].tests
        kept = [test for test in ruled if test.status == "kept"]
        right += len(kept)
        drawn += len(kept) + verdict.suites[0].outcome.invalid
        passed += sum(test.passed for test in kept)
        # The game corrects their values. As written, a wrong program passes those that predict what it returns.
        wrong = [
            written.text
            for written, test in zip(suite.tests, ruled, strict=True)
            if test.status == "corrected" and test.broke and test.outcome is Outcome.FAIL
        ]
        if wrong:
            problem = replace(played.problem, reference=played.code)
            asked.append(Round(problem, played.code, [wrong]))
    for verdict in referee.judge(asked):
        passed += sum(test.status == "kept" for test in verdict.suites[0].tests)
    return (right - passed) / drawn if drawn else None


def kill_rate(
    tester: Agent, held_out: Sequence[HeldOut], referee: Referee, samples: int = 4
) -> float | None:
    """Mean over mutants of `kills`; None if no problem has held-out mutants."""
    return _share(kills(tester, held_out, referee, samples).values())


def _rounds(
    tester: Agent, held_out: Sequence[HeldOut], referee: Referee, samples: int
) -> list[Round]:
    shown = [(item.problem, mutant) for item in held_out for mutant in item.mutants[:samples]]
    return attacked(tester, shown, [mutant for _, mutant in shown], referee)


def attacked(
    tester: Agent, programs: Sequence[tuple[Problem, str]], shown: Sequence[str], referee: Referee
) -> list[Round]:
    """Let a tester write one suite against each program, in whose place it sees what is shown."""
    seen = [observe(of, code=text, turn=1) for (of, _), text in zip(programs, shown, strict=True)]
    answers = zip(ask(tester, "tester", seen), [of for of, _ in programs], strict=True)
    suites = parse_suites(list(answers), referee.sandbox)
    return [Round(*pair, [suite]) for pair, suite in zip(programs, suites, strict=True)]


def _killed(verdicts: Iterable[Verdict]) -> dict[str, list[Flag]]:
    killed: dict[str, list[Flag]] = {}
    for verdict in verdicts:
        tests = [test for suite in verdict.suites for test in suite.tests]
        unknown = any(
            test.status == "not made" and test.outcome is Outcome.UNJUDGED for test in tests
        )
        broken = any(test.status == "kept" and test.broke for test in tests)
        flag = True if broken else None if unknown else False
        killed.setdefault(verdict.task_id, []).append(flag)
    return killed


def _share(rows: Iterable[Sequence[Flag]]) -> float | None:
    flags = [flag for row in rows for flag in row if flag is not None]
    return float(np.mean(flags)) if flags else None


def shown_calls(problems: Sequence[Problem], sandbox: Sandbox) -> list[frozenset[str]]:
    """For each problem the calls that its text shows in examples, in the one form that `Test.same_as` has."""
    shown = [
        "\n".join(split_examples(problem.prompt, problem.entry_point)[1]) for problem in problems
    ]
    suites = parse_suites(list(zip(shown, problems, strict=True)), sandbox)
    return [frozenset(test.same_as for test in suite.tests) for suite in suites]


def copied_share(episodes: Sequence[RolloutEpisode], sandbox: Sandbox) -> float | None:
    """Share of the testers' tests that make a call which the problem's text shows; None if there are no tests."""
    problems = list({episode.problem.task_id: episode.problem for episode in episodes}.values())
    calls = shown_calls(problems, sandbox)
    shown = {problem.task_id: each for problem, each in zip(problems, calls, strict=True)}
    copied = [
        test.same_as in shown[episode.problem.task_id]
        for episode in episodes
        for suite in episode.suites
        for test in suite.tests
    ]
    return sum(copied) / len(copied) if copied else None
