"""What parameters take, from annotations, defaults and use."""

from __future__ import annotations

import ast

import pytest

from codea1_env.testgen.parameters import kind_of, parameters


@pytest.mark.parametrize(
    ("annotation", "kind"),
    [
        ("int", ("int",)),
        ("'int'", ("int",)),
        ("typing.List[str]", ("list", ("str",))),
        ("dict[str, list[float]]", ("dict", ("str",), ("list", ("float",)))),
        ("tuple[int, ...]", ("tuple", ("int",), ("...",))),
        ("tuple[int, str]", ("tuple", ("int",), ("str",))),
        ("int | None", ("union", ("int",), ("none",))),
        ("Optional[Union[int, str]]", ("union", ("int",), ("str",), ("none",))),
        ("Literal['a', 2]", ("literal", "a", 2)),
        ("Annotated[int, 'x']", ("int",)),
        ("datetime.date", ("date",)),
        ("Any", ("unknown",)),
        ("Config", ("other", "Config")),
        ("Callable[[int], str]", ("other", "Callable")),
    ],
)
def test_annotations(annotation, kind):
    assert kind_of(ast.parse(annotation, mode="eval").body) == kind


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("return x.split(',')", ("str",)),
        ("return x.items()", ("dict", ("str",), ("int",))),
        ("x.append(1)", ("list", ("int",))),
        ("return x % 2 == 0", ("int",)),
        ("return range(x)", ("int",)),
        ("return x == 'yes'", ("str",)),
        ("return math.sqrt(x)", ("int",)),
        ("return sum(x)", ("list", ("int",))),
        ("if isinstance(x, dict): return 1", ("dict", ("str",), ("int",))),
    ],
)
def test_what_the_body_does_tells_the_kind(body, kind):
    [found] = parameters(f"def f(x):\n    {body}\n", "f")["init"]
    assert found["kinds"][0] == kind
    assert not found["annotated"]


def test_ways_and_defaults():
    found = parameters("def f(a, /, b=2, *rest: str, c, d=None): pass", "f")["init"]
    assert [(each["name"], each["way"], each["optional"]) for each in found] == [
        ("a", "place", False),
        ("b", "place", True),
        ("rest", "star", False),
        ("c", "keyword", False),
        ("d", "keyword", True),
    ]
    assert [each["default"] for each in found] == [[], [2], [], [], [None]]


def test_a_class_with_its_methods_and_attributes():
    source = """
class Base:
    def __init__(self, size: int):
        self.size = size
        self._hidden = 1

    def grow(self, by: int = 1): self.size += by


class Box(Base):
    def __len__(self): return self.size

    @property
    def empty(self): return not self.size

    @staticmethod
    def parse(text: str): return len(text)

    @classmethod
    def make(cls): return cls(1)

    def _private(self): pass

    def __getitem__(self, place: int): return place

    def __setitem__(self, place, value, other): pass

    def __eq__(self, other): return True
"""
    found = parameters(source, "Box")
    assert [each["name"] for each in found["init"]] == ["size"]
    assert {name: [each["name"] for each in some] for name, some in found["methods"].items()} == {
        "grow": ["by"],
        "parse": ["text"],
        "__getitem__": ["place"],
    }
    assert found["attributes"] == ["size", "empty"]
    assert found["sized"]


def test_fields_of_a_dataclass_are_parameters():
    source = """
@dataclass(frozen=True)
class Point:
    kind: ClassVar[str] = "point"
    x: int
    y: int = 0
    norm: float = field(init=False, default=0.0)
"""
    found = parameters(source, "Point")
    assert [(each["name"], each["optional"]) for each in found["init"]] == [
        ("x", False),
        ("y", True),
    ]


def test_asynchronous_methods():
    body = "    async def a(self, n): return n\n    def b(self): pass\n    async def c(self): yield 1\n"
    found = parameters(f"class A:\n{body}", "A")
    assert (list(found["methods"]), found["awaited"]) == (["a", "b"], ["a"])
    found = parameters(f"class A:\n{body}\nclass B(A):\n    def a(self, n): return n\n", "B")
    assert (list(found["methods"]), found["awaited"]) == (["a", "b"], [])


@pytest.mark.parametrize(
    ("head", "body", "known"),
    [
        ("A", "n = 1", True),
        ("A(Base)", "n = 1", True),
        ("A(Generic[T])", "n = 1", True),
        ("A(Elsewhere)", "n = 1", False),
        ("A(Elsewhere)", "def __init__(self): pass", True),
        ("A(abc.ABC)", "def __init__(self): pass", False),
        ("A(metaclass=M)", "n = 1", False),
    ],
)
def test_whether_it_is_known_how_objects_are_made(head, body, known):
    source = f"class Base:\n    pass\n\nclass {head}:\n    {body}\n"
    assert parameters(source, "A")["known"] is known


def test_an_enumeration_takes_the_values_of_its_members():
    source = (
        "class Base(enum.Enum): pass\nclass A(Base):\n    _x = 3\n    UP = 1\n    SIDE = ('a', 2)\n"
    )
    [value] = parameters(source, "A")["init"]
    assert value["kinds"] == [("literal", 1, ("a", 2))]
    [value] = parameters("class A(Enum):\n    UP = auto()\n", "A")["init"]
    assert value["kinds"] == [("other", "a member")]
