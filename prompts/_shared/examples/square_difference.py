import torch
import triton
import triton.language as tl


@triton.jit
def square_difference_kernel(a_ptr, b_ptr, out_ptr, count, BLOCK: tl.constexpr):
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < count
    a = tl.load(a_ptr + index, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + index, mask=inside, other=0.0).to(tl.float32)
    difference = a - b
    tl.store(out_ptr + index, (difference * difference).to(out_ptr.dtype.element_ty), mask=inside)


def square_difference(a, b):
    a, b = a.contiguous(), b.contiguous()
    out = torch.empty_like(a)
    count = out.numel()
    if count:
        square_difference_kernel[(triton.cdiv(count, 1024),)](a, b, out, count, BLOCK=1024)
    return out
