"""Landlock: a file-system allow-list that a process lays upon itself and can never lift again (kernel ≥ 5.13).

Everything that the kernel's version can govern is governed; the rules then give back reading below some paths and
writing below others. From version 4 on TCP, from version 6 on abstract unix sockets and signals to processes outside are
closed as well. Not covered: chmod, chown, utime and extended attributes (seccomp refuses those), UDP, exec of
readable files.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from oracle.worker.system import syscall

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # the same numbers on every architecture
_VERSION = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
_REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FS_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # rights known to a version: the lowest n bits
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract unix sockets, signals

LIST = READ_DIR
READ = READ_FILE | READ_DIR | EXECUTE


def version() -> int:
    """The kernel's Landlock version; raises OSError where there is none."""
    return syscall("landlock", _CREATE, None, 0, _VERSION)


def restrict(rules: Iterable[tuple[str, int]], *, everything: Iterable[str] = ()) -> None:
    """Lay the rules (path, rights) upon this process; `everything` are the paths with all rights.

    A path that does not exist is left out. Needs no_new_privs. Raises OSError where the kernel has no Landlock.
    """
    found = version()
    rights = (1 << _FS_BITS[min(found, 5)]) - 1
    words = [rights] + ([_TCP] if found >= 4 else []) + ([_SCOPES] if found >= 6 else [])
    attribute = ctypes.create_string_buffer(struct.pack(f"={len(words)}Q", *words))
    ruleset = syscall("landlock_create_ruleset", _CREATE, attribute, 8 * len(words), 0)
    try:
        for path, allowed in (*rules, *((path, rights) for path in everything)):
            _allow(ruleset, path, allowed & rights)
        syscall("landlock_restrict_self", _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, allowed: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            allowed &= _FILE_RIGHTS
        rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, descriptor))
        syscall(f"landlock rule for {path}", _ADD, ruleset, 1, rule, 0)
    finally:
        os.close(descriptor)
