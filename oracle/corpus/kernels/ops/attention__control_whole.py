"""All keys of a tile of queries at once, float32 throughout; D in steps, so that shared memory holds a tile of keys."""

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
    q_b,
    q_h,
    q_m,
    q_d,
    k_b,
    k_h,
    k_n,
    k_d,
    v_b,
    v_h,
    v_n,
    v_d,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    batch = (tl.program_id(1) // H).to(tl.int64)
    head = (tl.program_id(1) % H).to(tl.int64)
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    keys = tl.arange(0, BLOCK_N).to(tl.int64)
    steps = tl.arange(0, BLOCK_D).to(tl.int64)
    q_ptr += batch * q_b + head * q_h
    k_ptr += batch * k_b + head // group * k_h
    v_ptr += batch * v_b + head // group * v_h
    scores = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, D, BLOCK_D):
        dims = start + steps
        q_mask = (rows < M)[:, None] & (dims < D)[None, :]
        k_mask = (keys < N)[:, None] & (dims < D)[None, :]
        q = tl.load(q_ptr + rows[:, None] * q_m + dims[None, :] * q_d, mask=q_mask, other=0.0).to(tl.float32)
        k = tl.load(k_ptr + keys[:, None] * k_n + dims[None, :] * k_d, mask=k_mask, other=0.0).to(tl.float32)
        scores += tl.dot(q, tl.trans(k), input_precision="ieee")
    scores *= scale
    allowed = (keys < N)[None, :]
    if CAUSAL:
        allowed = allowed & (keys[None, :] <= rows[:, None])
    scores = tl.where(allowed, scores, float("-inf"))
    weight = tl.exp(scores - tl.max(scores, axis=1)[:, None])
    weight = weight / tl.sum(weight, axis=1)[:, None]
    out_ptr += (batch * H + head) * M * D
    for start in range(0, D, BLOCK_D):
        dims = start + steps
        q_mask = (rows < M)[:, None] & (dims < D)[None, :]
        k_mask = (keys < N)[:, None] & (dims < D)[None, :]
        v = tl.load(v_ptr + keys[:, None] * v_n + dims[None, :] * v_d, mask=k_mask, other=0.0).to(tl.float32)
        y = tl.dot(weight, v, input_precision="ieee")
        tl.store(out_ptr + rows[:, None] * D + dims[None, :], y, mask=q_mask)


def attention(q, k, v, causal=False, scale=None):
    B, H, M, D = q.shape
    Hk, N = k.shape[1], k.shape[2]
    if q.numel() == 0 or N == 0:
        return torch.zeros(q.shape, dtype=q.dtype, device=q.device)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    if scale is None:
        scale = 1.0 / math.sqrt(D)
    block_m = max(16, min(64, triton.next_power_of_2(M)))
    _attention[(triton.cdiv(M, block_m), B * H)](
        q,
        k,
        v,
        out,
        H,
        M,
        N,
        D,
        H // Hk,
        float(scale),
        *q.stride(),
        *k.stride(),
        *v.stride(),
        CAUSAL=causal,
        BLOCK_M=block_m,
        BLOCK_N=max(16, triton.next_power_of_2(N)),
        BLOCK_D=max(16, min(32, triton.next_power_of_2(D))),
    )
    return out
