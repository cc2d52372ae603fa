"""One word for one thing, in the whole package."""

from __future__ import annotations

import ast
from pathlib import Path

import codea1_env

ROOT = Path(codea1_env.__file__).parent


def test_no_class_name_stands_for_two_things() -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted(ROOT.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_module_has_the_name_of_what_its_package_offers() -> None:
    both = []
    for init in sorted(ROOT.rglob("__init__.py")):
        offered = {
            alias.asname or alias.name
            for node in ast.walk(ast.parse(init.read_text()))
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        modules = {path.stem for path in init.parent.iterdir()}
        both += [f"{init.parent.name}.{name}" for name in offered & modules]
    assert both == []
