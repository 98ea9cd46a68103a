"""A process that has taken more memory than it may is ended, and the others are not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from oracle.worker.parent import Child, Parent

MIB = 1 << 20
TAKES = "import sys; kept = bytearray(int(sys.argv[1])); print('taken', flush=True); sys.stdin.read()"


@contextmanager
def taking(nbytes: int) -> Iterator[tuple[Child, subprocess.Popen]]:
    command = [sys.executable, "-S", "-c", TAKES, str(nbytes)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process, socket.socket() as none:
        assert process.stdout is not None
        process.stdout.readline()
        descriptor = os.pidfd_open(process.pid)
        yield Child(process.pid, descriptor, none, "", ""), process
        os.close(descriptor)
        process.kill()


def test_who_has_taken_too_much_is_ended():
    parent = Parent.__new__(Parent)
    with ExitStack() as stack:
        (small, _), (large, ended) = (stack.enter_context(taking(nbytes)) for nbytes in (MIB, 96 * MIB))
        parent.children = [small, large]
        assert 0 < small.resident() < 48 * MIB < 96 * MIB < large.resident()
        parent._patrol(64 * MIB)
        assert (small.killed, large.killed, small.excess) == (False, True, 0)
        assert large.excess > 96 * MIB
        assert ended.wait(10) == -9
        assert large.resident() == 0
