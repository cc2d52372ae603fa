"""Searches tests for a function or class: calls that give the same twice, few of them, that tell it from its mutants."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from codea1_env.mutation import Mutant, generate_mutants
from codea1_env.sandbox import AnalysisError, Outcome, Sandbox
from codea1_env.testgen.inputs import Inputs, Kind
from codea1_env.testgen.observe import LOOKING, Clock, Looker, Seen, differ, is_stable
from codea1_env.testgen.target import Target
from codea1_env.testgen.texts import ObservedTest, Trial
from codea1_env.testgen.write import body_of

_MOST_MUTANTS = 400
_MAX_CHARS = 400  # Longer tests are not kept: nobody could read them
_SEARCHING = 0.85  # Share of the time, after which no more mutants are run
_ROUNDS = 3
_READABLE = 4  # Tests of a function at least, where there are so many different results
_PROBES = 4
_ENOUGH = 0.75
_CHOSEN_PLANS = 4
_NOT_MEANT = {
    "TypeError", "AttributeError", "UnboundLocalError", "NameError", "RecursionError", "AssertionError",
    "SystemError", "MemoryError",
}  # fmt: skip
"""Errors that no test asks for: they mostly say that the call was wrong."""


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


def _reduced(kills: Sequence[frozenset[int]], tests: Sequence[str]) -> list[int]:
    """Choose few tests that kill every mutant which the whole suite kills: greedy set cover, simple tests first.

    A suite that kills nothing keeps its simplest test.

    Example:
        >>> suite = ["assert f(10) == 1", "assert f(1) == 2", "assert f(2) == 2"]
        >>> _reduced([frozenset({0}), frozenset({0, 1}), frozenset({1, 2})], suite)
        [1, 2]
    """

    def simplicity(number: int) -> tuple[int, int, str]:
        return tests[number].count("\n"), len(tests[number]), tests[number]

    simple = sorted(range(len(tests)), key=simplicity)
    chosen: list[int] = []
    left = set().union(*kills)
    while left:
        best = max(simple, key=lambda number: len(kills[number] & left))
        chosen.append(best)
        left -= kills[best]
    for number in sorted(chosen, key=simple.index, reverse=True):
        if kills[number] <= set().union(*(kills[other] for other in chosen if other != number)):
            chosen.remove(number)
    return sorted(chosen or simple[:1])


def candidates(looker: Looker, inputs: Inputs) -> Iterator[list[Trial]]:
    """Yield trials in parts: examples, then calls with the kinds of arguments that the target takes."""
    target = looker.target
    yield list(target.examples)
    if not target.is_class:
        for plan in _working(looker, inputs, inputs.plans(target.parameters)):
            yield [Trial(*call) for call in inputs.calls(target.parameters, plan)]
        return
    made = [(each.arguments, dict(each.keywords)) for each in target.examples]
    made += inputs.pool(target.parameters)
    looker.look([Trial(*call) for call in made])
    known = [(call, looker.known(Trial(*call))) for call in made]
    good = [call for call, seen in known if seen is not None and seen.found["made"]]
    if good:
        yield inputs.objects(good[:30])


def _working(looker: Looker, inputs: Inputs, plans: list[tuple[Kind, ...]]) -> list[tuple[Kind, ...]]:  # fmt: skip
    """Return the plans that the function takes: those whose calls raise no error about the kind of their arguments."""
    if len(plans) < 2:
        return plans
    found = [inputs.calls(looker.target.parameters, plan, 4 * _PROBES) for plan in plans]
    probes = [[Trial(*call) for call in calls[:_PROBES]] for calls in found]
    looker.look(list(itertools.chain(*probes)))
    shares = []
    for some in probes:
        good = [seen is not None and not seen.errors for seen in map(looker.known, some)]
        shares.append(sum(good) / len(good) if good else 0.0)
    enough = min(_ENOUGH, max(shares))
    chosen = [plan for plan, share in zip(plans, shares, strict=True) if share >= enough]
    return chosen[:_CHOSEN_PLANS]


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
        self.source = "\n" * (self.target.definition.lines[0] - 1) + self.target.definition.source
        try:
            found = generate_mutants(self.source, self.sandbox, _MOST_MUTANTS)
        except AnalysisError:
            found = []
        self.mutants = [replace(each, code=self.target.redefined(each.code)) for each in found]
        self.kills: dict[str, frozenset[int]] = {}

    def run(self) -> WrittenSuite:
        for trials in candidates(self.looker, self.inputs):
            self._try(trials)
        for _ in range(_ROUNDS):
            before = len(self._left())
            if before and not self.clock.is_over(LOOKING):
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
            for number, row in zip(part, rows, strict=True):
                for name, (_, seen), result in zip(names, known, row, strict=True):
                    if result is not None and differ(seen, result):
                        found[name].add(number)
        self.kills |= {name: frozenset(numbers) for name, numbers in found.items()}

    def _that_survive_redefinition(self, names: list[str]) -> list[str]:
        """Leave out trials that tell any redefinition from the program, such as those with objects made at import."""
        trials = [self.looker.seen[name][0] for name in names]
        [rows] = self.looker.observer.on_many([self.target.redefined(self.source)], trials)
        pairs = zip(names, rows, strict=True)
        return [n for n, row in pairs if row and not differ(self.looker.seen[n][1], row)]

    def _is_usable(self, name: str) -> bool:
        """Whether a test may say that it stays so: errors are those that the code raises on purpose."""
        wanted = self.target.raises - _NOT_MEANT
        meant = wanted.issuperset(self.looker.seen[name][1].errors)
        return meant and len(name) <= _MAX_CHARS // 2 and self._asserts(*self.looker.seen[name])

    def _test(self, name: str) -> ObservedTest:
        trial, seen = self.looker.seen[name]
        return ObservedTest(trial, seen.found)

    def _text(self, name: str) -> str:
        return body_of(self._test(name), self.target.shape)

    def _raises(self, name: str) -> bool:
        return "pytest.raises(" in self._text(name)

    def _asserts(self, trial: Trial, seen: Seen) -> bool:
        """Whether a test says anything about what it calls."""
        body = body_of(ObservedTest(trial, seen.found), self.target.shape)
        return "assert " in body or "pytest.raises(" in body

    def _left(self) -> list[int]:
        killed = frozenset[int]().union(*self.kills.values())
        return [number for number in range(len(self.mutants)) if number not in killed]

    def _suite(self) -> WrittenSuite:
        cut = self.clock.is_over(LOOKING) and bool(self._left())
        suite = WrittenSuite(self.target, mutants=self.mutants, passing=len(self.kills), cut=cut)
        suite.endless = self.looker.endless()
        chosen = self._chosen()
        if all(map(self._raises, chosen)):
            suite.why_not = self._why_not()
            return suite
        for name in chosen:
            self.kills[name] -= suite.killed
            if self.target.is_class:
                self._shrink(name)
            if len(self._text(name)) <= _MAX_CHARS or not suite.tests:
                suite.tests.append(self._test(name))
                suite.kills.append(self.kills[name])
        return suite

    def _chosen(self) -> list[str]:
        """Return few trials that kill as many mutants as all, and give the same where nothing ran before them."""
        while True:
            raising = [name for name in self.kills if self._raises(name)]
            chosen = self._fewest([name for name in self.kills if name not in raising], frozenset())
            killed = frozenset[int]().union(*(self.kills[name] for name in chosen))
            self._add_examples(chosen)
            chosen += self._fewest(raising, killed)
            trials = [self.looker.seen[name][0] for name in chosen]
            alone = self.looker.observer.alone(self.target.program, trials)
            pairs = zip(chosen, alone, strict=True)
            lucky = [name for name, seen in pairs if not is_stable(self.looker.seen[name][1], seen)]
            if not lucky:
                return chosen
            for name in lucky:
                del self.kills[name]
                self.looker.unstable.append(name)

    def _add_examples(self, chosen: list[str]) -> None:
        """Add calls of the documentation, or simple ones with other results, until a reader sees what a function does."""
        documented = set(map(self.looker.text, self.target.examples))
        results = {repr(self._test(name).found["results"]) for name in chosen}

        def oddity(name: str) -> tuple[bool, bool, int, str]:
            odd = any(each in name for each in ("''", "' '", "[]", "{}", "-"))
            return name not in documented, odd, len(name), name

        for name in sorted(self.kills, key=oddity) if not self.target.is_class else ():
            result, text = repr(self._test(name).found["results"]), self._text(name)
            is_short = "\n" not in text and len(text) < 80
            if len(chosen) < _READABLE and result not in results and is_short:
                results.add(result)
                chosen.append(name)

    def _fewest(self, names: Sequence[str], known: frozenset[int]) -> list[str]:
        """Return few of these tests that kill as many mutants, without the known ones, as all of them."""
        kills = [self.kills[name] - known for name in names]
        chosen = _reduced(kills, [self._text(name) for name in names])
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
            stable = one.outcome is Outcome.PASS and is_stable(one, other)
            same = stable and len(one.errors) <= len(seen.errors) and self._asserts(less, one)
            if same and _all_differ(one, column):
                trial, seen, rows = less, one, column
        for attribute in list(seen.found["attributes"]):
            kept = {key: each for key, each in seen.found["attributes"].items() if key != attribute}
            less_seen = replace(seen, found={**seen.found, "attributes": kept})
            if self._asserts(trial, less_seen) and _all_differ(less_seen, rows):
                seen = less_seen
        looker.seen[name] = (trial, seen)

    def _why_not(self) -> str:
        """Say why there are no tests, and what to do."""
        name, looker, clock = self.target.name, self.looker, self.clock
        if clock.is_over(LOOKING):
            return (
                f"no test of {name} was ready after {clock.used:.0f} s of processor time ({clock.wall:.0f} s by the "
                f"clock). --timeout {2 * (clock.seconds or 0):.0f} gives more"
            )
        if self.kills:
            return f"all calls of {name} that were tried raise. Write an example into the docstring"
        if looker.unstable:
            return (
                f"{len(looker.unstable)} calls of {name} gave different results in two runs, such as "
                f"{looker.unstable[0]}. Pass in what it draws or reads (a random.Random, a time)"
            )
        if looker.outside:
            return (
                f"{name} asks for files, the network or standard input, as in {looker.outside[0]}. Move the "
                "part that computes into a function of its own"
            )
        return (
            f"no arguments for {name} were found. Write an example into the docstring "
            f"(>>> {name}(...) and below it the result), or name an agent with --agent"
        )


def _spread(items: Sequence[int]) -> list[int]:
    """Return the items in another order: where only the first are reached, they come from everywhere."""
    return [item for start in range(16) for item in items[start::16]]


def _all_differ(seen: Seen, others: Sequence[Seen | None]) -> bool:
    return all(other is not None and differ(seen, other) for other in others)
