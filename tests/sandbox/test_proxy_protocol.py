"""The test's end of the connection against a program's end that sends whatever it likes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codea1_env.sandbox import Outcome, Sandbox
from codea1_env.sandbox.inside import codec, frames
from codea1_env.sandbox.inside.errors import RemoteUnencodable
from codea1_env.sandbox.inside.proxies import RemoteObject
from codea1_env.sandbox.inside.remote import Peer

THING = (0, "Thing", [], ("__call__", "__add__", "__lt__", "__contains__"), "", None)


class Program:
    """Plays the program's end with prepared frames."""

    def __init__(self, peer: Peer, send: int, receive: int) -> None:
        self.peer = peer
        self._send = send
        self._receive = receive
        self.function = peer.decode(encoded(Reference("mine", (0, THING))))

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


class Reference:
    """Written as a reference, without being one of anything."""

    def __init__(self, kind: str, data: Any) -> None:
        self.kind = kind
        self.data = data


def encoded(message: Any) -> bytes:
    return codec.encode(message, refer=lambda value: (value.kind, value.data), containers=[])


def reply(value: Any, changes: Any = ()) -> bytes:
    return b"r" + encoded(("value", value, changes))


@contextmanager
def connection() -> Iterator[Program]:
    ours, theirs = os.pipe(), os.pipe()
    peer = Peer(theirs[0], ours[1], limit=1 << 20, home="test")
    try:
        yield Program(peer, theirs[1], ours[0])
    finally:
        for descriptor in (*ours, *theirs):
            os.close(descriptor)


@pytest.fixture
def program() -> Iterator[Program]:
    with connection() as program:
        yield program


def test_an_honest_reply(program: Program) -> None:
    program.will_send(reply([1, "a"]))
    argument = [5]
    assert program.function(argument, key=2) == [1, "a"]
    [request] = program.received()
    assert request[:1] == b"q"
    assert argument == [5]


def test_arguments_change_only_as_they_can(program: Program) -> None:
    argument: list[Any] = [[1], {"a": 2}]
    program.will_send(reply(None, ((1, (7, 8)), (2, ("b", 3)), (0, (1, 2)))))
    inner, mapping = argument
    program.function(argument)
    assert inner == [7, 8]
    assert mapping == {"b": 3}
    assert argument == [1, 2]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"z" + encoded(("value", 1, ())),
        b"u" + b"\0\0\0\0" + encoded(()),
        b"r",
        b"rxxx",
        b"v",
        b"vxxx",
        b"v" + encoded(1) + b"N",
        b"v" + encoded(Reference("yours", 5)),
        b"v" + encoded(Reference("mine", 1)),
        b"v" + b"@\1\0\0\0",
        b"r" + encoded(5),
        b"r" + encoded(()),
        b"r" + encoded(("value", 1)),
        b"r" + encoded(("value", 1, (), 4)),
        b"r" + encoded(("worth", 1, ())),
        b"r" + encoded(("raise", "no exception", ())),
        b"r" + encoded(("unencodable", "a reason", ())),
        reply(1, 5),
        reply(1, [(0, (1,))]),
        reply(1, (5,)),
        reply(1, ((0, [1]),)),
        reply(1, ((0, b"x"),)),
        reply(1, ((1, (1,)),)),
        reply(1, ((-1, (1,)),)),
        reply(1, (("0", (1,)),)),
        reply(Reference("yours", 5)),
        reply(Reference("yours", -1)),
        reply(Reference("yours", "0")),
        reply(Reference("mine", 1)),
        reply(Reference("mine", (1, (99,)))),
        reply(Reference("mine", (1, (2, "X", [], ("__init__",), "", None)))),
        reply(Reference("mine", (1, (2, "X\0", [], (), "", None)))),
        reply(Reference("mine", (1, (2, "X", [], (), "int", None)))),
        reply(Reference("mine", (1, (2, "X", [], (), "int", None), "text"))),
        reply(Reference("mine", (1, (2, "X", [], (), "tuple", ("a b",)), (1,)))),
        reply(Reference("named", (0, (1,)))),
        reply(Reference("slice", (1, 2, 3, 4))),
        reply(Reference("view", ("keys", ([],)))),
        reply(Reference("view", ("other", ()))),
        reply(Reference("constant", "Missing")),
        reply(Reference("shared type", "os.system")),
        reply(Reference("shared type", "builtins.eval")),
        reply(Reference("unheard of", 1)),
        reply(Reference("error", (1,))),
        reply(Reference("error", (None, [], "", (), {}, None))),
        reply(Reference("error type", [])),
        reply(Reference("error type", 7)),
    ],
)
def test_malformed_replies_poison_the_test(program: Program, content: bytes) -> None:
    program.will_send(content)
    with pytest.raises(RemoteUnencodable):
        program.function([1])
    assert program.peer.failure


