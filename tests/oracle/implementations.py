"""Right and wrong implementations in NumPy, built in as many ways as kernels are: evidence for the `derived` tolerance.

    python tests/oracle/implementations.py

prints, per operator, dtype and implementation, the largest error / tolerance over all measured cases (≤ 1 passes), how
many fail, and the regime of the largest.
float32 arithmetic is NumPy's; `exp`, `divide` and `rsqrt` err as the GPU's approximate instructions may (PTX manual).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import ml_dtypes
import numpy as np
import torch
from answers import task_of

from oracle import scale
from oracle.case import Case
from oracle.compare import statistics, wrong_elements
from oracle.dtypes import NUMPY
from oracle.inputs import Inputs, build
from oracle.reference import reference
from oracle.schema import Task, Tensor
from oracle.tolerance import policy

F32 = np.float32
HALF = {"float32": np.float16, "float16": np.float16, "bfloat16": ml_dtypes.bfloat16}


def off(values: np.ndarray, ulps: float) -> np.ndarray:
    """Values changed by up to `ulps` units of 2^-23, differently for neighbours, always the same way."""
    pattern = np.sin(np.arange(values.size) * 12.9898).reshape(values.shape)
    return (values.astype(np.float64) * (1 + ulps * 2.0**-23 * pattern)).astype(F32)


def exp(x: np.ndarray) -> np.ndarray:
    """ex2.approx(x · log2 e): the argument is rounded, the instruction errs by 2 ulp and flushes subnormal results."""
    with np.errstate(over="ignore"):
        result = off(np.exp2((x * F32(1.4426950408889634)).astype(np.float64)), 2)
    return np.where(result < 2.0**-126, F32(0), result)


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """div.full: 2 ulp."""
    return off(np.asarray(a, np.float64) / b, 2)


def rsqrt(x: np.ndarray) -> np.ndarray:
    """rsqrt.approx: 2^-22.4 relative, about 1.5 ulp."""
    return off(1 / np.sqrt(x.astype(np.float64)), 1.5)


# --- sums along the last dim, float32 unless the values are of another dtype ---------------------------------------


def sequential(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x, axis=-1, dtype=x.dtype)[..., -1]


def tree(x: np.ndarray) -> np.ndarray:
    while x.shape[-1] > 1:
        if x.shape[-1] % 2:
            x = np.concatenate([x, np.zeros_like(x[..., :1])], -1)
        x = x[..., 0::2] + x[..., 1::2]
    return x[..., 0]


def lanes(x: np.ndarray, block: int = 128) -> np.ndarray:
    """One running sum per lane over blocks, then a tree: what a loop over `tl.load` blocks does."""
    fill = -x.shape[-1] % block
    x = np.concatenate([x, np.zeros((*x.shape[:-1], fill), x.dtype)], -1)
    blocks = x.reshape(*x.shape[:-1], -1, block)
    total = np.zeros((*x.shape[:-1], block), x.dtype)
    for place in range(blocks.shape[-2]):
        total = total + blocks[..., place, :]
    return tree(total)


SUMS = {"sequential": sequential, "tree": tree, "lanes": lanes}


def in_half(x: np.ndarray, half: type) -> np.ndarray:
    """A running sum kept in half precision: wrong."""
    total = np.zeros(x.shape[:-1], half)
    for place in range(x.shape[-1]):
        total = (total.astype(F32) + x[..., place].astype(F32)).astype(half)
    return total.astype(F32)


# --- operators: (float32 copies of the inputs, dtype of the case) → float32 result, rounded to the dtype afterwards ----


def softmax(x, total=tree, base2=False, half=None):
    peak = x.max(-1, keepdims=True)
    if base2:
        scaled = x * F32(1.4426950408889634)
        e = off(np.exp2((scaled - scaled.max(-1, keepdims=True)).astype(np.float64)), 2)
    else:
        e = exp(x - peak)
    if half is not None:
        e = e.astype(half).astype(F32)
    return divide(e, total(e)[..., None])


def online_softmax(x, block=64):
    peak = np.full(x.shape[:-1], -np.inf, F32)
    total = np.zeros(x.shape[:-1], F32)
    for start in range(0, x.shape[-1], block):
        part = x[..., start : start + block]
        new = np.maximum(peak, part.max(-1))
        total = total * exp(peak - new) + tree(exp(part - new[..., None]))
        peak = new
    return divide(exp(x - peak[..., None]), total[..., None])


def layer_norm(x, total=tree, half=None):
    n = F32(x.shape[-1])
    centred = x - (total(x) / n)[..., None]
    inverse = rsqrt(total(centred * centred) / n + F32(1e-5))
    if half is not None:  # normalised value rounded on the way, as before a multiplication by a half weight
        return ((centred * inverse[..., None]).astype(half) * half(1)).astype(F32)
    return centred * inverse[..., None]


def welford(x):
    mean, square = np.zeros(x.shape[:-1], F32), np.zeros(x.shape[:-1], F32)
    for place in range(x.shape[-1]):
        delta = x[..., place] - mean
        mean = mean + delta / F32(place + 1)
        square = square + delta * (x[..., place] - mean)
    return (x - mean[..., None]) * rsqrt(square / F32(x.shape[-1]) + F32(1e-5))[..., None]


def rms_norm(x, total=tree, half=None):
    factor = rsqrt(total(x * x) / F32(x.shape[-1]) + F32(1e-5))[..., None]
    return (x.astype(half) * factor.astype(half)).astype(F32) if half is not None else x * factor


def sigmoid(x):
    return divide(F32(1), F32(1) + exp(-x))


def tanh(x):
    return F32(2) * sigmoid(F32(2) * x) - F32(1)


def gelu(x, half=None):
    inner = F32(0.7978845608028654) * (x + F32(0.044715) * x * x * x)
    if half is not None:
        return ((F32(0.5) * x * (F32(1) + np.tanh(inner))).astype(half)).astype(F32)
    return F32(0.5) * x * (F32(1) + tanh(inner))


def gelu_by_sigmoid(x):
    return x * sigmoid(F32(2) * (F32(0.7978845608028654) * (x + F32(0.044715) * x * x * x)))


def silu(x, half=None):
    return (x * sigmoid(x).astype(half).astype(F32)) if half is not None else x * sigmoid(x)


def attention(q, k, v, half=None, total=tree):
    scores = matmul(q, np.ascontiguousarray(k.T), total) * F32(1 / np.sqrt(q.shape[-1]))
    p = softmax(scores, total)
    return matmul(p.astype(half).astype(F32) if half is not None else p, v, total)


def flash(q, k, v, half=None, block=64):
    """Weights relative to the running maximum, rounded before the product, divided by their sum at the end."""
    result = np.zeros((q.shape[0], v.shape[1]), F32)
    peak, total = np.full(q.shape[0], -np.inf, F32), np.zeros(q.shape[0], F32)
    for start in range(0, k.shape[0], block):
        scores = matmul(q, np.ascontiguousarray(k[start : start + block].T), tree) * F32(1 / np.sqrt(q.shape[-1]))
        new = np.maximum(peak, scores.max(-1))
        p, shrink = exp(scores - new[:, None]), exp(peak - new)
        total = total * shrink + tree(p)
        p = p.astype(half).astype(F32) if half is not None else p
        result = result * shrink[:, None] + matmul(p, v[start : start + block], tree)
        peak = new
    return divide(result, total[:, None])


def matmul(a, b, total=lanes):
    return total(a[:, None, :] * b.T[None])


def cut(x: np.ndarray, bits: int) -> np.ndarray:
    """float32 with its mantissa cut to `bits` stored bits, as tensor cores do to TF32 operands (10)."""
    return (np.ascontiguousarray(x, F32).view(np.uint32) & np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)).view(F32)


def blocks_in_half(a, b, half, block=32):
    """tl.dot over blocks of K, whose running sum is kept in half precision: wrong."""
    total = np.zeros((a.shape[0], b.shape[1]), half)
    for start in range(0, a.shape[1], block):
        part = a[:, start : start + block] @ b[start : start + block]
        total = (total.astype(F32) + part).astype(half)
    return total.astype(F32)


Right = Callable[..., np.ndarray]

RIGHT: dict[str, dict[str, Right]] = {
    "sum": {name: (lambda x, h, f=f: f(x)) for name, f in SUMS.items()},
    "cumsum": {"sequential": lambda x, h: np.cumsum(x, -1, dtype=F32)},
    "matmul": {name: (lambda a, b, h, f=f: matmul(a, b, f)) for name, f in SUMS.items()},
    "softmax": {name: (lambda x, h, f=f: softmax(x, f)) for name, f in SUMS.items()}
    | {
        "base 2": lambda x, h: softmax(x, base2=True),
        "online": lambda x, h: online_softmax(x),
    },
    "layer_norm": {name: (lambda x, h, f=f: layer_norm(x, f)) for name, f in SUMS.items()}
    | {"welford": lambda x, h: welford(x), "rounded on the way": lambda x, h: layer_norm(x, half=h)},
    "rms_norm": {name: (lambda x, h, f=f: rms_norm(x, f)) for name, f in SUMS.items()}
    | {"rounded on the way": lambda x, h: rms_norm(x, half=h)},
    "sigmoid": {"exp": lambda x, h: sigmoid(x)},
    "silu": {"exp": lambda x, h: silu(x), "rounded on the way": lambda x, h: silu(x, h)},
    "gelu": {"tanh by sigmoid": lambda x, h: gelu(x), "sigmoid": lambda x, h: gelu_by_sigmoid(x)},
    "attention": {
        "two passes": lambda q, k, v, h: attention(q, k, v),
        "weights rounded": lambda q, k, v, h: attention(q, k, v, h),
        "flash": lambda q, k, v, h: flash(q, k, v),
        "flash, weights rounded": lambda q, k, v, h: flash(q, k, v, h),
    },
}

WRONG: dict[str, dict[str, Right]] = {
    "sum": {"sum in half": lambda x, h: in_half(x, h), "zeros": lambda x, h: 0 * tree(x)},
    "matmul": {
        "sum in half": lambda a, b, h: in_half(a[:, None, :] * b.T[None], h),
        "blocks in half": lambda a, b, h: blocks_in_half(a, b, h),
        "zeros": lambda a, b, h: 0 * (a @ b),
    },
    "softmax": {
        "sum in half": lambda x, h: softmax(x, lambda e: in_half(e, h)),
        "zeros": lambda x, h: 0 * x,
        "uniform": lambda x, h: np.full_like(x, 1 / x.shape[-1]),
    },
    "layer_norm": {
        "sum in half": lambda x, h: layer_norm(x, lambda e: in_half(e, h)),
        "zeros": lambda x, h: 0 * x,
        "eps missing": lambda x, h: layer_norm(x) * (1 + F32(1e-5) / x.var(-1, keepdims=True)) ** F32(0.5),
    },
    "rms_norm": {"sum in half": lambda x, h: rms_norm(x, lambda e: in_half(e, h)), "zeros": lambda x, h: 0 * x},
    "gelu": {"zeros": lambda x, h: 0 * x, "erf": lambda x, h: torch.nn.functional.gelu(torch.from_numpy(x)).numpy()},
    "silu": {"zeros": lambda x, h: 0 * x, "sigmoid(2x)": lambda x, h: x * sigmoid(2 * x)},
}

MATMUL = (Tensor("a", ("M", "K")), Tensor("b", ("K", "N")))
FINITE = ("normal", "small", "constant_rows", "offset", "outlier", "zeros", "half_sum", "tiny", "large")
GENERIC = {
    "sum": task_of(
        lambda x: x.sum(-1), name="sum", scale=scale.total, in_range=scale.sums_fit, reduces="N", regimes=FINITE
    ),
    "cumsum": task_of(
        lambda x: x.cumsum(-1),
        name="cumsum",
        scale=lambda x: x.abs().cumsum(-1) * torch.arange(1, x.shape[-1] + 1).double().sqrt(),
        in_range=lambda x: x.abs().cumsum(-1) <= scale.LARGEST,
        reduces="N",
        regimes=FINITE,
    ),
    "matmul": task_of(
        lambda a, b: a @ b,
        MATMUL,
        dims={"M": 16, "K": 4, "N": 16},
        name="matmul",
        scale=scale.product,
        tf32=True,
        reduces="K",
        in_range=scale.products_fit,
        regimes=FINITE,
    ),
}


def run(implementation: Right, inputs: Inputs) -> np.ndarray:
    """The implementation's result in the dtype of the case."""
    dtype = inputs.case.dtype
    wide = [buffer.values().astype(F32) for buffer in inputs.tensors]
    half = HALF[dtype] if dtype != "float32" else None
    with np.errstate(all="ignore"):
        return implementation(*wide, half).astype(NUMPY[dtype])


