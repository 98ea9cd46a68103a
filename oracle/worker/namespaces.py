"""Namespaces that the warm parent makes: one network namespace for all candidates, a process namespace for each."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from oracle.worker import system


def leave_network(processes: bool = True) -> str:
    """Enter a fresh network namespace, in which no interface is up; an ordinary user gets a user namespace first, and
    with `processes` what `ProcessNamespaces` needs there.

    "" if done, else why not. The caller must be single-threaded, and may be another process afterwards (see below).
    """
    try:
        system.unshare(system.CLONE_NEWNET)
        return ""
    except OSError:
        pass
    try:
        _own_user_namespace()
        system.unshare(system.CLONE_NEWNET)
    except OSError as error:
        return str(error)
    if processes:
        with suppress(OSError):
            system.unshare(system.CLONE_NEWPID)
            _continue_as_child()
    return ""


def _own_user_namespace() -> None:
    """A user namespace in which the same ids hold and this process has all capabilities."""
    uid, gid = os.geteuid(), os.getegid()
    system.unshare(system.CLONE_NEWUSER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _continue_as_child() -> None:
    """Go on in a child, which lives in a process namespace that the new user namespace owns: only then can it make more
    of them and come back. What was this process only waits for it; each ends with the other."""
    pid = os.fork()
    if pid == 0:
        system.prctl(system.PR_SET_PDEATHSIG, int(signal.SIGKILL))
        return
    os.closerange(3, 1 << 30)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _, status = os.waitpid(pid, 0)
    os._exit(min(255, abs(os.waitstatus_to_exitcode(status))))


class ProcessNamespaces:
    """Forks children that are each the first process of a namespace: the kernel ends all its processes with it."""

    def __init__(self, wanted: bool = True) -> None:
        """`off` is "" where this works and is wanted, else why not."""
        self.off = "" if wanted else "left out on request"
        try:
            self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
            system.setns(self._own, system.CLONE_NEWPID)  # the way back must be open before it is left
            system.unshare(system.CLONE_NEWPID)
            self._leave()
        except OSError as error:
            self.off = str(error)

    def fork(self) -> int:
        """As os.fork; in a fresh process namespace where those work."""
        if self.off:
            return os.fork()
        system.unshare(system.CLONE_NEWPID)
        try:
            pid = os.fork()
        except OSError:
            self._leave()
            raise
        if pid:
            self._leave()
        return pid

    def _leave(self) -> None:
        system.setns(self._own, system.CLONE_NEWPID)
