"""One row per program; a row without a True entry is written as zeros by a branch of its own."""

import torch
import triton
import triton.language as tl


@triton.jit
def _masked_softmax(x_ptr, mask_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    keep = tl.load(mask_ptr + row * n_cols + cols, mask=inside, other=0).to(tl.int32)
    if tl.sum(keep, axis=0) == 0:
        tl.store(out_ptr + row * n_cols + cols, tl.zeros((BLOCK,), tl.float32), mask=inside)
    else:
        x = tl.load(x_ptr + row * n_cols + cols, mask=inside & (keep > 0), other=float("-inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=inside)


def masked_softmax(x, mask):
    n_cols = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    block = triton.next_power_of_2(n_cols)
    grid = (out.numel() // n_cols,)
    _masked_softmax[grid](x.contiguous(), mask.contiguous().view(torch.uint8), out, n_cols, BLOCK=block, num_warps=8)
    return out
