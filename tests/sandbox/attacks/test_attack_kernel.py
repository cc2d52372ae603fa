"""Acts that only the kernel's layers stop: each must fail, in a program and in a test alike.

Nothing here is dangerous where a layer is missing: signals are number 0, bombs are single.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

import codea1_env
from codea1_env.sandbox import Limits, Outcome

REFUSED = ("EPERM", "EACCES")
HIDDEN = ("EPERM", "EACCES", "ENOENT", "ESRCH")

PROCESSES = {
    "fork": "if os.fork() == 0: os._exit(0)",
    "vfork by number": "check(libc.syscall(58))",
    "fork by number": "check(libc.syscall(57))",
    "clone without a thread": "check(libc.syscall(56, 17, 0, 0, 0, 0))",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "exec": "os.execv('/bin/true', ['true'])",
    "exec of the interpreter": "os.execv(sys.executable, [sys.executable, '-c', ''])",
    "execveat": "check(libc.syscall(322, -100, b'/bin/true', 0, 0, 0))",
    "subprocess": "import subprocess\nsubprocess.run(['true'])",
    "multiprocessing": (
        "import multiprocessing\np = multiprocessing.get_context('fork').Process(target=int)\np.start()"
    ),
    "new session": "os.setsid()",
    "process group": "os.setpgid(0, 0)",
}


def test_no_new_processes(attempts):
    found = attempts(PROCESSES)
    assert {name: what for name, what in found.items() if what not in REFUSED} == {}


THREAD = 0x3D0F00  # what pthread_create asks for
OTHER_FLAGS = {
    "vfork": 0x4000, "ptrace": 0x2000, "parent": 0x8000, "new mounts": 0x20000, "untraced": 0x800000,
    "set a number in the child": 0x1000000, "new cgroups": 0x2000000, "new host name": 0x4000000,
    "new IPC": 0x8000000, "new users": 0x10000000, "new processes": 0x20000000,
    "new network": 0x40000000, "I/O": 0x80000000, "pidfd": 0x1000, "a signal at its end": 17,
}  # fmt: skip


def test_threads_are_made_as_pthread_create_makes_them(attempts):
    """With CLONE_VFORK the caller stands in state D as long as its thread likes."""
    if os.uname().machine != "x86_64":
        pytest.skip("numbers of x86-64")
    calls = {
        name: f"check(libc.syscall(56, {THREAD | flag}, 0, 0, 0, 0))"
        for name, flag in OTHER_FLAGS.items()
    }
    calls["fewer"] = f"check(libc.syscall(56, {THREAD & ~0x80000}, 0, 0, 0, 0))"
    calls["a thread alone"] = "check(libc.syscall(56, 0x10900, 0, 0, 0, 0))"
    calls["x32"] = f"check(libc.syscall(0x40000000 | 56, {THREAD}, 0, 0, 0, 0))"
    calls["clone3"] = "check(libc.syscall(435, 0, 0))"
    expected = dict.fromkeys(calls, "EPERM") | {"clone3": "ENOSYS"}
    assert attempts(calls) == expected


LOCKS = {
    "flock": "import fcntl\nfcntl.flock(open('/dev/null', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "flock of the library": "import fcntl\nfcntl.flock(open(os.__file__), fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "lockf": "import fcntl\nfcntl.lockf(open('/dev/null', 'w'), fcntl.LOCK_EX | fcntl.LOCK_NB)",
    "shared lockf": "import fcntl\nfcntl.lockf(open(os.__file__), fcntl.LOCK_SH)",
    "by description": "import fcntl\nfcntl.fcntl(open('/dev/null', 'w'), 37, bytes(32))",
    "lease": "import fcntl\nfcntl.fcntl(open(os.__file__), 1024, 0)",
}


def test_no_locks_that_others_see(attempts, level, request):
    if request.node.callspec.params["attempts"] == "test" and level == "namespaces":
        pytest.skip("who has a folder of its own may lock files, as sqlite does")
    found = attempts(LOCKS)
    assert {name: what for name, what in found.items() if what not in ("EPERM", "EINVAL")} == {}


def test_system_runs_nothing(arena):
    code = "import os\ndef f(x): return os.system('touch /tmp/attack-system')"
    (result,) = arena.sandbox.call(code, "f", [((1,), {})])
    assert result.value != 0


OTHERS = {
    "signal the parent": "os.kill(os.getppid(), 0)",
    "signal everybody": "os.kill(-1, 0)",
    "signal the group": "os.killpg(os.getpgid(0) or 1, 0)",
    "signal the own group": "os.kill(0, 0)",
    "signal the supervisor": "os.kill({supervisor}, 0)",
    "tgkill": "check(libc.syscall(234, os.getppid(), os.getppid(), 0))",
    "tkill": "check(libc.syscall(200, os.getppid(), 0))",
    "queue a signal": "check(libc.syscall(129, os.getppid(), 10, 0))",
    "pidfd": "os.pidfd_open(os.getppid())",
    "renice": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)",
    "renice itself": "os.nice(1)",
    "pin the parent": "os.sched_setaffinity(os.getppid(), [0])",
    "scheduler": "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))",
    "limit the parent": "check(libc.syscall(302, os.getppid(), 7, 0, 0))",
    "ptrace": "check(libc.syscall(101, 16, os.getppid(), 0, 0))",
    "be traced": "check(libc.syscall(101, 0, 0, 0, 0))",
    "read its memory": "check(libc.syscall(310, os.getppid(), 0, 0, 0, 0, 0))",
    "write its memory": "check(libc.syscall(311, os.getppid(), 0, 0, 0, 0, 0))",
    "take its descriptor": "check(libc.syscall(438, 3, 0, 0))",
    "compare": "check(libc.syscall(312, os.getppid(), os.getpid(), 0, 0, 0))",
    "death signal": "check(libc.prctl(1, 0, 0, 0, 0))",
    "be looked at": "check(libc.prctl(4, 1, 0, 0, 0))",
    "owner of a descriptor": "import fcntl\nfcntl.fcntl(3, fcntl.F_SETOWN, os.getppid())",
    "setuid": "os.setuid(0)",
    "setgroups": "os.setgroups([0])",
    "capabilities": "check(libc.syscall(126, 0, 0))",
}


def test_no_hold_on_other_processes(attempts):
    here = str(os.getpid())
    found = attempts({name: act.replace("{supervisor}", here) for name, act in OTHERS.items()})
    expected = dict.fromkeys(OTHERS, "EPERM")
    expected["owner of a descriptor"] = "EINVAL"
    assert found == expected


KERNEL = {
    "unshare": "check(libc.unshare(0x10000000))",
    "setns": "check(libc.setns(3, 0))",
    "mount": "check(libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "umount": "check(libc.umount2(b'/tmp', 2))",
    "pivot_root": "check(libc.syscall(155, b'.', b'.'))",
    "chroot": "os.chroot('.')",
    "bpf": "check(libc.syscall(321, 0, 0, 0))",
    "io_uring": "check(libc.syscall(425, 1, 0))",
    "userfaultfd": "check(libc.syscall(323, 0))",
    "keyctl": "check(libc.syscall(250, 0, -3, 0))",
    "add_key": "check(libc.syscall(248, b'user', b'a', b'b', 1, -3))",
    "perf": "check(libc.syscall(298, 0, 0, -1, -1, 0))",
    "personality": "check(libc.syscall(135, 0xffffffff))",
    "a new filter": "check(libc.syscall(317, 0, 0, 0))",
    "landlock": "check(libc.syscall(444, 0, 0, 1))",
    "memfd": "os.memfd_create('attack')",
    "mknod": "os.mknod('node', 0o600 | 0o020000, os.makedev(1, 1))",
    "fifo": "os.mkfifo('attack-fifo')",
    "hard link": "os.link('/dev/null', 'attack-link')",
    "chmod": "os.chmod('own', 0o4777)",
    "chown": "os.chown('own', 0, 0)",
    "shared memory": "check(libc.shmget(0, 4096, 0o1600))",
    "message queue": "check(libc.msgget(0, 0o1600))",
    "semaphores": "check(libc.semget(0, 1, 0o1600))",
    "posix queue": "check(libc.syscall(240, b'attack', 0o102, 0o600, 0))",
    "host name": "socket.sethostname('attack')",
    "clock": "import time\ntime.clock_settime(time.CLOCK_REALTIME, time.time())",
    "inotify": "check(libc.inotify_init())",
    "fanotify": "check(libc.syscall(300, 0, 0))",
    "reboot": "check(libc.syscall(169, 0, 0, 0, 0))",
    "modules": "check(libc.syscall(175, 0, 0, b''))",
    "kernel log": "check(libc.syscall(103, 3, 0, 0))",
    "swap": "check(libc.syscall(168, b'nowhere'))",
    "handles": "check(libc.syscall(304, 3, 0, 0))",
    "signal file": "check(libc.signalfd(-1, b'0' * 128, 0))",
    "timer file": "check(libc.timerfd_create(1, 0))",
    "a terminal's input": "import fcntl, termios\nfcntl.ioctl(3, termios.TIOCSTI, b'x')",
    "x32": "check(libc.syscall(0x40000000 | 39))",
    "x32 fork": "check(libc.syscall(0x40000000 | 57))",
    "wait for all processors": "check(libc.syscall(324, 1, 0))",
    "a number of the future": "check(libc.syscall(999))",
}
OTHERWISE = {"a terminal's input": "ENOTTY", "hard link": "EPERM", "chown": "EPERM"}


def test_no_way_into_the_kernel(attempts):
    assert attempts(KERNEL) == {name: OTHERWISE.get(name, "EPERM") for name in KERNEL}


def test_calls_of_another_architecture_end_the_process(attempt):
    """int 0x80 with number 20, getpid of 32-bit x86."""
    act = """
import mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3")
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
    if os.uname().machine != "x86_64":
        pytest.skip("code of x86-64")
    assert attempt(act) == "signalled"


SOCKETS = {
    "TCP": "socket.socket()",
    "TCP 6": "socket.socket(socket.AF_INET6)",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "packet": "socket.socket(17, socket.SOCK_RAW)",
    "unix": "socket.socket(socket.AF_UNIX)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "alg": "socket.socket(38, socket.SOCK_SEQPACKET)",
    "bluetooth": "socket.socket(31, socket.SOCK_RAW, 1)",
    "connect": "socket.create_connection(('127.0.0.1', 9), 0.1)",
    "datagram pair": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
    "packet pair": "socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)",
    "accept": "check(libc.accept(3, None, None))",
    "bind": "check(libc.bind(3, b'\\1\\0\\0a', 4))",
    "send descriptors": "check(libc.sendmsg(3, None, 0))",
}


def test_no_sockets(attempts):
    found = attempts(SOCKETS | {"a name": "socket.getaddrinfo('localhost', 80)"})
    assert found.pop("a name").startswith("gaierror")
    assert found == dict.fromkeys(SOCKETS, "EPERM")


def test_options_of_the_private_pair_are_few(attempts):
    pair = "one, other = socket.socketpair()\n"
    found = attempts({
        "filter": pair + "one.setsockopt(socket.SOL_SOCKET, 26, bytes(16))",
        "larger buffers": pair + "one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)",
        "who is there": pair + "one.getsockopt(socket.SOL_SOCKET, 17, 12)",
        "another level": pair + "one.setsockopt(6, 1, 1)",
        "what asyncio asks": pair + "one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)",
    })  # fmt: skip
    assert [*found.values()] == ["EPERM"] * 4 + ["allowed"]


