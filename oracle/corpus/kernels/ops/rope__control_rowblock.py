"""A tile of (batch, position, head) rows per program: both halves rotated, the rest copied."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rope(
    x_ptr,
    cos_ptr,
    sin_ptr,
    out_ptr,
    n_rows,
    S,
    H,
    D,
    half,
    x_b,
    x_s,
    x_h,
    x_d,
    cos_s,
    cos_d,
    sin_s,
    sin_d,
    BLOCK_R: tl.constexpr,
    BLOCK_HALF: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    rows = tl.program_id(0).to(tl.int64) * BLOCK_R + tl.arange(0, BLOCK_R)
    head = rows % H
    position = rows // H % S
    batch = rows // H // S
    live = rows < n_rows
    x_ptr += (batch * x_b + position * x_s + head * x_h)[:, None]
    out_ptr += rows[:, None] * D
    cols = tl.arange(0, BLOCK_HALF).to(tl.int64)[None, :]
    mask = live[:, None] & (cols < half)
    cos = tl.load(cos_ptr + position[:, None] * cos_s + cols * cos_d, mask=mask).to(tl.float32)
    sin = tl.load(sin_ptr + position[:, None] * sin_s + cols * sin_d, mask=mask).to(tl.float32)
    left = tl.load(x_ptr + cols * x_d, mask=mask).to(tl.float32)
    right = tl.load(x_ptr + (cols + half) * x_d, mask=mask).to(tl.float32)
    tl.store(out_ptr + cols, left * cos - right * sin, mask=mask)
    tl.store(out_ptr + cols + half, right * cos + left * sin, mask=mask)
    rest = tl.arange(0, BLOCK_D).to(tl.int64)[None, :]
    mask = live[:, None] & (rest >= 2 * half) & (rest < D)
    tl.store(out_ptr + rest, tl.load(x_ptr + rest * x_d, mask=mask), mask=mask)


def rope(x, cos, sin):
    B, S, H, D = x.shape
    half = cos.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_rows = B * S * H
    block_d = triton.next_power_of_2(D)
    block_r = min(triton.next_power_of_2(n_rows), max(1, 2048 // block_d))
    _rope[(triton.cdiv(n_rows, block_r),)](
        x,
        cos,
        sin,
        out,
        n_rows,
        S,
        H,
        D,
        half,
        *x.stride(),
        *cos.stride(),
        *sin.stride(),
        BLOCK_R=block_r,
        BLOCK_HALF=max(1, triton.next_power_of_2(half)),
        BLOCK_D=block_d,
    )
    return out
