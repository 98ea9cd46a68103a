"""Running maximum and sum over chunks, then x - top - log(total)."""

import torch
import triton
import triton.language as tl


@triton.jit
def _log_softmax(x_ptr, out_ptr, n_rows, n_cols, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = rows < n_rows
    top = tl.full((BLOCK_R,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_R,), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = live[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=float("-inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=1))
        shift = tl.where(new_top > float("-inf"), new_top, 0.0)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift[:, None]), axis=1)
        top = new_top
    log_total = tl.log(total)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = live[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask).to(tl.float32)
        y = x - top[:, None] - log_total[:, None]
        tl.store(out_ptr + rows[:, None] * n_cols + cols[None, :], y, mask=mask)


def log_softmax(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows = x.numel() // n_cols
    block_n = min(2048, triton.next_power_of_2(n_cols))
    _log_softmax[(triton.cdiv(n_rows, 4),)](x, out, n_rows, n_cols, BLOCK_R=4, BLOCK_N=block_n, num_warps=8)
    return out
