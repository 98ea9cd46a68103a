"""One program per kv head and tile of queries, all its query heads stacked in one tile; two passes over the keys."""

import torch
import triton
import triton.language as tl


@triton.jit
def _scores(q, k_ptr, keys, dims, N, D, positions, scale, CAUSAL: tl.constexpr):
    k_mask = (keys < N)[None, :] & (dims < D)[:, None]
    k = tl.load(k_ptr + keys[None, :] * D + dims[:, None], mask=k_mask, other=0.0).to(tl.float32)
    scores = tl.dot(q, k, input_precision="ieee") * scale
    allowed = (keys < N)[None, :]
    if CAUSAL:
        allowed = allowed & (positions[:, None] >= keys[None, :])
    return tl.where(allowed, scores, float("-inf"))


@triton.jit
def _attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    M,
    N,
    D,
    rows_per_kv,
    scale,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    kv_head = tl.program_id(1).to(tl.int64)
    stacked = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    positions = stacked % M
    dims = tl.arange(0, BLOCK_D)
    q_at = (kv_head * rows_per_kv + stacked)[:, None] * D + dims[None, :]
    q_mask = (stacked < rows_per_kv)[:, None] & (dims < D)[None, :]
    q = tl.load(q_ptr + q_at, mask=q_mask, other=0.0).to(tl.float32)
    k_ptr += kv_head * N * D
    v_ptr += kv_head * N * D
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        scores = _scores(q, k_ptr, keys, dims, N, D, positions, scale, CAUSAL)
        top = tl.maximum(top, tl.max(scores, axis=1))
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        weight = tl.exp(_scores(q, k_ptr, keys, dims, N, D, positions, scale, CAUSAL) - top[:, None])
        v_mask = (keys < N)[:, None] & (dims < D)[None, :]
        v = tl.load(v_ptr + keys[:, None] * D + dims[None, :], mask=v_mask, other=0.0).to(tl.float32)
        total += tl.sum(weight, axis=1)
        acc += tl.dot(weight, v, input_precision="ieee")
    tl.store(out_ptr + q_at, acc / total[:, None], mask=q_mask)


def attention(q, k, v, causal=False, scale=None):
    B, H, M, D = q.shape
    Hk, N = k.shape[1], k.shape[2]
    if q.numel() == 0 or N == 0:
        return torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if scale is None:
        scale = D**-0.5
    rows_per_kv = H // Hk * M
    _attention[(triton.cdiv(rows_per_kv, 64), B * Hk)](
        q.contiguous(),
        k.contiguous(),
        v.contiguous(),
        out,
        M,
        N,
        D,
        rows_per_kv,
        float(scale),
        CAUSAL=causal,
        BLOCK_M=64,
        BLOCK_N=32,
        BLOCK_D=max(16, triton.next_power_of_2(D)),
    )
    return out
