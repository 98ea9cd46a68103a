"""The cuda backend, where there is a GPU: each fault costs its own candidate only, known kernels get their verdict."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agentloop.content import load_tasks
from oracle.backends import cuda_device, open_backend
from oracle.corpus import kernels
from oracle.judge import Judge, Limits
from oracle.schema import Task
from oracle.verdict import Verdict
from oracle.worker.protocol import RETURNED, Backend, Call, TensorBuffer
from tests.oracle.attacks import common as attacks

DATA = Path(__file__).parents[3] / "shared" / "data" / "kernels_open"
SIDE_BY_SIDE = 12

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(900)]

PRELUDE = f"""{attacks.PRELUDE}
@triton.jit
def _far(o_ptr, far):
    tl.store(o_ptr + far, 1.0)

@triton.jit
def _spin(o_ptr):
    while tl.load(o_ptr, volatile=True) == tl.load(o_ptr, volatile=True):
        tl.store(o_ptr, 0.0)

@triton.jit
def _deep(a_ptr, o_ptr, K):
    i = tl.arange(0, 128)
    k = tl.arange(0, 64)
    acc = tl.zeros((128, 128), tl.float32)
    for start in range(0, K, 64):
        a = tl.load(a_ptr + i[:, None] * K + start + k[None, :])
        b = tl.load(a_ptr + (start + k[:, None]) * 128 + i[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(o_ptr + i[:, None] * 128 + i[None, :], acc)

def deep(x, **options):
    a = torch.zeros(128 * 128, dtype=torch.float16, device=x.device)
    _deep[(1,)](a, torch.empty(128 * 128, device=x.device), 128, **options)
"""

FAULTS = {
    "illegal_address": ("_far[(1,)](x, 1 << 45)\nreturn right(x)", {"crashed"}),
    "endless_kernel": ("_spin[(1,)](torch.zeros(1, device=x.device))\nreturn right(x)", {"timeout"}),
    "shared_memory": ("deep(x, num_stages=12)\nreturn right(x)", {"compile_error"}),
    "sticky_error": (
        """
out = right(x)
try:
    _far[(1,)](x, 1 << 45)
    torch.cuda.synchronize()
except RuntimeError:
    pass
return out
""",
        {"crashed"},
    ),
}


def source(body: str) -> str:
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return f"{PRELUDE}\ndef relu(x):\n{lines}\n"


@pytest.fixture(scope="module")
def gpu() -> Iterator[Backend]:
    if not cuda_device():
        pytest.skip("no CUDA device answers here")
    opened = open_backend("cuda")
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def tasks() -> dict[str, Task]:
    return load_tasks()


def floats(count: int = 64) -> TensorBuffer:
    values = np.arange(count, dtype=np.float32) - count / 2
    return TensorBuffer("x", "float32", (count,), (1,), 0, values.view(np.uint8))


def one(gpu: Backend, body: str, calls: int = 1) -> list:
    session = gpu.open(source(body), "relu")
    try:
        return [session.call(Call((floats(),)), 30.0) for _ in range(calls)]
    finally:
        session.close()


def test_a_right_kernel_returns_the_right_bytes(gpu: Backend):
    (outcome,) = one(gpu, "return right(x)")
    assert outcome.status == RETURNED, outcome
    assert np.array_equal(outcome.outputs[0].array(), np.maximum(floats().values(), 0))
    assert (outcome.outputs[0].device, outcome.launches, outcome.findings, outcome.late) == ("cuda", 1, (), False)


def test_each_fault_costs_its_own_candidate_only(gpu: Backend, tasks: dict[str, Task]):
    judge = Judge(gpu, domain="core", limit=8, limits=Limits(call_seconds=4.0))
    task = tasks["ops/relu"]
    right = [kernel.source for kernel in kernels("ops", "relu", "control")] + [source("return right(x)")]
    sources = {f"right {i}": text for i, text in enumerate(right * 3)}
    mixed = [item for pair in zip(sources.items(), FAULTS.items(), strict=False) for item in pair]
    mixed += list(sources.items())[len(FAULTS) :]

    def judged(item: tuple) -> tuple[str, Verdict]:
        name, what = item
        text = what if isinstance(what, str) else source(what[0])
        return name, judge.judge(task, text, naive=False, minimized=False)

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        verdicts = dict(pool.map(judged, mixed))
    for name, verdict in verdicts.items():
        if name in FAULTS:
            assert verdict.failure is not None, name
            assert verdict.failure.kind in FAULTS[name][1], (name, verdict.failure)
        else:
            assert verdict.status == "pass", (name, verdict.failure, verdict.notes)


def test_work_on_a_stream_that_nobody_waits_for(gpu: Backend):
    side = "s = torch.cuda.Stream()\nwith torch.cuda.stream(s):\n    out = right(x)\n"
    (outcome,) = one(gpu, side + "return out")
    assert "late_write" in {finding.kind for finding in outcome.findings}, outcome
    for waiting in (
        "torch.cuda.current_stream().wait_stream(s)",
        "torch.cuda.current_stream().wait_stream(stream=s)",
        "torch.cuda.current_stream().wait_event(event=s.record_event())",
        "e = torch.cuda.Event()\ne.record(s)\ne.wait()",
        "s.synchronize()",
        "torch.cuda.synchronize()",
    ):
        (outcome,) = one(gpu, side + waiting + "\nreturn out")
        assert (outcome.status, outcome.findings) == (RETURNED, ()), (waiting, outcome)


def test_waiting_for_another_stream_does_not_count(gpu: Backend):
    body = """
s, t = torch.cuda.Stream(), torch.cuda.Stream()
with torch.cuda.stream(s):
    out = right(x)
torch.cuda.current_stream().wait_stream(t)
return out
"""
    (outcome,) = one(gpu, body)
    assert "late_write" in {finding.kind for finding in outcome.findings}, outcome


def test_writes_beside_what_was_allocated(gpu: Backend):
    for factory in ("torch.empty_like(x)", "torch.zeros(64, device=x.device)", "x.new_ones(64)"):
        for index in ("64", "-1"):
            (outcome,) = one(gpu, f"out = {factory}\n_far[(1,)](out, {index})\nreturn right(x)")
            assert {finding.kind for finding in outcome.findings} == {"out_of_bounds"}, (factory, index, outcome)


def test_memory_is_limited(gpu: Backend):
    (outcome,) = one(gpu, "y = torch.ones(1 << 33, device=x.device)\nreturn right(x)")
    assert outcome.status == "memory_limit", outcome


def test_kernels_are_compiled_once_per_candidate_and_shared_with_nobody(gpu: Backend):
    body = (
        "n = len(os.listdir(os.environ['TRITON_CACHE_DIR']))\n{}right(x)\nreturn torch.full((1,), n, device=x.device)"
    )
    counts = {
        name: [one(gpu, body.format(comment))[0].outputs[0].array().item() for _ in range(2)]
        for name, comment in (("mine", ""), ("other's", "# another source\n"))
    }
    assert all(first == 0 and second > 0 for first, second in counts.values()), counts


def test_a_configuration_that_does_not_fit_is_passed_over(gpu: Backend):
    tuned = PRELUDE + (
        "_deep = triton.autotune([triton.Config({}, num_stages=12), triton.Config({}, num_stages=1)], key=[])(_deep)\n"
        "def relu(x):\n    deep(x)\n    return right(x)\n"
    )
    session = gpu.open(tuned, "relu")
    outcomes = [session.call(Call((floats(),), config=config), 30.0) for config in (0, 1)]
    session.close()
    assert [outcome.status for outcome in outcomes] == [RETURNED] * 2, outcomes
    assert outcomes[0].configs == 2


def test_every_configuration_of_an_autotuned_kernel_is_judged(gpu: Backend, tasks: dict[str, Task]):
    """The last of four fits no grid that the host makes: whichever the tuner would choose here, it may be chosen there."""

    def tuned(last: int) -> Verdict:
        sizes = ", ".join(f"triton.Config({{'BLOCK': {size}}})" for size in (256, 512, 1024, last))
        text = PRELUDE + (
            f"_tuned = triton.autotune([{sizes}], key=[])(_relu)\n"
            "def relu(x):\n    x = x.contiguous()\n    out = torch.empty_like(x)\n    if out.numel():\n"
            "        _tuned[(triton.cdiv(x.numel(), 256),)](x, out, x.numel())\n    return out\n"
        )
        return Judge(gpu, domain="core", limit=8).judge(tasks["ops/relu"], text, naive=False)

    assert tuned(2048).status == "pass"
    wrong = tuned(64)
    assert wrong.status == "fail", wrong.notes
    assert wrong.counterexample is not None


def test_a_result_that_time_decides_fails(gpu: Backend, tasks: dict[str, Task]):
    """As a race does: one call in eight is wrong in one element."""
    text = source("return late(x)").replace(
        "def right(x)",
        """
@triton.jit
def _late(x_ptr, o_ptr):
    when = tl.inline_asm_elementwise("mov.u32 $0, %globaltimer_lo;", "=r,r", [tl.program_id(0)], tl.int32, False, 1)
    x = tl.load(x_ptr)
    tl.store(o_ptr, tl.where((when >> 10) % 8 == 0, x + 1, tl.where(x != x, x, tl.where(x > 0, x, 0.0))))

def late(x):
    out = right(x)
    if out.numel():
        _late[(1,)](x.contiguous(), out)
    return out

def right(x)""",
    )
    verdict = Judge(gpu).judge(tasks["ops/relu"], text, naive=False)
    assert verdict.status == "fail", verdict.notes


def test_tf32_products_pass_where_the_task_allows_them_and_nowhere_else(gpu: Backend, tasks: dict[str, Task]):
    right = next(k.source for k in kernels("ops", "matmul", "control") if k.name == "matmul__control_tiles")
    text = right.replace('input_precision="ieee"', 'input_precision="tf32"')
    assert text != right
    judge = Judge(gpu, domain="core", limit=12)
    assert tasks["ops/matmul"].tf32
    allowed = judge.judge(tasks["ops/matmul"], text, naive=False)
    assert allowed.status == "pass", allowed.failure
    strict = judge.judge(replace(tasks["ops/matmul"], tf32=False), text, naive=False)
    assert strict.status == "fail"
    assert strict.failure is not None
    assert strict.failure.kind == "numerical_mismatch"


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="the kernels are not on this machine")
def test_known_kernels_get_the_verdict_their_label_asks_for(gpu: Backend, tasks: dict[str, Task]):
    entries = [json.loads(line) for line in (DATA / "manifest.jsonl").read_text().splitlines()]
    judge, lock, verdicts = Judge(gpu), threading.Lock(), {}

    def judged(entry: dict) -> None:
        verdict = judge.judge(tasks[f"ops/{entry['op']}"], (DATA / entry["file"]).read_text(), naive=False)
        with lock:
            verdicts[entry["file"]] = verdict

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        list(pool.map(judged, entries))
    wanted = {entry["file"]: "pass" if entry["label"] == "correct" else "fail" for entry in entries}
    wrong = {name: (v.status, v.failure, v.notes) for name, v in verdicts.items() if v.status != wanted[name]}
    assert not wrong, wrong
    assert verdicts["add__cheat_side_stream.py"].failure.kind == "late_write"
    assert verdicts["mul__cheat_huge_alloc.py"].failure.kind == "memory_limit"
