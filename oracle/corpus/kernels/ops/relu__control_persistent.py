"""At most 8 programs walk the flat copy."""

import torch
import triton
import triton.language as tl


@triton.jit
def _relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    while start < n:
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
        y = tl.where(x > 0.0, x, tl.where(x == x, 0.0, x))
        tl.store(out_ptr + at, y, mask=at < n)
        start += step


def relu(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n > 0:
        _relu[(min(8, triton.cdiv(n, 1024)),)](x.contiguous(), out, n, BLOCK=1024)
    return out
