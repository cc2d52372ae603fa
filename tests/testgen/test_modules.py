"""Functions where they live: found, imported as a part of their package, and given another definition."""

from __future__ import annotations

import pytest
from user_files import write

from codea1_env.sandbox import Sandbox
from codea1_env.testgen.function import mutants_of, write_function_suite
from codea1_env.testgen.importing import sandbox_for
from codea1_env.testgen.modules import Module, TargetError, find_module, module_of_file
from codea1_env.testgen.target import read_target


@pytest.fixture(scope="module")
def analyst():
    with Sandbox(packages=()) as sandbox:
        yield sandbox


def test_modules_are_found_without_importing_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "raise SystemExit", "src/things/__init__.py")
    inner = write(tmp_path, "raise SystemExit", "src/things/shapes.py")
    write(tmp_path, "", "spaced/deep/flat.py")
    module = find_module("things.shapes")
    assert (module.path, module.root, module.installed) == (inner, tmp_path / "src", False)
    assert find_module("spaced.deep.flat").name == "spaced.deep.flat"
    assert find_module("json.decoder").installed
    assert module_of_file(inner) == module
    for name, message in [
        ("things.shape", "Did you mean shapes?"),
        ("thing", "Did you mean things"),
        ("textwrap.dedent", "it is a module without others in it"),
        ("math", "it is compiled"),
        ("things/shapes", "the name of a module"),
    ]:
        with pytest.raises(TargetError) as error:
            find_module(name)
        assert message in str(error.value)


def test_of_a_long_file_only_the_functions_lines_get_faults(tmp_path, analyst):
    others = "".join(f"def f{n}(x):\n    return x + {n} if x > {n} else x\n" for n in range(2000))
    text = (
        f"from __future__ import annotations\nfrom functools import singledispatch\n{others}"
        "try:\n    import nowhere\nexcept ImportError:\n"
        "    @singledispatch\n    def size(x: Missing) -> int:\n        return f1(len(x))\n\n"
        "@size.register(int)\ndef _(x):\n    return x * 2\n"
    )
    module = module_of_file(write(tmp_path, text, "long.py"))
    with sandbox_for(module, analyst) as (sandbox, imported):
        target = read_target(module, "size", sandbox, imported)
        found = mutants_of(target, sandbox)
        assert found
        assert {each.line for each in found} <= {4009, 4010, 4008, 4007}
        assert all(len(each.code) < 20_000 for each in found)
        programs = [target.program, *(each.code for each in found)]
        tests = ["assert size(3) == 6", "assert size('abc') == 4"]
        first, *others = [sandbox.run_tests(each, tests, entry_point="size") for each in programs]
        assert [each.passed for each in first] == [
            True,
            True,
        ]  # what is registered later is there, too
        assert all(row[0].passed for row in others)
        assert not all(row[1].passed for row in others)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import socket\nDATA = socket.create_connection(('192.0.2.1', 80))",
            "(it asks the network for '192.0.2.1', opens a network socket)",
        ),
        ("DATA = open('/tmp/codea1-none', 'w')", "(it writes to '/tmp/codea1-none')"),
        ("import none_such as DATA", "No module named 'none_such'. Install none_such, here or"),
        ("from . import none_such as DATA", "Is its package complete"),
        ("import sys\nDATA = sys.exit(2)", "running the file ends the process"),
        ("DATA = 1 / 0", "ZeroDivisionError: division by zero. The sandbox has no network"),
    ],
)
def test_what_a_module_does_when_it_is_imported_is_named(tmp_path, analyst, text, message):
    write(tmp_path, "", "pack/__init__.py")
    source = f"{text}\n\ndef f(n: int):\n    return n, DATA\n"
    module = module_of_file(write(tmp_path, source, "pack/bad.py"))
    with sandbox_for(module, analyst) as (sandbox, imported):
        with pytest.raises(TargetError) as error:
            read_target(module, "f", sandbox, imported)
        assert message in str(error.value)


def test_time_has_a_bound(tmp_path, analyst):
    text = "def slow(n: int) -> int:\n    for _ in range(10**6): pass\n    return n + 1 if n > 3 else n\n"
    module = module_of_file(write(tmp_path, text, "slowly.py"))
    with sandbox_for(module, analyst) as (sandbox, imported):
        target = read_target(module, "slow", sandbox, imported)
        suite = write_function_suite(target, None, sandbox, timeout=1.5)
        assert suite.cut
        assert suite.tests


def test_what_derives_from_a_class_follows_its_mutants(tmp_path, analyst):
    write(tmp_path, "from .base import Side\n\n\nclass Far(Side):\n    pass\n", "lib/far.py")
    write(tmp_path, "from .base import Side\nfrom .far import Far\n", "lib/__init__.py")
    text = (
        "class Side:\n    size = 2\n\n    def area(self) -> int:\n        return self.size * 5\n\n"
        "    def other(self) -> int:\n        from .far import Far\n\n        return Near().area() + Far().area()\n\n\n"
        "class Near(Side):\n    size = 3\n"
    )
    module = module_of_file(write(tmp_path, text, "lib/base.py"))
    with sandbox_for(module, analyst) as (sandbox, imported):
        target = read_target(module, "Side", sandbox, imported)
        tests = [
            "assert Side().other() == 25",
            "assert isinstance(Near(), Side) and Near.__mro__[1] is Side",
        ]
        for program in (target.imported, target.program):
            assert all(each.passed for each in sandbox.run_tests(program, tests))
        assert "* 5" in target.redefined
        mutant = target.with_definition(target.redefined.replace("* 5", "* 7"))
        results = sandbox.run_tests(mutant, ["assert Side().other() == 35", tests[1]])
        assert all(each.passed for each in results)
        slots = target.redefined.replace("class Side:", "class Side:\n    __slots__ = ('a',)")
        mutant = target.with_definition(slots)
        assert sandbox.run_tests(mutant, ["assert Side().area() == 10"])[0].passed


def test_a_module_in_whose_place_another_object_stands(tmp_path, analyst):
    """As packages do that warn of old names."""
    package = tmp_path / "aged"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import sys\nimport types\n\n\nclass Proxy(types.ModuleType):\n    def __init__(self, module):\n"
        "        super().__init__(module.__name__)\n        self.module = module\n\n"
        "    def __getattr__(self, name):\n        return getattr(self.module, name)\n\n\n"
        "sys.modules[__name__] = Proxy(sys.modules[__name__])\n\n\ndef f(n: int) -> int:\n    return n + 1\n"
    )
    module = Module(package / "__init__.py", "aged", tmp_path, installed=True)
    with sandbox_for(module, analyst) as (inside, imported):
        target = read_target(module, "f", inside, imported)
        [result] = inside.run_tests(target.imported, ["assert f(1) == 2"])
    assert result.passed, result
