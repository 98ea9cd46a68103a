"""Containment of one candidate's process: an ordered list of layers, each of which can be probed and left out.

A candidate is a program written by a model; it may do anything. Against it stand, from the outside in: an environment
without keys, no descriptor but its own channel, limits, namespaces of its own, an unprivileged user, a file allow-list
(Landlock) and a system call filter (seccomp). The judge decides in another process, so that a broken layer costs safety
and never a verdict.

A machine may refuse some of them. An ordinary user cannot give each candidate a user of its own; a container often
refuses namespaces and mounts: then seccomp alone blocks the network, Landlock and seccomp other processes, and nothing
may be made in the private folder, since it lies on a disk that others use. What is on is recorded with every verdict.

Not covered: a hole in the kernel itself; reading what Python's own packages hold; time and cache side channels; a
candidate's share of processor time and memory below its limits; and a program made against this very judge, which takes
its own process over and computes right numbers there without a kernel. The judge empties kernels and compares bytes
itself, but such a program could notice that.
"""

from __future__ import annotations

import functools
import os
import resource
import shutil
import signal
import socket
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from oracle.worker import landlock, seccomp, system

GIB, MIB = 1 << 30, 1 << 20
SHARED_MEMORY = "/dev/shm"
KEPT_DESCRIPTORS = 5  # standard input, output and error (all /dev/null), channel, arena
_UID_BASE, _UIDS, _NOBODY = 0x70000000, 1 << 16, 65534
_ROOT = Path(__file__).resolve().parents[2]  # what holds the packages `oracle` and `agentloop`
_INSTALLED = ("site-packages", "dist-packages")
_OURS = ("oracle", "agentloop")


@dataclass(frozen=True)
class Policy:
    """What one backend's processes need beyond nothing: readable and writable paths, system calls by name, and how many
    bytes of address space may be mapped beyond the warm parent's (None: no limit)."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    allow: frozenset[str] = frozenset()
    memory: int | None = 2 * GIB
    resident: int = 0  # bytes of memory, at most, where the address space has no limit; 0: none
    file_bytes: int = 16 * MIB  # largest file
    scratch_bytes: int = 64 * MIB  # all files in the private folder, where it is a file system of its own
    descriptors: int = 256
    cpu_seconds: int = 3600
    shared_cache: bool = False  # compiled kernels are kept for further processes of the same candidate
    cache_bytes: int = 0  # all files of that cache, at most
    makes_files: bool = False  # even where they lie on the machine's disk, for want of a file system of their own
    listed: tuple[str, ...] = ()  # folders that may be listed, and no more
    shared_memory: bool = False  # may use /dev/shm: one of its own where that can be mounted, else none
    own_proc: bool = False  # needs to see itself in /proc under its own id (CUDA does), and to write there


@dataclass
class Cell:
    """One process about to be contained: its private folder (existing, empty), its candidate's number (its user) and its
    policy. `cache`: a folder that it shares with other processes of the same candidate, or ""."""

    scratch: str
    number: int
    policy: Policy = field(default_factory=Policy)
    cache: str = ""
    kept: int = 0  # capabilities that the layer `user` leaves
    private: bool = False  # whether the layer `private_scratch` made the folder a file system of its own

    @property
    def program(self) -> str:
        """Where the candidate's source lies; made empty before files can no longer be made."""
        return f"{self.scratch}/candidate.py"


def _environment(cell: Cell) -> None:
    """Home, temporary files and caches in the private folder. (Keys were left out before the parent started.)"""
    os.environ.update(HOME=cell.scratch, TMPDIR=cell.scratch, TRITON_CACHE_DIR=cell.cache or f"{cell.scratch}/triton")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = cell.scratch  # which torch makes when some packages are imported
    tempfile.tempdir = cell.scratch  # the warm parent may have asked, and Python remembers the answer
    os.umask(0o077)


def _descriptors(_cell: Cell) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    os.closerange(KEPT_DESCRIPTORS, 1 << 30)


def _rlimits(cell: Cell) -> None:
    policy = cell.policy
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: policy.file_bytes,
        resource.RLIMIT_NOFILE: policy.descriptors,
        resource.RLIMIT_CPU: policy.cpu_seconds,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_MEMLOCK: 0,
    }
    if policy.memory is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + policy.memory
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))


def _ipc_namespace(_cell: Cell) -> None:
    system.unshare(system.CLONE_NEWIPC)


