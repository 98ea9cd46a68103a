"""A tile of whole rows per program; entries that are not True weigh 0, a row without any is zeros."""

import torch
import triton
import triton.language as tl


@triton.jit
def _masked_softmax(
    x_ptr,
    mask_ptr,
    out_ptr,
    n_rows,
    n_cols,
    x_row,
    x_col,
    mask_row,
    mask_col,
    BLOCK_R: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    live = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
    keep = tl.load(mask_ptr + rows[:, None] * mask_row + cols[None, :] * mask_col, mask=live, other=0) != 0
    x = tl.load(x_ptr + rows[:, None] * x_row + cols[None, :] * x_col, mask=live).to(tl.float32)
    x = tl.where(keep, x, float("-inf"))
    some = tl.max(keep.to(tl.int32), axis=1) > 0
    top = tl.where(some, tl.max(x, axis=1), 0.0)
    weight = tl.exp(x - top[:, None])
    total = tl.where(some, tl.sum(weight, axis=1), 1.0)
    tl.store(out_ptr + rows[:, None] * n_cols + cols[None, :], weight / total[:, None], mask=live)


def masked_softmax(x, mask):
    n_cols = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    x = x.reshape(-1, n_cols)
    mask = mask.reshape(-1, n_cols)
    n_rows = x.shape[0]
    block_n = triton.next_power_of_2(n_cols)
    block_r = min(triton.next_power_of_2(n_rows), max(1, 4096 // block_n))
    _masked_softmax[(triton.cdiv(n_rows, block_r),)](
        x,
        mask,
        out,
        n_rows,
        n_cols,
        x.stride(0),
        x.stride(1),
        mask.stride(0),
        mask.stride(1),
        BLOCK_R=block_r,
        BLOCK_N=block_n,
        num_warps=8,
    )
    return out
