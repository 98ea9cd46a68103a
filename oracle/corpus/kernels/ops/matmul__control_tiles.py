"""A two-dimensional grid of output tiles, any strides, K masked."""

import torch
import triton
import triton.language as tl


@triton.jit
def _matmul(
    a_ptr,
    b_ptr,
    out_ptr,
    M,
    N,
    K,
    a_m,
    a_k,
    b_k,
    b_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a_mask = (rows < M)[:, None] & (inner < K)[None, :]
        b_mask = (inner < K)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * a_m + inner[None, :] * a_k, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * b_k + cols[None, :] * b_n, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    _matmul[grid](
        a, b, out, M, N, K, a.stride(0), a.stride(1), b.stride(0), b.stride(1), BLOCK_M=64, BLOCK_N=64, BLOCK_K=32
    )
    return out
