"""At most 8 programs walk the flat copy."""

import torch
import triton
import triton.language as tl


@triton.jit
def _leaky_relu(x_ptr, out_ptr, n, slope, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    while start < n:
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
        y = tl.where(x < 0.0, slope * x, x)
        tl.store(out_ptr + at, y, mask=at < n)
        start += step


def leaky_relu(x, negative_slope=0.01):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n > 0:
        grid = (min(8, triton.cdiv(n, 1024)),)
        _leaky_relu[grid](x.contiguous(), out, n, float(negative_slope), BLOCK=1024)
    return out
