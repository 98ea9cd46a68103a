"""The few Linux system calls that Python does not offer, by number, through ctypes."""

from __future__ import annotations

import ctypes
import os
import platform

CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

PR_SET_DUMPABLE = 4
PR_SET_PDEATHSIG = 1
PR_SET_KEEPCAPS = 8
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
MNT_DETACH = 2

CAP_DAC_READ_SEARCH = 2

MACHINE = platform.machine()
_LIBC = ctypes.CDLL(None, use_errno=True)
_CAPABILITY_VERSION_3 = 0x20080522
_CAPSET = {"x86_64": 126, "aarch64": 91}


def check(result: int, what: str) -> int:
    """The result of a libc call; raises OSError with errno's text where it is negative."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
    return result


def syscall(what: str, number: int, *arguments: object) -> int:
    """One raw system call; integers are passed as longs, pointers as they are."""
    words = [ctypes.c_long(argument) if isinstance(argument, int) else argument for argument in arguments]
    return check(_LIBC.syscall(ctypes.c_long(number), *words), what)


def prctl(option: int, *arguments: object) -> None:
    words = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in (*arguments, 0, 0, 0, 0)[:4]]
    check(_LIBC.prctl(option, *words), f"prctl {option}")


def unshare(flags: int) -> None:
    """Leave the named namespaces (unshare(2))."""
    check(_LIBC.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    check(_LIBC.setns(descriptor, kind), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    check(_LIBC.mount(*encoded, ctypes.c_ulong(flags), os.fsencode(data)), "mount")


def unmount(target: str) -> None:
    """Take the mount away now, and free it when nobody uses it any more."""
    check(_LIBC.umount2(os.fsencode(target), MNT_DETACH), "umount")


def set_capabilities(bits: int) -> None:
    """Make the effective and permitted capabilities exactly `bits`, the inheritable ones none (capset(2))."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    data = (ctypes.c_uint32 * 6)(bits & 0xFFFFFFFF, bits & 0xFFFFFFFF, 0, bits >> 32, bits >> 32, 0)
    syscall("capset", _CAPSET[MACHINE], header, data)
