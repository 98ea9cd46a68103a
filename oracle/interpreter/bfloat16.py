"""Floats of 16 and 8 bits computed as torch computes them: each operation in float32, rounded once to nearest even.

The stock interpreter keeps bfloat16 as uint16 and float8 as uint8 and lets numpy compute on the bits. Here they are
numpy arrays of ml_dtypes types, so that everything that copies, splats, selects or compares is right by itself; what
is left are casts, products, and the places where numpy and Triton differ.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import triton.language as tl
import triton.runtime.interpreter as stock
from scipy import special

TensorHandle = stock.TensorHandle

SMALL: dict[Any, np.dtype] = {
    tl.bfloat16: np.dtype(ml_dtypes.bfloat16),
    tl.float8e5: np.dtype(ml_dtypes.float8_e5m2),
    tl.float8e5b16: np.dtype(ml_dtypes.float8_e5m2fnuz),
    tl.float8e4nv: np.dtype(ml_dtypes.float8_e4m3fn),
    tl.float8e4b8: np.dtype(ml_dtypes.float8_e4m3fnuz),
}
BFLOAT16 = SMALL[tl.bfloat16]
NARROW = frozenset({*SMALL.values(), np.dtype(np.float16)})  # rounded more coarsely than float32
FLOAT8 = frozenset(SMALL.values()) - {BFLOAT16}
SATURATING = SMALL[tl.float8e4nv]  # has no infinity: torch and sm_90 clamp to the largest finite value
_LARGEST = float(ml_dtypes.finfo(SATURATING).max)
_PLAIN = "int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64"
_NUMPY: dict[Any, np.dtype] = {
    **{getattr(tl, name): np.dtype(name) for name in _PLAIN.split()},
    **{tl.int1: np.dtype(np.bool_), tl.float8e4b15: np.dtype(np.uint8)},
    **SMALL,
}


def np_dtype(dtype: Any) -> np.dtype:
    """The numpy dtype in which the interpreter keeps values of a Triton dtype (blocks by their element)."""
    scalar = dtype.element_ty if isinstance(dtype, tl.block_type) else dtype
    if isinstance(scalar, tl.pointer_type):  # not hashable
        return np.dtype(np.uint64)
    return _NUMPY[scalar]


def convert(values: np.ndarray, dtype: np.dtype, toward_zero: bool = False) -> np.ndarray:
    """Values cast to a dtype: floats to nearest even by way of float32 (as torch), or toward zero."""
    if values.dtype == dtype:
        return values
    if values.dtype in FLOAT8 or values.dtype == BFLOAT16 or dtype in SMALL.values():
        values = values.astype(np.float64 if dtype == np.float64 else np.float32)
    if dtype == SATURATING:
        values = np.clip(values, -_LARGEST, _LARGEST)
    out = values.astype(dtype)
    return _step_back(values, out) if toward_zero and dtype in NARROW else out


def _step_back(exact: np.ndarray, rounded: np.ndarray) -> np.ndarray:
    """Where rounding moved away from zero, the neighbour nearer to zero: one less in the bits of the magnitude."""
    away = np.abs(rounded.astype(np.float32)) > np.abs(exact)
    bits = rounded.view(f"u{rounded.dtype.itemsize}")
    return (bits - away.astype(bits.dtype)).view(rounded.dtype)


def widened(values: np.ndarray) -> np.ndarray:
    """float32 for narrow floats, anything else as it is."""
    return values.astype(np.float32) if values.dtype in NARROW else values


def binary_op(self: Any, lhs: Any, rhs: Any, op: Any) -> Any:
    """One numpy operation on two handles of one dtype; comparisons give int1, int1 arithmetic wraps as on a GPU."""
    left, right = lhs.data, rhs.data
    scalar = lhs.dtype.scalar
    if left.dtype == np.bool_ and right.dtype == np.bool_:
        out = (op(left.astype(np.int8), right.astype(np.int8)) & 1).astype(np.bool_)
    elif left.dtype in FLOAT8:
        out = op(left.astype(np.float32), right.astype(np.float32))
    else:
        out = op(left, right)
    if out.dtype == np.bool_:
        return TensorHandle(out, tl.int1)
    return TensorHandle(convert(out, np_dtype(scalar)), scalar)


def unary_op(self: Any, arg: Any, op: Any) -> Any:
    return TensorHandle(convert(op(widened(arg.data)), arg.data.dtype), arg.dtype.scalar)


def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
    return TensorHandle(convert(src.data, np_dtype(dst_type)), dst_type.scalar)


def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding_mode: Any) -> Any:
    toward_zero = rounding_mode == stock._ir.ROUNDING_MODE.RTZ
    return TensorHandle(convert(src.data, np_dtype(dst_type), toward_zero), dst_type.scalar)


def create_dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, max_num_imprecise_acc: Any) -> Any:
    """Exact products, float32 sums (TF32 is not simulated); a float16 accumulator is rounded once per product."""
    acc = widened(d.data)
    out = np.matmul(widened(a.data), widened(b.data), dtype=acc.dtype) + acc
    return TensorHandle(convert(out, d.data.dtype), d.dtype.scalar)


def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
    """x·y + z rounded once. Products of two narrow floats are exact in float64."""
    dtype = z.data.dtype
    exact = {np.dtype(np.float32): "fma_fp32", np.dtype(np.float64): "fma_fp64"}.get(dtype)
    if exact and hasattr(stock._interpreter, exact):
        out = getattr(stock._interpreter, exact)(*np.broadcast_arrays(x.data, y.data, z.data))
    else:
        a, b, c = (handle.data.astype(np.float64) for handle in (x, y, z))
        out = convert(a * b + c, dtype)
    return TensorHandle(out, z.dtype.scalar)


def create_clampf(self: Any, arg: Any, lo: Any, hi: Any, propagate_nans: Any) -> Any:
    if propagate_nans == stock._ir.PROPAGATE_NAN.NONE:
        return binary_op(self, binary_op(self, arg, lo, np.fmax), hi, np.fmin)
    return binary_op(self, binary_op(self, arg, lo, np.maximum), hi, np.minimum)


def create_minnumf(self: Any, lhs: Any, rhs: Any) -> Any:
    return binary_op(self, lhs, rhs, np.fmin)


def create_maxnumf(self: Any, lhs: Any, rhs: Any) -> Any:
    return binary_op(self, lhs, rhs, np.fmax)


def create_erf(self: Any, arg: Any) -> Any:
    return TensorHandle(special.erf(arg.data.astype(np.float64)).astype(arg.data.dtype), arg.dtype.scalar)


def get_bf16(self: Any, value: float) -> Any:
    return TensorHandle(convert(np.array([value], np.float32), BFLOAT16), tl.bfloat16)


def install() -> None:
    """Give the stock interpreter these dtypes and operations."""
    stock._get_np_dtype = np_dtype
    for operation in (
        *(binary_op, unary_op, cast_impl, create_fp_to_fp, create_dot, create_fma),
        *(create_clampf, create_minnumf, create_maxnumf, create_erf, get_bf16),
    ):
        setattr(stock.InterpreterBuilder, operation.__name__, operation)
