"""One row per program, held whole."""

import torch
import triton
import triton.language as tl


@triton.jit
def _mean(x_ptr, out_ptr, n_cols, x_row, x_col, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK).to(tl.int64)
    x = tl.load(x_ptr + row * x_row + cols * x_col, mask=cols < n_cols, other=0.0)
    total = tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + row, total / n_cols)


def mean(x):
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_cols = x.shape[-1]
    x = x.reshape(-1, n_cols)
    block = triton.next_power_of_2(n_cols)
    _mean[(x.shape[0],)](x, out, n_cols, x.stride(0), x.stride(1), BLOCK=block)
    return out
