"""modules.py, describe.py, target.py: code of users, found and described."""

from __future__ import annotations

import pytest

from codea1_env.sandbox import Limits
from codea1_env.testgen import TargetError, modules_in, target
from codea1_env.testgen.modules import folders_for, module_of_file, readme_of, split_target
from codea1_env.testgen.texts import Trial

TEXT = '''\
from __future__ import annotations
from typing import TYPE_CHECKING, Literal
if TYPE_CHECKING:
    from elsewhere import Nothing

UNITS = {"km": 1000, "cm": 7}


def convert(text: str, way: Literal["up", "down"] = "up", *rest: int, exact: bool = False, other: dict = None):
    """Convert.

    >>> convert("3km")
    3000

    Or convert("4cm", way="down").
    """
    if text not in UNITS:
        raise ValueError(f"no unit, expected something such as 'two million km'")
    return _helper(text) * 42


def _helper(text):
    return UNITS[text]


class Box(dict):
    def __init__(self, size: int) -> None:
        self.size = size

    def grow(self, by: int) -> None:
        self.size += by

    async def read(self) -> int:
        return self.size


def notes(first: Nothing):
    return first
'''


def test_a_function_is_described(opened):
    function = opened(TEXT).target("convert")
    rows = {each.name: (each.way, list(each.kinds), each.optional) for each in function.parameters}
    assert rows == {
        "text": ("place", [("str",)], False),
        "way": ("place", [("literal", "up", "down")], True),
        "rest": ("star", [("int",)], True),
        "exact": ("keyword", [("bool",)], True),
        "other": ("keyword", [("dict", ("str",), ("int",))], True),
    }
    assert "two million km" in function.words
    assert {"km", "cm"} <= set(function.words)
    assert 42 in function.numbers
    assert "ValueError" in function.raises
    assert Trial(("3km",), {}, ()) in function.examples
    assert Trial(("4cm",), {"way": "down"}, ()) in function.examples


def test_a_class_is_described(opened):
    module = opened(TEXT)
    assert not module.target("notes").parameters[0].kinds  # its type hint cannot be evaluated
    box = module.target("Box")
    assert box.is_class
    assert box.attributes == ("size", "len()")
    assert box.methods["grow"].sets
    assert box.methods["update"].sets
    assert not box.methods["read"].sets
    assert box.shape.awaited == ("read",)
    public = [name for name, each in module.definitions.items() if each.public]
    assert public == ["convert", "Box", "notes"]
    assert {"_helper", "UNITS"} <= module.definitions["convert"].uses
    assert module.definitions["_helper"].lines == (22, 23)
    with pytest.raises(TargetError, match="Did you mean convert"):
        module.target("convrt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nowhere_at_all\n", "No module named"),
        ("raise SystemExit(3)\n", "imported in the sandbox"),
        ("y = undefined_name\n", "is not defined. The sandbox has no network"),
        ("y = None.cases\n", "has no attribute 'cases'. The sandbox has no network"),
        ("while True: pass\n", "imported in the sandbox"),
        ("def f(:\n", "SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_is_an_error_with_the_reason(
    opened, monkeypatch, text, message
):
    monkeypatch.setattr(target, "_IMPORT", Limits(call_cpu_time=0.5, run_cpu_time=1))
    with pytest.raises(TargetError, match=message):
        opened(text)


def test_modules_are_found(tmp_path, monkeypatch):
    names = "pack/__init__.py pack/a.py pack/tests/b.py pack/test_c.py two-words.py"
    for name in names.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("import json\nimport yaml\n")
    monkeypatch.chdir(tmp_path)
    assert [each.name for each in modules_in(".")] == ["pack", "pack.a"]
    [module] = modules_in("pack/a.py")
    assert module.root == tmp_path
    assert set(folders_for(module)) >= {"pack", "yaml"}
    for wrong in ("nowhere", "nowhere.py", "two-words.py"):
        with pytest.raises(TargetError):
            modules_in(wrong)
    with pytest.raises(TargetError, match="Box"):
        split_target("a.py::Box.grow")


@pytest.mark.parametrize(
    ("folder", "readme"),
    [("src", "README.md"), ("project", "project/README.rst"), ("project/src", "project/README")],
)
def test_the_readme_of_the_own_project_is_read(tmp_path, folder, readme):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "own.py").write_text("")
    (tmp_path / readme).write_text("f('word')")
    assert readme_of(module_of_file(tmp_path / folder / "own.py")) == "f('word')"


@pytest.mark.parametrize("folder", ["lib/site-packages", "projects/this"])
def test_a_readme_of_others_is_not_read(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "own.py").write_text("")
    for place in (tmp_path / folder if "site" in folder else tmp_path / "projects", tmp_path):
        (place / "README.txt").write_text("f('word')")
    assert readme_of(module_of_file(tmp_path / folder / "own.py")) == ""
