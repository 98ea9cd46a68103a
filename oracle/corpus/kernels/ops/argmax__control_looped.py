"""Chunks of a row: the best so far is replaced only by a strictly larger value or by the first NaN."""

import torch
import triton
import triton.language as tl


@triton.jit
def _argmax(x_ptr, out_ptr, n_rows, n_cols, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    best = tl.full((BLOCK_R,), float("-inf"), tl.float32)
    index = tl.full((BLOCK_R,), -1, tl.int32)
    seen_nan = tl.zeros((BLOCK_R,), tl.int32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)
        mask = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=mask, other=float("-inf")).to(tl.float32)
        nan = (x != x).to(tl.int32)
        any_nan = tl.max(nan, axis=1)
        top = tl.max(x, axis=1)
        hit = tl.where(any_nan[:, None] > 0, nan > 0, x == top[:, None])
        first = tl.min(tl.where(hit & mask, cols[None, :], n_cols), axis=1)
        better = (seen_nan == 0) & ((any_nan > 0) | (top > best) | (index < 0))
        index = tl.where(better, first, index)
        best = tl.where(better, top, best)
        seen_nan = tl.maximum(seen_nan, any_nan)
    tl.store(out_ptr + rows, index.to(tl.int64), mask=rows < n_rows)


def argmax(x):
    out = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
    n_rows = out.numel()
    if n_rows == 0:
        return out
    n_cols = x.shape[-1]
    block_n = min(2048, triton.next_power_of_2(n_cols))
    _argmax[(triton.cdiv(n_rows, 4),)](x.contiguous(), out, n_rows, n_cols, BLOCK_R=4, BLOCK_N=block_n)
    return out
