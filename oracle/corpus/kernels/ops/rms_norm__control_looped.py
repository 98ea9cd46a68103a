"""Chunks of a row: sum of squares in one pass, result in a second."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rms_norm(x_ptr, w_ptr, out_ptr, n_rows, n_cols, eps, BLOCK_R: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)[:, None]
    live = rows < n_rows
    squares = tl.zeros((BLOCK_R,), tl.float32)
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        x = tl.load(x_ptr + rows * n_cols + cols, mask=live & (cols < n_cols), other=0.0).to(tl.float32)
        squares += tl.sum(x * x, axis=1)
    rstd = tl.rsqrt(squares / n_cols + eps)[:, None]
    for start in range(0, n_cols, BLOCK_N):
        cols = start + tl.arange(0, BLOCK_N)[None, :]
        mask = live & (cols < n_cols)
        x = tl.load(x_ptr + rows * n_cols + cols, mask=mask).to(tl.float32)
        weight = tl.load(w_ptr + cols, mask=cols < n_cols).to(tl.float32)
        tl.store(out_ptr + rows * n_cols + cols, x * rstd * weight, mask=mask)


def rms_norm(x, weight, eps=1e-6):
    x = x.contiguous()
    n_cols = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows = x.numel() // n_cols
    block_n = min(2048, triton.next_power_of_2(n_cols))
    _rms_norm[(triton.cdiv(n_rows, 4),)](
        x, weight.contiguous(), out, n_rows, n_cols, eps, BLOCK_R=4, BLOCK_N=block_n, num_warps=8
    )
    return out
