"""One row per program: values become int32 keys in the same order with NaN on top, and tl.argmax takes the leftmost."""

import torch
import triton
import triton.language as tl


@triton.jit
def _argmax(x_ptr, out_ptr, n_cols, x_row, x_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=mask, other=0.0).to(tl.float32)
    x = tl.where(x == 0.0, 0.0, x)
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    key = tl.where(x != x, 0x7FFFFFFF, key)
    key = tl.where(mask, key, -0x80000000)
    tl.store(out_ptr + row, tl.argmax(key, axis=0, tie_break_left=True).to(tl.int64))


def argmax(x):
    out = torch.empty(x.shape[:-1], dtype=torch.int64, device=x.device)
    if out.numel() == 0:
        return out
    n_cols = x.shape[-1]
    x = x.reshape(-1, n_cols)
    _argmax[(x.shape[0],)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK=triton.next_power_of_2(n_cols), num_warps=8)
    return out
