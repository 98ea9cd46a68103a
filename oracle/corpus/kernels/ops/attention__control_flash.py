"""Blocks of keys with a running maximum and sum; products in the input dtype with float32 accumulation."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _attention(
    q_ptr,
    k_ptr,
    v_ptr,
    out_ptr,
    H,
    M,
    N,
    D,
    group,
    scale,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    tiles = tl.cdiv(M, BLOCK_M)
    head = (tl.program_id(0) // tiles).to(tl.int64)
    kv_head = head // H * (H // group) + head % H // group
    rows = tl.program_id(0) % tiles * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    q_at = head * M * D + rows[:, None] * D + dims[None, :]
    q_mask = (rows < M)[:, None] & (dims < D)[None, :]
    q = tl.load(q_ptr + q_at, mask=q_mask, other=0.0)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        kv_at = kv_head * N * D + keys[:, None] * D + dims[None, :]
        kv_mask = (keys < N)[:, None] & (dims < D)[None, :]
        k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + kv_at, mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((keys < N)[None, :], scores, float("-inf"))
        if CAUSAL:
            scores = tl.where(rows[:, None] >= keys[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        alpha = tl.exp(top - shift)
        weight = tl.exp(scores - shift[:, None])
        total = total * alpha + tl.sum(weight, axis=1)
        acc = acc * alpha[:, None]
        acc += tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        top = new_top
    tl.store(out_ptr + q_at, acc / total[:, None], mask=q_mask)


def attention(q, k, v, causal=False, scale=None):
    B, H, M, D = q.shape
    Hk, N = k.shape[1], k.shape[2]
    if q.numel() == 0 or N == 0:
        return torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    scale = 1.0 / math.sqrt(D) if scale is None else float(scale)
    block_d = max(16, triton.next_power_of_2(D))
    _attention[(triton.cdiv(M, 32) * B * H,)](
        q.contiguous(),
        k.contiguous(),
        v.contiguous(),
        out,
        H,
        M,
        N,
        D,
        H // Hk,
        scale,
        CAUSAL=causal,
        BLOCK_M=32,
        BLOCK_N=32,
        BLOCK_D=block_d,
    )
    return out
