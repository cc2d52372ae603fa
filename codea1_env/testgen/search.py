"""Searches tests for a function or class: calls that give the same twice, few of them, that tell it from its mutants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.problem_sets.fuzz import Call
from codea1_env.sandbox import AnalysisError, Limit, Outcome, Sandbox
from codea1_env.testgen.clock import Clock
from codea1_env.testgen.inputs import Inputs, Kind
from codea1_env.testgen.layout import body_of
from codea1_env.testgen.observe import Observer, Seen, differ, is_stable
from codea1_env.testgen.reduce import reduce_suite
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import ObservedTest, Trial, trial_text

_MOST_MUTANTS = 400
_MAX_CHARS = 400
"""Longer tests are not kept: nobody could read them."""
_LOOKING, _SEARCHING = 0.5, 0.85
"""Shares of the time, after which nothing new is tried, and no more mutants are run."""
_ROUNDS = 3
_READABLE = 4
"""Tests of a function at least, where there are so many different results."""
_PROBES = 4
_ENOUGH = 0.75
_CHOSEN_PLANS = 4
WRONG_KIND = {"TypeError", "AttributeError"}
_SURROUNDINGS = {
    "FileNotFoundError", "PermissionError", "ConnectionError", "ConnectionRefusedError", "gaierror", "OSError",
    "EOFError", "BlockingIOError", "ModuleNotFoundError", "ImportError", "TimeoutError",
}  # fmt: skip
"""What a program raises that asks for what the sandbox has not."""
_ACCIDENTS = {
    "UnboundLocalError", "NameError", "RecursionError", "AssertionError", "SystemError", "MemoryError",
}  # fmt: skip


@dataclass
class WrittenSuite:
    """Tests of a function or class."""

    target: Target
    tests: list[ObservedTest] = field(default_factory=list)
    kills: list[frozenset[int]] = field(default_factory=list)
    """For each test the numbers of the mutants that it kills."""
    mutants: list[Mutant] = field(default_factory=list)
    passing: int = 0
    """Calls that could be tests."""
    endless: str = ""
    """A call that never ends."""
    why_not: str = ""
    """Why there are no tests."""
    cut: bool = False
    """The time was over before everything was tried."""

    @property
    def killed(self) -> frozenset[int]:
        """The mutants that any test kills."""
        return frozenset().union(*self.kills)

    @property
    def survivors(self) -> list[Mutant]:
        """The mutants that no test kills."""
        return [each for number, each in enumerate(self.mutants) if number not in self.killed]


def write_suite(
    target: Target,
    sandbox: Sandbox,
    *,
    seed: int = 0,
    timeout: float | None = None,
    ask: Callable[[Sequence[Mutant]], list[Trial]] | None = None,
) -> WrittenSuite:
    """Search tests for a function or class.

    Args:
        target: What is tested.
        sandbox: Where its module can be imported.
        seed: Of the choice among inputs.
        timeout: Seconds of processor time; None for as long as it takes.
        ask: Asks an agent for calls, twice: the second time it is shown the mutants that survive.

    Raises:
        InfraError: The sandbox failed.
    """
    return _Search(target, sandbox, seed, Clock(timeout), ask).run()


def _mutants_of(target: Target, sandbox: Sandbox) -> list[Mutant]:
    """Return the mutants of the definition, spread evenly over its lines."""
    first, _ = target.definition.lines
    try:
        source = "\n" * (first - 1) + target.definition.source
        found = generate_mutants(source, sandbox, _MOST_MUTANTS)
    except AnalysisError:
        return []
    return [replace(each, code=target.redefined(each.code)) for each in found]


class Looker:
    """Runs trials on the program and remembers what came of them.

    Args:
        target: The program.
        sandbox: Where it runs.
        clock: How long it may take.
    """

    def __init__(self, target: Target, sandbox: Sandbox, clock: Clock) -> None:
        self.target = target
        self.clock = clock
        self.observer = Observer(target.name, target.attributes, sandbox)
        self.seen: dict[str, tuple[Trial, Seen]] = {}
        """By the text of the trial, where two runs gave the same."""
        self.runs: dict[str, tuple[Seen, Seen]] = {}
        """All that was tried, by its text."""
        self.unstable: list[str] = []
        self.outside: list[str] = []
        """Calls that asked for files, the network or standard input."""
        self.hanging: list[tuple[str, Trial]] = []

    def look(self, trials: Sequence[Trial]) -> list[str]:
        """Run new trials twice; returns the texts of those that are stable."""
        texts = {trial_text(trial, self.target.shape): trial for trial in trials}
        new = {text: trial for text, trial in texts.items() if text not in self.runs}
        runs: list[tuple[Seen, Seen]] = []
        for part in self.clock.parts(list(new.values()), _LOOKING, first=16):
            seen = self.observer.twice(self.target.program, part)
            runs += seen
            if len(seen) < len(part):
                break
        found = []
        for (text, trial), (one, other) in zip(new.items(), runs, strict=False):
            self.runs[text] = (one, other)
            if (
                one.outcome is Outcome.TIMEOUT
                and one.limit is not Limit.WALL_TIME
                and is_small(trial)
            ):
                self.hanging.append((text, trial))
            elif not is_stable(one, other):
                self.unstable.append(text)
            elif any(name in _SURROUNDINGS - self.target.raises for _, name, _ in one.errors):
                self.outside.append(text)
            elif one.outcome is Outcome.PASS:
                self.seen[text] = (trial, one)
                found.append(text)
        return found

    def endless(self) -> str:
        """Return the simplest call that does not end with ten times the time, either; "" if there is none."""
        for text, trial in sorted(self.hanging, key=lambda pair: len(pair[0]))[:2]:
            seen = self.observer.patiently(self.target.program, trial)
            if (
                seen.outcome in (Outcome.TIMEOUT, Outcome.MEMORY)
                and seen.limit is not Limit.WALL_TIME
            ):
                return text
        return ""


def candidates(looker: Looker, inputs: Inputs) -> Iterator[list[Trial]]:
    """Yield trials in parts: examples, then calls with the kinds of arguments that the target takes."""
    target = looker.target
    yield list(target.examples)
    if target.is_class:
        made = [(each.arguments, dict(each.keywords)) for each in target.examples]
        made += inputs.pool(target.parameters)
        looker.look([Trial(*call) for call in made])
        good = [call for call in made if _is_made(looker, call)]
        if good:
            yield inputs.objects(good[:30])
        return
    plans = inputs.plans(target.parameters)
    for plan in _working(looker, inputs, plans):
        yield [Trial(*call) for call in inputs.calls(target.parameters, plan)]


def _is_made(looker: Looker, call: Call) -> bool:
    known = looker.seen.get(trial_text(Trial(*call), looker.target.shape))
    return known is not None and bool(known[1].found.get("made"))


def _working(looker: Looker, inputs: Inputs, plans: list[tuple[Kind, ...]]) -> list[tuple[Kind, ...]]:  # fmt: skip
    """Return the plans that the function takes: those whose calls raise no error about the kind of their arguments."""
    if len(plans) < 2:
        return plans
    probes = [
        [
            Trial(*call)
            for call in inputs.calls(looker.target.parameters, plan, 4 * _PROBES)[:_PROBES]
        ]
        for plan in plans
    ]
    looker.look(list(itertools.chain(*probes)))
    shares = []
    for some in probes:
        known = [looker.seen.get(trial_text(trial, looker.target.shape)) for trial in some]
        good = [seen is not None and not seen[1].errors for seen in known]
        shares.append(sum(good) / len(good) if good else 0.0)
    enough = min(_ENOUGH, max(shares))
    return [plan for plan, share in zip(plans, shares, strict=True) if share >= enough][
        :_CHOSEN_PLANS
    ]


def is_small(trial: Trial) -> bool:
    """Whether nobody would expect that a call takes long."""

    def small(value: object) -> bool:
        if isinstance(value, (int, float)):
            return abs(value) <= 10
        if isinstance(value, dict):
            return len(value) <= 4 and all(map(small, value.values()))
        if isinstance(value, (list, tuple, set, frozenset)):
            return len(value) <= 4 and all(map(small, value))
        return not isinstance(value, (str, bytes)) or len(value) <= 10

    steps = [part for _, args, words in trial.steps for part in (*args, *words.values())]
    return all(map(small, (*trial.arguments, *trial.keywords.values(), *steps)))


@dataclass
class _Search:
    target: Target
    sandbox: Sandbox
    seed: int
    clock: Clock
    ask: Callable[[Sequence[Mutant]], list[Trial]] | None

    def __post_init__(self) -> None:
        self.looker = Looker(self.target, self.sandbox, self.clock)
        self.inputs = Inputs(self.target, self.seed)
        self.mutants = _mutants_of(self.target, self.sandbox)
        self.kills: dict[str, frozenset[int]] = {}

    def run(self) -> WrittenSuite:
        for trials in candidates(self.looker, self.inputs):
            self._try(trials)
        for _ in range(_ROUNDS):
            before = len(self._left())
            if before and not self.clock.is_over(_LOOKING):
                best = sorted(self.kills, key=lambda name: -len(self.kills[name]))[:40]
                self._try(self.inputs.varied(self.looker.seen[name][0] for name in best))
                if len(self._left()) == before:
                    break
        for asked in range(2 if self.ask is not None else 0):
            left = [self.mutants[number] for number in self._left()]
            if self.ask is not None and left:
                trials = self.ask(left if asked else [])
                # An agent's time is not counted.
                self.looker.clock = self.clock = Clock(self.clock.seconds)
                self._try(trials)
        return self._suite()

    def _try(self, trials: Sequence[Trial]) -> None:
        """Look at trials, and run those that can be tests on the mutants that are left."""
        names = [name for name in self.looker.look(trials) if self._is_usable(name)]
        left = self._left()
        names = self._that_survive_redefinition(names) if names else []
        known = [self.looker.seen[name] for name in names]
        found: dict[str, set[int]] = {name: set() for name in names}
        for part in self.clock.parts(_spread(left), _SEARCHING) if names else ():
            codes = [self.mutants[number].code for number in part]
            rows = self.looker.observer.on_many(codes, [trial for trial, _ in known])
            for place, (name, (_, seen)) in enumerate(zip(names, known, strict=True)):
                found[name] |= {
                    number
                    for number, row in zip(part, rows, strict=True)
                    if (result := row[place]) is not None and differ(seen, result)
                }
        self.kills |= {name: frozenset(numbers) for name, numbers in found.items()}

    def _that_survive_redefinition(self, names: list[str]) -> list[str]:
        """Leave out trials that tell any redefinition from the program, such as those with objects made at import."""
        first, _ = self.target.definition.lines
        same = self.target.redefined("\n" * (first - 1) + self.target.definition.source)
        [rows] = self.looker.observer.on_many([same], [self.looker.seen[name][0] for name in names])
        return [
            name
            for name, row in zip(names, rows, strict=True)
            if row is not None and not differ(self.looker.seen[name][1], row)
        ]

    def _is_usable(self, name: str) -> bool:
        """Whether a test may say that it stays so: errors are those that the code raises on purpose."""
        _, seen = self.looker.seen[name]
        wanted = self.target.raises - WRONG_KIND - _ACCIDENTS
        meant = all(error in wanted for _, error, _ in seen.errors)
        return meant and len(name) <= _MAX_CHARS // 2 and self._asserts(*self.looker.seen[name])

    def _test(self, name: str) -> ObservedTest:
        trial, seen = self.looker.seen[name]
        return ObservedTest(trial, seen.found)

    def _text(self, name: str) -> str:
        return body_of(self._test(name), self.target.shape)

    def _asserts(self, trial: Trial, seen: Seen) -> bool:
        """Whether a test says anything about what it calls."""
        body = body_of(ObservedTest(trial, seen.found), self.target.shape)
        return "assert " in body or "pytest.raises(" in body

    def _left(self) -> list[int]:
        killed = frozenset[int]().union(*self.kills.values())
        return [number for number in range(len(self.mutants)) if number not in killed]

    def _suite(self) -> WrittenSuite:
        cut = self.clock.is_over(_LOOKING) and bool(self._left())
        suite = WrittenSuite(self.target, mutants=self.mutants, passing=len(self.kills), cut=cut)
        suite.endless = self.looker.endless()
        chosen = self._chosen()
        if any("pytest.raises(" not in self._text(name) for name in chosen):
            for name in chosen:
                self.kills[name] -= suite.killed
                if self.target.is_class:
                    self._shrink(name)
                if len(self._text(name)) > _MAX_CHARS and suite.tests:
                    continue
                suite.tests.append(self._test(name))
                suite.kills.append(self.kills[name])
        else:
            suite.why_not = self._why_not()
        return suite

    def _chosen(self) -> list[str]:
        """Return few trials that kill as many mutants as all, and give the same where nothing ran before them."""
        while True:
            raising = [name for name in self.kills if "pytest.raises(" in self._text(name)]
            chosen = self._fewest([name for name in self.kills if name not in raising], frozenset())
            killed = frozenset[int]().union(*(self.kills[name] for name in chosen))
            chosen = self._with_examples(chosen)
            chosen += self._fewest(raising, killed)
            trials = [self.looker.seen[name][0] for name in chosen]
            alone = self.looker.observer.alone(self.target.program, trials)
            lucky = [
                name
                for name, seen in zip(chosen, alone, strict=True)
                if not is_stable(self.looker.seen[name][1], seen)
            ]
            if not lucky:
                return chosen
            for name in lucky:
                del self.kills[name]
                self.looker.unstable.append(name)

    def _with_examples(self, chosen: list[str]) -> list[str]:
        """Add calls of the documentation, or simple ones with other results, until a reader sees what a function does."""
        if self.target.is_class:
            return chosen
        documented = {trial_text(each, self.target.shape) for each in self.target.examples}
        results = {repr(self._test(name).found["results"]) for name in chosen}
        simple = sorted(
            self.kills, key=lambda name: (name not in documented, _is_odd(name), len(name), name)
        )
        for name in simple:
            result, text = repr(self._test(name).found["results"]), self._text(name)
            if (
                len(chosen) < _READABLE
                and result not in results
                and "\n" not in text
                and len(text) < 80
            ):
                results.add(result)
                chosen.append(name)
        return chosen

    def _fewest(self, names: Sequence[str], known: frozenset[int]) -> list[str]:
        """Return few of these tests that kill as many mutants, without the known ones, as all of them."""
        kills = [self.kills[name] - known for name in names]
        chosen = reduce_suite(kills, [self._text(name) for name in names])
        return [names[number] for number in chosen if kills[number] or not known]

    def _shrink(self, name: str) -> None:
        """Leave out steps and attributes without which a trial still kills the mutants that it killed."""
        looker, codes = self.looker, [self.mutants[number].code for number in self.kills[name]]
        trial, seen = looker.seen[name]
        rows = [row[0] for row in looker.observer.on_many(codes, [trial])]
        for step in reversed(range(len(trial.steps))):
            if self.clock.is_over():
                break
            less = replace(trial, steps=(*trial.steps[:step], *trial.steps[step + 1 :]))
            [(one, other)] = looker.observer.twice(self.target.program, [less])
            column = [row[0] for row in looker.observer.on_many(codes, [less])]
            stable = (
                one.outcome is Outcome.PASS
                and is_stable(one, other)
                and len(one.errors) <= len(seen.errors)
            )
            if stable and self._asserts(less, one) and _all_differ(one, column):
                trial, seen, rows = less, one, column
        for attribute in list(seen.found["attributes"]):
            kept = {key: each for key, each in seen.found["attributes"].items() if key != attribute}
            less_seen = replace(seen, found={**seen.found, "attributes": kept})
            if self._asserts(trial, less_seen) and _all_differ(less_seen, rows):
                seen = less_seen
        looker.seen[name] = (trial, seen)

    def _why_not(self) -> str:
        """Say why there are no tests, and what to do."""
        target, looker, clock = self.target, self.looker, self.clock
        if clock.is_over(_LOOKING):
            return (
                f"no test of {target.name} was ready after {clock.used:.0f} s of processor time ({clock.wall:.0f} s by the "
                f"clock). --timeout {2 * (clock.seconds or 0):.0f} gives more"
            )
        if self.kills:
            return f"all calls of {target.name} that were tried raise. Write an example into the docstring"
        if looker.unstable:
            return (
                f"{len(looker.unstable)} calls of {target.name} gave different results in two runs, such as "
                f"{looker.unstable[0]}. Pass in what it draws or reads (a random.Random, a time)"
            )
        if looker.outside:
            return (
                f"{target.name} asks for files, the network or standard input, as in {looker.outside[0]}. Move the "
                "part that computes into a function of its own"
            )
        return (
            f"no arguments for {target.name} were found. Write an example into the docstring "
            f"(>>> {target.name}(...) and below it the result), or name an agent with --agent"
        )


def _spread(items: Sequence[int]) -> list[int]:
    """Return the items in another order: where only the first are reached, they come from everywhere."""
    return [item for start in range(16) for item in items[start::16]]


def _is_odd(text: str) -> bool:
    """Whether a call has arguments that no reader would choose first."""
    return any(each in text for each in ("''", "' '", "[]", "{}", "-"))


def _all_differ(seen: Seen, others: Sequence[Seen | None]) -> bool:
    return all(other is not None and differ(seen, other) for other in others)
