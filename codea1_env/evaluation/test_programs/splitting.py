"""A model's text, or a line of a file -> independent tests that are programs.

Code is looked for behind the reasoning, in fenced blocks, those marked as Python first (`codea1_env.reading.fences`).
Without a fence the whole text is the code. It is taken as it is: the text is never repaired, and what cannot be used is
named with a reason.

Each test is an assertion, a loop, a test function with its call, ..., with the earlier statements that it
depends on, so that it stands on its own. It carries an earlier statement if that one binds a name which the
test uses, or may change an object behind such a name. Assertions that share an object which a call has made
(``s = Stack()``) stay together in one test if one of them may change it, because their order matters.

Nothing is parsed here: `codea1_env.evaluation.test_programs.syntax` has done it in the sandbox, and its findings are plain data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from codea1_env.evaluation.test_programs.syntax import Item, describe
from codea1_env.reading.fences import PYTHON, answer_in, python_in
from codea1_env.responses import Dropped, text_problem
from codea1_env.sandbox import AnalysisError, Sandbox
from codea1_env.support.texts import in_batches

MAX_TESTS = 256
MAX_TEST_CHARS = 1 << 18
"""Total length of the tests of one answer: each repeats what it depends on."""
_DYNAMIC = frozenset(["eval", "exec", "globals", "locals", "vars", "__import__"])
"""Who uses one of these may depend on any name."""


@dataclass(frozen=True)
class Statement:
    """A top-level statement and the names it deals in."""

    text: str
    kind: str
    """assert, expression, comment (a string), function, class, import, wide import (of names that are not
    written there), block (for, with, try, ...), other."""
    binds: set[str]
    """Top-level names it binds."""
    kills: set[str]
    """Of these, the ones that have nothing to do any more with what they were before."""
    uses: set[str]
    """Top-level or builtin names it reads when it runs."""
    late: set[str]
    """Such names that functions in it read when they are called."""
    touches: set[str]
    """Names whose objects it may change: receivers and arguments of calls, targets of item assignment."""
    data: set[str] | None
    """If it assigns plain data: the names of other data that go into it."""
    checks: bool
    """There is an assert or raise in it."""
    is_test_like: bool
    """Its text looks like a test."""
    runs_all: bool
    """It starts a test runner."""
    calls: Sequence[str]
    """The calls that run it, if it is a function without arguments, or the methods of a test class."""
    missing: int
    """The number of arguments that it needs, if it is a function."""

    @property
    def names(self) -> set[str]:
        """All names from elsewhere."""
        return self.uses | self.late

    @property
    def is_definition(self) -> bool:
        """Whether it binds names to functions, classes or modules, which tests do not change."""
        return self.kind in ("function", "class", "import", "wide import")

    @property
    def is_check(self) -> bool:
        """Whether it asserts something itself when it runs."""
        return self.kind == "assert" or (self.kind == "block" and self.checks)


class Splitter:
    """Makes the tests of one answer out of its statements.

    Args:
        statements: All statements of the answer.
        entry_point: The function under test. Statements that define it are left out.
    """

    def __init__(self, statements: Iterable[Statement], entry_point: str) -> None:
        self.entry_point = entry_point
        self.statements: list[Statement] = []
        self.dropped: list[Item] = []
        """What became no test, complete when `tests` has returned."""
        for statement in statements:
            if entry_point in statement.binds and not statement.is_check:
                reason = f"defines {entry_point} itself; the tests get the program's"
                self.dropped.append((reason, statement.text, False))
            else:
                self.statements.append(statement)
        fixed = {name for s in self.statements if s.is_definition for name in s.binds}
        self._bound = {name for s in self.statements for name in s.binds}
        self._relevant = self._bound | _DYNAMIC
        self._variables = self._bound - fixed
        self._modules = {name for s in self.statements if s.kind == "import" for name in s.binds}
        self._scene = {n for n, s in enumerate(self.statements) if self._sets_the_scene(s)}
        self._used: set[int] = set()
        self._found: list[tuple[int, str]] = []
        self._room = MAX_TEST_CHARS

    def tests(self) -> list[str]:
        """The tests in the order of the text."""
        # Test functions and what only runs them: lists of them, suites, main().
        runners: set[str] = set()
        for number, statement in enumerate(self.statements):
            for call in self._calls(statement):
                runners |= statement.binds
                self._add([number], call)
        for statement in self.statements:
            if runners & statement.names and self.entry_point not in statement.names:
                runners |= set() if statement.is_check else statement.binds
        for group in self._groups():
            self._add(group)
        # print(x) before the x = f(1) it needs
        for number in reversed(range(len(self.statements))):
            if number not in self._used and self._is_bare(number, runners):
                self._add([number])
        for number, statement in enumerate(self.statements):
            if number not in self._used and statement.kind != "comment":
                self._leave_out(statement, runners)
        return [text for _, text in sorted(self._found, key=lambda item: item[0])]

    def _add(self, numbers: list[int], call: str | None = None) -> None:
        """Add the test that consists of these statements, or call what one of them defines."""
        if len(self._found) == MAX_TESTS or self._room < 0:
            self._used.update(numbers)
            text = call or self.statements[numbers[-1]].text
            self.dropped.append(("too many or too long tests", text[:200], True))
            return
        chosen = self._slice(numbers)
        if call is None and not self._calls_entry_point(chosen):
            # It may look at what an earlier assertion did: assert sort(x) is None; assert x == [1, 2].
            wider = self._slice(numbers, with_checks=True)
            chosen = wider if self._calls_entry_point(wider) else chosen
        self._used |= chosen
        lines = [self.statements[number].text for number in sorted(chosen)]
        text = "\n".join(lines if call is None else [*lines, call])
        self._room -= len(text)
        self._found.append((numbers[-1], text))

    def _calls_entry_point(self, numbers: Iterable[int]) -> bool:
        return any(self.entry_point in self.statements[number].names for number in numbers)

    def _calls(self, statement: Statement) -> Iterator[str]:
        """Yield the calls that make tests of a function or class: all named so, and checks nobody calls."""
        if statement.kind == "class":
            yield from statement.calls
        if statement.kind != "function":
            return
        if any(name.startswith("test") for name in statement.binds):
            yield from statement.calls
        elif statement.checks and not any(
            statement.binds & other.names for other in self.statements if other is not statement
        ):
            yield from statement.calls
            if statement.missing == 1:  # def check(candidate): ...
                yield f"{min(statement.binds)}({self.entry_point})"

    def _groups(self) -> list[list[int]]:
        """Return the checks among the statements; together those that share an object that one may change."""
        maker: dict[str, int] = {}  # variable -> the statement that made its object
        # maker -> the maker of a later object that may hold the same one
        heirs: dict[int, int] = {}
        checks: dict[int, list[int]] = {}  # maker -> the checks that see its object

        def latest(number: int) -> int:
            while number in heirs:
                number = heirs[number]
            return number

        for number, statement in enumerate(self.statements):
            shared = {latest(maker[name]) for name in statement.names & maker.keys()}
            if statement.is_check:
                for key in shared:
                    checks.setdefault(key, []).append(number)
            if statement.is_definition:
                continue
            if statement.data is not None and not statement.data & maker.keys():
                for name in statement.kills:
                    maker.pop(name, None)
            elif statement.binds:
                maker |= dict.fromkeys(statement.binds & self._variables, number)
                for key in shared:
                    heirs[key] = number
                    checks.setdefault(number, []).extend(checks.pop(key, []))
        group = {number: number for number, s in enumerate(self.statements) if s.is_check}
        for together in checks.values():
            if any(self.statements[n].touches & self._variables for n in together[:-1]):
                old = {group[n] for n in together}
                group = {n: min(old) if key in old else key for n, key in group.items()}
        groups: dict[int, list[int]] = {}
        for number, key in group.items():
            groups.setdefault(key, []).append(number)
        return list(groups.values())

    def _is_bare(self, number: int, runners: set[str]) -> bool:
        """Whether a statement that no test needs runs the entry point, and so is a test itself."""
        statement = self.statements[number]
        if statement.is_definition or statement.names & runners:
            return False
        if self.entry_point in statement.names:
            return True
        known = statement.names & self._bound
        return bool(known) and self._calls_entry_point(self._slice([number]))

    def _leave_out(self, statement: Statement, runners: set[str]) -> None:
        if statement.names & runners or statement.runs_all:
            item = ("runs tests that are judged one by one", statement.text, False)
        elif statement.is_definition and statement.is_test_like:
            item = ("is never called, and cannot be called without arguments", statement.text, True)
        else:
            reason = f"no test needs it, and it does not call {self.entry_point}"
            item = (reason, statement.text, False)
        self.dropped.append(item)

    def _slice(self, numbers: list[int], *, with_checks: bool = False) -> set[int]:
        """Return the statements and all earlier ones that they depend on; if asked, also assertions."""
        last = max(numbers)
        chosen = {*numbers, *(number for number in self._scene if number < last)}
        # Names that functions read: they may be called at any time, so no assignment hides another.
        late = set().union(*(self.statements[number].late for number in chosen))
        size = -1
        while size != len(chosen) + len(late):
            size = len(chosen) + len(late)
            live = set(late)
            first = min(chosen)
            for number in range(last, -1, -1):
                if number < first and not live & self._relevant:
                    break
                statement = self.statements[number]
                if number in chosen or self._matters(statement, live, with_checks):
                    chosen.add(number)
                    late |= statement.late
                    live -= statement.kills
                    live |= statement.uses | late
        return chosen

    def _matters(self, statement: Statement, live: set[str], with_checks: bool) -> bool:
        if statement.kind == "assert" and not with_checks:
            return False
        if statement.binds & live or (live & _DYNAMIC and not statement.is_check):
            return True
        if statement.is_check and not with_checks:
            return False
        return bool(statement.touches & live & self._variables)

    def _sets_the_scene(self, statement: Statement) -> bool:
        """Whether all that follows depends on it: random.seed(1), sys.setrecursionlimit(9999)."""
        return statement.kind == "wide import" or (
            statement.kind == "expression"
            and bool(statement.uses & self._modules)
            and not statement.names & (self._variables | {self.entry_point})
            and not statement.runs_all
        )


_Described = tuple[list[Statement], list[Item]]


@dataclass(frozen=True)
class TestProgramSuite:
    """The tests in an answer."""

    __test__ = False  # pytest would collect a class of this name

    tests: tuple[str, ...]
    """Each is a program that stands on its own: with the variables, helpers and imports that it needs."""
    rest: tuple[Dropped, ...] = ()
    """What no test was made of."""


def python_blocks(text: str) -> list[str]:
    r"""Return the code of the blocks that may be Python; those in other languages only if there are no others.

    Example:
        >>> python_blocks("Like this:\n```python\nx = 1\n```\nor\n~~~\nx = 2\n")
        ['x = 1\n', 'x = 2\n']
    """
    return [block.code for block in python_in(text, PYTHON | {"pycon"})]


def read_test_programs(
    texts: Sequence[tuple[str, str]], sandbox: Sandbox
) -> list[TestProgramSuite]:
    r"""Find the tests in answers.

    All Python blocks of an answer are read as one text.

    Args:
        texts: Pairs of the answer and the function under test.
        sandbox: Where the texts are parsed.

    Returns:
        One suite for each answer.

    Example:
        >>> from codea1_env.sandbox import Sandbox
        >>> with Sandbox() as sandbox:
        ...     read_test_programs([("x = 1\nassert f(x) == 2\nassert f(", "f")], sandbox)[0].tests
        ('x = 1\nassert f(x) == 2',)
    """
    problems = [text_problem(text) for text, _ in texts]
    codes = [
        "\n".join(python_blocks(answer_in(text)) or [answer_in(text)])
        for (text, _), problem in zip(texts, problems, strict=True)
        if problem is None
    ]
    described = iter(in_batches(codes, len, lambda batch: _read(batch, sandbox), _unread))
    suites = []
    for (text, entry_point), problem in zip(texts, problems, strict=True):
        tests: list[str] = []
        items: list[Item] = []
        if problem is None:
            statements, items = next(described)
            splitter = Splitter(statements, entry_point)
            tests = splitter.tests()
            items = items + splitter.dropped
            problem = None if tests or items else "the answer holds no test"
        if problem is not None:
            items.append((problem, text[:200], False))
        suites.append(TestProgramSuite(tuple(tests), tuple(Dropped(*item) for item in items)))
    return suites


def _read(codes: list[str], sandbox: Sandbox) -> list[_Described]:
    rows, found = sandbox.analyse(describe, codes)
    # A statement that comes twice in a text is two statements.
    return [
        ([Statement(**rows[place]) for place in places], [(a, b, c) for a, b, c in dropped])
        for places, dropped in found
    ]


def _unread(code: str, error: AnalysisError) -> _Described:
    return [], [(f"cannot be parsed: {error}", code[:200], True)]
