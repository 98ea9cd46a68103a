"""Draws the values of one tensor in its dtype, by its role: floats of a regime, integers, a mask, indices.

Each is rounded once (float64 to the dtype, to nearest even), so that the bytes are the same everywhere.
"""

from __future__ import annotations

import math

import numpy as np

from oracle.dtypes import FLOATS, NUMPY
from oracle.rng import Draws
from oracle.values import REGIMES


def floats(regime: str, draws: Draws, shape: tuple[int, ...], dtype: str, positive: bool = False) -> np.ndarray:
    """Values of a floating tensor in `dtype`; `positive` takes absolute values (zero stays zero)."""
    rows, n = _block_shape(shape)
    if rows * n == 0:
        return np.zeros(shape, dtype=NUMPY[dtype])
    block = REGIMES[regime].draw(draws, rows, n, FLOATS[dtype]).reshape(shape)
    return round_to(np.abs(block) if positive else block, dtype)


def whole(regime: str, draws: Draws, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of an integer tensor that is no index: the regime's float32 values, rounded and kept within ±127."""
    block = np.nan_to_num(floats(regime, draws, shape, "float32").astype(np.float64), posinf=127.0, neginf=-127.0)
    limits = np.iinfo(NUMPY[dtype])
    return np.rint(np.clip(block, max(-127, limits.min), 127)).astype(NUMPY[dtype])


def mask(regime: str, draws: Draws, shape: tuple[int, ...]) -> np.ndarray:
    """About three of four True. Every row has a True element, except in regime `masked_rows`."""
    rows, n = _block_shape(shape)
    if rows * n == 0:
        return np.zeros(shape, dtype=np.bool_)
    block = draws.bits(rows * n, 2).reshape(rows, n) != 0
    block[np.arange(rows), draws.integers(rows, n)] = True
    if regime == "hidden_elements":
        block[:, 0], block[:, 1::3] = True, False
    if regime == "masked_rows":
        block[0::4], block[1::4], block[2::4, :-1], block[2::4, -1] = False, True, False, True
        block[-1] = False  # nothing after it hides what is written past its end
    return block.reshape(shape)


def indices(
    regime: str, draws: Draws, shape: tuple[int, ...], dtype: str, high: int, ignored: int | None = None
) -> np.ndarray:
    """Integers in [0, high), both ends planted. `ignored` replaces about one in four, but never all of them; regimes
    `all_ignored`, `none_ignored` and `hidden_rows` (every second one) say otherwise."""
    count = math.prod(shape)
    drawn = draws.integers(count, max(high, 1))
    if count > 1:
        drawn[0], drawn[-1] = 0, high - 1
    if ignored is not None and count:
        drawn[draws.bits(count, 2) == 0] = ignored
        drawn[draws.integer(count)] = other = (ignored + 1) % high
        if regime in ("none_ignored", "hidden_rows"):
            drawn[drawn == ignored] = other
        if regime == "all_ignored":
            drawn[:] = ignored
        if regime == "hidden_rows":
            drawn[1::2] = ignored
    return drawn.astype(NUMPY[dtype]).reshape(shape)


def round_to(block: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 rounded to nearest even in `dtype` (bfloat16 by way of float32: exact for the 24-bit values drawn here)."""
    if dtype == "bfloat16":
        block = block.astype(np.float32)
    return block.astype(NUMPY[dtype])


def _block_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    n = shape[-1] if shape else 1
    return math.prod(shape[:-1]), n
