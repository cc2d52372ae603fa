"""The scripts for Slurm and Kubernetes are read by their shells and parsers, and start runs that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from codea1_env.cli.app import run

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "cluster"


def settings(command: str) -> list[str]:
    words = shlex.split(command)
    return words[words.index("train") :]


def test_kubernetes_manifest(capsys: pytest.CaptureFixture[str]) -> None:
    yaml: Any = pytest.importorskip("yaml")
    manifest = yaml.safe_load((FOLDER / "kuberay.yaml").read_text("utf-8"))
    spec = manifest["spec"]["rayClusterSpec"]
    assert run([*settings(manifest["spec"]["entrypoint"]), "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert 'engine = "ray"' in said
    workers = spec["workerGroupSpecs"][0]["template"]["spec"]["containers"][0]
    assert f"workers = {workers['resources']['limits']['cpu']}" in said  # one per processor
    assert workers["image"] == spec["headGroupSpec"]["template"]["spec"]["containers"][0]["image"]


def test_slurm_script(capsys: pytest.CaptureFixture[str]) -> None:
    script = (FOLDER / "slurm.sh").read_text("utf-8")
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)
    [command] = re.findall(r"codea1 train .*", script)
    start = command.replace('"${again[@]}"', "--preset tabular").replace('"$run"', "runs/slurm")
    assert run([*settings(start), "--dry-run"]) == 0
    assert 'engine = "ray"' in capsys.readouterr().out