def _private_scratch(cell: Cell) -> None:
    """The private folder becomes a small file system in memory that only this process sees and that ends with it."""
    system.unshare(system.CLONE_NEWNS)
    system.mount(None, "/", None, system.MS_REC | system.MS_PRIVATE)
    flags = system.MS_NOSUID | system.MS_NODEV
    system.mount("tmpfs", cell.scratch, "tmpfs", flags, f"size={cell.policy.scratch_bytes},nr_inodes=8192,mode=0700")
    if cell.policy.shared_memory and os.path.isdir(SHARED_MEMORY):
        system.mount("tmpfs", SHARED_MEMORY, "tmpfs", flags, f"size={cell.policy.scratch_bytes},mode=1777")
    cell.private = True
    if cell.policy.own_proc:
        system.mount("proc", "/proc", "proc", flags, "")


def _user(cell: Cell) -> None:
    """A user id of its own that owns nothing else. Only root can; Python below a private home stays readable through
    the one capability for that (Landlock still limits what is read)."""
    if os.geteuid() != 0:
        raise OSError("not root: the judge's own user is kept")
    uid = session_uid(cell.number)
    for folder in filter(None, (cell.scratch, cell.cache)):
        os.chown(folder, uid, uid)
    cell.kept = 1 << system.CAP_DAC_READ_SEARCH if _below_private_folder(os.path.dirname(cell.scratch)) else 0
    system.prctl(system.PR_SET_KEEPCAPS, 1)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    system.set_capabilities(cell.kept)
    if cell.policy.own_proc:
        system.prctl(system.PR_SET_DUMPABLE, 1)  # else /proc/self stays root's
    resource.setrlimit(resource.RLIMIT_NPROC, (128, 128))


def _capabilities(cell: Cell) -> None:
    """No capability but the one that the layer `user` may have kept."""
    system.set_capabilities(cell.kept)


