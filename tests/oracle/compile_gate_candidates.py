"""Kernels for the compile gate, each entry with what the compiler makes of it."""

from contextlib import suppress

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

FACTOR = 3


@triton.jit
def right_kernel(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, libdevice.tanh(tl.load(x + i, mask=i < n, other=0.0)), mask=i < n)


def right(x):
    assert x.is_cuda
    out = torch.empty(x.shape, device="cuda", dtype=x.dtype)
    right_kernel[(triton.cdiv(x.numel(), 32),)](x, out, x.numel(), B=32)
    torch.cuda.synchronize()
    return out


@triton.autotune(configs=[triton.Config({"B": b}, num_warps=w) for b, w in ((32, 1), (64, 2))], key=["n"])
@triton.jit
def tuned_kernel(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if B == 64:
        tl.static_assert(n is None, "only the second configuration is wrong")
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def tuned(x):
    out = torch.empty_like(x)
    tuned_kernel[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x, out, x.numel())
    return out


@triton.jit
def break_kernel(x, n):
    for i in range(n):
        if i == 3:
            break
        tl.store(x + i, 1.0)


def breaks(x):
    break_kernel[(1,)](x, x.numel())


@triton.jit
def global_kernel(x):
    tl.store(x, FACTOR)


def plain_global(x):
    global_kernel[(1,)](x)


@triton.jit
def retyped_kernel(x, n):
    total = 0
    for i in range(n):
        total = total + tl.load(x + i)
    tl.store(x, total)


def retyped(x):
    retyped_kernel[(1,)](x, x.numel())


@triton.jit
def block_if_kernel(x, B: tl.constexpr):
    i = tl.arange(0, B)
    if i > 2:
        tl.store(x + i, 1.0)


def block_if(x):
    block_if_kernel[(1,)](x, B=8)


@triton.jit
def block_pointer_kernel(x, B: tl.constexpr):
    p = tl.make_block_ptr(x, (B,), (1,), (0,), (B,), (0,))
    tl.store(p, tl.load(p))


def block_pointer(x):
    block_pointer_kernel[(1,)](x, B=8)


@triton.jit
def large_kernel(a, out, M: tl.constexpr, K: tl.constexpr):
    i, k = tl.arange(0, M), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(a + k[:, None] + i[None, :] * K)
    tl.store(out + i[:, None] * M + i[None, :], tl.dot(x, y))


def too_large(x):
    large_kernel[(1,)](x.new_empty(64 * 1024), x.new_empty(64 * 64), M=64, K=1024)


@triton.jit
def scalar_kernel(x, n):
    tl.store(x, n.to(tl.float32))


def size_one(x):
    """The compiler makes a constant of an argument that is 1, and a constant has no `to`."""
    scalar_kernel[(1,)](x, x.shape[0])


@triton.jit
def transposed_kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tile = tl.load(x + i[:, None] * N + i[None, :])
    tl.store(out + i[:, None] * N + i[None, :], tl.trans(tile))


def fits(x):
    transposed_kernel[(1,)](x.new_empty(64 * 64), x.new_empty(64 * 64), N=64)


def wide_row(x):
    """A row of 65536 elements: large, and no shared memory."""
    out = torch.empty_like(x)
    right_kernel[(1,)](x, out, x.numel(), B=65536)


def reads_result(x):
    """What kernels computed decides on the next launch: it is unknown here, and nothing may be said of it."""
    out = torch.empty_like(x)
    right_kernel[(1,)](x, out, x.numel(), B=32)
    if not out.sum().item() > 0:
        block_if_kernel[(1,)](out, B=8)


def reads_input(x):
    if x.sum().item() > -1e30:
        block_if_kernel[(1,)](x, B=8)


def slow(x):
    import time

    time.sleep(30)


def many_warps(x):
    right_kernel[(1,)](x, torch.empty_like(x), x.numel(), B=32, num_warps=3)


def raises(x):
    right(x)
    raise ValueError("host code's own")


def goes_on_without(x):
    with suppress(Exception):
        breaks(x)
    return right(x)


def gives_up(x):
    out = right(x)
    try:
        return breaks(x)
    except Exception:
        return out
