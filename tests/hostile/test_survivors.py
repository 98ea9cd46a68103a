"""Whatever dies, nothing lives on: descendants of a candidate, candidates of a dead warm parent, and of a dead judge."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agentloop.content import load_tasks
from oracle.backends import WorkerBackend, open_backend
from oracle.errors import InfrastructureError
from oracle.judge import Judge
from oracle.verdict import PASS, Verdict
from oracle.worker.protocol import RETURNED, Call
from tests.hostile.attempts import INPUT, attempt, buffer, kinds, source
from tests.hostile.cheats import relu

ROOT = Path(__file__).parents[2]
SURVIVOR = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True: time.sleep(1)
    os._exit(0)
os.wait()
return right(x)
"""


@pytest.fixture(
    scope="module", params=[["seccomp"], ["seccomp", "pid_namespace", "user"]], ids=["namespace", "subreaper"]
)
def unfiltered(request: pytest.FixtureRequest) -> Iterator[WorkerBackend]:
    """A backend on which candidates can fork, with process namespaces and without."""
    opened = open_backend("interpreter", without=request.param, allow_unsafe=True)  # the network may be open then
    assert isinstance(opened, WorkerBackend)
    yield opened
    opened.close()
    assert not os.path.exists(opened._parent.base)


def test_a_daemon_of_the_candidates_ends_with_it(unfiltered: WorkerBackend):
    outcome = attempt(unfiltered, source(SURVIVOR))  # asserts that no process is left
    assert outcome.status == RETURNED, outcome
    assert kinds(outcome) == {"tampering"}


@pytest.mark.parametrize("unfiltered", [["seccomp"]], indirect=True, ids=["namespace"])
def test_a_killed_warm_parent_is_our_trouble_and_is_replaced(unfiltered: WorkerBackend):
    session = unfiltered.open(source("import time\ntime.sleep(1000)"), "entry")
    first = unfiltered._parent
    threading.Timer(1.0, lambda: os.kill(first.process.pid, signal.SIGKILL)).start()
    with pytest.raises(InfrastructureError):
        session.call(Call((buffer(INPUT),)), 60.0)
    session.close()
    assert np.array_equal(attempt(unfiltered, source("return right(x)")).outputs[0].array(), INPUT * 2)
    assert not os.path.exists(first.base)


def test_a_killed_judge_leaves_nothing_behind():
    script = """
import sys, time
from oracle.backends import open_backend
from tests.hostile.attempts import *
opened = open_backend("interpreter")
session = opened.open(source("while True: pass"), "entry")
print(opened._parent.process.pid, opened._parent.base, flush=True)
session.call(Call((buffer(INPUT),)), 600.0)
"""
    judge = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert judge.stdout is not None
    parent, base = judge.stdout.readline().split()
    end = time.monotonic() + 30
    while not os.listdir(base):
        assert time.monotonic() < end
        time.sleep(0.01)
    judge.kill()
    judge.wait()
    judge.stdout.close()
    while os.path.exists(base) or os.path.exists(f"/proc/{parent}"):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_judgements_outlive_the_warm_parent(unfiltered: WorkerBackend):
    """Killed in the middle of two judgements: both go on with a new one, and their verdicts are as ever."""
    judge, task = Judge(unfiltered, domain="core", limit=8), load_tasks()["seed/relu"]
    right = relu("right", "", "time.sleep(0.05)\nreturn right(x)", "import time").source
    first = unfiltered._parent
    verdicts: list[Verdict] = []
    threads = [
        threading.Thread(target=lambda: verdicts.append(judge.judge(task, right, naive=False, minimized=False)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    end = time.monotonic() + 30
    while len(os.listdir(first.base)) < 2 and time.monotonic() < end:
        time.sleep(0.01)
    os.kill(first.process.pid, signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert [verdict.status for verdict in verdicts] == [PASS, PASS]
    assert unfiltered._parent is not first
    assert not os.path.exists(first.base)


def test_a_warm_parent_that_is_still_ending_is_replaced(unfiltered: WorkerBackend):
    """Nothing can be ordered of it any more, though its process has not ended yet."""
    first = unfiltered._parent
    first.control.shutdown(socket.SHUT_RDWR)
    session = unfiltered.open(relu("right", "", "return right(x)").source, "relu")
    try:
        assert session.call(Call((buffer(INPUT),)), timeout=10.0).status == RETURNED
    finally:
        session.close()
    assert unfiltered._parent is not first
