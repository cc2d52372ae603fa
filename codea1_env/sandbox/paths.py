"""What a confined child may see of the file system: Python, its shared libraries, allowed packages."""

from __future__ import annotations

import functools
import json
import os
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from .inside.confine.confinement import Settings
from .packages import library_folders, metadata_folders

# Not to be read: data sets, this project's own reference solutions, other people's code.
_NOT_STANDARD = frozenset({"site-packages", "dist-packages", "test", "idlelib", "ensurepip"})
_FIRST_USER = 1_800_000_000
_USERS = 200_000_000


@functools.cache
def _standard_library() -> tuple[str, ...]:
    folders = {os.path.realpath(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    return tuple(sorted(folders))


@functools.cache
def _library_folders() -> tuple[str, ...]:
    """Where the shared libraries of this process come from, and where the linker looks for others."""
    folders = {"/lib", "/lib64", "/usr/lib", "/usr/lib64"}
    for triplet in (sysconfig.get_config_var("MULTIARCH"),):
        if triplet:
            folders |= {f"/lib/{triplet}", f"/usr/lib/{triplet}"}
    with open("/proc/self/maps") as file:
        for line in file:
            path = line.rstrip().rpartition(" ")[2]
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
    paths = []
    for name, folder in packages.items():
        for candidate in (
            Path(folder, name),
            Path(folder, f"{name}.py"),
            *library_folders(name, folder),
        ):
            if candidate.exists():
                paths.append(os.path.realpath(candidate))
    return paths


def settings(
    level: str,
    packages: Mapping[str, str],
    preload: bool,
    calls_only: bool,
    scratch: bool,
    modules: Sequence[str] | None = None,
) -> str:
    """The settings of a new worker, as JSON.

    Args:
        level: See `Sandbox`.
        packages: Allowed packages and the folder that holds each.
        preload: Whether to import them at once.
        calls_only: See `Worker`.
        scratch: See `Worker`.
        modules: See `Worker`.
    """
    standard = _standard_library()
    readable = [
        entry.path
        for folder in standard
        for entry in os.scandir(folder)
        if entry.name not in _NOT_STANDARD
    ]
    metadata = metadata_folders(packages) if modules is not None else []
    packaged = [*_package_paths(packages), *metadata]
    chosen = Settings(
        level=level,
        packages=dict(packages),
        modules=None if modules is None else list(modules),
        metadata=metadata,
        preload=preload,
        calls_only=calls_only,
        readable=[
            *readable,
            *packaged,
            *_shared_libraries(),
            "/etc/ld.so.cache",
            "/usr/share/zoneinfo",
        ],
        listable=list(standard),
        mounts=[
            *standard,
            *packaged,
            *_library_folders(),
            "/etc/ld.so.cache",
            "/usr/share/zoneinfo",
        ],
        scratch=scratch,
        user=_FIRST_USER + int.from_bytes(os.urandom(8), "little") % _USERS,
    )
    return json.dumps(chosen._asdict())
