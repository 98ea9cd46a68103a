"""bfloat16, float16 and float8 in kernels against torch, bit for bit."""

import pytest
import torch
import triton
import triton.language as tl
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.interpreter import redirected

N = 64
BF16, F16, E5M2, E4M3 = torch.bfloat16, torch.float16, torch.float8_e5m2, torch.float8_e4m3fn
BITS = st.lists(st.integers(0, 0xFFFF), min_size=N, max_size=N)


def from_bits(bits, dtype):
    return torch.tensor(bits, dtype=torch.int32).to(torch.int16).view(dtype)


def assert_same(got, want):
    """Equal values and signs of zero; a NaN where there is a NaN."""
    assert got.dtype == want.dtype
    nan = want.float().isnan()
    assert torch.equal(got.float().isnan(), nan)
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[want.element_size()]
    assert torch.equal(got.contiguous().view(width)[~nan], want.contiguous().view(width)[~nan])


@triton.jit
def binary(x, y, out, OP: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    if OP == "add":
        r = a + b
    elif OP == "sub":
        r = a - b
    elif OP == "mul":
        r = a * b
    elif OP == "div":
        r = a / b
    elif OP == "maximum":
        r = tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "minimum":
        r = tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
    elif OP == "where":
        r = tl.where(a > b, a, b)
    elif OP == "clamp":
        r = tl.clamp(a, -b, b)
    elif OP == "neg":
        r = -a
    else:
        r = tl.abs(a)
    tl.store(out + i, r)


TORCH = {
    "add": torch.add,
    "sub": torch.sub,
    "mul": torch.mul,
    "div": torch.div,
    "maximum": torch.maximum,
    "minimum": torch.minimum,
    "where": lambda a, b: torch.where(a > b, a, b),
    "neg": lambda a, b: -a,
    "abs": lambda a, b: a.abs(),
}


@pytest.mark.parametrize("dtype", [BF16, F16], ids=["bfloat16", "float16"])
@pytest.mark.parametrize("op", TORCH)
@settings(max_examples=12, deadline=None)
@given(BITS, BITS)
def test_operations_round_as_torch(op, dtype, a, b):
    x, y = from_bits(a, dtype), from_bits(b, dtype)
    out = torch.empty_like(x)
    binary[(1,)](x, y, out, op, N)
    want = TORCH[op](x, y)
    if op in ("maximum", "minimum", "neg"):  # the sign of a zero is not stated (Triton 3.6 negates as 0 - x)
        out, want = out + 0, want + 0
    assert_same(out, want)


@triton.jit
def compare(x, y, out, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.load(y + i)
    tl.store(out + i, (a < b).to(tl.int32) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a >= b) + 32 * (a > b))


@settings(max_examples=12, deadline=None)
@given(BITS, BITS)
def test_comparisons(a, b):
    x, y = from_bits(a, BF16), from_bits(b, BF16)
    out = torch.empty(N, dtype=torch.int32)
    compare[(1,)](x, y, out, N)
    want = (x < y).int() + 2 * (x <= y) + 4 * (x == y) + 8 * (x != y) + 16 * (x >= y) + 32 * (x > y)
    assert torch.equal(out, want)


@triton.jit
def cast(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty))


@pytest.mark.parametrize("dtype", [BF16, F16, E5M2, E4M3], ids=str)
@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(width=32), min_size=N, max_size=N))
def test_casts_from_float32_round_to_nearest_even(dtype, values):
    x = torch.tensor(values, dtype=torch.float32)
    out = torch.empty(N, dtype=dtype)
    cast[(1,)](x, out, N)
    want = x.clamp(-448, 448).to(dtype) if dtype == E4M3 else x.to(dtype)
    assert_same(out, want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, F16], ids=str)
def test_every_bfloat16_widens_exactly(dtype):
    x = from_bits(range(1 << 16), BF16)
    out = torch.empty(1 << 16, dtype=dtype)
    with redirected():
        cast[(1,)](x, out, 1 << 16)
    nan = x.isnan()
    assert torch.equal(out[~nan], x.to(dtype)[~nan])
    assert out[nan].isnan().all()


@pytest.mark.parametrize("dtype", [E5M2, E4M3], ids=str)
def test_every_float8_widens_exactly(dtype):
    x = torch.arange(256, dtype=torch.int32).to(torch.uint8).view(dtype)
    out = torch.empty(256)
    cast[(1,)](x, out, 256)
    assert torch.equal(out.nan_to_num(1e9), x.float().nan_to_num(1e9))


@pytest.mark.parametrize("source", [torch.int32, torch.int64, torch.float64], ids=str)
def test_casts_from_wider_types(source):
    x = torch.tensor([0, 1, -1, 255, 256, 257, 258, 259, 65535, 65537, 16777217, 33554433, 2**30 + 1] + [3] * 3)
    x = x.to(source)
    out = torch.empty(16, dtype=BF16)
    cast[(1,)](x, out, 16)
    assert_same(out, x.to(BF16))


