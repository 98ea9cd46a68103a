"""Attention of one head, softmax(q·kᵀ/√D)·v: the keys twice, for each row's maximum and then for weights under it."""

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
    M,
    N,
    D,
    q_m,
    q_d,
    k_n,
    k_d,
    v_n,
    v_d,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    q_mask = (rows < M)[:, None] & (dims < D)[None, :]
    q = tl.load(q_ptr + rows[:, None] * q_m + dims[None, :] * q_d, mask=q_mask, other=0.0).to(tl.float32)
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k_mask = (keys < N)[:, None] & (dims < D)[None, :]
        k = tl.load(k_ptr + keys[:, None] * k_n + dims[None, :] * k_d, mask=k_mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((keys < N)[None, :], scores, float("-inf"))
        top = tl.maximum(top, tl.max(scores, axis=1))
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k_mask = (keys < N)[:, None] & (dims < D)[None, :]
        k = tl.load(k_ptr + keys[:, None] * k_n + dims[None, :] * k_d, mask=k_mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + keys[:, None] * v_n + dims[None, :] * v_d, mask=k_mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where((keys < N)[None, :], scores, float("-inf"))
        weight = tl.exp(scores - top[:, None])
        total += tl.sum(weight, axis=1)
        acc += tl.dot(weight, v, input_precision="ieee")
    tl.store(out_ptr + rows[:, None] * D + dims[None, :], acc / total[:, None], mask=q_mask)


def attention(q, k, v):
    M, D = q.shape
    N = k.shape[0]
    if q.numel() == 0 or N == 0:
        return torch.zeros((M, D), dtype=q.dtype, device=q.device)
    out = torch.empty((M, D), dtype=q.dtype, device=q.device)
    block_n = min(64, max(16, triton.next_power_of_2(N)))
    block_d = max(16, triton.next_power_of_2(D))
    _attention[(triton.cdiv(M, 16),)](
        q,
        k,
        v,
        out,
        M,
        N,
        D,
        q.stride(0),
        q.stride(1),
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        1.0 / math.sqrt(D),
        BLOCK_M=16,
        BLOCK_N=block_n,
        BLOCK_D=block_d,
    )
    return out