def test_a_reply_cannot_hand_out_what_was_never_given(program: Program) -> None:
    secret = ["secret"]
    program.will_send(reply(None), reply(Reference("yours", 1)))
    program.function(print)
    assert secret
    with pytest.raises(RemoteUnencodable):
        program.function(1)


@pytest.mark.parametrize(
    "request_of_program",
    [
        (),
        5,
        ("get",),
        ("get", "text", "format"),
        ("get", [], "append"),
        ("get", Reference("yours", 0), "__globals__"),
        ("get", Reference("yours", 0), "__code__"),
        ("get", Reference("yours", 0), "public"),
        ("set", Reference("yours", 0), "x", 1),
        ("delete", Reference("yours", 0), "x"),
        ("call", "text", (), ()),
        ("call", Reference("shared type", "builtins.list"), (), ()),
        ("op", "repr", (Reference("yours", 0),)),
        ("op", "dir", (Reference("yours", 0),)),
        ("op", "add", (1, 2)),
        ("op", "unheard of", (Reference("yours", 0),)),
        ("await", Reference("yours", 0)),
        ("await", 1),
        ("exec", Reference("yours", 0)),
    ],
)
def test_callbacks_offer_nothing_but_calls(program: Program, request_of_program: Any) -> None:
    calls = []
    program.will_send(b"q" + encoded(request_of_program), reply("done"))
    assert program.function(lambda: calls.append(1)) == "done"
    _, answer = program.received()
    assert b"unencodable" in answer or b"TypeError" in answer
    assert calls == []


def test_callbacks_are_served_while_waiting(program: Program) -> None:
    program.will_send(b"q" + encoded(("call", Reference("yours", 0), (20,), (("b", 1),))), reply(3))
    assert program.function(lambda a, b: a + b) == 3
    _, answer = program.received()
    assert codec.decode(answer[1:], containers=[]) == ("value", 21, ())


def short_call(number: int, arguments: Any) -> bytes:
    return b"c" + number.to_bytes(4, "little") + encoded(arguments)


def test_short_calls_of_callbacks(program: Program) -> None:
    given: list[Any] = []
    program.will_send(short_call(0, (20, [1])), b"v" + encoded([3]))
    assert program.function(lambda a, b: given.append(a) or b.append(a)) == [3]
    assert given == [20]
    request, answer = program.received()
    assert request[:1] == b"c"
    assert codec.decode(answer[1:], containers=[[1]]) == ("value", None, ((0, (1, 20)),))


@pytest.mark.parametrize(
    "request_of_program",
    [
        b"c",
        b"c\0\0",
        b"c\0\0\0\0",
        b"c\0\0\0\0xxx",
        short_call(0, [1]),
        short_call(0, 1),
        short_call(0, (Reference("yours", 7),)),
        short_call(2, (1,)),
        short_call(1 << 31, (1,)),
        short_call(1, (1,)),
        short_call(1, ()),
    ],
)
def test_malformed_short_calls_are_refused(program: Program, request_of_program: bytes) -> None:
    calls: list[Any] = []
    program.will_send(request_of_program, b"v" + encoded("done"))
    thing = type("Thing", (), {})()  # not callable
    assert program.function(calls.append, thing) == "done"
    _, answer = program.received()
    assert b"unencodable" in answer
    assert calls == []


def test_short_replies_are_for_short_calls(program: Program) -> None:
    program.will_send(b"v" + encoded(1))
    with pytest.raises(RemoteUnencodable):
        program.function(key=1)
    assert program.peer.failure


