"""Flat over the result: each element finds its partner half, its angle and its sign by index arithmetic."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rope(x_ptr, cos_ptr, sin_ptr, out_ptr, n, S, H, D, half, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    d = at % D
    position = at // (D * H) % S
    first = d < half
    turned = mask & (d < 2 * half)
    angle = position * half + tl.where(first, d, d - half)
    partner = tl.where(first, at + half, at - half)
    x = tl.load(x_ptr + at, mask=mask).to(tl.float32)
    other = tl.load(x_ptr + partner, mask=turned, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + angle, mask=turned, other=1.0).to(tl.float32)
    sin = tl.load(sin_ptr + angle, mask=turned, other=0.0).to(tl.float32)
    y = tl.where(first, x * cos - other * sin, x * cos + other * sin)
    tl.store(out_ptr + at, tl.where(turned, y, x), mask=mask)


def rope(x, cos, sin):
    B, S, H, D = x.shape
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    half = cos.shape[-1]
    _rope[(triton.cdiv(n, 1024),)](
        x.contiguous(), cos.contiguous(), sin.contiguous(), out, n, S, H, D, half, BLOCK=1024
    )
    return out
