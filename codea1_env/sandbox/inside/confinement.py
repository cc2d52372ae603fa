"""Everything that separates a child from the machine: prepared once per worker, put on by each child."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
from dataclasses import dataclass

from . import folders, landlock, privileges, seccomp

LEVELS = ("none", "process", "kernel", "namespaces")


@dataclass(frozen=True)
class Settings:
    """What the supervisor tells a worker.

    Attributes:
        level: One of `LEVELS`; each includes those before it.
        packages: Allowed packages outside the standard library, and the folder that holds each.
        preload: Whether to import them before the first run.
        calls_only: Whether its children are programs whose functions are only called. They may write no file, and
            the worker may not either.
        readable: Files and folders that children may read.
        listable: Folders that children may list.
        mounts: Folders that the worker's own file system holds, at level "namespaces".
        scratch: A private folder of the worker, made by the supervisor.
        user: A user number that nobody else has, for the children of a root worker.
    """

    level: str
    packages: dict[str, str]
    preload: bool
    calls_only: bool
    readable: list[str]
    listable: list[str]
    mounts: list[str]
    scratch: str
    user: int

    def at_least(self, level: str) -> bool:
        """Whether the level includes another."""
        return LEVELS.index(self.level) >= LEVELS.index(level)


class Confinement:
    """The layers of one worker's children.

    Args:
        settings: The worker's settings.
        may_change_user: Whether the worker may give its children another user number.

    Raises:
        OSError: The kernel does not offer what the level needs.
    """

    def __init__(self, settings: Settings, may_change_user: bool) -> None:
        self.settings = settings
        self.change_user = may_change_user and os.geteuid() == 0 and settings.at_least("process")
        self._folders: dict[bytes, str] = {}
        self._rulesets: dict[bytes, landlock.Ruleset] = {}
        self._filter: seccomp.Filter | None = None
        self._prepared_for = b""
        roles = () if settings.calls_only else ((b"c", "program"), (b"t", "test"))
        for role, name in roles:
            folder = os.path.join(settings.scratch, name)
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._folders[role] = folder
        self._give_folders()
        if settings.at_least("kernel"):
            self._filter = seccomp.Filter()
            if settings.calls_only:
                self._rulesets[b"v"] = landlock.Ruleset(settings.readable, settings.listable, None)
            for role, folder in self._folders.items():
                self._rulesets[role] = landlock.Ruleset(
                    settings.readable, settings.listable, folder
                )

    def keep_user(self) -> None:
        """Gives up changing the user: the standard library is where no other user may look."""
        self.change_user = False
        self._give_folders()

    def _give_folders(self) -> None:
        if os.geteuid() == 0:
            owner = self.settings.user if self.change_user else 0
            for folder in self._folders.values():
                os.chown(folder, owner, owner)

    def harden_worker(self) -> None:
        """Takes from the worker itself what it does not need, and its children so do not have."""
        privileges.limit_resources()
        if self.settings.at_least("process"):
            privileges.gain_nothing()

    def restrict_worker(self) -> None:
        """Puts the rules for files in force for a worker of calls: its children need none of their own."""
        os.chdir("/")
        if ruleset := self._rulesets.pop(b"v", None):
            ruleset.restrict()

    def prepare(self, role: bytes) -> None:
        """Does in the worker what its next child then finds done.

        Args:
            role: b"c" or b"t", which have folders of their own; b"v" has none.
        """
        if role == b"v":
            return
        if role != self._prepared_for:
            folder = self._folders[role]
            os.chdir(folder)
            os.environ["TMPDIR"] = os.environ["HOME"] = folder
            self._prepared_for = role

    def put_on(self, role: bytes, parent: int) -> None:
        """Confines this process, for good.

        It is short and stays close to the system calls: each page of memory that a child touches for the
        first time costs as much as several system calls.

        Args:
            role: What the worker has prepared for.
            parent: The worker's process number: without it, there is nobody to work for.
        """
        # The functions of the module `signal` make enums. SIGPIPE stays ignored, as in every Python program:
        # a reply to a test that has ended meanwhile must not kill the program's process.
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
        privileges.limit_child(own_user=self.change_user)
        if self.settings.at_least("process"):
            if self.change_user:
                privileges.become(self.settings.user)
            elif os.geteuid() == 0 or self.settings.level == "namespaces":
                privileges.drop_capabilities()
            privileges.hide()
        # After the change of user, which would clear it.
        privileges.prctl(privileges.PR_SET_PDEATHSIG, _signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        if self._filter is not None:
            if role in self._rulesets:
                self._rulesets[role].restrict()
            self._filter.install()

    def clean(self) -> None:
        """Removes what the last run left in its folders.

        Raises:
            OSError: It cannot: the worker must not be used again.
        """
        for folder in self._folders.values():
            if not self.settings.at_least("kernel"):  # where a program can close its folder
                os.chmod(folder, 0o700)
            if os.listdir(folder):
                folders.empty(folder)
