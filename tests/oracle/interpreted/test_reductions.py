"""Reductions and scans: values, NaN rules, rounding of narrow sums, any combine function."""

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

NAN = float("nan")


@triton.jit
def reduce_rows(x, out, index, OP: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    v = tl.load(x + m[:, None] * N + n[None, :])
    if OP == "sum":
        r = tl.sum(v, axis=1)
    elif OP == "max":
        r = tl.max(v, axis=-1)
    elif OP == "min":
        r = tl.min(v, axis=1)
    elif OP == "argmax":
        r, i = tl.max(v, axis=1, return_indices=True)
        tl.store(index + m, i)
    else:
        r, i = tl.min(v, axis=1, return_indices=True)
        tl.store(index + m, i)
    tl.store(out + m, r)


def rows(op, x):
    out, index = torch.empty(x.shape[0], dtype=x.dtype), torch.full((x.shape[0],), -1, dtype=torch.int32)
    reduce_rows[(1,)](x, out, index, op, *x.shape)
    return out, index


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32], ids=str)
@pytest.mark.parametrize("op", ["max", "min", "argmax", "argmin"])
def test_extremes(op, dtype):
    torch.manual_seed(1)
    x = (torch.randn(8, 64) * 100).to(dtype)
    out, index = rows(op, x)
    want = x.max(1) if "max" in op else x.min(1)
    assert torch.equal(out, want.values)
    if op.startswith("arg"):
        assert torch.equal(x.gather(1, index[:, None].long())[:, 0], want.values)


def test_first_of_ties():
    x = torch.zeros(2, 8)
    x[0, [3, 5]] = 1
    assert rows("argmax", x)[1].tolist() == [3, 0]


def test_nan_loses_in_max_and_min():
    x = torch.tensor([[NAN, 1, 2, NAN], [NAN] * 4])
    assert rows("max", x)[0].nan_to_num(-7).tolist() == [2, -7]
    assert rows("min", x)[0].nan_to_num(-7).tolist() == [1, -7]


def test_argmax_of_nothing_but_nan_is_no_error():
    _, index = rows("argmax", torch.full((2, 4), NAN))
    assert ((index >= 0) & (index < 4)).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_sum_of_a_narrow_float_rounds_at_every_addition(dtype):
    torch.manual_seed(0)
    x = torch.randn(4, 64).to(dtype)
    want = x
    while want.shape[1] > 1:
        want = want[:, 0::2] + want[:, 1::2]
    assert torch.equal(rows("sum", x)[0], want[:, 0])


def test_sum_of_float32_and_integers():
    x = torch.arange(32, dtype=torch.float32).reshape(4, 8)
    assert torch.equal(rows("sum", x)[0], x.sum(1))
    x = x.to(torch.int32)
    assert torch.equal(rows("sum", x)[0], x.sum(1, dtype=torch.int32))


@triton.jit
def everything(x, out, N: tl.constexpr):
    n = tl.arange(0, N)
    v = tl.load(x + n[:, None] * N + n[None, :])
    tl.store(out, tl.sum(v))
    tl.store(out + 1, tl.max(v))
    tl.store(out + 2, tl.sum(tl.sum(v, axis=0, keep_dims=True)))


def test_reduction_over_all_axes():
    x = torch.arange(64, dtype=torch.float32)
    out = torch.empty(3)
    everything[(1,)](x, out, 8)
    assert out.tolist() == [2016, 63, 2016]


@triton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    share = count_b / count
    return mean_a + delta * share, m2_a + m2_b + delta * delta * count_a * share, count


@triton.jit
def variance(x, out, N: tl.constexpr):
    v = tl.load(x + tl.arange(0, N))
    mean, m2, count = tl.reduce((v, tl.zeros_like(v), tl.full((N,), 1.0, tl.float32)), 0, welford)
    tl.store(out, mean)
    tl.store(out + 1, m2 / count)


def test_own_combine_function_over_several_blocks():
    torch.manual_seed(0)
    x = torch.randn(256)
    out = torch.empty(2)
    variance[(1,)](x, out, 256)
    torch.testing.assert_close(out, torch.stack([x.mean(), x.var(correction=0)]))


@triton.jit
def first(a, b):
    return a


@triton.jit
def keep_first(x, out, N: tl.constexpr):
    tl.store(out, tl.reduce(tl.load(x + tl.arange(0, N)), 0, first))


def test_order_is_kept_for_a_function_that_does_not_commute():
    out = torch.empty(1)
    keep_first[(1,)](torch.arange(5.0, 13.0), out, 8)
    assert out.item() == 5


@triton.jit
def multiply_add(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scans(x, out, REVERSE: tl.constexpr, N: tl.constexpr):
    n = tl.arange(0, N)
    v = tl.load(x + n)
    tl.store(out + n, tl.cumsum(v, 0, reverse=REVERSE))
    tl.store(out + N + n, tl.cumprod(v, 0, reverse=REVERSE))
    _a, b = tl.associative_scan((v, v), 0, multiply_add, reverse=REVERSE)
    tl.store(out + 2 * N + n, b)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans(reverse):
    torch.manual_seed(0)
    x = torch.rand(32) + 0.5
    out = torch.empty(3, 32)
    scans[(1,)](x, out, reverse, 32)
    values = x.flip(0) if reverse else x
    recurrence, state = [], 0.0
    for value in values.tolist():
        state = state * value + value
        recurrence.append(state)
    want = torch.stack([values.cumsum(0), values.cumprod(0), torch.tensor(recurrence)])
    torch.testing.assert_close(out, want.flip(1) if reverse else want)


@triton.jit
def ordered(x, out, N: tl.constexpr):
    n = tl.arange(0, N)
    tl.store(out + n, tl.sort(tl.load(x + n)))
    tl.store(out + N + n, tl.softmax(tl.load(x + n).to(tl.float32)).to(tl.bfloat16))


def test_sort_and_softmax_of_bfloat16():
    torch.manual_seed(0)
    x = torch.randn(32).to(torch.bfloat16)
    out = torch.empty(2, 32, dtype=torch.bfloat16)
    ordered[(1,)](x, out, 32)
    assert torch.equal(out[0], x.sort().values)
    np.testing.assert_allclose(out[1].float(), torch.softmax(x.float(), 0), rtol=2**-8)
