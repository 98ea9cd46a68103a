"""Tiles read through the strides of the input and written turned."""

import torch
import triton
import triton.language as tl


@triton.jit
def _transpose(x_ptr, out_ptr, M, N, x_b, x_m, x_n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    rows = (tile // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tile % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    x = tl.load(x_ptr + batch * x_b + rows[:, None] * x_m + cols[None, :] * x_n, mask=mask)
    target = out_ptr + batch * M * N + cols[:, None] * M + rows[None, :]
    tl.store(target, tl.trans(x), mask=(cols < N)[:, None] & (rows < M)[None, :])


def transpose(x):
    M, N = x.shape[-2], x.shape[-1]
    out = torch.empty((*x.shape[:-2], N, M), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    x = x.reshape(-1, M, N)
    grid = (x.shape[0] * triton.cdiv(M, 64) * triton.cdiv(N, 64),)
    _transpose[grid](x, out, M, N, x.stride(0), x.stride(1), x.stride(2), BLOCK_M=64, BLOCK_N=64)
    return out
