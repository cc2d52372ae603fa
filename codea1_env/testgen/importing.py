"""Programs that import a module of the user's, and the sandbox in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from codea1_env.sandbox import CallResult, Limits, Outcome, Sandbox
from codea1_env.testgen import loader
from codea1_env.testgen.modules import Module, TargetError, folders_for

LIMITS = Limits(
    call_cpu_time=2, call_wall_time=6, run_cpu_time=12, run_wall_time=40, calls_per_test=1
)
"""What calls may use. A developer waits for them."""
_IMPORT = Limits(call_cpu_time=10, call_wall_time=20, run_cpu_time=20, run_wall_time=40)
_QUICK = 0.002
"""Seconds: what is imported faster is not worth a process that has done it."""
_BESIDE = """

_codea1_{name} = {{"__name__": "codea1_{name}"}}
__import__("builtins").exec({text!r}, _codea1_{name})
"""


def beside(module: ModuleType) -> str:
    """Return the text of a module of ours as a part of a program: it has a namespace of its own there."""
    name = module.__name__.rpartition(".")[2]
    return _BESIDE.format(name=name, text=Path(module.__file__ or "").read_text(encoding="utf-8"))


_LOADER = beside(loader)


def program_of(module: Module, name: str, text: str = "") -> str:
    """Return a program with the names of a module.

    Args:
        module: Which.
        name: A function or class of it.
        text: What defines it anew, on the lines of the file; "" to take it as it is.
    """
    arguments = (module.name, str(module.path), text, name)
    return f"{_LOADER}globals().update(_codea1_loader['load'](*{arguments!r}))\n"


@dataclass(frozen=True)
class Imported:
    """What came of importing a module."""

    outcome: Outcome
    """PASS if it was imported, ERROR if it raised."""
    message: str = ""
    error: str = ""
    """The name of the exception."""
    missing: str = ""
    """The module that was not found."""
    acts: tuple[str, ...] = ()
    """What it did, or tried to do, to the world, in words."""
    threads: int = 0
    seconds: float = 0.0


def try_import(module: Module, sandbox: Sandbox) -> Imported:
    """Import a module in a process of its own.

    Raises:
        InfraError: The sandbox failed.
    """
    result = _ask(module, "watch", (module.name,), sandbox)
    if result.outcome is not Outcome.PASS:
        return Imported(result.outcome, result.message)
    return Imported(Outcome.ERROR if result.value["error"] else Outcome.PASS, **result.value)


def _ask(module: Module, what: str, arguments: tuple[str, ...], sandbox: Sandbox) -> CallResult:
    """Call a function of the loader in a process of its own."""
    ask = f"\ndef _codea1_ask(*arguments):\n    return _codea1_loader[{what!r}](*arguments)\n"
    program = f"{_LOADER}{ask}# {module.top}"
    [result] = sandbox.call(program, "_codea1_ask", [(arguments, {})], limits=_IMPORT)
    return result


@contextmanager
def sandbox_for(
    module: Module,
    analyst: Sandbox,
    *,
    workers: int = 1,
    level: str | None = None,
    packages: Iterable[str] = (),
) -> Iterator[tuple[Sandbox, Imported]]:
    """Give a sandbox in which a module can be imported: it may read its package and what that needs, and nothing else.

    Args:
        module: Which.
        analyst: Where texts are parsed.
        workers: See `Sandbox`.
        level: See `Sandbox`.
        packages: Further packages that it may import.

    Yields:
        The sandbox, in which the module is imported once for all programs where that is possible, and what importing it
        came to.
    """
    folders = folders_for(module, analyst, packages)
    sandbox = Sandbox(workers, LIMITS, level=level, packages=folders)
    try:
        imported = try_import(module, sandbox)
        if imported.outcome is Outcome.PASS and not imported.threads and imported.seconds > _QUICK:
            sandbox.close()
            sandbox = Sandbox(
                workers, LIMITS, level=level, packages=folders, preload=(module.name,)
            )
        yield sandbox, imported
    finally:
        sandbox.close()


def defined_in(module: Module, name: str, sandbox: Sandbox) -> tuple[str, str]:
    """Return the module and the name under which something was defined that a module offers.

    Raises:
        TargetError: It is compiled.
    """
    result = _ask(module, "home_of", (module.name, name), sandbox)
    home, called = result.value if result.outcome is Outcome.PASS else ("", "")
    if called == "compiled":
        raise TargetError(
            f"Expect {module.name}.{name} to be written in Python, actually: it is compiled, and has no text that could "
            "be read or given faults. Write tests for the Python functions that call it."
        )
    return home, called
