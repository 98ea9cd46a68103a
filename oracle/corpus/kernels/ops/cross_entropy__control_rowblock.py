"""Losses of a tile of whole rows, then one program that takes their mean over the rows that count."""

import torch
import triton
import triton.language as tl


@triton.jit
def _losses(
    x_ptr,
    target_ptr,
    loss_ptr,
    count_ptr,
    n_rows,
    n_cols,
    x_row,
    x_col,
    target_step,
    ignore,
    BLOCK_R: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    cols = tl.arange(0, BLOCK_N).to(tl.int64)
    live = rows < n_rows
    mask = live[:, None] & (cols < n_cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * x_row + cols[None, :] * x_col, mask=mask, other=float("-inf")).to(tl.float32)
    target = tl.load(target_ptr + rows * target_step, mask=live, other=ignore)
    counted = live & (target != ignore)
    top = tl.max(x, axis=1)
    log_total = tl.log(tl.sum(tl.exp(x - top[:, None]), axis=1))
    picked = tl.load(x_ptr + rows * x_row + target * x_col, mask=counted).to(tl.float32)
    loss = log_total - (picked - top)
    tl.store(loss_ptr + rows, tl.where(counted, loss, 0.0), mask=live)
    tl.store(count_ptr + rows, counted.to(tl.float32), mask=live)


@triton.jit
def _mean(loss_ptr, count_ptr, out_ptr, n_rows, BLOCK: tl.constexpr):
    losses = tl.zeros((BLOCK,), tl.float32)
    counts = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        losses += tl.load(loss_ptr + rows, mask=rows < n_rows, other=0.0)
        counts += tl.load(count_ptr + rows, mask=rows < n_rows, other=0.0)
    tl.store(out_ptr, tl.sum(losses, axis=0) / tl.sum(counts, axis=0))


def cross_entropy(logits, target, ignore_index=-100):
    n_rows, n_cols = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    losses = torch.empty((n_rows,), dtype=torch.float32, device=logits.device)
    counts = torch.empty((n_rows,), dtype=torch.float32, device=logits.device)
    block_n = triton.next_power_of_2(n_cols)
    block_r = max(1, 4096 // block_n)
    if n_rows > 0:
        _losses[(triton.cdiv(n_rows, block_r),)](
            logits,
            target,
            losses,
            counts,
            n_rows,
            n_cols,
            logits.stride(0),
            logits.stride(1),
            target.stride(0),
            ignore_index,
            BLOCK_R=block_r,
            BLOCK_N=block_n,
            num_warps=8,
        )
    _mean[(1,)](losses, counts, out, n_rows, BLOCK=1024)
    return out
