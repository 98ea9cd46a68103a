"""Regimes: how the values of a case's tensors are drawn.

A regime draws a block of `rows` × `n` float64 numbers, a row being the tensor's last dim. Every number is dyadic (an
integer times a power of two) or comes from one correctly rounded operation, and is rounded once to the tensor's dtype:
the bytes are the same everywhere. Random draws just miss many faults, so several regimes set critical elements on purpose.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oracle.dtypes import Float
from oracle.rng import Draws

Block = np.ndarray  # float64, rows × n
DrawBlock = Callable[[Draws, int, int, Float], Block]


@dataclass(frozen=True)
class Regime:
    """`doc` is one line. `dtypes`: where the regime tells something that others do not (None: everywhere).
    `alone`: on every tensor at once it would drown most faults, so that it is tried on one tensor first."""

    name: str
    doc: str
    draw: DrawBlock
    dtypes: tuple[str, ...] | None = None
    alone: bool = False


REGIMES: dict[str, Regime] = {}


def _regime(dtypes: tuple[str, ...] | None = None, alone: bool = False) -> Callable[[DrawBlock], DrawBlock]:
    def register(draw: DrawBlock) -> DrawBlock:
        name = draw.__name__.strip("_")
        REGIMES[name] = Regime(name, (draw.__doc__ or "").strip(), draw, dtypes, alone)
        return draw

    return register


def _span(draws: Draws, rows: int, n: int, low: float, high: float) -> Block:
    """low + (high − low) · k/2^24 for uniform 24-bit k: exact in float64 for small integer bounds."""
    k = draws.bits(rows * n, 24).reshape(rows, n)
    return low + k * ((high - low) * 2.0**-24)


def _signs(draws: Draws, rows: int, n: int) -> Block:
    return 1.0 - 2.0 * draws.bits(rows * n, 1).reshape(rows, n)


def _column(rows: int, *cycle: float) -> Block:
    """rows × 1, the numbers of the cycle in turn."""
    return np.resize(np.array(cycle), rows)[:, None]


# Plain values.


@_regime()
def uniform(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """uniform in [-4, 4) on a grid of 2^-21: the plain case; no row-wise softmax saturates"""
    return _span(draws, rows, n, -4.0, 4.0)


@_regime()
def normal(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """near-normal, deviation 1: a sum of 12 draws of 16 bits, less its mean, on a grid of 2^-16"""
    parts = draws.words(3 * rows * n).view("<u2").reshape(-1, 12)
    total = np.zeros(rows * n, dtype=np.int64)
    for column in range(12):
        total += parts[:, column]
    return ((total - 12 * 65535 // 2) * 2.0**-16).reshape(rows, n)


@_regime()
def published(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """uniform in [-10, 10), as the seed paper draws"""
    return _span(draws, rows, n, -10.0, 10.0)


@_regime()
def uniform_1e3(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """uniform in [-1000, 1000)"""
    return _span(draws, rows, n, -1000.0, 1000.0)


# Magnitudes.


@_regime()
def small(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """magnitudes 2^-14 to 2^-7 of either sign: where f(x) ≈ x and only relative error shows"""
    exponent = draws.bits(rows * n, 32).reshape(rows, n) % 7
    return _signs(draws, rows, n) * np.ldexp(_span(draws, rows, n, 1.0, 2.0), -14 + exponent)


@_regime(alone=True)
def tiny(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """around the smallest normal number of the dtype, subnormal ones included; odd rows around 64 times its root"""
    exponent = draws.bits(rows * n, 3).reshape(rows, n) - 6
    unit = _column(rows, info.smallest_normal, 64 * math.sqrt(info.smallest_normal))
    return _signs(draws, rows, n) * np.ldexp(_span(draws, rows, n, 1.0, 2.0), exponent) * unit


@_regime(alone=True)
def large(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """half the elements within a factor of two of max/10 of the dtype (odd rows: of its root/64), half as uniform"""
    big = _span(draws, rows, n, 0.5, 2.0) * _column(rows, info.max / 10, math.sqrt(info.max) / 64)
    hit = draws.bits(rows * n, 1).reshape(rows, n) == 1
    return np.where(hit, _signs(draws, rows, n) * big, uniform(draws, rows, n, info))


@_regime(alone=True)
def max_over_10(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """uniform within max/10 of the dtype, either sign (a published adversarial bucket)"""
    return _span(draws, rows, n, -1.0, 1.0) * (info.max / 10)


@_regime(alone=True)
def moderate_large(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """magnitudes 2^7 to 2^13, each row with all exponents: exp overflows unless shifted by the row's maximum"""
    exponent = draws.bits(rows * n, 32).reshape(rows, n) % 6
    block = _signs(draws, rows, n) * np.ldexp(_span(draws, rows, n, 1.0, 2.0), 7 + exponent)
    block[:, 0] = np.abs(block[:, 0])
    return block


