"""The warm parent: imports torch and Triton once, then forks one contained process per candidate.

Started by `oracle.backends` as `python -m oracle.worker.parent BACKEND FD BASE WITHOUT`, where FD is one end of a
sequenced-packet socket pair. It reads no candidate and opens no file of one; it only forks, ends what takes too
much memory, reports ends and cleans up.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from oracle.worker import isolation, seccomp, system
from oracle.worker.caches import Caches
from oracle.worker.isolation import Cell, Policy
from oracle.worker.namespaces import ProcessNamespaces, leave_network
from oracle.worker.policies import POLICIES

ORDER_BYTES = 4096
PATROL_SECONDS = 0.25  # between two looks at how much memory each process has
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass
class Child:
    pid: int
    pidfd: int
    supervisor: socket.socket  # told how the process ended; its closing by the judge ends the process
    scratch: str
    cache: str  # shared with other processes of the same candidate, or ""
    killed: bool = False
    excess: int = 0  # bytes of memory for which it was killed

    def resident(self) -> int:
        """Bytes of memory that the process has, 0 where the machine does not tell."""
        try:
            fields = Path(f"/proc/self/fdinfo/{self.pidfd}").read_text().split()
            seen = int(fields[fields.index("Pid:") + 1])  # as /proc counts, perhaps another process namespace's
            return int(Path(f"/proc/{seen}/statm").read_text().split()[1]) * _PAGE if seen > 0 else 0
        except (OSError, ValueError, IndexError):
            return 0


class Parent:
    """Serves orders until the judge is gone; then nothing that it started is left."""

    def __init__(self, backend: str, control: socket.socket, base: str, without: set[str]) -> None:
        self.control, self.base = control, base
        self.children: list[Child] = []
        self._patrolled = time.monotonic()
        off = dict.fromkeys(without, "left out on request")
        network = off.get("network_namespace") or leave_network("pid_namespace" not in without)
        system.prctl(system.PR_SET_CHILD_SUBREAPER, 1)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        self.namespaces = ProcessNamespaces("pid_namespace" not in without)
        report = {"network_namespace": network, "pid_namespace": self.namespaces.off}
        isolation.prepare(base)
        report.update(self._probe(without, POLICIES[backend]))
        self.layers = [name for name, reason in report.items() if not reason]
        policy = POLICIES[backend]
        self.caches = (
            Caches(base, policy.cache_bytes, "private_scratch" in self.layers) if policy.shared_cache else None
        )
        self._tell(report)  # the judge may refuse already; warming takes seconds
        self._tell(self._warm(backend))

    def _tell(self, message: dict[str, Any]) -> None:
        self.control.send(json.dumps(message).encode())

    def _warm(self, backend: str) -> dict[str, Any]:
        """Import torch and Triton: only now, since leaving a user namespace needs a process that has one thread."""
        from oracle.worker.child import live, watch
        from oracle.worker.device import load

        self.live, self.device = live, load(backend)
        facts = self.device.warm()
        seccomp.prepare(self.device.policy.allow)
        self.watch = watch()
        gc.collect()
        gc.freeze()  # fewer pages are copied after a fork
        return facts

    def _probe(self, without: set[str], policy: Policy) -> dict[str, str]:
        """Try every layer in a child that is thrown away."""
        scratch = os.path.join(self.base, "trial")
        os.mkdir(scratch, 0o700)
        reader, writer = os.pipe()
        pid = self.namespaces.fork()
        if pid == 0:
            os.dup2(writer, 3)
            report = isolation.probe(Cell(scratch, 0, policy), without)
            os.write(3, json.dumps(report).encode())
            os._exit(0)
        os.close(writer)
        with open(reader, "rb") as file:
            data = file.read()
        os.waitpid(pid, 0)
        isolation.remove_tree(scratch)
        if not data:
            raise RuntimeError("a process under all isolation layers ends at once on this machine")
        return json.loads(data)

    def serve(self) -> NoReturn:
        """Until the judge closes its end. Whatever goes wrong here, nothing is left behind."""
        try:
            while True:
                self._serve_once()
        finally:
            self._end()

    def _serve_once(self) -> None:
        watched: dict[int, Child | None] = {self.control.fileno(): None}
        for child in self.children:
            watched |= {child.pidfd: child} if child.killed else {child.pidfd: child, child.supervisor.fileno(): child}
        poller = select.poll()
        for fd in watched:
            poller.register(fd, select.POLLIN)
        patrols = self.device.policy.resident and self.children
        for fd, _event in poller.poll(1e3 * PATROL_SECONDS if patrols else None):
            ready = watched[fd]
            if ready is None:
                self._order()
            elif ready not in self.children:
                continue  # buried a moment ago, its id may be another's
            elif fd == ready.pidfd:
                self._bury(ready)
            else:
                self._kill(ready)
        if patrols and time.monotonic() - self._patrolled > PATROL_SECONDS:
            self._patrol(self.device.policy.resident)
            self._patrolled = time.monotonic()

    def _patrol(self, most: int) -> None:
        """End each process that has taken more memory than it may."""
        for child in self.children:
            if not child.killed and (resident := child.resident()) > most:
                child.excess = resident
                self._kill(child)

    def _kill(self, child: Child) -> None:
        """Ending takes milliseconds, in which others may be forked."""
        os.kill(child.pid, signal.SIGKILL)
        child.killed = True

    def _order(self) -> None:
        """One order: fork a process that gets the first two of three descriptors: channel, arena, supervisor."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.control, ORDER_BYTES, 3)
        except OSError:  # the judge ended with messages unread
            data, descriptors = b"", []
        if not data:
            self._end()
        order = json.loads(data)
        number, candidate = order["number"], order["candidate"]
        channel, arena, supervisor = descriptors
        scratch = os.path.join(self.base, f"session-{number}")
        reply = socket.socket(fileno=supervisor)
        try:
            os.mkdir(scratch, 0o700)
            used = {child.cache for child in self.children}
            cache = self.caches.folder(candidate, used) if self.caches else ""
            pid = self.namespaces.fork()
            if pid == 0:
                cell = Cell(scratch, candidate if cache else number, self.device.policy, cache)
                self.live(channel, arena, cell, self.layers, self.device, self.watch)
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            isolation.remove_tree(scratch)
            with suppress(OSError):
                reply.send(json.dumps({"error": str(error)}).encode())
            return
        finally:
            os.close(channel)
            os.close(arena)
        self.children.append(Child(pid, pidfd, reply, scratch, cache))
        with suppress(OSError):  # a judge that is gone shows at the next poll
            socket.send_fds(reply, [json.dumps({"pid": pid}).encode()], [pidfd])

    def _bury(self, child: Child) -> None:
        """End what is left of a process and its descendants, tell how it ended, remove its folder."""
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        with suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL)  # its id is still taken: it has not been reaped
        _, status = os.waitpid(child.pid, 0)
        self.children.remove(child)
        if self.namespaces.off:
            self._kill_strays()
        isolation.remove_tree(child.scratch)
        with suppress(OSError):
            ended = {"code": os.waitstatus_to_exitcode(status), "excess": child.excess}
            child.supervisor.send(json.dumps(ended).encode())
        child.supervisor.close()
        os.close(child.pidfd)

    def _kill_strays(self) -> None:
        """Descendants whose own parents ended were given to this process (it is a subreaper): end them."""
        known = {child.pid for child in self.children}
        for _ in range(100):
            strays = [pid for pid in _own_children() if pid not in known]
            if not strays:
                return
            for pid in strays:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def _end(self) -> NoReturn:
        for child in list(self.children):
            os.kill(child.pid, signal.SIGKILL)
            self._bury(child)
        isolation.remove_tree(self.base)
        os._exit(0)


def _own_children() -> list[int]:
    try:
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def main() -> None:
    backend, descriptor, base, without = sys.argv[1:5]
    sys.dont_write_bytecode = True
    control = socket.socket(fileno=int(descriptor))
    Parent(backend, control, base, set(without.split(",")) - {""}).serve()


if __name__ == "__main__":
    main()
