"""Counter-based randomness: the same words on any machine and library version.

A stream is Philox4x64-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) under a key hashed from
what the stream is for. Only raw 64-bit words and integer arithmetic are used, so that nothing depends on a library's
distributions or on the processor's transcendental functions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

GENERATOR_VERSION = 1  # part of every key: raise it when drawn bytes change on purpose

T = TypeVar("T")


def stream_key(*parts: str | int) -> int:
    """128-bit Philox key of a stream's name."""
    name = json.dumps([GENERATOR_VERSION, *parts], separators=(",", ":"))
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "little")


class Draws:
    """Draws from the stream named by `parts`; each call goes on where the one before it ended."""

    def __init__(self, *parts: str | int) -> None:
        self._philox = np.random.Philox(key=stream_key(*parts), counter=0)

    def words(self, count: int) -> np.ndarray:
        """`count` uniform 64-bit words (uint64)."""
        return np.asarray(self._philox.random_raw(count), dtype="<u8")

    def bits(self, count: int, width: int) -> np.ndarray:
        """`count` uniform integers in [0, 2**width), width ≤ 32, as int64; two to a word, low half first."""
        halves = self.words((count + 1) // 2).view("<u4")[:count]
        return (halves >> np.uint32(32 - width)).astype(np.int64)

    def integers(self, count: int, high: int) -> np.ndarray:
        """`count` integers in [0, high), high ≤ 2**31, as int64 (multiply and shift; bias below 2**-32 · high)."""
        return (self.bits(count, 32) * np.int64(high)) >> np.int64(32)

    def integer(self, high: int) -> int:
        return int(self.integers(1, high)[0])

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(len(options))]
