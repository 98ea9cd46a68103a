"""One row per program: count, mean and squared deviations of chunks merged as they come (Chan et al.)."""

import torch
import triton
import triton.language as tl


@triton.jit
def _var(x_ptr, out_ptr, n_cols, x_row, x_col, correction, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    seen = 0.0
    mean = 0.0
    squares = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK).to(tl.int64)
        mask = cols < n_cols
        x = tl.load(x_ptr + row * x_row + cols * x_col, mask=mask, other=0.0).to(tl.float32)
        count = tl.sum(mask.to(tl.float32), axis=0)
        chunk_mean = tl.sum(x, axis=0) / count
        gap = tl.where(mask, x - chunk_mean, 0.0)
        delta = chunk_mean - mean
        together = seen + count
        squares += tl.sum(gap * gap, axis=0) + delta * delta * (seen * count / together)
        mean += delta * (count / together)
        seen = together
    variance = squares / tl.maximum(seen - correction, 0.0)
    tl.store(out_ptr + row, variance)


def var(x, correction=1):
    out = torch.empty(x.shape[:-1], dtype=x.dtype, device=x.device)
    if out.numel() == 0:
        return out
    n_cols = x.shape[-1]
    x = x.reshape(-1, n_cols)
    block = min(1024, triton.next_power_of_2(n_cols))
    _var[(x.shape[0],)](x, out, n_cols, x.stride(0), x.stride(1), float(correction), BLOCK=block)
    return out
