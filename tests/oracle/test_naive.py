"""The naive profiles give the verdicts that the published procedures give."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from agentloop.content import load_tasks
from oracle.backends import WorkerBackend
from oracle.naive import PROFILES, run_naive, run_profile
from oracle.naive.procedure import NaiveCall, naive_calls
from oracle.schema import Form, Task, Tensor
from oracle.verdict import FAIL, PASS

tasks = cache(load_tasks)
OPEN = Path(__file__).parents[3] / "shared" / "data" / "kernels_open"


def published_call(task: Task, naive_case: dict) -> NaiveCall | None:
    """The file's own naive case as a call of the task, or None where its signature does not fit."""
    args = naive_case["args"]
    form = next((f for f in task.forms if len([t for t in f.tensors if not t.keyword]) == len(args)), None)
    if form is None or set(naive_case["kwargs"]) - {keyword.name for keyword in task.keywords}:
        return None
    tensors = tuple(
        Tensor(
            tensor.name,
            tuple(arg["shape"]),
            dtype=None if arg["dtype"] == "float32" else arg["dtype"],
            values={"randint": "index", "mask": "mask"}.get(arg["fill"], "any"),
            high=arg.get("high"),
        )
        for tensor, arg in zip(form.tensors, args, strict=False)
    )
    keywords = {keyword.name: keyword.default for keyword in task.keywords}
    return NaiveCall(Form("published", tensors), {}, {**keywords, **naive_case["kwargs"]})


def published() -> list[dict]:
    if not OPEN.exists():
        return []
    rows = [json.loads(line) for line in (OPEN / "manifest.jsonl").read_text().splitlines()]
    return [row for row in rows if row["label"] != "cheat" and row["kernelbench_checker_f32"] is not None]


@pytest.mark.data
@pytest.mark.skipif(not OPEN.exists(), reason="../shared/data is not here")
@pytest.mark.parametrize("row", published(), ids=lambda row: row["file"])
def test_kernelbench_agrees_with_the_published_checker(backend: WorkerBackend, row: dict):
    task = tasks()[f"ops/{row['op']}"]
    call = published_call(task, row["naive_case"])
    assert call is not None, "the call signature fits every operator of the suite"
    result = run_profile(backend, task, (OPEN / row["file"]).read_text(), PROFILES["kernelbench"], [call])
    assert (result.status == PASS) is row["kernelbench_checker_f32"], result.reason


def test_a_profile_draws_and_judges_as_published(backend: WorkerBackend):
    """relu by `torch.abs` and rand inputs: never negative, so the current KernelBench accepts it; randn shows it."""
    source = """
import torch, triton
import triton.language as tl
@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.abs(tl.load(x_ptr + i, mask=i < n, other=0.0)), mask=i < n)
def relu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    copy[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
"""
    told = {name: run_profile(backend, tasks()["seed/relu"], source, PROFILES[name]).status for name in PROFILES}
    assert told["kernelbench"] == PASS
    assert told["tritonbench"] == PASS
    assert told["kernelbench_v0"] == told["gpuemu"] == told["geak"] == told["backendbench"] == FAIL


def test_nan_is_never_equal_where_the_published_rule_says_so(backend: WorkerBackend):
    source = "import torch\ndef relu(x):\n    return torch.full_like(x, float('nan'))\n"
    for name in ("kernelbench", "kernelbench_v0", "gpuemu", "geak"):
        assert run_profile(backend, tasks()["seed/relu"], source, PROFILES[name]).status == FAIL
    assert run_profile(backend, tasks()["seed/relu"], source, PROFILES["tritonbench"]).status == PASS


def test_the_shape_is_fixed_and_its_last_dim_a_power_of_two_of_at_least_256():
    for task in tasks().values():
        (call,) = naive_calls(task, PROFILES["kernelbench"])
        floats = [tensor for tensor in call.form.tensors if tensor.values in ("any", "positive") and tensor.shape]
        width = max(tensor.sizes(call.dims)[-1] for tensor in floats)
        if task.suite == "seed" and task.name not in ("matmul", "attention"):
            assert width >= 256, task.id
            assert width & (width - 1) == 0, task.id


FIRST_CALL_RAISES = """
import torch
calls = 0
def relu(x):
    global calls
    calls += 1
    if calls == 1:
        raise RuntimeError("not yet")
    return torch.relu(x)
"""


def test_what_an_earlier_profile_left_behind_changes_no_verdict(backend: WorkerBackend):
    """Each profile alone is the measure: here each one's own first call raises."""
    results = run_naive(backend, tasks()["ops/relu"], FIRST_CALL_RAISES)
    assert {name for name, result in results.items() if result.status == FAIL} == set(PROFILES), results
    results = run_naive(backend, tasks()["ops/relu"], FIRST_CALL_RAISES.replace("== 1", "> 1"))
    single = {name for name, profile in PROFILES.items() if profile.trials == 1}
    passed = {name for name, result in results.items() if result.status == PASS}
    assert {"gpuemu"} <= passed <= single, results
