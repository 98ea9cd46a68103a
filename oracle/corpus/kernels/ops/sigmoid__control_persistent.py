"""At most 8 programs walk the flat copy, with tl.sigmoid."""

import torch
import triton
import triton.language as tl


@triton.jit
def _sigmoid(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    while start < n:
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
        tl.store(out_ptr + at, tl.sigmoid(x), mask=at < n)
        start += step


def sigmoid(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n > 0:
        _sigmoid[(min(8, triton.cdiv(n, 1024)),)](x.contiguous(), out, n, BLOCK=1024)
    return out
