"""A number beside a half tensor, and a destination with strides of its own: right kernels pass, usual slips do not."""

from __future__ import annotations

import pytest

from agentloop.content import load_tasks
from oracle.backends import WorkerBackend
from oracle.judge import Judge
from oracle.portfolio import portfolio
from oracle.schema import FLOAT_DTYPES, Task
from oracle.verdict import FAIL, PASS

TASKS = {name: task for name, task in load_tasks().items() if name.startswith("tritonbench_t/")}
WITH_OUT = [task for task in TASKS.values() if any(t.values == "out" for form in task.forms for t in form.tensors)]
NUMBER = ("add", "add_gelu", "div", "mul", "mul_relu", "softmax_mul", "sub")  # other may be one
SEEDS = range(4)

MUL = """
import torch
import triton
import triton.language as tl


@triton.jit
def mul_kernel(input_ptr, other_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    product = tl.load(input_ptr + offsets, mask=mask) * tl.load(other_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, product, mask=mask)


def mul(input, other, *, out=None):
    DTYPE
    input, other = torch.broadcast_tensors(input, torch.as_tensor(other, device=input.device))
    input, other = input.to(dtype).contiguous(), other.to(dtype).contiguous()
    result = RESULT
    mul_kernel[(triton.cdiv(result.numel(), 1024),)](input, other, result, result.numel(), BLOCK=1024)
    return END
"""
RIGHT = {
    "DTYPE": "dtype = torch.result_type(input, other)",
    "RESULT": "torch.empty_like(input)",
    "END": "result if out is None else out.copy_(result)",
}


def kernel(**slips: str) -> str:
    source = MUL
    for place, line in (RIGHT | slips).items():
        source = source.replace(place, line)
    return source


@pytest.fixture(scope="module")
def judge(backend: WorkerBackend) -> Judge:
    return Judge(backend)


def test_the_right_kernel_passes(judge: Judge) -> None:
    verdict = judge.judge(TASKS["tritonbench_t/mul"], kernel(), naive=False)
    assert (verdict.status, verdict.failure) == (PASS, None)


def test_a_number_that_widens_a_half_tensor_is_seen(judge: Judge) -> None:
    """In float32 alone no number tells: there its tensor has the right dtype by chance."""
    widened = kernel(DTYPE="dtype = torch.promote_types(input.dtype, torch.as_tensor(other).dtype)")
    verdict = judge.judge(TASKS["tritonbench_t/mul"], widened, naive=False)
    assert verdict.failure is not None
    assert (verdict.failure.kind, verdict.failure.tier, verdict.failure.loud) == ("wrong_dtype", "keywords", False)
    assert {tier for tier, status in verdict.tiers.items() if status == FAIL} == {"keywords"}


def test_a_destination_that_is_copied_and_not_written_is_seen(judge: Judge) -> None:
    copied = kernel(RESULT="torch.empty_like(input) if out is None else out.contiguous()", END="result")
    verdict = judge.judge(TASKS["tritonbench_t/mul"], copied, naive=False)
    assert verdict.failure is not None
    assert (verdict.failure.kind, verdict.failure.tier, verdict.failure.loud) == ("unwritten_output", "layouts", False)
    assert {tier for tier, status in verdict.tiers.items() if status == FAIL} == {"layouts"}


@pytest.mark.parametrize("seed", SEEDS)
def test_numbers_beside_half_tensors_are_drawn_at_every_seed(seed: int) -> None:
    for task in (TASKS[f"tritonbench_t/{name}"] for name in NUMBER):
        drawn = {(case.form, case.dtype) for case in portfolio(task, seed=seed) if case.layout == "contiguous"}
        assert {("number", dtype) for dtype in FLOAT_DTYPES} <= drawn, task.name


@pytest.mark.parametrize("seed", SEEDS)
def test_destinations_with_strides_of_their_own_are_drawn_at_every_seed(seed: int) -> None:
    for task in WITH_OUT:
        assert len({case.layout for case in portfolio(task, seed=seed) if destination_apart(task, case.layout)}) > 1


def destination_apart(task: Task, layout: str) -> bool:
    """`layout` names a destination of the task, so no other tensor is laid out so."""
    outs = {tensor.name for form in task.forms for tensor in form.tensors if tensor.values == "out"}
    return layout.partition(":")[2] in outs