@_regime(alone=True)
def spread(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """in [-4, 4) but 64 at one and -64 at the other end of each row: a spread of 128, beyond exp's float32 range"""
    block = uniform(draws, rows, n, info)
    block[:, 0], block[:, -1] = 64.0, -64.0
    block[1::2] = block[1::2, ::-1]
    return block


@_regime(alone=True)
def offset(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """a mean of -4096 (odd rows 4096) far above the deviation (1, or 2 spacings of the dtype): cancellation"""
    deviation = max(1.0, 2 * 4096.0 * info.eps)
    return _column(rows, -4096.0, 4096.0) + deviation * normal(draws, rows, n, info)


@_regime(dtypes=("float16",))
def overflow_f16(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """about 256 (odd rows: second half negative): squares, products and partial sums pass 65504, results need not"""
    block = 256.0 + draws.bits(rows * n, 3).reshape(rows, n) * 0.25
    block[1::2, (n + 1) // 2 :] *= -1.0
    return block


@_regime(dtypes=("float16", "bfloat16"))
def half_sum(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """constant rows in [1/2, 3/4) with a full mantissa: long sums kept in half precision drift one way"""
    odd = 2 * draws.bits(rows, 8)[:, None] + 1
    return np.broadcast_to(0.5 + odd * 2.0**-11, (rows, n))


# Patterns.


@_regime(alone=True)
def zeros(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """all zero"""
    return np.zeros((rows, n))


@_regime(alone=True)
def signed_zeros(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """0 and -0 at random, one row in four uniform"""
    block = 0.0 * _signs(draws, rows, n)
    block[3::4] = uniform(draws, rows, n, info)[3::4]
    return block


@_regime(alone=True)
def equal(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """one value everywhere"""
    return np.broadcast_to(uniform(draws, 1, 1, info), (rows, n))


@_regime(alone=True)
def constant_rows(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """each row one value (no deviation), row 0 all zero"""
    column = uniform(draws, rows, 1, info)
    column[:1] = 0.0
    return np.broadcast_to(column, (rows, n))


@_regime()
def negative(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """every value in [-4, -1/4), every third row 8192 times that: a lane padded with 0 would win a maximum"""
    return _span(draws, rows, n, -4.0, -0.25) * _column(rows, 1.0, 1.0, 8192.0)


@_regime()
def far_negative(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """every value in [-4, -2), every third row 8192 times that: a lane padded with 0 or -10000 would win a maximum"""
    return _span(draws, rows, n, -4.0, -2.0) * _column(rows, 1.0, 1.0, 8192.0)


@_regime()
def lowest(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """every value in [-max/16, -max/32) of the dtype: a lane filled with a finite number would win a maximum"""
    return _span(draws, rows, n, -1.0, -0.5) * (info.max / 16)


@_regime()
def sorted_(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """rows ascending (the running maximum moves at every step), odd rows descending"""
    block = np.sort(uniform(draws, rows, n, info), axis=1)
    block[1::2] = block[1::2, ::-1]
    return block


@_regime()
def ties(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """integers -2 to 2, the maximum planted at both ends of every row"""
    block = draws.integers(rows * n, 5).reshape(rows, n) - 2.0
    block[:, 0] = block[:, -1] = 2.0
    return block


@_regime(alone=True)
def outlier(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """near-normal with one outlier of ±1024 a row: last, first past the last power of two, first, middle, in turn"""
    block = normal(draws, rows, n, info)
    boundary = 1 << max(0, (n - 1).bit_length() - 1)
    places = np.resize(np.array([n - 1, min(boundary, n - 1), 0, n // 2]), rows)
    block[np.arange(rows), places] = np.resize(np.array([1024.0] * 4 + [-1024.0] * 4), rows)
    return block


@_regime()
def correlated(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """as uniform, but every tensor gets the same draws (x equals its residual)"""
    return uniform(draws, rows, n, info)


# Non-finite values.


@_regime(alone=True)
def nonfinite(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """uniform, rows in turn: one element in twenty NaN, Inf, -Inf or 0; the same with -Inf only; with Inf only; none"""
    block = uniform(draws, rows, n, info)
    hit = draws.integers(rows * n, 20).reshape(rows, n) == 0
    hit[np.arange(rows), draws.integers(rows, n)] = True
    hit[3::4] = False
    _inject(draws, block, hit)
    block[1::4][hit[1::4]], block[2::4][hit[2::4]] = -np.inf, np.inf
    return block


@_regime(alone=True)
def nan_injected(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """as the seed paper's companion: uniform in [-10, 10), each element NaN, Inf, -Inf or 0 with probability 5%"""
    block = published(draws, rows, n, info)
    return _inject(draws, block, draws.integers(rows * n, 20).reshape(rows, n) == 0)


def _inject(draws: Draws, block: Block, hit: np.ndarray) -> Block:
    block[hit] = np.array([np.nan, np.inf, -np.inf, 0.0])[draws.bits(block.size, 2).reshape(block.shape)[hit]]
    return block


@_regime(alone=True)
def one_nan(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """uniform with one NaN, the last element of one row, and one more, the first element of the row before it"""
    block = uniform(draws, rows, n, info)
    row = draws.integer(rows)
    block[row, -1] = np.nan
    if rows > 1:
        block[row - 1, 0] = np.nan
    return block


@_regime(alone=True)
def one_inf(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """uniform with one Inf, the last element of one row, and one -Inf, the first element of the row before it"""
    block = uniform(draws, rows, n, info)
    row = draws.integer(rows)
    block[row - 1, 0], block[row, -1] = -np.inf, np.inf
    return block


@_regime(alone=True)
def infinite_rows(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """rows in turn: all -Inf, -Inf but the last element, uniform, all Inf"""
    block = uniform(draws, rows, n, info)
    block[0::4] = -np.inf
    block[1::4, :-1] = -np.inf
    block[3::4] = np.inf
    return block


# Regimes of masks and indices; floats are uniform where nothing hides them.


@_regime()
def masked_rows(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """masks: rows in turn all False, all True, True at the last element only, random"""
    return uniform(draws, rows, n, info)


@_regime()
def all_ignored(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """indices that can be ignored are all ignored"""
    return uniform(draws, rows, n, info)


@_regime(dtypes=("float32",))
def none_ignored(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """indices that can be ignored are not, in so many rows that float16 does not count them"""
    return uniform(draws, rows, n, info)


@_regime()
def hidden_rows(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """every second row NaN, Inf or -Inf throughout, where indices can be ignored: just these are"""
    block = uniform(draws, rows, n, info)
    block[1::2] = _column(rows // 2, np.nan, np.inf, -np.inf)
    return block


@_regime()
def hidden_elements(draws: Draws, rows: int, n: int, info: Float) -> Block:
    """every third element NaN, Inf or -Inf; masks are False there"""
    block = uniform(draws, rows, n, info)
    block[:, 1::3] = _column((n + 1) // 3, np.nan, np.inf, -np.inf).T
    return block
