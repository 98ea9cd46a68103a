"""A seccomp filter: system calls that no kernel's host code needs are refused with EPERM.

Refused: new processes and programs, sockets of any kind, looking into or signalling other processes, namespaces and
mounts, changes of owner, mode, times and attributes, System V and POSIX message queues, keys, and the calls that only an
administrator needs. Threads are allowed (clone with CLONE_THREAD). Calls of a foreign ABI kill the process.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
from collections.abc import Collection

from oracle.worker.system import MACHINE, PR_SET_SECCOMP, prctl

# name: (x86_64, aarch64); None where the architecture does not have it
_NUMBERS: dict[str, tuple[int | None, int | None]] = {
    # processes and programs
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281),
    "setpgid": (109, 154), "setsid": (112, 157), "unshare": (272, 97), "setns": (308, 268),
    # sockets
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201),
    "accept": (43, 202), "accept4": (288, 242), "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "recvfrom": (45, 207), "recvmsg": (47, 212), "recvmmsg": (299, 243),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "setpriority": (141, 140),
    "ioprio_set": (251, 30), "sched_setattr": (314, 274), "sched_setparam": (142, 118), "perf_event_open": (298, 241),
    # files: what Landlock does not govern
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, None),
    "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54), "utime": (132, None), "utimes": (235, None),
    "futimesat": (261, None), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    # mounts
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    # what would outlive the process
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191),
    "semop": (65, 193), "semtimedop": (220, 192), "msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188),
    "msgctl": (71, 187), "mq_open": (240, 180), "mq_unlink": (241, 181), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219),
    # the administrator's
    "bpf": (321, 280), "userfaultfd": (323, 282), "fanotify_init": (300, 262), "personality": (135, 92),
    "modify_ldt": (154, None), "iopl": (172, None), "ioperm": (173, None), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "acct": (163, 89), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "vhangup": (153, 58),
}  # fmt: skip
# allowed only upon the process itself (first argument 0 or its own id)
_SELF_ONLY = {
    "kill": (62, 129), "tgkill": (234, 131), "prlimit64": (302, 261), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
}  # fmt: skip
_CLONE, _CLONE3 = (56, 220), (435, 435)
_CLONE_THREAD = 0x00010000

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARG0 = 0, 4, 16  # offsets in struct seccomp_data (little endian)
_MODE_FILTER = 2


FIRST = 1  # a process's id in a process namespace of its own


def names() -> frozenset[str]:
    """The calls that are refused unless they are allowed."""
    return frozenset((*_NUMBERS, *_SELF_ONLY, "clone"))


def prepare(allow: Collection[str] = ()) -> None:
    """Build the filter of a process that is the first of its namespace, so that its forks need not."""
    if MACHINE in _AUDIT_ARCH:
        _program(FIRST, frozenset(allow))


def install(allow: Collection[str] = ()) -> None:
    """Refuse the calls above, but for those named in `allow`, in this process and all its threads to come.

    Needs no_new_privs. Raises OSError where the kernel has no seccomp or the architecture is not known here.
    """
    if MACHINE not in _AUDIT_ARCH:
        raise OSError(errno.ENOSYS, f"no seccomp table for {MACHINE}")
    packed = _program(os.getpid(), frozenset(allow))
    buffer = ctypes.create_string_buffer(packed, len(packed))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(packed) // 8, ctypes.addressof(buffer)))
    prctl(PR_SET_SECCOMP, _MODE_FILTER, header)


@functools.cache
def _program(own_id: int, allow: frozenset[str]) -> bytes:
    """Classic BPF: instructions of (code, jump if true, jump if false, operand), 8 bytes each."""
    column = list(_AUDIT_ARCH).index(MACHINE)
    refuse = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
    program = [
        (_LOAD, 0, 0, _ARCH),
        (_JUMP_EQ, 1, 0, _AUDIT_ARCH[MACHINE]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NR),
        (_JUMP_GE, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _KILL),
    ]
    for name, numbers in _NUMBERS.items():
        number = numbers[column]
        if number is not None and name not in allow:
            program += [(_JUMP_EQ, 0, 1, number), refuse]
    if "clone" not in allow:
        # glibc falls back to clone, whose flags can be seen, where clone3 does not exist
        program += [(_JUMP_EQ, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]
        program += [(_JUMP_EQ, 0, 3, _CLONE[column]), (_LOAD, 0, 0, _ARG0), (_JUMP_SET, 1, 0, _CLONE_THREAD), refuse]
        program += [(_LOAD, 0, 0, _NR)]
    for name, numbers in _SELF_ONLY.items():
        if name not in allow:
            program += [
                (_JUMP_EQ, 0, 4, numbers[column]),
                (_LOAD, 0, 0, _ARG0),
                (_JUMP_EQ, 2, 0, own_id),
                (_JUMP_EQ, 1, 0, 0),
                refuse,
                (_LOAD, 0, 0, _NR),
            ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in (*program, (_RETURN, 0, 0, _ALLOW)))
