"""The first run of a target: whether its program can be used, and in words why not."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

from codea1_env.sandbox import Job, Outcome, Sandbox, TestResult
from codea1_env.testgen.importing import Imported
from codea1_env.testgen.modules import Module, TargetError
from codea1_env.testgen.subject import Target


def that_runs(
    target: Target, needed: str, imports: list[tuple[str, list[str]]], sandbox: Sandbox
) -> Target:
    """The target with a program that runs: the file; or the part that it needs, if the rest raises."""
    load = _load(target, sandbox)
    if load.passed:
        return target
    if load.outcome is not Outcome.ERROR:  # it would not run elsewhere, either
        raise TargetError(_explain(target, load))
    part = replace(target, program=needed, left_out=load.message)
    again = _load(part, sandbox)
    if again.passed:
        return part
    if _is_import(again):
        raise TargetError(_explain_import(target, again.missing_module or "", imports))
    raise TargetError(_explain(target, again))


def that_imports(
    target: Target, module: Module, needed: str, imported: Imported | None, sandbox: Sandbox
) -> Target:
    """The target with a program that imports its module; or with the part of it that it needs, if the rest raises."""
    if imported is not None and imported.outcome not in (Outcome.PASS, Outcome.ERROR):
        raise TargetError(_explain(target, TestResult(imported.outcome, imported.message)))
    whole = replace(target, module=module)
    whole = replace(whole, program=whole.with_definition(target.redefined))
    load = _load(whole, sandbox)
    if load.passed:
        return whole
    if load.outcome is Outcome.ERROR:
        part = replace(target, program=needed, left_out=load.message)
        if _load(part, sandbox).passed:
            return part
    raise TargetError(_explain_module(target, module, load, imported))


def _explain_module(
    target: Target, module: Module, load: TestResult, imported: Imported | None
) -> str:
    if imported is None or imported.outcome is not Outcome.ERROR:
        return _explain(target, load)
    acts = f" (it {', '.join(imported.acts)})" if imported.acts else ""
    start = (
        f"Expect {module.name} to be imported in the sandbox, actually: {imported.message}{acts}."
    )
    if imported.error in ("ModuleNotFoundError", "ImportError") and imported.missing:
        top = imported.missing.partition(".")[0]
        if top == module.top:
            return f"{start} Is its package complete, and may other users read it?"
        if _is_installed(top):
            return f"{start} It is installed, but nothing says that {module.top} needs it: add --packages {top}."
        return f"{start} Install {top}, here or in a folder on PYTHONPATH."
    return (
        f"{start} The sandbox has no network, and none of your files but those of the package; put what needs them "
        "into functions, so that it does not run when the file is imported."
    )


def _load(target: Target, sandbox: Sandbox) -> TestResult:
    return sandbox.submit(Job(target.program, (), target.name)).result().load


def _is_import(load: TestResult) -> bool:
    return load.outcome is Outcome.ERROR and load.error in ("ModuleNotFoundError", "ImportError")


def _explain(target: Target, load: TestResult) -> str:
    what = {
        Outcome.TIMEOUT: "running the file does not end. Put what should run only as a program below "
        'if __name__ == "__main__":',
        Outcome.EXITED: f"running the file ends the process ({load.message}). Put what should run only as a "
        'program below if __name__ == "__main__":',
        Outcome.MEMORY: "running the file needs more memory than the sandbox gives",
    }.get(load.outcome, f"{load.outcome.value}: {load.message}")
    if load.outcome is Outcome.ERROR:
        what = (
            f"{load.message}. The sandbox has no network and none of your files; put what needs them into "
            "functions, so that it does not run when the file is imported"
        )
    return f"Expect {target.path} to run when it is imported, actually: {what}."


def _explain_import(target: Target, module: str, imports: list[tuple[str, list[str]]]) -> str:
    relative = [name for name, _ in imports if name.startswith(".")]
    if not module and relative:
        module = relative[0]
    start = f"Expect what {target.name} imports to be in the sandbox, actually: "
    if module.startswith(".") or _is_own(target.path, module):
        return (
            f"{start}{module} is a module of yours, and the sandbox sees only this one file. Put what "
            f"{target.name} needs from it into the same file"
            + (
                "."
                if module.startswith(".")
                else f"; or allow it: PYTHONPATH={_folder(target.path, module)} "
                f"codea1 testgen ... --packages {module}"
            )
        )
    if module and _is_installed(module):
        return f"{start}{module} is installed, but not allowed. Allow it with --packages {module}."
    return f"{start}{module or 'a module'} is not installed here. Install it and allow it with --packages {module or 'NAME'}."


def _folder(path: Path, module: str) -> Path | None:
    """The folder from which a module of the user's is imported: that of the file, or one above."""
    for folder in path.resolve().parents[:3]:
        if (folder / f"{module}.py").is_file() or (folder / module).is_dir():
            return folder
    return None


def _is_own(path: Path, module: str) -> bool:
    return (
        bool(module) and module not in sys.stdlib_module_names and _folder(path, module) is not None
    )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False
