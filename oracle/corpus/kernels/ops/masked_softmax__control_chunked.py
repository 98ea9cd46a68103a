"""Chunks of a row: the maximum of the True entries, their sum, then the result."""

import torch
import triton
import triton.language as tl


@triton.jit
def _masked_softmax(x_ptr, mask_ptr, out_ptr, n_rows, n_cols, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    base = rows * n_cols
    top = tl.full((BLOCK_R,), float("-inf"), tl.float32)
    count = tl.zeros((BLOCK_R,), tl.int32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        live = (rows < n_rows) & (cols < n_cols)
        keep = tl.load(mask_ptr + base + cols, mask=live, other=0) != 0
        x = tl.load(x_ptr + base + cols, mask=keep, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, tl.max(x, axis=1))
        count += tl.sum(keep.to(tl.int32), axis=1)
    top = tl.where(count > 0, top, 0.0)
    total = tl.zeros((BLOCK_R,), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        live = (rows < n_rows) & (cols < n_cols)
        keep = tl.load(mask_ptr + base + cols, mask=live, other=0) != 0
        x = tl.load(x_ptr + base + cols, mask=keep, other=float("-inf")).to(tl.float32)
        total += tl.sum(tl.exp(x - top[:, None]), axis=1)
    total = tl.where(count > 0, total, 1.0)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        live = (rows < n_rows) & (cols < n_cols)
        keep = tl.load(mask_ptr + base + cols, mask=live, other=0) != 0
        x = tl.load(x_ptr + base + cols, mask=keep, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - top[:, None]) / total[:, None]
        tl.store(out_ptr + base + cols, y, mask=live)


def masked_softmax(x, mask):
    x = x.contiguous()
    mask = mask.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows = x.numel() // n_cols
    block_n = min(2048, triton.next_power_of_2(n_cols))
    _masked_softmax[(triton.cdiv(n_rows, 4),)](x, mask, out, n_rows, n_cols, BLOCK_R=4, BLOCK_N=block_n, num_warps=8)
    return out
