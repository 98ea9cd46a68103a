"""Kernels mean what the compiler reads in them, not what Python would make of the same words."""

import pytest
import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError
from triton.language import load as tl_load

from oracle.interpreter import Unsupported, unsupported
from tests.oracle.interpreted.block_pointers import copy_block

GLOBAL: tl.constexpr = tl.constexpr(3)


@triton.jit
def boolean_operators(out, n, m, N: tl.constexpr):
    i = tl.arange(0, N)
    j = N - 1 - i
    tl.store(out + i, (i < n and j < m).to(tl.int32))
    tl.store(out + N + i, (i < n or j < m).to(tl.int32))
    tl.store(out + 2 * N + i, (not (i < n)).to(tl.int32))
    tl.store(out + 3 * N + i, (1 <= i < n).to(tl.int32))
    if (n > 0 and m > 0) or N == 7:
        tl.store(out + 4 * N + i, i)


def test_and_or_not_and_chains_work_on_whole_blocks():
    out = torch.full((5, 8), -1, dtype=torch.int32)
    boolean_operators[(1,)](out, 6, 5, 8)
    i = torch.arange(8)
    left, right = i < 6, 7 - i < 5
    want = torch.stack([left & right, left | right, ~left, (i >= 1) & left]).int()
    assert torch.equal(out[:4], want)
    assert torch.equal(out[4], i.int())


@triton.jit
def index_as_tensor(out, n, STEP: tl.constexpr):
    for r in range(0, n, STEP):
        tl.store(out + r.to(tl.int64), r * 2)
    for s in tl.static_range(4):
        if s == 3:
            tl.store(out + s + 4, s)
    for t in tl.range(6, 8):
        tl.store(out + t, t)


def test_loop_index_can_be_used_as_a_tensor():
    out = torch.zeros(8, dtype=torch.int32)
    index_as_tensor[(1,)](out, 5, 2)
    assert out.tolist() == [0, 0, 4, 0, 8, 0, 6, 7]


@triton.jit
def block_condition(out, N: tl.constexpr):
    i = tl.arange(0, N)
    if i > 2:
        tl.store(out + i, i)


def test_a_block_is_no_condition():
    with pytest.raises(CompilationError, match=r"block of 8 values.*kernel `block_condition`, line"):
        block_condition[(1,)](torch.zeros(8), 8)


@triton.jit
def scalar_condition(x, out, scale, flag, missing):
    v = tl.load(x)
    if v > 0.5:
        tl.store(out, scale.to(tl.float64))
    else:
        tl.store(out, -scale)
    tl.store(out + 1, 1 if flag else 0)
    if missing is None:
        tl.store(out + 2, 7)


def test_scalars_are_tensors_and_floats_are_float32():
    out = torch.zeros(3, dtype=torch.float64)
    scalar_condition[(1,)](torch.ones(1), out, 0.1, True, None)
    assert out.tolist() == [torch.tensor(0.1).double().item(), 1, 7]


@triton.jit
def helper(x, factor):
    y = x * factor
    return y, y + 1


@triton.jit
def calls_helper(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b = helper(tl_load(x + i), GLOBAL)
    tl.store(out + i, a + b)


def test_device_functions_and_names_imported_from_the_language():
    x, out = torch.arange(4.0), torch.zeros(4)
    calls_helper[(1,)](x, out, 4)
    assert torch.equal(out, 6 * x + 1)


def test_a_kernel_in_a_function_sees_its_closure():
    shift: tl.constexpr = tl.constexpr(5)

    @triton.jit
    def kernel(out, n, N: tl.constexpr = 4):
        i = tl.arange(0, N)
        tl.store(out + i, i + shift, mask=i < n)

    out = torch.zeros(4)
    kernel[(1,)](out, 3)
    assert out.tolist() == [5, 6, 7, 0]


def test_the_kernels_module_gains_no_names():
    assert not {"np", "math", "interpreter_semantic", "dataclass"} & set(globals())


@triton.jit
def wrong_name(out):
    tl.store(out, tl.tanh(tl.load(out)))


@triton.jit
def twice(out):
    a = b = 1.0
    tl.store(out, a + b)


@pytest.mark.parametrize(("kernel", "told"), [(wrong_name, "has no attribute 'tanh'"), (twice, "simultaneous")])
def test_what_triton_refuses_is_a_compile_error_with_its_line(kernel, told):
    with pytest.raises(CompilationError, match=told):
        kernel[(1,)](torch.zeros(1))


@triton.jit
def assembly(out):
    x = tl.load(out)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out, y)


def test_inline_assembly_is_not_supported(call):
    with pytest.raises(Unsupported, match="inline assembly"):
        call(lambda x: assembly[(1,)](x), torch.zeros(1))
    assert "kernel `assembly`, line" in unsupported()


@triton.jit
def harmless(x):
    tl.device_print("x", tl.load(x))
    tl.device_assert(tl.load(x) == 5.0)
    tl.static_assert(True)
    tl.debug_barrier()
    tl.store(x, tl.load(x) + tl.cdiv(7, 2))


def test_prints_asserts_and_barriers_change_nothing():
    x = torch.zeros(1)
    harmless[(1,)](x)
    assert x.item() == 4


@triton.jit
def gathers(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, tl.flip(v, 0))
    tl.store(out + N + i, tl.gather(v, i ^ 1, 0))
    tl.store(out + 2 * N + i, tl.reshape(tl.trans(tl.reshape(v, (2, N // 2))), (N,)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_shape_operations(dtype):
    x, out = torch.arange(8.0).to(dtype), torch.zeros(3, 8, dtype=dtype)
    gathers[(1,)](x, out, 8)
    assert torch.equal(out[0], x.flip(0))
    assert torch.equal(out[1], x.reshape(4, 2).flip(1).flatten())
    assert torch.equal(out[2], x.reshape(2, 4).t().flatten())


def test_block_pointers_or_the_word_that_this_version_lacks_them(call):
    x, out = torch.rand(5, 6), torch.zeros(5, 6)
    copy = lambda x, out: copy_block[(1,)](x, out, 5, 6, 8, 8)  # noqa: E731
    if "removed" in tl.make_block_ptr.__doc__:
        with pytest.raises(CompilationError, match="Block pointers have been removed"):
            call(copy, x, out)
        assert (unsupported() or "").startswith("triton ")
    else:
        call(copy, x, out)
        assert torch.equal(x, out)


def test_host_calls_of_kernels_and_language_are_refused():
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        tl.cdiv(5, 2)
    with pytest.raises(ValueError, match=r"forget to add @triton.jit"):
        tl.program_id(0)


def test_a_kernel_without_a_file_is_refused_as_by_the_compiler():
    space = {"triton": triton, "tl": tl}
    with pytest.raises(ValueError, match="should be defined in a Python file"):
        exec("@triton.jit\ndef kernel(x):\n    tl.store(x, 1)\n", space)
