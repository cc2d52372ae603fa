"""The ends of the bridge between a test and a program, against another end that sends whatever it likes."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.sandbox.inside import codec
from codea1_env.sandbox.inside.bridge import bases, handles, peer, references
from codea1_env.sandbox.inside.bridge.operations import ARITHMETIC, NUMBERS, OPERATIONS
from codea1_env.sandbox.inside.codec import frames
from codea1_env.sandbox.inside.errors import RemoteUnencodable

INSIDE = Path(codec.__file__).parents[1]
READERS = ("bridge/*.py", "codec/*.py")
FORBIDDEN = {
    "__import__", "compile", "eval", "exec", "find_spec", "format", "format_map", "getattr_static", "globals",
    "import_module", "load", "loads", "make_dataclass", "namedtuple", "new_class", "open",
}  # fmt: skip
DOCS = Path(__file__).parents[2] / "docs" / "sandbox.md"


class Reference:
    """Written as a reference, of any kind."""

    def __init__(self, kind: bytes, number: int, data: Any = None) -> None:
        self.reference = (kind, number, data)


def encoded(message: Any) -> bytes:
    return codec.encode(message, refer=lambda value: value.reference, containers=[])


def request(name: str, number: int, *operands: Any) -> bytes:
    return bytes([NUMBERS[name]]) + number.to_bytes(4, "little") + encoded(operands)


def reply(value: Any, changes: Any = None) -> bytes:
    return b"v" + encoded(value) if changes is None else b"w" + encoded((value, changes))


def of_the_test(function: Any) -> Any:
    """A function as the test's own text would define it."""
    function.__module__ = "test"
    return function


class Program:
    """Plays the program's end with prepared frames."""

    def __init__(self, test: peer.Peer, send: int, receive: int) -> None:
        self.peer = test
        self._send = send
        self._receive = receive
        self.function = test.decode(encoded(Reference(b"h", 0, (bases.FUNCTION, None))))

    def will_send(self, *contents: bytes) -> None:
        for content in contents:
            frames.write_frame(self._send, content)

    def received(self) -> list[bytes]:
        os.set_blocking(self._receive, False)
        found = []
        while True:
            try:
                size = os.read(self._receive, 4)
            except BlockingIOError:
                return found
            found.append(os.read(self._receive, int.from_bytes(size, "little")))


@contextmanager
def connection() -> Iterator[Program]:
    ours, theirs = os.pipe(), os.pipe()
    test = peer.Peer(theirs[0], ours[1], limit=1 << 20, home="test")
    try:
        yield Program(test, theirs[1], ours[0])
    finally:
        for descriptor in (*ours, *theirs):
            os.close(descriptor)


@pytest.fixture
def program() -> Iterator[Program]:
    with connection() as program:
        yield program


# The rule


