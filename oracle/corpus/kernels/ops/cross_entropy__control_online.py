"""One row per program in chunks with a running maximum; a second kernel takes the mean, counting targets itself."""

import torch
import triton
import triton.language as tl


@triton.jit
def _losses(x_ptr, target_ptr, loss_ptr, n_cols, ignore, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * n_cols
    target = tl.load(target_ptr + row)
    tops = tl.full((BLOCK,), float("-inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=float("-inf")).to(tl.float32)
        new_tops = tl.maximum(tops, x)
        shift = tl.where(new_tops == float("-inf"), 0.0, new_tops)
        sums = sums * tl.exp(tops - shift) + tl.exp(x - shift)
        tops = new_tops
    top = tl.max(tops, axis=0)
    total = tl.sum(sums * tl.exp(tops - top), axis=0)
    if target != ignore:
        picked = tl.load(x_ptr + target).to(tl.float32)
        tl.store(loss_ptr + row, tl.log(total) + top - picked)
    else:
        tl.store(loss_ptr + row, 0.0)


@triton.jit
def _mean(loss_ptr, target_ptr, out_ptr, n_rows, ignore, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    count = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_rows, BLOCK):
        rows = start + tl.arange(0, BLOCK)
        inside = rows < n_rows
        target = tl.load(target_ptr + rows, mask=inside, other=0)
        total += tl.load(loss_ptr + rows, mask=inside, other=0.0)
        count += (inside & (target != ignore)).to(tl.float32)
    tl.store(out_ptr, tl.sum(total, axis=0) / tl.sum(count, axis=0))


def cross_entropy(logits, target, ignore_index=-100):
    logits = logits.contiguous()
    target = target.contiguous()
    n_rows, n_cols = logits.shape
    out = torch.empty((), dtype=logits.dtype, device=logits.device)
    losses = torch.empty((n_rows,), dtype=torch.float32, device=logits.device)
    block = min(1024, triton.next_power_of_2(n_cols))
    if n_rows > 0:
        _losses[(n_rows,)](logits, target, losses, n_cols, ignore_index, BLOCK=block)
    _mean[(1,)](losses, target, out, n_rows, ignore_index, BLOCK=512)
    return out
