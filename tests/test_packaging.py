"""What is built, what it installs, and that the links at the top of the repository do no harm."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import distribution, files, requires
from pathlib import Path

import pytest

import codea1_env

ROOT = Path(codea1_env.__file__).resolve().parent.parent
LINKS = ["agents", "baselines", "sandbox"]

pytestmark = pytest.mark.skipif(
    not (ROOT / "setup.cfg").is_file(), reason="needs the repository, not an installed package"
)


@pytest.fixture(scope="module")
def metadata() -> configparser.ConfigParser:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel and an sdist, built from a copy of what is in the repository."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    unwanted = (".*", "*.egg-info", "__pycache__", "build", "dist", "runs", "shared")
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(*unwanted))
    out = folder / "dist"
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


def only(folder: Path, pattern: str) -> Path:
    (path,) = folder.glob(pattern)
    return path


@pytest.mark.slow
def test_wheel_installs_codea1_env_and_nothing_else(distributions: Path) -> None:
    with zipfile.ZipFile(only(distributions, "*.whl")) as wheel:
        names = wheel.namelist()
    info = f"codea1_env-{codea1_env.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"codea1_env", "code_a1.py", info}
    assert "codea1_env/py.typed" in names
    modules = [path for path in (ROOT / "codea1_env").rglob("*.py") if path.is_file()]
    assert {str(path.relative_to(ROOT)) for path in modules} <= set(names)
    problems = {Path(name).stem for name in names if name.endswith(".jsonl")}
    functions = {"easy", "medium", "hard", "second", "planted", "written"}
    assert problems == functions | {"programs_easy", "programs_medium"}
    pages = {Path(name).name for name in names if "/report/page/" in name}
    assert pages == {"drawing.js", "episodes.js", "page.html", "style.css"}


@pytest.mark.slow
def test_sdist_can_be_built_and_tested_from(distributions: Path) -> None:
    with tarfile.open(only(distributions, "*.tar.gz")) as sdist:
        members = {member.name.split("/", 1)[-1]: member for member in sdist.getmembers()}
    for name in ("setup.cfg", "pyproject.toml", "LICENSE", "README.md", "Makefile", "conftest.py"):
        assert name in members
    assert {"codea1_env/py.typed", "tests/conftest.py", "tests/test_packaging.py"} <= set(members)
    assert {"benchmarks/verdict_noise.py", "docs/tutorials/agent.md"} <= set(members)
    assert not any(name.startswith("docs/_made/") for name in members)
    assert not any(name.split("/")[0] in LINKS for name in members)
    assert not any(member.issym() for member in members.values())


def needed(name: str) -> set[str]:
    """Names of all that a package needs without extras, and what that needs, and so on."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [name]
    while waiting:
        for line in requires(waiting.pop()) or ():
            asked = Requirement(line)
            wanted = asked.marker is None or asked.marker.evaluate({"extra": ""})
            if wanted and canonical(asked.name) not in found:
                found.add(canonical(asked.name))
                waiting.append(asked.name)
    return found


@pytest.mark.slow
def test_wheel_plays_in_an_empty_environment(distributions: Path, tmp_path: Path) -> None:
    """Without extras, without the repository: what the index would give."""
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True, timeout=120)
    (site,) = home.glob("lib/python*/site-packages")
    for name in {path.parts[0] for each in needed("codea1-env") for path in files(each) or ()}:
        if name != ".." and name != "__pycache__":
            (site / name).symlink_to(distribution("numpy").locate_file(name))
    pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python"), "install", "-q"]
    wheel = str(only(distributions, "*.whl"))
    command = [*pip, "--no-compile", "--no-index", wheel]  # all that it asks for is there
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        [str(home / "bin/codea1"), "play", "--problem", "starter/is_leap_year"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTHON")},
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "✗ fail" in done.stdout
    assert "The episode is over.\n" in done.stdout


@pytest.mark.slow
def test_an_index_would_show_the_page_well(distributions: Path) -> None:
    import email

    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {codea1_env.__version__}\n" in citation
    with zipfile.ZipFile(only(distributions, "*.whl")) as wheel:
        (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
        shown = email.message_from_string(wheel.read(name).decode())
    assert shown["License-Expression"] == "Apache-2.0"
    assert all("://" in url for url in shown.get_all("Project-URL"))
    page = str(shown.get_payload())
    assert "The method is Code-A1 ([arXiv 2603.15611](https://arxiv.org/abs/2603.15611))" in page
    assert re.findall(r"\]\((?!https://)[^)]*\)|<img", page) == []


VISITOR = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_ignore_collect(collection_path):
    ignored = yield
    if collection_path.is_file() and not ignored:
        print(f"\\n{collection_path}")
        return True
    return ignored
"""
"""A plugin of pytest that prints the files in which it would look for tests, and imports none of them."""


def test_no_tool_looks_into_the_links(tmp_path: Path) -> None:
    if not (ROOT / "agents").exists():
        pytest.skip("the links are not part of an sdist")
    assert {os.readlink(ROOT / name) for name in LINKS} == {f"codea1_env/{name}" for name in LINKS}
    (tmp_path / "visitor.py").write_text(VISITOR)
    visit = ["-m", "pytest", "--collect-only", "-q", "-p", "visitor", "."]
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    for command, code in (
        ([sys.executable, *visit], pytest.ExitCode.NO_TESTS_COLLECTED),
        ([sys.executable, "-m", "ruff", "check", "--show-files"], 0),
    ):
        variables = os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=variables)
        assert done.returncode == code, done.stdout + done.stderr
        paths = [line.replace(f"{ROOT}/", "") for line in done.stdout.splitlines()]
        assert any(path.startswith("codea1_env/sandbox/") for path in paths)
        assert [path for path in paths if path.split("/")[0] in LINKS] == []


def test_core_dependencies_are_the_agreed_ones(metadata: configparser.ConfigParser) -> None:
    agreed = "gymnasium numpy pettingzoo pydantic rich tomli-w tyro"
    assert requirement_names(metadata["options"]["install_requires"]) == set(agreed.split())
    assert metadata["options"]["python_requires"] == ">=3.11"


def test_makefile_installs_exact_versions_inside_the_ranges(metadata) -> None:
    from packaging.requirements import Requirement

    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    pins = {canonical(name): version for name, version in pins.items()}
    extras = metadata["options.extras_require"]
    asked = [metadata["options"]["install_requires"]]
    asked += [extras[name] for name in ("llm", "report", "test", "lint", "build", "docs")]
    for line in filter(None, "\n".join(asked).splitlines()):
        requirement = Requirement(line)
        if requirement.name == metadata["metadata"]["name"]:
            assert requirement.extras <= set(extras), line
            continue
        assert requirement.specifier.contains(pins[canonical(requirement.name)]), line


PYTHON = """#!/bin/sh
# Stands for .venv/bin/python: knows no torch and reaches no index; installing fails as often as it is told to.
case "$*" in
*--dry-run*|*importlib.metadata*|*urllib*) exit 1 ;;
*"-m pip install"*)
    echo "$*" >> installed
    [ -s failures ] || exit 0
    sed -i 1d failures
    exit 1 ;;