@pytest.mark.parametrize("seed", range(2))
def test_a_hostile_peer_can_do_nothing_outside_of_the_table(seed: int) -> None:
    """`python tests/sandbox/hostile_peer.py 100000` is the long run."""
    command = [sys.executable, str(Path(__file__).with_name("hostile_peer.py")), "2000", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert int(done.stdout.split()[0]) >= 2000


def test_the_watch_of_the_hostile_peer_can_find_something() -> None:
    code = (
        "import sys\nsys.path.insert(0, 'tests/sandbox')\nimport hostile_peer\nsys.addaudithook(hostile_peer._audit)\n"
        "with hostile_peer.watched():\n    exec('1')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "ALARM compile" in done.stdout


def _calls(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
            yield name, node


def test_what_reads_messages_calls_nothing_that_makes_code_or_classes_of_them() -> None:
    found, attributes = [], []
    files = sorted(file for pattern in READERS for file in INSIDE.glob(pattern))
    assert len(files) > 12
    for file in files:
        for name, node in _calls(ast.parse(file.read_text())):
            if isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "re.compile":
                continue
            made = name == "type" and len(node.args) + len(node.keywords) > 1
            if name in FORBIDDEN or made or "_StandInType" in name:
                found.append((file.name, name))
            if name in ("getattr", "setattr", "delattr", "vars", "__setattr__"):
                attributes.append((file.name, name))
    # The classes that are made there have names of ours; their bases are of our lists, or made there, too.
    assert found == [("raising.py", "_StandInType")] * 2
    # By names that are ours, but for `handles.py`, where a test's own text names an attribute.
    assert {name for name, _ in attributes} <= {
        "assertions.py", "bases.py", "formats.py", "gate.py", "handles.py", "operations.py", "operators.py", "raising.py",
    }  # fmt: skip
    source = (INSIDE / "bridge" / "operations.py").read_text()
    assert source.count(", getattr)") == 1  # the entry "get" of the table, after `gate.py`


def test_the_documentation_has_the_whole_table() -> None:
    section = (
        DOCS.read_text().partition("## What can be asked of a handle")[2].partition("\n## ")[0]
    )
    rows = re.findall(r"^\| (`.+`) \| (.+) \|$", section, re.MULTILINE)
    documented = dict(
        pair
        for names, meanings in rows
        for pair in zip(
            names.split(", "),
            meanings.split(", ") if names.count(",") == 2 else [meanings],
            strict=True,
        )
    )
    for operation in OPERATIONS:
        meaning = documented.pop(f"`{operation.name}`").replace("\\|", "|")
        assert meaning.strip("`") == operation.meaning, operation.name
    assert documented == {}


def test_requests_and_replies_cannot_be_mistaken() -> None:
    assert len(OPERATIONS) == len(NUMBERS) < min(b"vweu")
    assert {name for name, _ in ARITHMETIC} < NUMBERS.keys()


# Replies


def test_an_honest_reply(program: Program) -> None:
    program.will_send(reply([1, "a"]))
    argument = [5]
    assert program.function(argument, key=2) == [1, "a"]
    [sent] = program.received()
    assert sent[0] == NUMBERS["call_with_names"]
    assert argument == [5]


def test_arguments_change_only_as_they_can(program: Program) -> None:
    argument: list[Any] = [[1], {"a": 2}]
    program.will_send(reply(None, ((1, (7, 8)), (2, ("b", 3)), (0, (1, 2)))))
    inner, mapping = argument
    program.function(argument)
    assert inner == [7, 8]
    assert mapping == {"b": 3}
    assert argument == [1, 2]


def _error(kind: Any, message: Any = "x", arguments: Any = (), number: int = 7) -> Reference:
    return Reference(b"e", number, (kind, message, arguments, None, None))


NO_HANDLES = [
    (-1, None),
    (99, None),
    (2, "text"),
    (2, None),
    (3, 1),
    ("2", 1),
    (2, 1, 1),
    [2, 1],
    None,
    5,
]
NO_CLASSES = [
    None,
    ((), 5),
    ((9999,), (Reference(b"h", 1, (0, None)),)),
    (("x",), ()),
    ((), (Reference(b"t", 30),)),
    ((), ([],)),
]


@pytest.mark.parametrize(
    "content",
    [
        b"v", b"vxxx", b"v" + encoded(1) + b"N", b"v@\1\0\0\0", b"w", b"wxxx", b"w" + encoded(5),
        b"w" + encoded(()), b"w" + encoded((1,)), b"w" + encoded((1, (), 4)), b"e" + encoded(("no exception", ())),
        b"e" + encoded((5,)), b"u" + encoded("a reason"), b"u" + encoded(5), b"u",
        reply(1, 5), reply(1, [(0, (1,))]), reply(1, (5,)), reply(1, ((0, [1]),)), reply(1, ((0, b"x"),)),
        reply(1, ((1, (1,)),)), reply(1, ((-1, (1,)),)), reply(1, (("0", (1,)),)),
        reply(Reference(b"y", 5)), reply(Reference(b"q", 1)), reply(Reference(b"s", 0, (1, 2, 3, 4))),
        reply(Reference(b"s", 0, Reference(b"h", 1, (0, None)))), reply(Reference(b"t", 9999)), reply(Reference(b"o", 99)),
        reply(Reference(b"o", 0, {"a": 1})), reply(Reference(b"o", 2, [1])), reply(Reference(b"o", 0, [[]])),
        reply(Reference(b"o", 3, 5)), reply(Reference(b"o", 6, "no uuid")), reply(Reference(b"o", 7, "os")),
        *(reply(Reference(b"h", 1, data)) for data in NO_HANDLES),
        *(reply(Reference(b"k", 1, data)) for data in NO_CLASSES),
        *(reply(_error(kind)) for kind in (None, 99999, -1, "ValueError", Reference(b"t", 0), Reference(b"h", 2, (0, None)))),
        reply(_error(Reference(b"t", 30), 5)), reply(_error(Reference(b"t", 30), "x", [1])), reply(Reference(b"e", 1, (1,))),
    ],
)  # fmt: skip
def test_malformed_replies_poison_the_test(program: Program, content: bytes) -> None:
    program.will_send(content, reply(None), reply(None))
    with pytest.raises(RemoteUnencodable):
        program.function([1])
    assert program.peer.failure


@pytest.mark.parametrize("content", [b"", b"z" + encoded(1), bytes([len(OPERATIONS)]), bytes(5)])
def test_what_is_neither_request_nor_reply_is_refused(program: Program, content: bytes) -> None:
    program.will_send(content, reply("done"))
    assert program.function([1]) == "done"
    assert program.received()[1][:1] == b"u"


def test_a_reply_cannot_hand_out_what_was_never_given(program: Program) -> None:
    program.will_send(reply(None), reply(Reference(b"y", 1)))
    program.function(len)  # not print: Ray puts another one in its place
    with pytest.raises(RemoteUnencodable):
        program.function(1)


def test_objects_are_given_back_many_at_a_time(program: Program) -> None:
    for number in range(120):
        if number == 101:
            program.will_send(reply(None))
        program.will_send(reply(Reference(b"h", number + 4, (0, None))))
        made = program.function()
        assert program.peer.references.handle(number + 4) is made
    sent = program.received()
    assert {frame[0] for frame in sent} == {NUMBERS["call"], NUMBERS["release"]}
    (given_back,) = (codec.decode(frame[5:]) for frame in sent if frame[0] == NUMBERS["release"])
    assert set(given_back) <= set(range(4, 124))
    assert len(given_back) == 100


# Requests


@pytest.mark.parametrize(
    "asked",
    [
        request("get", 0, "__globals__"), request("get", 0, "__code__"), request("get", 0, "public"),
        request("get", 0, "a b"), request("get", 0, 5), request("get", 0), request("set", 0, "x", 1),
        request("delete", 0, "x"), request("call", 1, 1), request("call", 7, 1), request("len", 0),
        request("add", 0, 1), request("contains", 0, 1), request("data", 0), request("items", 0),
        request("await", 0, False), request("iter", 0), request("getitem", 0, 1), request("isinstance", 0, 1),
        request("call_with_names", 0, (), ("a",), ()), request("call_with_names", 0, (), (1,), (1,)),
        request("call_with_names", 0, [], (), ()), request("get", 1, "append"), request("call", 2**32 - 1),
        request("call", 0, Reference(b"y", 9)), bytes([NUMBERS["call"], 0, 0, 0, 0]) + b"xxx",
        bytes([NUMBERS["call"], 0, 0, 0, 0]) + encoded([1]), bytes([NUMBERS["call"], 0]), b"\xff\0\0\0\0" + encoded(()),
    ],
)  # fmt: skip
def test_callbacks_offer_nothing_but_calls(program: Program, asked: bytes) -> None:
    calls: list[Any] = []
    callback = of_the_test(lambda *given: calls.append(given))
    program.will_send(asked, reply("done"))
    assert program.function(callback, 5) == "done"
    _, answer = program.received()
    assert answer[:1] in (b"u", b"e")
    assert calls == []


def test_callbacks_are_served_while_waiting(program: Program) -> None:
    program.will_send(request("call_with_names", 0, (20,), ("b",), (1,)), reply(3))
    assert program.function(of_the_test(lambda a, b: a + b)) == 3
    _, answer = program.received()
    assert answer == reply(21)


@pytest.mark.parametrize(
    "callback", [eval, exec, open, getattr, os.system, os.write, type, compile, __import__, vars]
)
def test_what_could_run_text_is_not_handed_over(program: Program, callback: Any) -> None:
    program.will_send(reply("never asked"))
    if callback is type:  # a class, which nobody calls from outside
        program.will_send()
        assert program.function(callback) == "never asked"
        program.will_send(request("call", 0, "X", (), {}), reply("done"))
        assert program.function() == "done"
        assert program.received()[-1][:1] == b"u"
        return
    with pytest.raises(RemoteUnencodable, match="not handed over"):
        program.function(callback)


# Comparisons


def test_objects_of_the_program_decide_no_comparison_with_our_data(program: Program) -> None:
    program.will_send(reply(Reference(b"h", 3, (0, None))))
    pleasing = program.function()
    assert type(pleasing) is handles.Handle
    assert (pleasing == 5, pleasing != 5) == (False, True)
    for decide in (
        lambda: pleasing < 5, lambda: 5 in pleasing, lambda: pleasing + 5, lambda: pleasing - 5, lambda: 5 - pleasing,
    ):  # fmt: skip
        with pytest.raises(RemoteUnencodable):
            decide()
    assert len(program.received()) == 1


@pytest.mark.parametrize("base", [int, tuple, str])
def test_values_with_behaviour_are_compared_by_value(program: Program, base: type) -> None:
    value: Any = {int: 4, tuple: (4,), str: "4"}[base]
    other: Any = {int: 5, tuple: (5,), str: "5"}[base]
    program.will_send(reply(Reference(b"h", 7, (2 + 2 * bases.BASES.index(base), value))))
    pleasing = program.function()
    assert (pleasing == value, pleasing == other, pleasing != value) == (True, False, False)
    assert (pleasing < other) is (value < other)
    assert pleasing + other == value + other
    assert isinstance(pleasing, base)
    assert len(program.received()) == 1  # nothing of it was asked


def test_what_a_container_holds_must_be_of_its_type(program: Program) -> None:
    kept = Reference(b"h", 7, (bases.code_of(list), None))
    program.will_send(
        reply(Reference(b"h", 8, (0, None))), reply(kept), reply([1, 2]), reply((1, 2))
    )
    found = program.function().items
    assert found == [1, 2]
    with pytest.raises(RemoteUnencodable):
        assert found == [1, 2]
    assert not any(encoded([1, 2]) in sent for sent in program.received())


def test_what_a_call_returns_is_no_container_that_can_say_two_things(program: Program) -> None:
    """It would have the length that a test wants, and any number in it."""
    kept = Reference(b"h", 7, (bases.code_of(list), None))
    for value in (kept, [kept], {"a": kept}):
        program.will_send(reply(value))
        with pytest.raises(RemoteUnencodable, match="no copy"):
            program.function()


# Exceptions


def test_no_exception_of_the_program_ends_a_loop_or_skips_a_test(program: Program) -> None:
    kinds = program.peer.references.exceptions

    def raised(kind: Reference) -> bytes:
        return b"e" + encoded((_error(kind, number=2**32 - 1), ()))

    def known(kind: type) -> Reference:
        place = kinds.place(kind)
        assert place is not None
        return Reference(b"t", place)

    program.will_send(
        raised(known(StopIteration)),
        raised(known(StopAsyncIteration)),
        raised(known(GeneratorExit)),
    )
    for _ in range(3):
        with pytest.raises(RuntimeError):
            program.function()
    program.will_send(raised(known(KeyError)))
    with pytest.raises(KeyError):
        program.function()
    theirs = Reference(b"k", 40, ((), ()))
    program.will_send(raised(theirs), *[reply("Name")] * 9)
    with pytest.raises(Exception, match="x") as info:
        program.function()
    assert type(info.value).__bases__[-1] is Exception
    assert not isinstance(info.value, (AssertionError, ValueError))


def test_classes_of_exceptions_are_bounded(program: Program) -> None:
    made = [Reference(b"k", 100 + number, ((), ())) for number in range(1001)]
    program.will_send(reply(made))
    with pytest.raises(RemoteUnencodable, match="classes of exceptions"):
        program.function()


# Whole runs


def test_a_test_cannot_hide_that_something_could_not_cross(sandbox: Sandbox) -> None:
    code = "import sys\ndef f(x): return sys"
    for test in (
        "try:\n    f(1)\nexcept BaseException:\n    pass",
        "import contextlib\nwith contextlib.suppress(BaseException):\n    f(1)",
        "def g():\n    try:\n        f(1)\n    finally:\n        return 1\nassert g() == 1",
        "try:\n    f(1)\nexcept BaseException:\n    pass\nassert False",
    ):
        [result] = sandbox.run_tests(code, [test])
        assert result.outcome is Outcome.UNENCODABLE
        assert "module" in result.message


def test_whether_a_test_has_called_the_program(sandbox: Sandbox) -> None:
    code = "def f(x): return x\nLIMIT = 3\nclass C:\n    size = 4"
    tests = [
        "pass", "assert LIMIT == 3", "for x in []: f(x)", "for x in [1]: f(x)", "callable(f)", "assert f", "assert f != 3",
        "assert f == f and hash(f) == hash(f) and str(f)", "assert C.size == 4", "assert C().size == 4",
    ]  # fmt: skip
    results = sandbox.run_tests(code, tests)
    # What calls nothing would hold for any program.
    called = [False, False, False, True, False, False, False, False, False, True]
    assert [result.called for result in results] == called
    assert [result.passed for result in results] == called


def test_only_the_entry_point_is_offered_when_one_is_named(sandbox: Sandbox) -> None:
    code = "def f(x): return x\ndef g(x): return x\nabs = f\nmath = 3"
    tests = [
        "for x in [1]: assert f(x) == 1",
        "for x in [1]: assert g(x) == 1",
        "for x in [-1]: assert abs(f(x)) == 1",
        "assert math.sqrt(f(4)) == 2",
    ]
    results = sandbox.run_tests(code, tests, entry_point="f")
    outcomes = [result.outcome.value for result in results]
    assert outcomes == ["pass", "error", "pass", "pass"]
    assert "'g' is not defined" in results[1].message


def test_objects_that_nobody_holds_are_let_go(sandbox: Sandbox) -> None:
    """Each step of the loop makes an object, a bound method, an exception and a generator."""
    code = """
import gc
class Node:
    alive = 0
    def __init__(self, x): self.x = x; Node.alive += 1
    def __del__(self): Node.alive -= 1
    def next(self): return Node(self.x + 1)
    def each(self): yield self.x
    def fail(self):
        error = ValueError('no'); error.node = self
        raise error
class Bad(Exception): pass
def bad(x): raise Bad(x)
def alive(): gc.collect(); return Node.alive
"""
    test = """
node = Node(0)
for i in range(3000):
    node = node.next()
    assert node.x == i + 1 and next(node.each()) == i + 1
    try: bad(i)
    except Bad as e: assert e.args == (i,)
assert alive() < 150  # handles are given back a hundred at a time; 3000 were made
"""
    [result] = sandbox.run_tests(code, [test])
    assert result.outcome is Outcome.PASS, result


def test_objects_that_are_held_are_bounded(sandbox: Sandbox) -> None:
    code = "class T:\n    pass\ndef many(n): return [T() for _ in range(n)]"
    test = "kept = [many(20_000) for _ in range(11)]\nassert len(kept) == 11"
    [result] = sandbox.run_tests(code, [test])
    assert result.outcome is Outcome.UNENCODABLE
    assert str(references.MAX_HANDLES) in result.message
