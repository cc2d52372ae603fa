"""The public names of the package, and what importing it costs."""

from __future__ import annotations

import ast
import functools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import codea1_env

ROOT = Path(codea1_env.__file__).parent
HEAVY = [
    "torch", "transformers", "datasets", "trl", "vllm", "ray", "matplotlib", "altair", "jinja2", "fastapi",
]  # fmt: skip
# From the lowest up: a file may import from its own layer and from those before it. What stands in no layer is the game.
LAYERS = (
    ("sandbox", "support"),
    ("mutation", "reading"),
    ("problem_sets", "problems.py", "compare.py"),
    ("game",),
    ("evaluation",),
    ("agents",),
    ("training",),
    ("baselines", "integrations", "suite"),
    ("report",),
    ("cli",),
)
_LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


def run_python(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


def test_every_public_name_exists() -> None:
    missing = [name for name in codea1_env.__all__ if not hasattr(codea1_env, name)]
    assert missing == []


def test_type_checkers_and_the_interpreter_see_the_same_names() -> None:
    tree = ast.parse((ROOT / "__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    declared = {
        alias.name: statement.module
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    loaded = {name: f"codea1_env.{home}" for name, home in codea1_env._HOME.items()}
    assert declared == loaded
    assert set(codea1_env.__all__) == {*loaded, "__version__"}
    assert set(codea1_env.__all__) <= set(dir(codea1_env))


def test_import_is_quick_and_light() -> None:
    program = (
        "import json, sys, time; start = time.process_time(); import codea1_env;"
        "seconds = time.process_time() - start;"  # of CPU: other work on the machine decides nothing
        f"print(json.dumps([seconds, [name for name in {HEAVY} if name in sys.modules]]))"
    )
    # The better of two: the first import after an installation also compiles.
    seconds, heavy = min(json.loads(run_python(program)) for _ in range(2))
    assert heavy == []
    assert seconds < 1.0


def test_no_module_loads_a_deep_learning_library() -> None:
    modules = [module_name(path) for path in sorted(ROOT.rglob("*.py")) if is_module(path)]
    program = (
        "import importlib, sys\n"
        f"for name in {modules}: importlib.import_module(name)\n"
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert run_python(program).strip() == "[]"


def layer_of(path: Path) -> int:
    return _LEVEL.get(path.relative_to(ROOT).parts[0], _LEVEL["game"])


@functools.cache
def file_of(parts: tuple[str, ...]) -> Path | None:
    place = ROOT.joinpath(*parts)
    return next((f for f in (place.with_suffix(".py"), place / "__init__.py") if f.is_file()), None)


@functools.cache
def imported_files(path: Path) -> set[Path]:
    """The files of the package that a file imports at run time."""
    found = set()
    for module in imported_modules(path):
        parts = module.split(".")
        while parts[0] == "codea1_env" and len(parts) > 1:
            file = file_of(tuple(parts[1:]))
            if file is not None:
                found.add(file)
                break
            parts.pop()  # a name in the module before
    return found - {path}


def test_layers_import_only_downwards() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {other.relative_to(ROOT)}"
        for path in sorted(ROOT.rglob("*.py"))
        if path != ROOT / "__init__.py"
        for other in sorted(imported_files(path))
        if layer_of(other) > layer_of(path)
    ]
    assert wrong == []


def test_no_files_import_each_other_in_a_circle() -> None:
    imports = {
        path: imported_files(path) for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py"
    }
    while done := {path for path, others in imports.items() if not others & imports.keys()}:
        imports = {path: others for path, others in imports.items() if path not in done}
    assert sorted(str(path.relative_to(ROOT)) for path in imports) == []


def test_sandbox_needs_only_the_standard_library() -> None:
    foreign = {
        (str(path.relative_to(ROOT)), module)
        for path in sorted((ROOT / "sandbox").rglob("*.py"))
        for module in imported_modules(path)
        if module.split(".")[0] not in sys.stdlib_module_names
        and not module.startswith("codea1_env.sandbox")
    }
    # Where test files run whole, pytest does it, where it is installed.
    allowed = {"pytest_driver.py": {"pytest", "_pytest"}}
    for path, module in foreign:
        assert module.split(".")[0] in allowed.get(Path(path).name, set()), path


def is_module(path: Path) -> bool:
    """Whether the file can be imported: no program, none that runs only in a helper, none on classes of an extra."""
    needs_extra = path.stem in ("inspect_tasks", "openenv_game", "verifiers_env")
    return path.name != "__main__.py" and "inside" not in path.parts and not needs_extra


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache
def imported_modules(path: Path) -> list[str]:
    """What a file imports at run time, also inside functions; imports for type checkers do not count."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for statement in block.body
        for node in ast.walk(statement)
    }
    modules = []
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            modules += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = module_name(path).split(".")
            if path.name != "__init__.py":
                package = package[:-1]
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module or ""]).strip(".")
            if module == "codea1_env":
                homes = [codea1_env._HOME.get(alias.name, alias.name) for alias in node.names]
                modules += [f"codea1_env.{home}" for home in homes]
            elif module.startswith("codea1_env."):  # a name may be a module
                modules += [f"{module}.{alias.name}" for alias in node.names]
            else:
                modules.append(module)
    return modules


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


ASKING = {
    "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "partition", "rpartition",
    "split", "rsplit", "splitlines", "removesuffix", "isdigit", "translate",
    "match", "search", "fullmatch", "findall", "finditer",
}  # fmt: skip
"""Methods that look into a text, or of a pattern that does. `sub`, `replace` and `removeprefix` change the wording."""
CONSTANTS = {"RUN_LIMIT", "NOT_MADE"}
"""Messages that have a name, which nothing may be compared with."""


def is_message(node: ast.AST) -> bool:
    """Whether an expression is the message of something, or a part of it: `x.message`, `x.message[:9].lower()`."""
    if isinstance(node, (ast.Subscript, ast.NamedExpr)):
        return is_message(node.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return is_message(node.func.value)
    if isinstance(node, ast.Call):
        shown = isinstance(node.func, ast.Name) and node.func.id in ("str", "repr", "ascii")
        return shown and any(map(is_message, node.args))
    name = getattr(node, "attr", getattr(node, "id", ""))
    return name in CONSTANTS or (name == "message" and isinstance(node, ast.Attribute))


def asking(tree: ast.AST) -> Iterator[int]:
    """The lines in which a program asks what a message says."""
    for node in ast.walk(tree):
        asked: list[ast.AST] = []
        if isinstance(node, ast.Compare) and not isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = [node.func.value, *node.args] if node.func.attr in ASKING else []
        elif isinstance(node, ast.Match):
            asked = [node.subject]
        if any(map(is_message, asked)):
            yield node.lineno


def test_asking_is_found_and_showing_is_allowed():
    for line in (
        'result.message.startswith("SystemExit")',
        '"wall-clock" in seen.message',
        "one.result.message != RUN_LIMIT",
        "re.search('x', load.message)",
        "str(load.message)[:4].lower() == 'name'",
    ):
        assert [*asking(ast.parse(line))] == [1], line
    for line in ("f'{result.message:.80}'", "message is result.message", "P.sub('', test.message)"):
        assert [*asking(ast.parse(line))] == [], line


def test_nobody_asks_what_a_message_says():
    texts = {path: path.read_text("utf-8") for path in ROOT.rglob("*.py")}
    named = [path for path in texts if any(name in texts[path] for name in ("message", *CONSTANTS))]
    found = {path: [*asking(ast.parse(texts[path]))] for path in named}
    assert len(named) > 40
    assert {path: lines for path, lines in found.items() if lines} == {}
