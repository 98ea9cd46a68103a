"""Flash attention of one head: blocks of 64 keys, running maximum and sum, accumulator rescaled when the maximum moves."""

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
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    q_mask = (rows < M)[:, None] & (dims < D)[None, :]
    q = tl.load(q_ptr + rows[:, None] * D + dims[None, :], mask=q_mask, other=0.0).to(tl.float32) * scale
    top = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
    for start in range(0, N, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N).to(tl.int64)
        k_mask = (keys < N)[:, None] & (dims < D)[None, :]
        k = tl.load(k_ptr + keys[:, None] * D + dims[None, :], mask=k_mask, other=0.0).to(tl.float32)
        v = tl.load(v_ptr + keys[:, None] * D + dims[None, :], mask=k_mask, other=0.0).to(tl.float32)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        scores = tl.where((keys < N)[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        shift = tl.where(new_top == float("-inf"), 0.0, new_top)
        alpha = tl.exp(top - shift)
        weight = tl.exp(scores - shift[:, None])
        total = total * alpha + tl.sum(weight, axis=1)
        acc = acc * alpha[:, None] + tl.dot(weight, v, input_precision="ieee")
        top = new_top
    tl.store(out_ptr + rows[:, None] * D + dims[None, :], acc / total[:, None], mask=q_mask)


def attention(q, k, v):
    M, D = q.shape
    N = k.shape[0]
    if q.numel() == 0 or N == 0:
        return torch.zeros((M, D), dtype=q.dtype, device=q.device)
    out = torch.empty((M, D), dtype=q.dtype, device=q.device)
    block_d = max(16, triton.next_power_of_2(D))
    _attention[(triton.cdiv(M, 16),)](
        q.contiguous(),
        k.contiguous(),
        v.contiguous(),
        out,
        M,
        N,
        D,
        1.0 / math.sqrt(D),
        BLOCK_M=16,
        BLOCK_N=64,
        BLOCK_D=block_d,
    )
    return out
