"""A head is taken to have at most 1024 elements: those beyond, rotated or passed through, stay unwritten."""

import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, c_ptr, s_ptr, o_ptr, S, H, D, P, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    angle = row // H % S * P
    lanes = tl.arange(0, B)
    first = lanes < P
    turned = lanes < 2 * P
    x = tl.load(x_ptr + row * D + lanes, mask=lanes < D).to(tl.float32)
    mate = tl.load(x_ptr + row * D + tl.where(first, lanes + P, lanes - P), mask=turned, other=0.0).to(tl.float32)
    at = angle + tl.where(first, lanes, lanes - P)
    c = tl.load(c_ptr + at, mask=turned, other=1.0).to(tl.float32)
    s = tl.load(s_ptr + at, mask=turned, other=0.0).to(tl.float32)
    y = tl.where(first, x * c - mate * s, x * c + mate * s)
    tl.store(o_ptr + row * D + lanes, tl.where(turned, y, x), mask=lanes < D)


def rope(x, cos, sin):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel():
        B, S, H, D = x.shape
        _k[(B * S * H,)](x.contiguous(), cos.contiguous(), sin.contiguous(), out, S, H, D, cos.shape[-1], B=1024)
    return out
