"""Running maximum and sum over chunks of a row, then a second pass that writes."""

import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(x_ptr, out_ptr, n_rows, n_cols, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    base = rows * n_cols
    live = rows < n_rows
    top = tl.full((BLOCK_R, 1), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_R, 1), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        x = tl.load(x_ptr + base + cols, mask=live & (cols < n_cols), other=float("-inf")).to(tl.float32)
        new_top = tl.maximum(top, tl.max(x, axis=1, keep_dims=True))
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(x - shift), axis=1, keep_dims=True)
        top = new_top
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        mask = live & (cols < n_cols)
        x = tl.load(x_ptr + base + cols, mask=mask).to(tl.float32)
        tl.store(out_ptr + base + cols, tl.exp(x - top) / total, mask=mask)


def softmax(x):
    n_cols = x.shape[-1]
    x = x.contiguous()
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows = x.numel() // n_cols
    block_n = min(2048, triton.next_power_of_2(n_cols))
    _softmax[(triton.cdiv(n_rows, 4),)](x, out, n_rows, n_cols, BLOCK_R=4, BLOCK_N=block_n, num_warps=8)
    return out
