"""The seed paper's ten bugs in float64: what each wrong kernel would return if it did not round.

A case *shows* a bug where the bug's exact result and the right one, both rounded to the output dtype, differ anywhere.
No check can flag another case, so that recall is read against the showing ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from oracle.drawing import round_to
from oracle.inputs import Inputs
from oracle.reference import Expected

FLASH_KEYS = 64  # keys that the flash kernel takes at once
TAIL = 128  # lanes of the chunks of softmax__bug_tail_128


def shows(kernel: str, inputs: Inputs, expected: Expected) -> bool:
    """Whether a case shows the bug of that name. Raises KeyError for a name that is not in `FAULTS`."""
    args, kwargs = inputs.arguments64()
    with torch.no_grad():
        wrong = FAULTS[kernel](*args, **kwargs).numpy()
    (right,) = expected.outputs
    with np.errstate(over="ignore"):
        got, want = (round_to(values, right.dtype).astype(np.float64) for values in (wrong, right.values))
    return not np.array_equal(got, want, equal_nan=True)


def _padded_softmax(x: torch.Tensor, width: int) -> torch.Tensor:
    """Softmax of rows lengthened by zeros to `width`, the lanes past the row left out of the result."""
    zeros = x.new_zeros((*x.shape[:-1], width - x.shape[-1]))
    return torch.softmax(torch.cat((x, zeros), -1), -1)[..., : x.shape[-1]]


def _softmax_other_zero(x: torch.Tensor) -> torch.Tensor:
    return _padded_softmax(x, 1 << (x.shape[-1] - 1).bit_length())


def _softmax_tail(x: torch.Tensor) -> torch.Tensor:
    return _padded_softmax(x, -(-x.shape[-1] // TAIL) * TAIL)


def _gelu_half_dropped(x: torch.Tensor) -> torch.Tensor:
    return 2 * torch.nn.functional.gelu(x, approximate="tanh")


def _silu_sigmoid_2x(x: torch.Tensor) -> torch.Tensor:
    return x * torch.sigmoid(2 * x)


def _leaky_relu_slope(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.leaky_relu(x, 0.1)


def _rms_norm_sqrt_forgotten(x: torch.Tensor) -> torch.Tensor:
    return x / ((x * x).mean(-1, keepdim=True) + 1e-5)


def _l2_norm_sqrt_forgotten(x: torch.Tensor) -> torch.Tensor:
    return x / ((x * x).sum(-1, keepdim=True) + 1e-12)


def _matmul_acc_assigned(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a[:, -1:] @ b[-1:]


def _attention_scale_dropped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT, -1) @ v


def _attention_not_rescaled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    top = torch.full((q.shape[0], 1), -math.inf, dtype=q.dtype)
    acc = torch.zeros_like(q)
    for start in range(0, k.shape[0], FLASH_KEYS):
        block = scores[:, start : start + FLASH_KEYS]
        top = torch.maximum(top, block.amax(-1, keepdim=True))
        acc = acc + torch.exp(block - top) @ v[start : start + FLASH_KEYS]
    return acc / torch.exp(scores - top).sum(-1, keepdim=True)


FAULTS: dict[str, Callable[..., torch.Tensor]] = {
    "softmax__bug_other_zero": _softmax_other_zero,
    "softmax__bug_tail_128": _softmax_tail,
    "gelu__bug_half_dropped": _gelu_half_dropped,
    "silu__bug_sigmoid_2x": _silu_sigmoid_2x,
    "leaky_relu__bug_slope": _leaky_relu_slope,
    "rms_norm__bug_sqrt_forgotten": _rms_norm_sqrt_forgotten,
    "l2_norm__bug_sqrt_forgotten": _l2_norm_sqrt_forgotten,
    "matmul__bug_acc_assigned": _matmul_acc_assigned,
    "attention__bug_scale_dropped": _attention_scale_dropped,
    "attention__bug_not_rescaled": _attention_not_rescaled,
}
