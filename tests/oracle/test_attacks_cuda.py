"""Attacks on the judge that need a GPU, with right kernels near each of them: every one gets its verdict."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from agentloop.content import load_tasks
from oracle.backends import cuda_device, open_backend
from oracle.judge import Judge
from oracle.verdict import FAIL, PASS, Verdict
from tests.oracle import attacks
from tests.oracle.attacks.common import Attack

SIDE_BY_SIDE = 10
ATTACKS: dict[str, Attack] = {
    f"{module.name}-{name}": attack
    for module in pkgutil.iter_modules(attacks.__path__)
    for name, attack in getattr(importlib.import_module(f"{attacks.__name__}.{module.name}"), "ATTACKS", {}).items()
}

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def verdicts() -> Iterator[dict[str, Future[Verdict]]]:
    if not cuda_device():
        pytest.skip("no CUDA device answers here")
    task = load_tasks()["ops/relu"]
    gpu = open_backend("cuda")
    judge = Judge(gpu)
    pool = ThreadPoolExecutor(SIDE_BY_SIDE)
    try:
        yield {name: pool.submit(judge.judge, task, attack.source, naive=False) for name, attack in ATTACKS.items()}
    finally:
        pool.shutdown()
        gpu.close()


@pytest.mark.parametrize("name", ATTACKS)
def test_the_verdict_fits(name: str, verdicts: dict[str, Future[Verdict]]):
    verdict, kinds = verdicts[name].result(), ATTACKS[name].kinds
    found = verdict.failure.kind if verdict.failure else ""
    about = (verdict.failure, verdict.notes)
    assert verdict.status == (FAIL if kinds else PASS), about
    assert not kinds or found in kinds, about
