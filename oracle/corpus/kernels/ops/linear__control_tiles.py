"""A two-dimensional grid of output tiles; weight read through its strides; bias added to the float32 accumulator."""

import torch
import triton
import triton.language as tl


@triton.jit
def _linear(
    x_ptr,
    w_ptr,
    bias_ptr,
    out_ptr,
    M,
    N,
    K,
    x_m,
    x_k,
    w_n,
    w_k,
    bias_n,
    HAS_BIAS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K).to(tl.int64)
        x_mask = (rows < M)[:, None] & (inner < K)[None, :]
        w_mask = (inner < K)[:, None] & (cols < N)[None, :]
        x = tl.load(x_ptr + rows[:, None] * x_m + inner[None, :] * x_k, mask=x_mask, other=0.0)
        w = tl.load(w_ptr + inner[:, None] * w_k + cols[None, :] * w_n, mask=w_mask, other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
    if HAS_BIAS:
        acc += tl.load(bias_ptr + cols * bias_n, mask=cols < N).to(tl.float32)[None, :]
    mask = (rows < M)[:, None] & (cols < N)[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=mask)


def linear(x, weight, bias=None):
    N, K = weight.shape
    out = torch.empty((*x.shape[:-1], N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    M = out.numel() // N
    x = x.reshape(M, K)
    grid = (triton.cdiv(M, 64), triton.cdiv(N, 64))
    _linear[grid](
        x,
        weight,
        weight if bias is None else bias,
        out,
        M,
        N,
        K,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        weight.stride(1),
        0 if bias is None else bias.stride(0),
        HAS_BIAS=bias is not None,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
    )
    return out
