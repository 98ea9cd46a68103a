"""Without tl.dot: a tile of rows against a tile of weights, products summed over chunks of K in float32."""

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
    rows = tl.program_id(1).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K).to(tl.int64)
        x_at = x_ptr + rows[:, None] * x_m + inner[None, :] * x_k
        w_at = w_ptr + cols[:, None] * w_n + inner[None, :] * w_k
        x = tl.load(x_at, mask=(rows < M)[:, None] & (inner < K)[None, :], other=0.0).to(tl.float32)
        w = tl.load(w_at, mask=(cols < N)[:, None] & (inner < K)[None, :], other=0.0).to(tl.float32)
        acc += tl.sum(x[:, None, :] * w[None, :, :], axis=2)
    if HAS_BIAS:
        bias = tl.load(bias_ptr + cols * bias_n, mask=cols < N).to(tl.float32)
        acc = acc + bias[None, :]
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


def linear(x, weight, bias=None):
    N, K = weight.shape
    out = torch.empty((*x.shape[:-1], N), dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    x = x.reshape(out.numel() // N, K)
    M = x.shape[0]
    grid = (triton.cdiv(N, 64), triton.cdiv(M, 32))
    if bias is None:
        _linear[grid](
            x,
            weight,
            out,
            out,
            M,
            N,
            K,
            *x.stride(),
            *weight.stride(),
            0,
            HAS_BIAS=False,
            BLOCK_M=32,
            BLOCK_N=64,
            BLOCK_K=32,
            num_warps=8,
        )
    else:
        _linear[grid](
            x,
            weight,
            bias,
            out,
            M,
            N,
            K,
            *x.stride(),
            *weight.stride(),
            bias.stride(0),
            HAS_BIAS=True,
            BLOCK_M=32,
            BLOCK_N=64,
            BLOCK_K=32,
            num_warps=8,
        )
    return out
