"""The packages that a problem's programs need, and those that are not there for them."""

from __future__ import annotations

import importlib.util
import sys

from codea1_env.problems import Problem
from codea1_env.sandbox import Sandbox


def missing_packages(problem: Problem, sandbox: Sandbox) -> str:
    """Why a problem cannot be judged in a sandbox for want of packages; "" if it can.

    Args:
        problem: Its metadata may have `packages`: names as programs import them, with spaces between.
        sandbox: Where its programs would run.
    """
    missing = [
        name
        for name in problem.metadata.get("packages", "").split()
        if name not in sys.stdlib_module_names and name not in sandbox.packages
    ]
    if not missing:
        return ""
    absent = [name for name in missing if not _is_installed(name)]
    remedy = f"add --packages {' '.join(missing)}"
    if absent:
        return (
            f"needs {', '.join(missing)}; {', '.join(absent)} {'is' if len(absent) == 1 else 'are'} not "
            f"installed: install, and {remedy}"
        )
    return f"needs {', '.join(missing)}, which programs may not use here: {remedy}"


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
