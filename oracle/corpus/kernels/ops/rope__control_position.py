"""One program per position of a batch turns all its heads; the part beyond the halves is copied first by views."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rope(
    x_ptr, cos_ptr, sin_ptr, out_ptr, S, H, D, half, x_b, x_s, x_h, x_d, BLOCK_H: tl.constexpr, BLOCK_HALF: tl.constexpr
):
    place = tl.program_id(0).to(tl.int64)
    position = place % S
    cols = tl.arange(0, BLOCK_HALF).to(tl.int64)
    cos = tl.load(cos_ptr + position * half + cols, mask=cols < half).to(tl.float32)[None, :]
    sin = tl.load(sin_ptr + position * half + cols, mask=cols < half).to(tl.float32)[None, :]
    x_ptr += place // S * x_b + position * x_s
    out_ptr += place * H * D
    for first in range(0, H, BLOCK_H):
        heads = first + tl.arange(0, BLOCK_H).to(tl.int64)
        mask = (heads < H)[:, None] & (cols < half)[None, :]
        low = heads[:, None] * x_h + cols[None, :] * x_d
        a = tl.load(x_ptr + low, mask=mask).to(tl.float32)
        b = tl.load(x_ptr + low + half * x_d, mask=mask).to(tl.float32)
        target = heads[:, None] * D + cols[None, :]
        tl.store(out_ptr + target, a * cos - b * sin, mask=mask)
        tl.store(out_ptr + target + half, a * sin + b * cos, mask=mask)


def rope(x, cos, sin):
    B, S, H, D = x.shape
    half = cos.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    out[..., 2 * half :].copy_(x[..., 2 * half :])
    _rope[(B * S,)](
        x,
        cos.contiguous(),
        sin.contiguous(),
        out,
        S,
        H,
        D,
        half,
        *x.stride(),
        BLOCK_H=min(16, triton.next_power_of_2(H)),
        BLOCK_HALF=max(1, triton.next_power_of_2(half)),
    )
    return out