@triton.jit
def toward_zero(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i).to(out.dtype.element_ty, fp_downcast_rounding="rtz"))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=N, max_size=N))
def test_rounding_toward_zero_truncates_bits(values):
    x = torch.tensor(values, dtype=torch.float32)
    out = torch.empty(N, dtype=BF16)
    toward_zero[(1,)](x, out, N)
    assert torch.equal(out.view(torch.int16), (x.view(torch.int32) >> 16).to(torch.int16))


@triton.jit
def scalar_constants(x, out, scale, N: tl.constexpr):
    i = tl.arange(0, N)
    a = tl.load(x + i)
    b = tl.full((N,), 1.5, tl.bfloat16) + tl.zeros((N,), tl.bfloat16)
    tl.store(out + i, (a * 2 + 0.1) * b * scale)


def test_constants_take_the_operand_type():
    x = torch.linspace(-2, 2, N).to(BF16)
    out = torch.empty_like(x)
    scalar_constants[(1,)](x, out, 0.3, N)
    # a float argument is float32, so that the last product is, too
    want = (((x * 2 + 0.1) * 1.5).float() * torch.tensor(0.3)).to(BF16)
    assert_same(out, want)


@triton.jit
def fused(x, y, z, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.fma(tl.load(x + i), tl.load(y + i), tl.load(z + i)))


@pytest.mark.parametrize("dtype", [BF16, F16, torch.float32], ids=str)
def test_fma_rounds_once(dtype):
    torch.manual_seed(0)
    x, y, z = (torch.randn(N).to(dtype) for _ in range(3))
    out = torch.empty_like(x)
    fused[(1,)](x, y, z, out, N)
    assert_same(out, (x.double() * y.double() + z.double()).to(dtype))


@triton.jit
def clamp(x, out, PROPAGATE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    if PROPAGATE:
        r = tl.clamp(tl.load(x + i), -1.0, 1.0, propagate_nan=tl.PropagateNan.ALL)
    else:
        r = tl.clamp(tl.load(x + i), -1.0, 1.0)
    tl.store(out + i, r)


@pytest.mark.parametrize("dtype", [BF16, torch.float32], ids=str)
def test_clamp_and_its_nan_rule(dtype):
    x = torch.tensor([-3.0, 0.5, 2.0, float("nan")], dtype=dtype)
    out = torch.empty_like(x)
    clamp[(1,)](x, out, True, 4)
    assert_same(out, torch.tensor([-1.0, 0.5, 1.0, float("nan")], dtype=dtype))
    clamp[(1,)](x, out, False, 4)
    assert_same(out, torch.tensor([-1.0, 0.5, 1.0, -1.0], dtype=dtype))


@triton.jit
def product(a, b, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    m, k, n = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    x = tl.load(a + m[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + n[None, :])
    tl.store(out + m[:, None] * N + n[None, :], tl.dot(x, y))


@pytest.mark.parametrize("dtype", [BF16, F16, E5M2, E4M3], ids=str)
def test_dot_has_exact_products_and_float32_sums(dtype):
    torch.manual_seed(0)
    a, b = torch.randn(16, 32).to(dtype), torch.randn(32, 16).to(dtype)
    out = torch.empty(16, 16)
    product[(1,)](a, b, out, 16, 32, 16)
    want = a.double() @ b.double()
    assert (out.double() - want).abs().max() <= 1e-6 * (a.double().abs() @ b.double().abs()).max()


def test_dot_with_too_small_k_is_refused_as_on_a_gpu():
    a, b, out = torch.ones(16, 4, dtype=BF16), torch.ones(4, 16, dtype=BF16), torch.empty(16, 16)
    with pytest.raises(triton.compiler.errors.CompilationError, match="K >= 16"):
        product[(1,)](a, b, out, 16, 4, 16)


@triton.jit
def add_atomically(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_add(out + i % 4, tl.load(x + i), mask=i < N - 1)


@pytest.mark.parametrize("dtype", [BF16, F16, torch.float32], ids=str)
def test_atomic_add(dtype):
    x = (torch.arange(N) % 8).to(dtype)
    out = torch.zeros(4, dtype=dtype)
    add_atomically[(1,)](x, out, N)
    x[N - 1] = 0
    assert torch.equal(out, x.float().reshape(-1, 4).sum(0).to(dtype))  # every partial sum is exact


@triton.jit
def exponential(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.exp(tl.load(x + i)))


@pytest.mark.parametrize("dtype", [BF16, F16], ids=str)
def test_exp_of_a_narrow_float_stays_refused(dtype):
    x = torch.zeros(4, dtype=dtype)
    with pytest.raises(triton.compiler.errors.CompilationError, match="Expected dtype"):
        exponential[(1,)](x, x, 4)
