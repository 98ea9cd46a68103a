"""A kernel with block pointers, for the Triton versions that have them."""

import triton
import triton.language as tl


@triton.jit
def copy_block(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    a = tl.make_block_ptr(x, (M, N), (N, 1), (0, 0), (BM, BN), (1, 0))
    b = tl.make_block_ptr(out, (M, N), (N, 1), (0, 0), (BM, BN), (1, 0))
    tl.store(b, tl.load(a, boundary_check=(0, 1), padding_option="zero"), boundary_check=(0, 1))
