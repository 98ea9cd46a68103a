"""At most 8 programs walk flat copies; exp is taken of -|a| alone."""

import torch
import triton
import triton.language as tl


@triton.jit
def _swiglu(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    while start < n:
        at = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + at, mask=at < n).to(tl.float32)
        b = tl.load(b_ptr + at, mask=at < n).to(tl.float32)
        small = tl.exp(-tl.abs(a))
        sigmoid = tl.where(a >= 0.0, 1.0, small) / (1.0 + small)
        tl.store(out_ptr + at, a * sigmoid * b, mask=at < n)
        start += step


def swiglu(a, b):
    out = torch.empty(a.shape, dtype=a.dtype, device=a.device)
    n = out.numel()
    if n > 0:
        _swiglu[(min(8, triton.cdiv(n, 1024)),)](a.contiguous(), b.contiguous(), out, n, BLOCK=1024)
    return out