esac
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What the Makefile reads, and a Python that only writes down what it is asked to install."""
    presets = "codea1_env/training/presets"
    (tmp_path / presets).mkdir(parents=True)
    for name in ("smollm2-cpu.toml", "tabular.toml"):
        shutil.copy(ROOT / presets / name, tmp_path / presets)
    for name in ("Makefile", "setup.cfg", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    python = tmp_path / ".venv/bin/python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (tmp_path / "bin").mkdir()
    pause = (
        f'#!/bin/sh\n[ "$1" = 2 ] || exec {shutil.which("sleep")} "$@"\n'  # not before a second try
    )
    (tmp_path / "bin/sleep").write_text(pause)
    (tmp_path / "bin/sleep").chmod(0o755)
    for tool in ("sh", "sed", "date", "du", "cut", "touch", "grep"):  # and no nvidia-smi
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    return tmp_path


def make(clone: Path, *arguments: str) -> tuple[int, str, list[str]]:
    """Exit code, what was said, and what was installed."""
    done = subprocess.run(
        [str(shutil.which("make")), *arguments],
        cwd=clone,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={"PATH": str(clone / "bin")},
        timeout=60,
    )
    log = clone / "installed"
    lines = log.read_text().splitlines() if log.exists() else []
    log.unlink(missing_ok=True)
    return done.returncode, done.stdout, [line.partition("constraints.txt ")[2] for line in lines]


needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


@needs_make
def test_make_fetches_what_is_needed_and_once(clone: Path) -> None:
    _, said, installed = make(clone, "train", "PRESET=tabular")
    assert installed == ["--editable .[report]"]
    assert re.search(r"Installing into \.venv: .*\(\d+ MB to download, \d+ MB on disk\)", said)
    assert "torch" not in said
    assert make(clone, "lint")[2] == ["codea1-env[lint]"]
    _, said, installed = make(clone, "train")
    assert installed == ["torch", "codea1-env[llm]"]
    assert said.index("are not in reach") < said.index("2.7 GB") < said.index("Installing")
    assert make(clone, "test")[2] == ["codea1-env[test]"]
    for command in (["train"], ["train", "PRESET=tabular"], ["test"], ["test-fast"], ["lint"]):
        assert make(clone, *command) == (0, make(clone, *command)[1], [])


@needs_make
def test_make_tries_a_failed_step_once_more(clone: Path) -> None:
    (clone / "failures").write_text("1\n")
    code, said, installed = make(clone, "train", "PRESET=tabular")
    assert (code, installed) == (0, ["--editable .[report]"] * 2)
    assert "Once more, the last time:" in said
    (clone / "failures").write_text("1\n2\n")
    code, said, installed = make(clone, "lint")
    assert (code, installed) == (2, ["codea1-env[lint]"] * 2)
    assert "The installation failed" in said
    assert make(clone, "lint")[::2] == (0, ["codea1-env[lint]"])  # no stamp was left


def requirement_names(lines: str) -> set[str]:
    return {re.split(r"[\s<>=!]", line)[0] for line in lines.splitlines() if line}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
