"""Packages that programs may import: found with what they need, and nothing else."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from codea1_env.sandbox import LevelUnavailableError, Limits, Outcome, Sandbox, packages
from codea1_env.sandbox.jobs import WorkerKind
from codea1_env.sandbox.packages import library_folders, locate

PATIENT = Limits(call_cpu_time=30, call_wall_time=120, run_cpu_time=60, run_wall_time=240)


def test_what_is_not_installed_is_left_out() -> None:
    assert list(locate(["numpy", "no_such_package", "", ".x", "a.b"])) == ["numpy"]
    assert locate(["builtins", "sys"]) == {}


def test_what_a_package_needs_comes_with_it() -> None:
    found = locate(["pytest"])
    assert {"pytest", "_pytest", "pluggy", "packaging"} <= found.keys()
    for name, folder in found.items():
        assert Path(folder, name).is_dir() or Path(folder, f"{name}.py").is_file()


def test_distributions_are_read_once_for_all_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    read = packages.metadata.packages_distributions
    times = []
    monkeypatch.setattr(
        packages.metadata, "packages_distributions", lambda: times.append(1) or read()
    )
    packages._providers.cache_clear()
    kind = WorkerKind(scratch=True, testing="pytest")
    one, other = (json.loads(packages.settings(kind, "kernel", {})) for _ in range(2))
    assert one | {"user": 0} == other | {"user": 0}
    assert len(times) == 1, "it takes seconds where many are installed"


def test_a_module_of_one_file(sandbox: Sandbox) -> None:
    folder = locate(["typing_extensions"]).get("typing_extensions")
    if folder is None:
        pytest.skip("it is not installed")
    assert Path(folder, "typing_extensions.py").is_file()
    with Sandbox(packages=("typing_extensions",)) as own:
        assert own.run_script("import typing_extensions").outcome is Outcome.PASS
    result = sandbox.run_script("import typing_extensions")
    assert result.outcome is Outcome.ERROR
    assert "ModuleNotFoundError" in result.message


def test_shared_libraries_of_a_distribution_with_another_name() -> None:
    if importlib.util.find_spec("PIL") is None:
        pytest.skip("it is not installed")
    names = [path.name for path in library_folders("PIL", locate(["PIL"])["PIL"])]
    assert names == ["pillow.libs"]


def test_data_frames_and_figures() -> None:
    for name in ("pandas", "matplotlib"):
        pytest.importorskip(name)
    code = (
        "import pandas as pd\nimport matplotlib.pyplot as plt\n"
        "figure, axes = plt.subplots()\naxes.plot([1, 2])\nfigure.savefig('figure.png')\n"
        "print(pd.DataFrame({'a': [1, 2]})['a'].sum())"
    )
    with Sandbox(packages=("pandas", "matplotlib")) as own:
        assert {"numpy", "dateutil", "PIL"} <= set(own.packages)
        try:
            result = own.run_script(code, limits=PATIENT, scratch=True)
        except LevelUnavailableError as error:
            pytest.skip(str(error))
    assert (result.outcome, result.stdout, result.message) == (Outcome.PASS, "3\n", "")
