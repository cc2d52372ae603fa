"""The file that is written: as the project around it is formatted."""

from __future__ import annotations

import pytest

from codea1_env.testgen.written_file import formatted

TEXT = (
    "import sys\n\nimport pytest\nimport os\n\n\ndef test_f():\n    assert f('a', b = \"it's\")\n"
)


@pytest.mark.parametrize(
    ("name", "settings", "quoted"),
    [
        ("ruff.toml", "[format]\nquote-style = 'single'\n", "f('a', b=\"it's\")"),
        ("pyproject.toml", "[tool.ruff]\nline-length = 100\n", 'f("a", b="it\'s")'),
    ],
)
def test_settings_of_the_project_decide(tmp_path, name, settings, quoted):
    pytest.importorskip("ruff")
    output = tmp_path / "tests" / "test_f.py"
    output.parent.mkdir()
    assert formatted(TEXT, output) == TEXT  # there are none
    (tmp_path / name).write_text(settings)
    assert formatted(TEXT, output) == (
        f"import os\nimport sys\n\nimport pytest\n\n\ndef test_f():\n    assert {quoted}\n"
    )
    broken = "def f(:\n"
    assert formatted(broken, output) == broken
