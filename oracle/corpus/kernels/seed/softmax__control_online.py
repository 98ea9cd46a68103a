"""Softmax over the last dim in chunks: the running maximum and sum in one pass, the result in a second."""

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(x_ptr, out_ptr, n_rows, n_cols, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    live = (rows < n_rows)[:, None]
    start_ptr = x_ptr + rows[:, None] * n_cols
    top = tl.full((BLOCK_R,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_R,), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        x = tl.load(start_ptr + cols, mask=live & (cols < n_cols), other=float("-inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=1))
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift[:, None]), axis=1)
        top = new_top
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        mask = live & (cols < n_cols)
        x = tl.load(start_ptr + cols, mask=mask).to(tl.float32)
        y = tl.exp(x - top[:, None]) / total[:, None]
        tl.store(out_ptr + rows[:, None] * n_cols + cols, y, mask=mask)


def softmax(x):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows = x.numel() // n_cols
    block_n = min(1024, triton.next_power_of_2(n_cols))
    _softmax[(triton.cdiv(n_rows, 8),)](x, out, n_rows, n_cols, BLOCK_R=8, BLOCK_N=block_n)
    return out
