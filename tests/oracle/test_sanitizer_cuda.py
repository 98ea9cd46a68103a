"""compute-sanitizer on a GPU: it sees the read beside a tensor that no value shows, and lets right kernels be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentloop.content import load_tasks
from oracle.backends import cuda_device, open_backend
from oracle.corpus import kernels
from oracle.judge import Judge
from oracle.sanitizer import find

pytestmark = [pytest.mark.cuda, pytest.mark.timeout(300)]

RELU = """
import torch
import triton
import triton.language as tl

@triton.jit
def _relu(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i{mask})
    tl.store(o_ptr + i, tl.where(x != x, x, tl.where(x > 0, x, 0.0)), mask=i < n)

def relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if out.numel():
        _relu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    if not cuda_device():
        pytest.skip("no CUDA device answers here")
    if find() is None:
        pytest.skip("compute-sanitizer is not installed here")
    backend = open_backend("cuda")
    try:
        yield Judge(backend, sanitize=1)
    finally:
        backend.close()


def test_a_read_beside_a_tensor_is_found(judge: Judge) -> None:
    verdict = judge.judge(load_tasks()["ops/relu"], RELU.format(mask=""), naive=False)
    assert verdict.status == "pass", verdict.failure  # no value shows it
    assert verdict.sanitizer is not None
    assert "Invalid __global__ read" in verdict.sanitizer["error"], verdict.sanitizer
    assert any("compute-sanitizer: Invalid" in note for note in verdict.notes)


@pytest.mark.parametrize("task", ["ops/relu", "ops/softmax", "ops/matmul", "ops/embedding"])
def test_right_kernels_have_no_error(judge: Judge, task: str) -> None:
    suite, name = task.split("/")
    source = next(kernel.source for kernel in kernels(suite, name, "control"))
    verdict = judge.judge(load_tasks()[task], source, naive=False)
    assert verdict.status == "pass", verdict.failure
    assert verdict.sanitizer is not None
    assert (verdict.sanitizer["error"], verdict.sanitizer["why"]) == ("", ""), verdict.sanitizer
    assert verdict.sanitizer["cases"] >= 4
