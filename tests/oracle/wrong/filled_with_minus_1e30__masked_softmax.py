"""False entries take part as -1e30 and not as -inf: they win the maximum of a row that lies below that."""

import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, m_ptr, o_ptr, n, B: tl.constexpr):
    lanes = tl.arange(0, B)
    row = tl.program_id(0).to(tl.int64) * n
    keep = tl.load(m_ptr + row + lanes, mask=lanes < n, other=0) != 0
    x = tl.load(x_ptr + row + lanes, mask=keep, other=0.0).to(tl.float32)
    nan = tl.max((x != x).to(tl.int32), 0)
    top = tl.max(tl.where(keep, x, -1e30), 0)
    top = tl.where(nan > 0, float("nan"), top)
    weight = tl.where(keep, tl.exp(x - top), 0.0)
    some = tl.max(keep.to(tl.int32), 0) > 0
    tl.store(o_ptr + row + lanes, weight / tl.where(some, tl.sum(weight, 0), 1.0), mask=lanes < n)


def masked_softmax(x, mask):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return out
    n = x.shape[-1]
    _k[(x.numel() // n,)](x.contiguous(), mask.contiguous(), out, n, B=triton.next_power_of_2(n))
    return out