def test_no_file_can_be_emptied_by_who_may_read_it(attempts):
    """Landlock up to version 2 does not ask: the filter refuses it, also where Landlock or a mount would."""
    found = attempts({
        "to read": "os.open(os.__file__, os.O_RDONLY | os.O_TRUNC)",
        "to do neither": "os.open(os.__file__, 3 | os.O_TRUNC)",
        "as one that is made": "os.open(os.__file__, os.O_CREAT | os.O_TRUNC)",
        "by number": f"check(libc.syscall({257 if os.uname().machine == 'x86_64' else 56}, -100, os.__file__.encode(), 0o1000))",
        "what is printed to nowhere": "open(os.devnull, 'w').close()",
    })  # fmt: skip
    assert [*found.values()] == ["EPERM"] * 4 + ["allowed"]


def test_asyncio_works_all_the_same(arena):
    code = "import asyncio\nasync def g(x): return x + 1\ndef f(x): return asyncio.run(g(x))"
    assert arena.outcome(code, "assert f(1) == 2") is Outcome.PASS
    test = "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 1\nassert f(asyncio.run(main())) == 2"
    assert arena.outcome(code, test) is Outcome.PASS


def _foreign_files() -> dict[str, str]:
    package = Path(codea1_env.__file__).parent
    starter = next((package / "problem_sets" / "starter").glob("*.jsonl"))
    site = Path(pytest.__file__).parent / "__init__.py"
    return {
        "passwd": "/etc/passwd",
        "shadow": "/etc/shadow",
        "host name": "/etc/hostname",
        "root's home": "/root/.bashrc",
        "our sources": str(package / "problems.py"),
        "reference solutions": str(starter),
        "these tests": __file__,
        "another package": str(site),
        "parent's memory": "/proc/{parent}/mem",
        "parent's environment": "/proc/{parent}/environ",
        "supervisor's memory": f"/proc/{os.getpid()}/mem",
        "supervisor's environment": f"/proc/{os.getpid()}/environ",
        "supervisor's descriptors": f"/proc/{os.getpid()}/fd/0",
        "own memory": "/proc/self/mem",
        "own maps": "/proc/self/maps",
        "own environment": "/proc/self/environ",
        "kernel messages": "/dev/kmsg",
        "memory": "/dev/mem",
        "a terminal": "/dev/tty",
        "system": "/sys/kernel/notes",
        "the shell": "/bin/sh",
        "up and away": "../../../../../../../../etc/passwd",
    }


