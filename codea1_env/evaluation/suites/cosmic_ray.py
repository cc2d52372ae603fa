"""The mutants that cosmic-ray makes, for mutation scores that can be compared with those of UnLeakedTestBench.

Only its operators are used, in the sandbox. The mutants are those of `cosmic-ray init` with its default settings.
Several may be the same program, and some cannot be compiled: any test kills these, as in the tool itself.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
from importlib import metadata

from codea1_env.mutation import Mutant
from codea1_env.sandbox import AnalysisError, Limits, Outcome, Sandbox

_PACKAGE = "cosmic_ray"
_EXTRA = (
    "expect the package cosmic-ray to be installed, actually: it is not. "
    "Run: pip install 'codea1-env[evaluation]'"
)
_LIMITS = Limits(call_cpu_time=20, call_wall_time=100, run_cpu_time=25, run_wall_time=130)
"""Functions of a page take a tenth of a second."""

# It runs in the sandbox. The tool parses the program again for each mutant, since operators change the tree;
# here what an operator may have changed is put back, which takes a tenth of the time.
_PROGRAM = '''import sys

import parso
import parso.python.tree
from cosmic_ray.ast import ast_nodes
from cosmic_ray.operators.provider import OperatorProvider


def mutants(source):
    """(operator, line, characters before what is replaced, those after it, what takes its place)"""
    compile(source, "<program>", "exec", dont_inherit=True)
    sys.setrecursionlimit(20_000)
    provider = OperatorProvider()
    nodes = list(places(parso.parse(source), 0))
    found = []
    for name in provider:
        if provider[name].arguments():
            continue
        operator = provider[name]()
        for node, start, end in nodes:
            for index, (position, _) in enumerate(list(operator.mutation_positions(node))):
                before = [state(each) for each in ast_nodes(node)]
                new = operator.mutate(node, index)
                text = "" if new is None else new.get_code()
                for each in before:
                    restore(*each)
                found.append((name, position[0], start, len(source) - end, text))
    return found


def places(node, start):
    """Every node, where its text begins, and where it ends."""
    end = start + len(node.get_code())
    yield node, start, end
    for child in getattr(node, "children", ()):
        yield from places(child, start)
        start += len(child.get_code())


def state(node):
    if hasattr(node, "children"):
        return node, node.parent, list(node.children)
    return node, node.parent, node.value, node.prefix


def restore(node, parent, content, prefix=None):
    node.parent = parent
    if prefix is None:
        node.children = content
    else:
        node.value, node.prefix = content, prefix
'''


def cosmic_ray_mutants(source: str, level: str | None = None) -> list[Mutant]:
    r"""Return the mutants that cosmic-ray makes of a program, always the same ones in the same order.

    Example:
        >>> for mutant in cosmic_ray_mutants("def more(a): return a + 1")[10:13]:
        ...     print(mutant.operator, mutant.code)
        ReplaceBinaryOperator_Add_BitXor def more(a): return a ^ 1
        NumberReplacer def more(a): return a + 2
        NumberReplacer def more(a): return a + 0
    """
    source = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    (result,) = _sandbox(level, os.getpid()).call(
        _PROGRAM, "mutants", [((source,), {})], limits=_LIMITS
    )
    if result.outcome is not Outcome.PASS:
        raise AnalysisError(
            f"Expect a Python program that cosmic-ray can mutate, actually: {result.outcome.value}, "
            f"{result.message}"
        )
    found = []
    for operator, line, before, after, text in result.value:
        end = len(source) - after
        code = source[:before] + text + source[end:]
        found.append(Mutant(code, operator, line, text))
    return found


def version_of_cosmic_ray() -> str:
    """Return the version that is installed."""
    try:
        return metadata.version("cosmic-ray")
    except metadata.PackageNotFoundError as error:
        raise ImportError(_EXTRA) from error


@functools.cache
def _sandbox(level: str | None, pid: int) -> Sandbox:
    """Return a sandbox that allows cosmic-ray, for this process; a fork may not use its parent's."""
    if importlib.util.find_spec(_PACKAGE) is None:
        raise ImportError(_EXTRA)
    sandbox = Sandbox(level=level, packages=(_PACKAGE,))
    atexit.register(_close_in, pid, sandbox)
    return sandbox


def _close_in(pid: int, sandbox: Sandbox) -> None:
    if os.getpid() == pid:
        sandbox.close()
