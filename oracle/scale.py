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


# Scales of common operators. x is float64; rows are along the last dim. Where a term is not finite the reference is not
# finite either, or the term's weight is zero: it counts 0.

UNIT = 2.0**-24  # unit roundoff of float32
LARGEST = 1e38  # sums of absolute terms up to here do not overflow float32 in any order
SHIFTED = 4096.0  # see `softmax`


LANES = 16  # smallest block that kernels sum a row by


def blocked(terms: int) -> float:
    """`growth` of a row's sum that is kept in at least `LANES` lanes: tl.sum over blocks, not one scalar after another."""
    return max(1.0, terms / LANES) ** 0.5


def row_sum(terms: torch.Tensor, keepdim: bool = False) -> torch.Tensor:
    """Scale of a float32 sum over the last dim, of any length, by blocks."""
    return blocked(terms.shape[-1]) * finite(terms).abs().sum(-1, keepdim=keepdim)


def relative(value: torch.Tensor, terms: int) -> torch.Tensor:
    """|value|·(1 + blocked): a value whose only error that grows is that of a sum of like signs (a norm, say)."""
    return finite(value).abs() * (1 + blocked(terms))


def finite(x: torch.Tensor) -> torch.Tensor:
    """x with 0 where it is not finite."""
    return torch.where(torch.isfinite(x), x, torch.zeros_like(x))


def softmax(x: torch.Tensor) -> torch.Tensor:
    """p·(|x|+|max|) for the exponent's argument, its mean over the row for the denominator's, and the row's sum.

    |x|+|max| (not |x−max|) admits kernels that scale by log2(e) before they subtract the maximum. It counts at most
    `SHIFTED`: beyond that size the maximum must be subtracted first, as contracts say.
    """
    p = finite(torch.softmax(x, -1))
    size = (finite(x).abs() + finite(x.amax(-1, keepdim=True)).abs()).clamp(max=SHIFTED)
    return p * (size + (p * size).sum(-1, keepdim=True) + blocked(x.shape[-1]) + 1)


def log_sum_exp(x: torch.Tensor) -> torch.Tensor:
    """Of log Σ exp(x) over the last dim, kept: |max| + |log Σ exp(x−max)| + the relative error of the sum."""
    peak = finite(x.amax(-1, keepdim=True))
    p = finite(torch.softmax(x, -1))
    shift = finite(x - peak).abs()
    return (
        peak.abs()
        + finite(torch.logsumexp(x, -1, keepdim=True) - peak).abs()
        + ((p * shift).sum(-1, keepdim=True) + blocked(x.shape[-1]))
    )


def sigmoid(x: torch.Tensor) -> torch.Tensor:
    """σ·(1 + (1−σ)·|x|): relative to the value, on both sides."""
    s = torch.sigmoid(x)
    return s * (1 + finite((1 - s) * x.abs()))


def silu(x: torch.Tensor) -> torch.Tensor:
    """|x|·(scale of σ)."""
    return finite(x).abs() * sigmoid(x)


def silu_fits(x: torch.Tensor, factor: torch.Tensor | float = 1.0) -> torch.Tensor:
    """Where silu(x)·factor does not hang on σ(x) as a float32 just below the smallest normal number, flushed or not."""
    gate = finite(torch.nn.functional.silu(x)).abs()
    return (gate >= 1e-36) | (gate * torch.as_tensor(factor).abs() <= 4e-38)


def gelu_erf(x: torch.Tensor) -> torch.Tensor:
    """0.5·|x|·(1 + |erf|) at most |x|, and the rounding of erf's argument: x²·φ(x)."""
    x = finite(x)
    return x.abs() + 0.4 * x * x * torch.exp(-x * x / 2)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """0.5·|x|·(1 + |tanh g|) at most |x|, and the rounding of g: |x|·|g|·sech²(g)."""
    x = finite(x)
    g = 0.7978845608028654 * (x + 0.044715 * x**3)
    return x.abs() * (1 + finite(g).abs() * (1 - torch.tanh(g) ** 2))