def test_no_foreign_file_can_be_read(attempts):
    found = attempts(
        {
            name: f"open({path!r}.replace('{{parent}}', str(os.getppid())), 'rb').read(1)"
            for name, path in _foreign_files().items()
        }
    )
    assert {name: what for name, what in found.items() if what not in HIDDEN} == {}


def test_no_descriptor_of_a_neighbour_can_be_opened(attempt):
    """Program and test of one run have neighbouring process numbers."""
    act = """
for other in range(os.getpid() - 4, os.getpid() + 5):
    for number in range(8) if other != os.getpid() and other > 0 else ():
        try: os.open(f"/proc/{other}/fd/{number}", os.O_RDONLY | os.O_NONBLOCK)
        except OSError: pass
        else: break
    else: continue
    break
else: raise PermissionError(1, "")
"""
    assert attempt(act) == "EPERM"


def test_no_foreign_folder_can_be_listed(attempts):
    folders = "/ /root /home /proc /proc/self/fd /dev /dev/shm /sys /etc .."
    # Around a folder of the run's own there is nothing else.
    act = "if os.listdir({!r}) == ['files']: raise PermissionError(errno.EACCES, '')"
    found = attempts({folder: act.format(folder) for folder in folders.split()})
    assert {name: what for name, what in found.items() if what not in HIDDEN} == {}


PLACES = ("/tmp", "/dev/shm", "/var/tmp", "/", "/etc", "..", str(Path(__file__).parent))


def test_nothing_can_be_left_for_the_next_run(attempts):
    acts = {
        "library": "open(os.__file__, 'r+')",
        "byte code": "os.mkdir(os.path.dirname(os.__file__) + '/__attack__')",
        "remove": "os.unlink(os.__file__)",
        "rename": "os.rename(os.__file__, os.__file__ + '.attack')",
        "times": "os.utime(os.__file__)",
        "attribute": "os.setxattr('.', 'user.attack', b'1')",
    }
    for place in PLACES:
        acts[f"{place}, file"] = f"open({place!r} + '/attack-file', 'w')"
        acts[f"{place}, folder"] = f"os.mkdir({place!r} + '/attack-folder')"
        acts[f"{place}, link"] = f"os.symlink('/', {place!r} + '/attack-symlink')"
    found = attempts(acts)
    allowed = (*HIDDEN, "EROFS", "EXDEV")
    assert {name: what for name, what in found.items() if what not in allowed} == {}


def test_no_way_round_by_links_and_shared_memory(attempts):
    found = attempts(
        {
            "link": "os.symlink('/etc/passwd', 'attack-way-out')\nopen('attack-way-out').read()",
            "memory": "from multiprocessing import shared_memory as shared\n"
            "shared.SharedMemory('attack', create=True, size=10)",
        }
    )
    assert set(found.values()) <= set(HIDDEN)


def test_a_listening_neighbour_is_not_reached(arena):
    """A real socket of the machine, in all its address families."""
    with socket.socket() as server, socket.socket(socket.AF_UNIX) as local:
        server.bind(("127.0.0.1", 0))
        server.listen()
        local.bind(f"\0attack-{os.getpid()}")
        local.listen()
        code = f"""
import socket
def f():
    found = []
    for family, address in ((socket.AF_INET, {server.getsockname()!r}), (socket.AF_UNIX, {local.getsockname()!r})):
        try:
            with socket.socket(family) as client: client.connect(address)
        except OSError as error: found.append(error.errno)
    return found
"""
        (result,) = arena.sandbox.call(code, "f", [((), {})])
        assert result.value == [1, 1]
        server.settimeout(0.05)
        with pytest.raises(TimeoutError):
            server.accept()


def test_threads_are_allowed_and_end_with_the_run(arena):
    code = (
        "import threading, queue\ndef f(x):\n    q = queue.Queue()\n"
        "    threads = [threading.Thread(target=q.put, args=(1,)) for _ in range(8)]\n"
        "    for t in threads: t.start()\n    for t in threads: t.join()\n"
        "    return x + q.qsize() - 7"
    )
    assert arena.outcome(code, limits=Limits(memory=1 << 30)) is Outcome.PASS


def test_the_parent_survives_what_is_sent_to_it(arena):
    """Real signals this time, to the worker alone, which is ours."""
    code = (
        "import os, signal\ndef f(x):\n    for number in (signal.SIGSTOP, signal.SIGKILL):\n"
        "        try: os.kill(os.getppid(), number)\n        except OSError: pass\n    return x + 1"
    )
    assert arena.outcome(code) is Outcome.PASS
