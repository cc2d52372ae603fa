"""Packages outside the standard library, and what a confined child may see of the file system: these and Python."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import json
import os
import re
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from .inside.confine.confinement import Settings
from .jobs import WorkerKind

_ALONE = frozenset({"numpy"})
"""Needs no other; every sandbox has it, and its long list of files would take a while to read."""

# Not to be read: data sets, this project's own reference solutions, other people's code.
_NOT_STANDARD = frozenset({"site-packages", "dist-packages", "test", "idlelib", "ensurepip"})
_SYSTEM = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_FIRST_USER = 1_800_000_000
_USERS = 200_000_000


def locate(packages: Iterable[str]) -> dict[str, str]:
    """Where packages, and those that they need, are installed; what is not installed is left out."""
    found: dict[str, str] = {}
    left = list(packages)
    while left:
        name = left.pop(0)
        if name not in found and (folder := _folder(name)) is not None:
            found[name] = folder
            left += _needed(name)
    return found


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of installed packages, by the names that they are imported by."""
    return {name: ", ".join(each.version for each in _distributions(name)) for name in packages}


def library_folders(name: str, folder: str) -> list[Path]:
    """Return the folders beside a package that hold its shared libraries; wheels name them after the distribution."""
    names = {name}
    if not Path(folder, f"{name}.libs").exists():
        names = {re.sub(r"[-.]+", "_", each.name) for each in _distributions(name)}
    return [Path(folder, f"{each}.libs") for each in sorted(names)]


def metadata_folders(packages: Mapping[str, str]) -> list[str]:
    """Return the folders in which installed packages say which version they are: many ask for it when they are imported."""
    found = []
    for name, folder in packages.items():
        for distribution in _distributions(name):
            place = getattr(distribution, "_path", None)
            if isinstance(place, Path) and place.is_dir() and str(place.parent.resolve()) == folder:
                found.append(str(place.resolve()))
    return list(dict.fromkeys(found))


def _folder(name: str) -> str | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin in (None, "built-in", "frozen"):
        # A package without an __init__ has only folders.
        places = list(spec.submodule_search_locations or ()) if spec is not None else []
        return str(Path(places[0]).parent.resolve()) if places else None
    path = Path(str(spec.origin)).parent
    # Without symbolic links, behind which a sandbox's own file system has nothing.
    return str((path.parent if spec.submodule_search_locations else path).resolve())


def _needed(name: str) -> list[str]:
    """Return the top-level names of a package's distribution, and of those that it requires without extras."""
    names: list[str] = []
    for distribution in () if name in _ALONE else _distributions(name):
        names += sorted(_top_level(distribution))
        for requirement in distribution.requires or ():
            wanted, _, condition = requirement.partition(";")
            found = re.match(r"[\w.-]+", wanted)
            if found and not re.search(r"\bextra\b", condition):
                try:
                    names += sorted(_top_level(metadata.distribution(found[0])))
                except metadata.PackageNotFoundError:  # for another system or version of Python
                    continue
    return names


def _distributions(name: str) -> list[metadata.Distribution]:
    with contextlib.suppress(metadata.PackageNotFoundError, ValueError):
        return [metadata.distribution(name)]  # most have the name of their package
    found = dict.fromkeys(_providers(tuple(sys.path)).get(name, []))
    return [metadata.distribution(each) for each in found]


@functools.lru_cache(8)
def _providers(path: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Return the distributions of each package: read once for a path, since it takes seconds where many are installed."""
    return metadata.packages_distributions()


def _top_level(distribution: metadata.Distribution) -> set[str]:
    """Top-level names that a distribution offers to import."""
    names = set()
    for file in distribution.files or ():
        first = file.parts[0]
        if len(file.parts) > 1 and first.isidentifier() and first != "__pycache__":
            names.add(first)
        elif len(file.parts) == 1 and first.endswith((".py", ".so")):
            names.add(first.partition(".")[0])
    return names


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Where the shared libraries of this process come from, and where the linker looks for others."""
    folders = {"/lib", "/lib64", "/usr/lib", "/usr/lib64"}
    if triplet := sysconfig.get_config_var("MULTIARCH"):
        folders |= {f"/lib/{triplet}", f"/usr/lib/{triplet}"}
    with open("/proc/self/maps", "rb") as file:
        for line in file:
            path = os.fsdecode(line.rstrip().rpartition(b" ")[2])
            if path.startswith("/") and ".so" in os.path.basename(path):
                folders.add(os.path.dirname(path))
    found = {os.path.realpath(folder) for folder in folders if os.path.isdir(folder)}
    # A package's own libraries are none of the system's.
    return tuple(sorted(folder for folder in found if "-packages" not in folder))


@functools.cache
def _shared_libraries() -> tuple[str, ...]:
    return tuple(
        entry.path
        for folder in _library_folders()
        for entry in os.scandir(folder)
        if ".so" in entry.name and entry.is_file()
    )


def _package_paths(packages: Mapping[str, str]) -> list[str]:
    places: list[Path] = []
    for name, folder in packages.items():
        places += [Path(folder, name), Path(folder, f"{name}.py"), *library_folders(name, folder)]
    return [os.path.realpath(place) for place in places if place.exists()]


def packages_of(packages: str | Sequence[str]) -> dict[str, str]:
    """Find the packages that programs may import, and those that they need: name -> the folder that holds it.

    Raises:
        ValueError: One is not installed. Only numpy may be missing.
    """
    names = (packages,) if isinstance(packages, str) else tuple(packages)
    found = locate(names)
    for name in names:
        if name not in found and name != "numpy":
            raise ValueError(
                "Expect packages to name installed packages as programs import them, actually "
                f"{name!r} is not one. Install it, or leave it out."
            )
    return found


def mention_of(packages: Iterable[str]) -> re.Pattern[str]:
    """Find a mention of a package; without one, a program does not import it."""
    names = [*packages, *(["np"] if "numpy" in packages else [])]
    return re.compile(rf"\b({'|'.join(map(re.escape, names))})\b" if names else r"(?!)")


@functools.cache
def _for_testing() -> dict[str, str]:
    """Packages that workers import to run tests, beside those that programs may: pytest, with its needs."""
    return locate(("pytest",))


def settings(kind: WorkerKind, level: str, packages: Mapping[str, str]) -> str:
    """Return the settings of a new worker, as JSON. See `Worker`."""
    standard = sorted(
        {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    )
    own = [
        entry.path
        for folder in standard
        for entry in os.scandir(folder)
        if entry.name not in _NOT_STANDARD
    ]
    allowed = {**(_for_testing() if kind.testing else {}), **packages}
    # pytest asks for its plugins when it runs; other packages are imported before, and have asked for their versions.
    versions_in = metadata_folders(allowed) if kind.testing else []
    packaged = [*_package_paths(allowed), *versions_in]
    chosen = Settings(
        level=level,
        packages=allowed,
        imported=list(packages) if kind.with_packages else [],
        metadata=versions_in,
        calls_only=kind.calls_only,
        testing=kind.testing,
        readable=[*own, *packaged, *_shared_libraries(), *_SYSTEM],
        listable=standard,
        mounts=[*standard, *packaged, *_library_folders(), *_SYSTEM],
        scratch=kind.scratch and level == "namespaces",
        user=_FIRST_USER + int.from_bytes(os.urandom(8), "little") % _USERS,
    )
    return json.dumps(chosen._asdict())
