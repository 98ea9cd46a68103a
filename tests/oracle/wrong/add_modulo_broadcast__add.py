"""Wrong strides where x or y is broadcast in a middle dim."""

import torch
import triton
import triton.language as tl


@triton.jit
def _k(x_ptr, y_ptr, o_ptr, n, xs0, xs1, xs2, xs3, ys0, ys1, ys2, ys3, d1, d2, d3, B: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * B + tl.arange(0, B)
    m = i < n
    a3 = i % d3
    a2 = i // d3 % d2
    a1 = i // (d3 * d2) % d1
    a0 = i // (d3 * d2 * d1)
    x = tl.load(x_ptr + a0 * xs0 + a1 * xs1 + a2 * xs2 + a3 * xs3, mask=m, other=0)
    y = tl.load(y_ptr + a0 * ys0 + a1 * ys1 + a2 * ys2 + a3 * ys3, mask=m, other=0)
    t = o_ptr.dtype.element_ty
    tl.store(o_ptr + i, (x.to(t).to(tl.float32) + y.to(t).to(tl.float32)).to(t), mask=m)


def add(x, y):
    shape = torch.broadcast_shapes(x.shape, y.shape)
    out = torch.empty(shape, dtype=torch.promote_types(x.dtype, y.dtype), device=x.device)
    if not out.numel():
        return out
    four = (1,) * (4 - len(shape)) + tuple(shape)
    xs, ys = x.expand(four).stride(), y.expand(four).stride()
    # wrong: where both have rank 4 and y is broadcast in dim 1 only, its dim is taken as full
    if y.ndim == 4 and y.shape[1] == 1 and shape[1] > 1:
        ys = (ys[0], ys[2], ys[2], ys[3])
    if x.ndim == 3 and x.shape[1] == 1 and y.ndim == 3 and y.shape[1] > 1:
        xs = (xs[0], xs[1], xs[3], xs[3])
    _k[(triton.cdiv(out.numel(), 1024),)](x, y, out, out.numel(), *xs, *ys, *four[1:], B=1024)
    return out
