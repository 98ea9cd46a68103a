"""Every cheat has the verdict that it must have, and the world outside is as before: nothing left, nothing changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import torch

from agentloop.content import load_tasks
from oracle.backends import WorkerBackend
from oracle.judge import Judge, Limits
from oracle.verdict import FAIL, PASS, UNJUDGED
from tests.conftest import SECRET
from tests.hostile.attempts import nothing_left, warm_parent
from tests.hostile.cheats import CHEATS, Cheat, relu

tasks = cache(load_tasks)
PLACES = ("/tmp", "/dev/shm", "~", "~/.triton", torch.__path__[0], os.path.dirname(torch.__path__[0]))


@pytest.fixture(scope="module")
def judge(backend: WorkerBackend) -> Judge:
    backend.compiler()  # started when it is first asked for, and kept
    return Judge(backend, domain="core", limit=8, limits=Limits(call_seconds=1.5))


def world() -> dict[str, object]:
    """What a candidate must not change: files where it might try, this process's descriptors and its key."""
    listed = {place: sorted(_owned(os.path.expanduser(place))) for place in PLACES}
    return {**listed, "descriptors": len(os.listdir("/proc/self/fd")), "key": os.environ["OPENAI_API_KEY"]}


def _owned(place: str) -> list[str]:
    return [name for name in os.listdir(place) if "owned" in name] if os.path.isdir(place) else []


@pytest.fixture(scope="module", autouse=True)
def memory(backend: WorkerBackend) -> Iterator[None]:
    """After all of them, the warm parent is as large as before."""
    resident = Path(f"/proc/{warm_parent(backend)}/statm")
    before = int(resident.read_text().split()[1])
    yield
    assert int(resident.read_text().split()[1]) <= before * 1.02


def test_there_are_enough_of_them_and_no_two_alike():
    assert len({cheat.name for cheat in CHEATS}) == len(CHEATS) >= 50


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.name.replace(" ", "-"))
def test_a_cheat_has_its_verdict_and_leaves_nothing(judge: Judge, backend: WorkerBackend, cheat: Cheat):
    before = world()
    verdict = judge.judge(tasks()[cheat.task], cheat.source, naive=False, minimized=False)
    failure = verdict.failure
    assert (verdict.status, failure.kind if failure else "") == (FAIL if cheat.kind else PASS, cheat.kind), failure
    for engine in (backend, backend.compiler()):
        assert engine is not None
        nothing_left(engine)
    assert world() == before
    assert os.environ["OPENAI_API_KEY"] == SECRET


def test_sleeping_just_under_the_limit_in_every_case_ends_with_the_candidates_own_time(backend: WorkerBackend):
    """It is slow, not wrong: what could not be run in the time that a candidate has is unjudged, and the judge goes on."""
    judge = Judge(backend, domain="core", limits=Limits(call_seconds=0.8, total_seconds=3.0))
    slow = relu("slow", "", "time.sleep(0.5)\nreturn right(x)", "import time")
    verdict = judge.judge(tasks()[slow.task], slow.source, naive=False)
    assert (verdict.status, verdict.tiers["base"]) == (UNJUDGED, PASS)
    assert verdict.seconds < 12
    nothing_left(backend)


def test_an_answer_that_kernels_only_copy_fails_in_every_tier(judge: Judge):
    """Its right numbers say nothing then, in whichever tier it was found out."""
    cheat = next(cheat for cheat in CHEATS if cheat.name == "host code in a thread")
    verdict = judge.judge(tasks()[cheat.task], cheat.source, naive=False, minimized=False)
    assert {failure.kind for failure in verdict.failures.values()} == {"host_compute"}
    assert {verdict.tiers[tier] for tier in ("base", "shapes", "dtypes")} == {FAIL}
