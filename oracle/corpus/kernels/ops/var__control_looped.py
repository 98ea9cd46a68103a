"""Chunks of a row in two passes: mean, then squared deviations."""

import torch
import triton
import triton.language as tl


@triton.jit
def _var(x_ptr, out_ptr, n_rows, n_cols, correction, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = (rows < n_rows)[:, None]
    sums = tl.zeros((BLOCK_R, BLOCK_N), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        sums += tl.load(x_ptr + rows[:, None] * n_cols + cols, mask=live & (cols < n_cols), other=0.0).to(tl.float32)
    mean = tl.sum(sums, axis=1)[:, None] / n_cols
    squares = tl.zeros((BLOCK_R, BLOCK_N), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        mask = live & (cols < n_cols)
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols, mask=mask).to(tl.float32)
        squares += tl.where(mask, (x - mean) * (x - mean), 0.0)
    freedom = tl.maximum(n_cols - correction, 0)
    variance = tl.sum(squares, axis=1) / freedom
    tl.store(out_ptr + rows, variance, mask=rows < n_rows)


def var(x, correction=1):
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    n_rows = out.numel()
    if n_rows == 0:
        return out
    n_cols = x.shape[-1]
    block_n = min(2048, triton.next_power_of_2(n_cols))
    _var[(triton.cdiv(n_rows, 4),)](x.contiguous(), out, n_rows, n_cols, correction, BLOCK_R=4, BLOCK_N=block_n)
    return out
