"""Namespaces of one worker: its own users, mounts, process numbers, network, IPC and host name.

The worker becomes process 1 of its own process tree, so that all it has forked ends with it and no child can signal it, and
sees only the folders that Python needs, read-only, at their own paths.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterable

from .privileges import check, libc

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_ALL = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = (
    1, 2, 4, 8, 32, 4096, 16384, 1 << 18,
)  # fmt: skip
_MNT_DETACH = 2
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
# Not /tmp: Python itself may lie there.
SCRATCH = "/scratch"
_SCRATCH_SIZE = "16m"
_SCRATCH_FILES = 4096


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [text.encode() if text is not None else None for text in (source, target, kind)]
    options = data.encode() if data is not None else None
    check(libc.mount(*encoded, ctypes.c_ulong(flags), options), f"mount {target}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def enter() -> bool:
    """Leave the namespaces of the machine; the next process that is forked starts the new process tree.

    Returns:
        Whether a user namespace was needed. Without one, children can have user numbers of their own.
    """
    if os.geteuid() == 0 and libc.unshare(_ALL) == 0:
        return False
    _unshare_users(_ALL)
    return True


def _unshare_users(others: int = 0) -> None:
    user, group = os.geteuid(), os.getegid()
    check(libc.unshare(others | _NEWUSER), "unshare")
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{user} {user} 1")
    _write("/proc/self/gid_map", f"{group} {group} 1")


def counts_threads() -> bool:
    """Whether the kernel counts the threads of a user in each user namespace apart, as it does from 5.14 on."""
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return version is not None and tuple(map(int, version.groups())) >= (5, 14)


def enter_own_users() -> bool:
    """Go on in a user namespace of its own, if this process may; tried in a child first, since nobody can leave one."""
    pid = os.fork()
    if pid == 0:
        try:
            _unshare_users()
        finally:
            os._exit(1 if sys.exc_info()[0] else 0)
    if os.waitpid(pid, 0)[1] != 0:
        return False
    _unshare_users()
    return True


def _bind(root: str, path: str) -> None:
    target = root + path
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "a"):
            pass
    _mount(path, target, None, _MS_BIND | _MS_REC)
    if path not in _DEVICES:
        # Flags of the original mount must be kept where a user namespace has locked them.
        flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV
        _mount(path, target, None, flags | _locked_flags(target))


def _locked_flags(path: str) -> int:
    flags = os.statvfs(path).f_flag
    return (_MS_NOEXEC if flags & os.ST_NOEXEC else 0) | (1024 if flags & os.ST_NOATIME else 0)


def mount_empty(folder: str) -> None:
    """Mount an empty folder of bounded size over a folder."""
    options = f"size={_SCRATCH_SIZE},nr_inodes={_SCRATCH_FILES},mode=711"
    _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def make_read_only(folder: str) -> None:
    """Let nobody write to a mounted folder any more; what is mounted in it stays as it is."""
    _mount("none", folder, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)


def unmount(folder: str) -> None:
    """Take a mounted folder away with all that is in it, also where a process is still at work there."""
    check(libc.umount2(folder.encode(), _MNT_DETACH), f"unmount {folder}")


def isolate_files(folders: Iterable[str], machine: str) -> None:
    """Replace the file system by one that holds only the given folders, read-only, and a scratch folder."""
    paths = sorted({path for path in folders if os.path.exists(path)})
    # A folder to build in, hidden by the mount, and not above anything that is still to be bound.
    root = next(
        place
        for place in ("/mnt", "/srv", "/media", "/opt", "/home", "/var/tmp", "/tmp", "/run")
        if os.path.isdir(place) and not any(f"{path}/".startswith(f"{place}/") for path in paths)
    )
    os.umask(0o022)
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=1m,mode=755")
    for path in (*paths, *_DEVICES):
        if not any(path != other and path.startswith(f"{other}/") for other in paths):
            _bind(root, path)
    for link in ("/lib", "/lib64", "/lib32", "/usr/lib64", "/usr/lib"):
        if os.path.islink(link) and not os.path.lexists(root + link):
            os.makedirs(os.path.dirname(root + link), exist_ok=True)
            os.symlink(os.readlink(link), root + link)
    os.makedirs(root + SCRATCH, exist_ok=True)
    mount_empty(root + SCRATCH)
    flags = _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV
    _mount("none", root, None, flags)
    os.chdir(root)
    check(int(libc.syscall(ctypes.c_long(_PIVOT_ROOT[machine]), b".", b".")), "pivot_root")
    check(libc.umount2(b".", _MNT_DETACH), "umount")
    os.chdir("/")