def layer_norm(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Of (x−mean)/sqrt(var+eps) by two passes or Welford: the rounding of x−mean, of the mean, of the variance's sum.

    Not excused: E[x²]−E[x]², whose error grows with the square of mean/deviation.
    """
    n = x.shape[-1]
    deviation = x - x.mean(-1, keepdim=True)
    inverse = torch.rsqrt((deviation * deviation).mean(-1, keepdim=True) + eps)
    mean_error = blocked(n) * x.abs().mean(-1, keepdim=True)
    variance_error = blocked(n) + UNIT * (2 * mean_error * inverse) ** 2
    return finite(inverse * (x.abs() + mean_error + variance_error * deviation.abs()))


def variance(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    """Of the two-pass or Welford variance over the last dim: blocked·(var + 2·mean(|x−mean|·|x|)), and the square of the
    mean's own error (Chan, Golub, LeVeque, 1983: n·u and n·u·κ, not the n·u·κ² of E[x²]−E[x]²)."""
    n = x.shape[-1]
    deviation = (x - x.mean(-1, keepdim=True)).abs()
    mean_error = blocked(n) * x.abs().mean(-1)
    terms = (deviation * deviation).mean(-1) + 2 * (deviation * x.abs()).mean(-1)
    return finite(blocked(n) * terms + UNIT * (2 * mean_error) ** 2) * (n / max(n - correction, 1))


def deviation(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    """Of the standard deviation by two passes or Welford: blocked·(std + rms), which bounds variance's scale / 2 std."""
    n = x.shape[-1]
    size = (x - x.mean(-1, keepdim=True)).square().mean(-1).sqrt() + x.square().mean(-1).sqrt()
    return finite(blocked(n) * size) * (n / max(n - correction, 1)) ** 0.5


def sums_fit(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> torch.Tensor:
    """Where a float32 sum of the finite terms cannot overflow on the way."""
    return finite(x).abs().sum(dim, keepdim=keepdim) <= LARGEST


def squares_fit(x: torch.Tensor, keepdim: bool = True) -> torch.Tensor:
    """Where a float32 sum of squares over the last dim does not overflow, deviations from the mean included."""
    return (4 * finite(x) ** 2).sum(-1, keepdim=keepdim) <= LARGEST


def products_fit(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Where a float32 product a @ b of the finite terms neither overflows nor loses all its terms to underflow."""
    size = finite(a).abs() @ finite(b).abs()
    return (size <= LARGEST) & ((size == 0) | (size >= 1e-36 * a.shape[-1]))


def attention(scores: torch.Tensor, terms: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Of softmax(scores) @ v: `scores` (…, M, N) as scaled and masked (−inf), `terms` their own error scale."""
    p = finite(torch.softmax(scores, -1))
    size = finite(terms) + (finite(scores).abs() + finite(scores.amax(-1, keepdim=True)).abs()).clamp(max=SHIFTED)
    return (p * (size + (p * size).sum(-1, keepdim=True) + blocked(v.shape[-2]) + 1)) @ finite(v).abs()


def attention_fits(
    scores: torch.Tensor, terms: torch.Tensor, v: torch.Tensor, seen: torch.Tensor | None = None
) -> torch.Tensor:
    """Where softmax(scores) @ v is well determined in float32; `scores` as scaled, before the mask `seen` (M, N).

    Not: rows whose scores err by 0.1 or more (`terms` is their scale), columns of v whose sum may overflow, non-finite
    values that a mask or a weight of 0 hides (kernels may skip them; weights may be rounded to float16, where 3e-8 is
    0), rows of nothing but −inf.
    """
    shown = torch.ones_like(scores, dtype=torch.bool) if seen is None else seen.expand(scores.shape)
    masked = torch.where(shown, scores, -torch.inf)
    sharp = (finite(terms).amax(-1, keepdim=True) * UNIT < 0.1) & (masked != -torch.inf).any(-1, keepdim=True)
    hidden = (~shown & (torch.isnan(scores) | (scores == torch.inf))).any(-1, keepdim=True)
    p = torch.softmax(masked, -1)
    skipped = (p < 1e-7).to(v.dtype) @ (~torch.isfinite(v)).to(v.dtype) > 0
    return sharp & ~hidden & ~skipped & sums_fit(v, -2, keepdim=True)
