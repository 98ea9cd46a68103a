"""One program walks all rows in tiles and keeps the sum and the count in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def _cross_entropy(
    x_ptr,
    target_ptr,
    out_ptr,
    n_rows,
    n_cols,
    x_row,
    x_col,
    target_step,
    ignore,
    BLOCK_R: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    lanes = tl.arange(0, BLOCK_R).to(tl.int64)
    losses = tl.zeros((BLOCK_R,), tl.float32)
    counts = tl.zeros((BLOCK_R,), tl.float32)
    for first in range(0, n_rows, BLOCK_R):
        rows = first + lanes
        live = rows < n_rows
        target = tl.load(target_ptr + rows * target_step, mask=live, other=ignore)
        counted = target != ignore
        top = tl.full((BLOCK_R,), float("-inf"), tl.float32)
        for start in range(0, n_cols, BLOCK_N):
            cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
            mask = live[:, None] & (cols < n_cols)[None, :]
            at = x_ptr + rows[:, None] * x_row + cols[None, :] * x_col
            x = tl.load(at, mask=mask, other=float("-inf")).to(tl.float32)
            top = tl.maximum(top, tl.max(x, axis=1))
        total = tl.zeros((BLOCK_R,), tl.float32)
        picked = tl.zeros((BLOCK_R,), tl.float32)
        for start in range(0, n_cols, BLOCK_N):
            cols = start + tl.arange(0, BLOCK_N).to(tl.int64)
            mask = live[:, None] & (cols < n_cols)[None, :]
            at = x_ptr + rows[:, None] * x_row + cols[None, :] * x_col
            x = tl.load(at, mask=mask, other=float("-inf")).to(tl.float32)
            total += tl.sum(tl.exp(x - top[:, None]), axis=1)
            picked += tl.sum(tl.where(cols[None, :] == target[:, None], x - top[:, None], 0.0), axis=1)
        losses += tl.where(counted & live, tl.log(total) - picked, 0.0)
        counts += tl.where(counted & live, 1.0, 0.0)
    tl.store(out_ptr, tl.sum(losses, axis=0) / tl.sum(counts, axis=0))


def cross_entropy(logits, target, ignore_index=-100):
    n_rows, n_cols = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    block_n = min(2048, triton.next_power_of_2(n_cols))
    _cross_entropy[(1,)](
        logits,
        target,
        out,
        n_rows,
        n_cols,
        logits.stride(0),
        logits.stride(1),
        target.stride(0),
        ignore_index,
        BLOCK_R=4,
        BLOCK_N=block_n,
    )
    return out
