"""Error scales for task files: the sum of absolute terms that a float32 implementation adds up.

A right float32 implementation errs by a small multiple of u32 × scale (u32 = 2^-24). What is given here is in float64,
in the shape of the output (or broadcastable to it). First-order error analysis: Higham, Accuracy and Stability of
Numerical Algorithms, 2nd ed., chapters 3 and 4 (running sums, blocked sums, inner products).
"""

from __future__ import annotations

from collections.abc import Callable

import torch


def growth(terms: int) -> float:
    """Growth of rounding error over a float32 sum of `terms` terms, as a factor of u32 · Σ|term|.

    A strictly sequential sum errs by at most (n−1) u and by about √n u for independent roundings; a blocked or tree sum
    by far less. √n, at least 1, admits every order of summation that right kernels use.
    """
    return max(1.0, float(terms)) ** 0.5


def total(terms: torch.Tensor, dim: int | tuple[int, ...] = -1, keepdim: bool = False) -> torch.Tensor:
    """Scale of a float32 sum of `terms` over `dim`: growth(n) · Σ|terms|."""
    dims = (dim,) if isinstance(dim, int) else dim
    count = 1
    for d in dims:
        count *= terms.shape[d] if terms.ndim else 1
    return growth(count) * terms.abs().sum(dim=dims, keepdim=keepdim) if terms.ndim else terms.abs()


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Scale of the matrix product a @ b accumulated in float32: growth(K) · |a| @ |b| (non-finite values as they fall)."""
    return growth(a.shape[-1]) * (a.abs() @ b.abs())


def sensitivity(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """|f(x)| + |x · f'(x)| of an elementwise function: its value and what one relative rounding of its argument does."""
    with torch.enable_grad():
        point = x.detach().clone().requires_grad_(True)
        value = function(point)
        (slope,) = torch.autograd.grad(value.sum(), point)
    moved = (x * slope).abs()
    return value.detach().abs() + torch.where(torch.isfinite(moved), moved, torch.zeros_like(moved))


def within(x: torch.Tensor, low: float, high: float) -> torch.Tensor:
    """Elementwise: zero or low ≤ |x| ≤ high; True too for a non-finite x, which has rules of its own."""
    size = x.abs()
    return (size == 0) | ((size >= low) & (size <= high)) | ~torch.isfinite(x)


def rows_within(x: torch.Tensor, low: float, high: float, keepdim: bool = True) -> torch.Tensor:
    """Per row of the last dim: the largest finite |x| is zero or in [low, high] (a row-wise formula is then safe)."""
    size = torch.where(torch.isfinite(x), x.abs(), torch.zeros_like(x))
    peak = size.amax(dim=-1, keepdim=keepdim) if x.shape[-1] else size.sum(dim=-1, keepdim=keepdim)
    return (peak == 0) | ((peak >= low) & (peak <= high))