def _parent_death_signal(_cell: Cell) -> None:
    system.prctl(system.PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _no_new_privs(_cell: Cell) -> None:
    system.prctl(system.PR_SET_NO_NEW_PRIVS, 1)


def _landlock(cell: Cell) -> None:
    Path(cell.program).touch()
    makes_files = cell.private or cell.policy.makes_files
    rules = [(path, landlock.LIST) for path in (*import_path(), *cell.policy.listed)]
    rules += [(path, landlock.READ) for path in (*_readable(), "/proc/self", *cell.policy.read)]
    devices = landlock.READ_FILE | landlock.WRITE_FILE | landlock.IOCTL_DEV
    rules += [(path, devices) for path in ("/dev/null", "/dev/zero", "/dev/full")]
    rules += [(path, landlock.READ_FILE) for path in ("/dev/urandom", "/dev/random")]
    if not makes_files:  # so that a disk which others use cannot be filled
        rules += [
            (cell.scratch, landlock.READ),
            (cell.program, landlock.READ | landlock.WRITE_FILE | landlock.TRUNCATE),
        ]
    own = [cell.scratch, cell.cache] if makes_files else []
    if cell.private and cell.policy.shared_memory:
        own.append(SHARED_MEMORY)
    landlock.restrict(rules, everything=(*filter(None, own), *cell.policy.write))


def _seccomp(cell: Cell) -> None:
    seccomp.install(cell.policy.allow)


# In the order in which they are laid on. The namespaces that the warm parent makes come before all of them.
LAYERS: dict[str, Callable[[Cell], None]] = {
    "environment": _environment,
    "descriptors": _descriptors,
    "rlimits": _rlimits,
    "ipc_namespace": _ipc_namespace,
    "private_scratch": _private_scratch,
    "user": _user,
    "capabilities": _capabilities,
    "parent_death_signal": _parent_death_signal,
    "no_new_privs": _no_new_privs,
    "landlock": _landlock,
    "seccomp": _seccomp,
}
# What follows where a layer is off; each of the others is needed on its own.
WITHOUT = {
    "network_namespace": "the system call filter alone blocks the network",
    "pid_namespace": "the warm parent alone ends what a candidate leaves running",
    "ipc_namespace": "the system call filter alone blocks shared memory segments",
    "private_scratch": "a candidate can make no file (where it must, as for CUDA, they lie on this machine's disk)",
    "user": "candidates run as the user who judges; Landlock and the filter alone keep them from that user's processes",
}


def contain(cell: Cell, layers: Collection[str]) -> None:
    """Lay the named layers upon this process. Raises OSError, its text beginning with the layer's name."""
    for name, lay in LAYERS.items():
        if name in layers:
            try:
                lay(cell)
            except (OSError, ValueError) as error:
                raise OSError(f"{name}: {error}") from error


def missing_protection(layers: Collection[str], policy: Policy) -> list[str]:
    """What must hold before a candidate runs unasked, and does not: blocking of files, blocking of the network. A filter
    that lets sockets be opened does not block the network."""
    missing = [] if "landlock" in layers else ["file access is not blocked (landlock)"]
    blocking = ["network_namespace"] if "socket" in policy.allow else ["seccomp", "network_namespace"]
    if not any(layer in layers for layer in blocking):
        missing.append(f"network access is not blocked ({' or '.join(blocking)})")
    return missing


def session_uid(number: int) -> int:
    """A user id for the candidate of this number; nobody's where the user namespace maps few ids."""
    for line in Path("/proc/self/uid_map").read_text().splitlines():
        inside, _, count = (int(word) for word in line.split())
        if inside <= _UID_BASE and inside + count >= _UID_BASE + _UIDS:
            return _UID_BASE + number % _UIDS
    return _NOBODY


def prepare(base: str) -> None:
    """Once in the warm parent: work out what is the same for every process whose private folder lies in `base`."""
    _readable()
    _below_private_folder(base)


@functools.cache
def _below_private_folder(base: str) -> bool:
    """Whether some folder above Python's packages or the private folders is closed to other users."""
    paths = (*import_path(), sysconfig.get_path("stdlib"), f"{base}/any")
    folders = {parent for path in paths for parent in Path(path).parents}
    return any(folder.exists() and not folder.stat().st_mode & 0o001 for folder in folders)


def import_path() -> list[str]:
    """sys.path without the project's own folder (where the packages are not installed as a wheel)."""
    return [entry for entry in sys.path if entry and (Path(entry).resolve() != _ROOT or _ROOT.name in _INSTALLED)]


@functools.cache
def _readable() -> tuple[str, ...]:
    """Python's library, installed packages other than ours, shared libraries and harmless facts of the machine."""
    folders = [*import_path(), sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")]
    folders += map(os.path.realpath, ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"))
    facts = ("/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system/cpu", "/proc/cpuinfo", "/proc/meminfo")
    return (*(path for folder in dict.fromkeys(folders) for path in _without_ours(folder)), *facts, "/proc/stat")


def _without_ours(path: str) -> Iterator[str]:
    """The path itself; where our packages lie below it, what lies beside them. They hold tasks and references."""
    if not _ROOT.is_relative_to(os.path.realpath(path)):
        yield path
    elif os.path.isdir(path):
        for name in os.listdir(path):
            if not (name in _OURS and Path(path).resolve() == _ROOT):
                yield from _without_ours(f"{path}/{name}")


def probe(cell: Cell, without: Collection[str] = ()) -> dict[str, str]:
    """Try every layer but those `without` on this process, which must be thrown away: {layer: "" or why it is off}."""
    report = dict.fromkeys(without, "left out on request")
    for name, lay in LAYERS.items():
        if name in without:
            continue
        try:
            lay(cell)
            report[name] = ""
        except (OSError, ValueError) as error:
            report[name] = str(error)
    outside = str(Path(cell.scratch).parent / "probe")
    _demand(report, "landlock", lambda: Path(outside).touch(), "a file outside could be written")
    _demand(report, "landlock", Path("/etc/passwd").read_bytes, "/etc/passwd could be read")
    if "socket" not in cell.policy.allow:
        _demand(report, "seccomp", lambda: socket.socket(socket.AF_UNIX), "a socket could be opened")
    if "clone" not in cell.policy.allow:
        _demand(report, "seccomp", _fork, "a process could be started")
    _demand(report, "seccomp", lambda: os.chown(cell.scratch, -1, -1), "an owner could be changed")
    return report


def _fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def _demand(report: dict[str, str], layer: str, attack: Callable[[], object], what: str) -> None:
    """Turn a layer off in the report where what it must stop still works."""
    if report[layer]:
        return
    try:
        attack()
    except OSError:
        return
    report[layer] = what


def remove_tree(path: str) -> None:
    """Remove what a session left on the disk, whatever the modes of its folders."""

    def unlock(_function: object, name: str, _error: object) -> None:
        os.chmod(name, 0o700)
        shutil.rmtree(name, ignore_errors=True) if os.path.isdir(name) else os.unlink(name)

    if os.path.lexists(path):
        try:
            shutil.rmtree(path, onerror=unlock)
        except OSError:
            shutil.rmtree(path, ignore_errors=True)