def test_no_exception_of_the_program_ends_a_loop_or_skips_a_test(program: Program) -> None:
    def raised(module: str, name: str) -> bytes:
        names = [(module, name), ("builtins", "Exception"), ("builtins", "BaseException")]
        return b"r" + encoded(
            ("raise", Reference("error", (None, names, "x", ("x",), {}, None)), ())
        )

    program.will_send(raised("builtins", "StopIteration"), raised("builtins", "StopAsyncIteration"))
    for _ in range(2):
        with pytest.raises(RuntimeError):
            program.function()
    ours = [
        ("unittest.case", "SkipTest"),
        ("unittest.case", "_ShouldStop"),
        ("inside.errors", "RemoteUnencodable"),
        ("codea1_env.sandbox.inside.errors", "RemoteUnencodable"),
        ("codea1_env.sandbox.inside.frames", "ChannelClosedError"),
    ]
    for module, name in ours:
        program.will_send(raised(module, name))
        with pytest.raises(Exception, match="x") as info:
            program.function()
        assert type(info.value).__name__ == name
        assert type(info.value).__mro__[1] is Exception
    program.will_send(raised("builtins", "KeyError"))
    with pytest.raises(KeyError):
        program.function()


def test_objects_of_the_program_decide_no_comparison_with_our_data(program: Program) -> None:
    methods = ("__add__", "__lt__", "__eq__", "__contains__", "__sub__", "__bool__", "__hash__")
    every = (3, "Pleasing", [], methods, "", None)
    program.will_send(reply(Reference("mine", (7, every))))
    pleasing = program.function()
    assert isinstance(pleasing, RemoteObject)
    assert (pleasing == 5, pleasing != 5) == (False, True)
    for decide in (
        lambda: pleasing < 5,
        lambda: 5 in pleasing,
        lambda: pleasing + 5,
        lambda: pleasing - 5,
    ):
        with pytest.raises(RemoteUnencodable):
            decide()
    assert len(program.received()) == 1


@pytest.mark.parametrize("base", ["int", "tuple", "str"])
def test_values_with_behaviour_are_compared_by_value(program: Program, base: str) -> None:
    methods = ("__eq__", "__lt__", "__contains__", "__sub__", "__add__", "__hash__", "__ne__")
    value: Any = {"int": 4, "tuple": (4,), "str": "4"}[base]
    other: Any = {"int": 5, "tuple": (5,), "str": "5"}[base]
    description = (3, "Pleasing", [], methods, base, None)
    program.will_send(reply(Reference("mine", (7, description, value))))
    pleasing = program.function()
    # What such a class says of itself is asked for without what it is compared with.
    program.will_send(*[reply(value)] * 2)
    assert (pleasing == value, pleasing == other) == (True, False)
    assert not any(encoded(other) in request for request in program.received())
    assert (pleasing < other) is (value < other)
    assert pleasing + other == value + other


pieces = st.recursive(
    st.none()
    | st.integers(-2, 8)
    | st.sampled_from(["value", "raise", "get", "call", "mine", "type", "int", "x", "__eq__", "keys"])
    | st.binary(max_size=3),
    lambda inner: st.lists(inner, max_size=3)
    | st.lists(inner, max_size=4).map(tuple)
    | st.builds(
        Reference,
        st.sampled_from(
            ["mine", "yours", "type", "error", "error type", "view", "slice", "named", "generator",
             "coroutine", "constant", "shared type"]
        ),
        inner,
    ),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(pieces, pieces, pieces)
def test_any_reply_gives_a_value_or_an_exception(value: Any, changes: Any, request: Any) -> None:
    with connection() as program:
        program.will_send(b"q" + encoded(request), short_call(0, request), reply(value, changes))
        with suppress(Exception, RemoteUnencodable):
            program.function([1], {"a": [2]}, len)
        program.will_send(b"v" + encoded(value))
        try:
            program.function([1], {"a": [2]}, len)
        except (Exception, RemoteUnencodable):
            return


def test_a_test_cannot_hide_that_something_could_not_cross(sandbox: Sandbox) -> None:
    code = "import sys\ndef f(x): return sys"
    for test in (
        "try:\n    f(1)\nexcept BaseException:\n    pass",
        "import contextlib\nwith contextlib.suppress(BaseException):\n    f(1)",
        "def g():\n    try:\n        f(1)\n    finally:\n        return 1\nassert g() == 1",
    ):
        [result] = sandbox.run_tests(code, [test])
        assert result.outcome is Outcome.UNENCODABLE
        assert "module" in result.message


def test_whether_a_test_has_called_the_program(sandbox: Sandbox) -> None:
    code = "def f(x): return x\nLIMIT = 3"
    tests = ["pass", "assert LIMIT == 3", "for x in []: f(x)", "for x in [1]: f(x)", "callable(f)"]
    results = sandbox.run_tests(code, tests)
    assert [result.called for result in results] == [False, False, False, True, False]
    # What calls nothing would hold for any program.
    assert [result.passed for result in results] == [False, False, False, True, False]


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
