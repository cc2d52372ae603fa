"""Everything that separates a child from the machine: prepared once per worker, put on by each child."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
from typing import NamedTuple

from . import namespaces, privileges, seccomp

LEVELS = ("process", "kernel", "namespaces")


class Settings(NamedTuple):
    """What the supervisor tells a worker. Not a dataclass: importing those would make every fork dearer.

    Attributes:
        level: One of `LEVELS`; each includes those before it.
        packages: Allowed packages outside the standard library, and the folder that holds each.
        imported: Those of them that are imported before the worker is confined, once for all its runs.
        metadata: Folders in which packages say which version they are.
        calls_only: Whether its children are programs whose functions are only called.
        testing: See `WorkerKind.testing`.
        scratch: Whether its children have a folder that they may write to, of bounded size and empty for each run.
            Only at level "namespaces". The children of others may write no file, and neither may their worker.
        readable: Files and folders that children may read.
        listable: Folders that children may list.
        mounts: Folders that the worker's own file system holds, at level "namespaces".
        user: A user number that nobody else has, for the children of a root worker.
    """

    level: str
    packages: dict[str, str]
    imported: list[str]
    metadata: list[str]
    calls_only: bool
    testing: bool
    scratch: bool
    readable: list[str]
    listable: list[str]
    mounts: list[str]
    user: int

    def at_least(self, level: str) -> bool:
        """Whether the level includes another."""
        return LEVELS.index(self.level) >= LEVELS.index(level)


def _enter_no_folder() -> None:
    """Change to a folder that is gone: nothing can be made in it, also where programs may write to any other."""
    place = f"/tmp/codea1-{os.urandom(8).hex()}"
    try:
        os.mkdir(place, 0o700)
        os.chdir(place)
        os.rmdir(place)
    except OSError:
        os.chdir("/proc")


class Confinement:
    """The layers of one worker's children."""

    def __init__(self, settings: Settings, may_change_user: bool, own_users: bool) -> None:
        self.settings = settings
        self._own_users = own_users
        self.change_user = may_change_user and os.geteuid() == 0
        self._folder = os.path.join(namespaces.SCRATCH, "program", "files")
        self._rules: privileges.Ruleset | None = None
        self._filter: seccomp.Filter | None = None
        self._is_prepared = self._worker_is_confined = False
        if settings.scratch:
            os.makedirs(self._folder, exist_ok=True)
        if settings.at_least("kernel"):
            self._filter = seccomp.Filter(locks=settings.scratch)
            # The rules are about the folder around the one that is mounted, and so hold for the next one, too.
            around = os.path.dirname(self._folder) if settings.scratch else None
            self._rules = privileges.Ruleset(settings.readable, settings.listable, around)
        if settings.scratch:
            namespaces.make_read_only(namespaces.SCRATCH)
            self._mount_folder()

    def keep_user(self) -> None:
        """Give up changing the user: the standard library is where no other user may look."""
        self.change_user = False
        if self.settings.scratch:
            self._give_folder()

    @property
    def counts_threads(self) -> bool:
        """Whether its children's threads are limited, since they are counted apart from those of others."""
        return self.change_user or self._own_users

    def _mount_folder(self) -> None:
        namespaces.mount_empty(self._folder)
        self._give_folder()

    def _give_folder(self) -> None:
        owner = self.settings.user if self.change_user else 0
        os.chmod(self._folder, 0o700)
        if os.geteuid() == 0:
            os.chown(self._folder, owner, owner)

    def harden_worker(self) -> None:
        """Take from the worker itself what it does not need, and its children so do not have."""
        privileges.limit_resources()
        privileges.gain_nothing()

    def restrict_worker(self) -> None:
        """Put on the worker what its children then need not put on, unless it must mount folders for them."""
        if self.settings.scratch:
            return
        if self._rules is None:
            _enter_no_folder()
        else:
            os.chdir("/")
            self._put_on_rights()
            self._rules.restrict()
            self._worker_is_confined = True

    def prepare(self) -> None:
        """Do in the worker what its next child then finds done."""
        if self.settings.scratch and not self._is_prepared:
            os.chdir(self._folder)
            os.environ["TMPDIR"] = os.environ["HOME"] = self._folder
            self._is_prepared = True

    def put_on(self, parent: int) -> None:
        """Confine this process, for good, but for what `seal` adds: with as few new pages of memory as possible."""
        if not self._worker_is_confined:
            self._put_on_rights()
        # After the change of user, which would clear it.
        privileges.prctl(privileges.PR_SET_PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        if self._rules is not None and not self._worker_is_confined:
            self._rules.restrict()

    def seal(self) -> None:
        """Put on the filter of system calls, when the job's limits are set and before foreign code begins."""
        if self._filter is not None:
            self._filter.install()

    def _put_on_rights(self) -> None:
        # The functions of the module `signal` make enums. SIGPIPE stays ignored, as in every Python program:
        # a supervisor that has ended must not kill the program's process.
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        privileges.limit_child(self.counts_threads)
        if self.change_user:
            privileges.become(self.settings.user)
        else:
            privileges.drop_capabilities()
        privileges.hide()

    def clean(self) -> None:
        """Give the next run an empty folder. However full that of the last one is, it takes no time."""
        os.chdir("/")
        self._is_prepared = False
        namespaces.unmount(self._folder)
        self._mount_folder()
