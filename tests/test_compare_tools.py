"""benchmarks/testgen/run_mutants.py: pytest on mutants of a module."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "testgen" / "run_mutants.py"
SOURCE = "def half(n):\n    while n < 0:\n        n += 2\n    return n // 2\n"
TESTS = {
    "test_all.py": "from number import half\n\ndef test_four(): assert half(4) == 2\ndef test_five(): assert half(-5) == 0\n",
    "test_wrong.py": "from number import half\n\ndef test_four(): assert half(4) == 3\n",
    "test_none.py": "import number\n\ndef test_nothing(): pass\n",
    "test_crash.py": "import os\n\ndef test_end(): os._exit(1)\n",
}


@pytest.mark.slow
@pytest.mark.skipif(not SCRIPT.exists(), reason="needs the repository")
def test_files_kill_mutants_that_pass_without_them(tmp_path):
    (tmp_path / "number.py").write_text(SOURCE)
    (tmp_path / "empty.ini").touch()
    for name, text in TESTS.items():
        (tmp_path / name).write_text(text)
    mutants = [
        SOURCE.replace("// 2", "// 1"),  # another value
        SOURCE.replace("n += 2", "n -= 2"),  # it does not end
        SOURCE.replace("def half", "def third"),  # no file but the empty one can be collected
        SOURCE + "\n",
    ]
    job = {
        "module": "number", "file": str(tmp_path / "number.py"), "first": 1, "last": 4,
        "mutants": mutants, "folder": str(tmp_path), "ini": str(tmp_path / "empty.ini"),
        "files": {name: name for name in TESTS},
        "own": {"folder": str(tmp_path), "files": ["test_all.py"]},
    }  # fmt: skip
    (tmp_path / "job.json").write_text(json.dumps(job))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "job.json")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
    )
    assert not done.returncode, done.stderr
    found = json.loads(done.stdout)
    assert found == {
        "test_all.py": {"tests": 2, "failing": 0, "killed": "1110"},
        "test_wrong.py": {"tests": 0, "failing": 1, "killed": "0000"},
        "test_none.py": {"tests": 1, "failing": 0, "killed": "0000"},
        "test_crash.py": {"tests": 0, "failing": 0, "killed": "0000"},
        "own": {"tests": 2, "failing": 0, "killed": "1110"},
    }
