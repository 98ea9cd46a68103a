"""Weights of False entries are multiplied by 0: a NaN or infinity that the mask hides stays."""

import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, m_ptr, o_ptr, n, B: tl.constexpr):
    lanes = tl.arange(0, B)
    row = tl.program_id(0).to(tl.int64) * n
    keep = tl.load(m_ptr + row + lanes, mask=lanes < n, other=0) != 0
    x = tl.load(x_ptr + row + lanes, mask=lanes < n, other=0.0).to(tl.float32)
    top = tl.max(tl.where(keep, x, -float("inf")), 0)
    some = tl.max(keep.to(tl.int32), 0) > 0
    shifted = tl.where(keep, x - tl.where(some, top, 0.0), tl.minimum(x, 0.0))
    weight = tl.exp(shifted) * keep.to(tl.float32) + 0.0 * tl.where(keep, 0.0, x)
    total = tl.sum(weight, 0)
    tl.store(o_ptr + row + lanes, weight / tl.where(some, total, 1.0), mask=lanes < n)


def masked_softmax(x, mask):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    n = x.shape[-1]
    _k[(x.numel() // n,)](x.contiguous(), mask.contiguous(), out, n, B=triton.next_power_of_2(n))
    return out