def judge(task: Task, inputs: Inputs, got: np.ndarray, backend: str = "interpreter", name: str = "derived"):
    """(right, largest error / tolerance) of a result under a policy."""
    quantity = reference(task, inputs).outputs[0]
    bound = policy(name, backend).bounds(task, inputs, quantity)
    wrong = wrong_elements(got, quantity, bound)
    return not wrong.any(), statistics(got, quantity, bound, wrong)["max_ratio"] or 0.0


def regimes(task: Task) -> tuple[str, ...]:
    """The finite regimes that the task is judged with (all, for a generic one)."""
    return ("uniform", *(name for name in task.regimes if name not in NONFINITE))


def cases(task: Task, dtype: str, sizes: tuple[int, ...], regimes: tuple[str, ...]):
    """Built cases over sizes of the long dim (the reduced one, or the last) and regimes; other dims are small."""
    long = task.reduces or list(task.dims)[-1]
    for index, size in enumerate(sizes):
        for regime in regimes:
            dims = {name: size if name == long else min(dim.base, 16) for name, dim in task.dims.items()}
            yield build(task, Case(task.id, task.forms[0].name, dims, dtype, regime=regime, index=index))


def tasks() -> dict[str, Task]:
    """The measured operators: this module's generic tasks, else those of suite seed."""
    from agentloop.content import load_tasks

    return {task.name: task for task in load_tasks().values() if task.suite == "seed"} | GENERIC


def main() -> None:
    torch.set_num_threads(1)
    known = tasks()
    for op, dtype in itertools.product(RIGHT, ("float32", "float16", "bfloat16")):
        for label, group in (("right", RIGHT), ("WRONG", WRONG)):
            for name, implementation in group.get(op, {}).items():
                if dtype == "float32" and ("half" in name or "rounded" in name):
                    continue
                found = [
                    (*judge(known[op], inputs, run(implementation, inputs)), inputs.case.regime)
                    for inputs in cases(known[op], dtype, SIZES, regimes(known[op]))
                ]
                ratio, regime = max((ratio, regime) for _, ratio, regime in found)
                failed = sum(not right for right, _, _ in found)
                print(f"{op:11} {dtype:9} {label} {name:24} {ratio:11.4g} {failed:3} of {len(found)} fail  {regime}")


SIZES = (1, 3, 64, 257, 1025, 4097)
NONFINITE = ("nonfinite", "one_nan", "one_inf", "infinite_rows")

if __name__ == "__main__":
    main()
