"""A result stays what it was, whatever is called later: a caller may keep several."""

from __future__ import annotations

import pytest

from agentloop.content import load_tasks
from oracle.backends import WorkerBackend
from oracle.judge import Judge
from oracle.worker.protocol import RETURNED, Call, Outcome
from tests.hostile.attempts import INPUT, buffer, kinds, source
from tests.hostile.cheats import relu

KEPT = "kept, turn = {}, []"
FILL = "out.copy_(right(x))\nreturn out"
BY_TURNS = "kept.setdefault(len(turn) % 2, torch.empty_like(x))"
FRESH = {
    "fresh": "return right(x)",
    "in place": "x.copy_(right(x))\nreturn x",
    "a view of the input": "return x[10:50]",
    "a constant": "kept.setdefault(0, x.new_ones(3))\nright(x)\nreturn kept[0]",
    "a workspace": "out = kept.setdefault(0, torch.empty_like(x))\nout.copy_(right(x))\nreturn out.clone()",
    "the same twice": "out = right(x)\nreturn out, out",
}


def outcomes(backend: WorkerBackend, body: str, calls: int = 3) -> list[Outcome]:
    session = backend.open(source(body, KEPT), "entry")
    try:
        return [session.call(Call((buffer(INPUT + i),)), 30.0) for i in range(calls)]
    finally:
        session.close()


@pytest.mark.parametrize("body", FRESH.values(), ids=FRESH)
def test_results_of_their_own_stay(backend: WorkerBackend, body: str):
    for outcome in outcomes(backend, body):
        assert (outcome.status, kinds(outcome)) == (RETURNED, set()), outcome


def test_a_buffer_that_is_returned_again_is_told(backend: WorkerBackend):
    told = [kinds(outcome) for outcome in outcomes(backend, f"out = kept.setdefault(0, torch.empty_like(x))\n{FILL}")]
    assert told == [set(), {"aliased_output"}, {"aliased_output"}]
    told = [kinds(outcome) for outcome in outcomes(backend, f"turn.append(0)\nout = {BY_TURNS}\n{FILL}")]
    assert told == [set(), set(), {"aliased_output"}]


@pytest.mark.parametrize("key", ["0", "x.shape"], ids=["one", "one of each shape"])
def test_a_kernel_that_keeps_its_output_fails(backend: WorkerBackend, key: str):
    """One of each shape shows where a call is repeated with other contents."""
    out = f"kept.setdefault(({key}, x.dtype), torch.empty(1 << 18, dtype=x.dtype, device=x.device))"
    body = f"y = right(x)\nout = {out}[:x.numel()].view(x.shape)\nout.copy_(y)\nreturn out"
    cheat = relu("an output that is kept", "aliased_output", body, KEPT)
    verdict = Judge(backend, domain="core", limit=4).judge(
        load_tasks()[cheat.task], cheat.source, naive=False, minimized=False
    )
    assert verdict.failure is not None
    assert verdict.failure.kind in ("aliased_output", "stale_result"), verdict.failure
    assert "was overwritten" in verdict.failure.message
