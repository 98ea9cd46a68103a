"""One row per program, held whole."""

import torch
import triton
import triton.language as tl


@triton.jit
def _rms_norm(x_ptr, w_ptr, out_ptr, x_row, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask).to(tl.float32)
    variance = tl.sum(x * x, axis=0) / n_cols
    y = x * tl.rsqrt(variance + eps)
    tl.store(out_ptr + row * n_cols + cols, y * w, mask=mask)


def rms_norm(x, weight, eps=1e-6):
    n_cols = x.shape[-1]
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    x = x.reshape(-1, n_cols)
    if x.stride(-1) != 1:
        x = x.contiguous()
    block = triton.next_power_of_2(n_cols)
    _rms_norm[(x.shape[0],)](x, weight.contiguous(), out, x.stride(0), n_cols, eps, BLOCK=block, num_warps=8)
    return out
