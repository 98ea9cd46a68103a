"""K is split into slices whose partial products go to a float32 buffer; a second kernel adds them in order."""

import torch
import triton
import triton.language as tl


@triton.jit
def _partial(
    a_ptr,
    b_ptr,
    part_ptr,
    M,
    N,
    K,
    a_m,
    a_k,
    b_k,
    b_n,
    slice_k,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = (tl.program_id(0) // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = (tl.program_id(0) % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    part = tl.program_id(1)
    stop = tl.minimum(K, (part + 1) * slice_k)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(part * slice_k, stop, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K).to(tl.int64)
        a_mask = (rows < M)[:, None] & (inner < stop)[None, :]
        b_mask = (inner < stop)[:, None] & (cols < N)[None, :]
        a = tl.load(a_ptr + rows[:, None] * a_m + inner[None, :] * a_k, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * b_k + cols[None, :] * b_n, mask=b_mask, other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(part_ptr + part.to(tl.int64) * M * N + rows[:, None] * N + cols[None, :], acc, mask=mask)


@triton.jit
def _combine(part_ptr, out_ptr, size, parts, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in range(0, parts):
        total += tl.load(part_ptr + at, mask=at < size, other=0.0)
        part_ptr += size
    tl.store(out_ptr + at, total, mask=at < size)


def matmul(a, b):
    M, K = a.shape
    N = b.shape[1]
    out = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    slice_k = max(32, triton.cdiv(K, 4))
    parts = max(1, triton.cdiv(K, slice_k))
    partial = torch.empty((parts, M, N), dtype=torch.float32, device=a.device)
    grid = (triton.cdiv(M, 64) * triton.cdiv(N, 64), parts)
    _partial[grid](
        a,
        b,
        partial,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        slice_k,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    _combine[(triton.cdiv(M * N, 2048),)](partial, out, M * N, parts, BLOCK=2048)
    return out
