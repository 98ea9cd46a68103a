"""One-dimensional grid over batches and output tiles, any strides."""

import torch
import triton
import triton.language as tl


@triton.jit
def _bmm(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    a_b,
    a_m,
    a_k,
    b_b,
    b_k,
    b_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * tiles_n
    batch = (tl.program_id(0) // tiles).to(tl.int64)
    tile = tl.program_id(0) % tiles
    rows = (tile // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tile % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    a_ptr += batch * a_b
    b_ptr += batch * b_b
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a_mask = (rows < M)[:, None] & (inner < K)[None, :]
        b_mask = (inner < K)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * a_m + inner[None, :] * a_k, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * b_k + cols[None, :] * b_n, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + batch * M * N + rows[:, None] * N + cols[None, :], acc, mask=mask)


def bmm(a, b):
    B, M, K = a.shape
    N = b.shape[2]
    out = torch.empty((B, M, N), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    grid = (B * triton.cdiv(M, 64) * triton.cdiv(N, 64),)
    _bmm[grid](a, b, out, M, N, K, *a.stride(), *b.stride(), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32)
    return out
