import torch
import triton
import triton.language as tl


@triton.jit
def gram_kernel(a_ptr, out_ptr, m, k, stride_m, stride_k, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
    total = tl.zeros([BLOCK_M, BLOCK_M], dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        depth = start + tl.arange(0, BLOCK_K)
        left = tl.load(
            a_ptr + rows[:, None] * stride_m + depth[None, :] * stride_k,
            mask=(rows[:, None] < m) & (depth[None, :] < k),
            other=0.0,
        )
        right = tl.load(
            a_ptr + columns[None, :] * stride_m + depth[:, None] * stride_k,
            mask=(columns[None, :] < m) & (depth[:, None] < k),
            other=0.0,
        )
        total += tl.dot(left, right, input_precision="ieee")
    inside = (rows[:, None] < m) & (columns[None, :] < m)
    tl.store(out_ptr + rows[:, None] * m + columns[None, :], total.to(out_ptr.dtype.element_ty), mask=inside)


def gram(a):
    m, k = a.shape
    out = torch.empty((m, m), dtype=a.dtype, device=a.device)
    if m == 0:
        return out
    grid = (triton.cdiv(m, 32), triton.cdiv(m, 32))
    gram_kernel[grid](a, out, m, k, a.stride(0), a.stride(1), BLOCK_M=32, BLOCK_K=32)
    return out
