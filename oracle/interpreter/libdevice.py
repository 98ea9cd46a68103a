"""`libdevice` functions in numpy, by the names of NVIDIA's symbols.

Types, arity and broadcasting are still checked by Triton's own declarations (`triton.language.extra.cuda.libdevice`);
values are computed in float64 and rounded, which is inside the error bounds that CUDA documents for each function.
Symbols that are not listed (directed roundings, bit tricks) are refused as not supported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.runtime.interpreter as stock
from scipy import special

from oracle.interpreter.bfloat16 import TensorHandle, np_dtype
from oracle.interpreter.errors import Unsupported


def _round_half_away(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def _gammaln(x: np.ndarray) -> np.ndarray:
    return np.where(np.isneginf(x), np.inf, special.gammaln(x))


# on float64 arrays; the key is the symbol without "__nv_", "fast_" and the float32 suffix
FLOAT: dict[str, Callable[..., Any]] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "cyl_bessel_i0": special.i0,
    "cyl_bessel_i1": special.i1,
    "erf": special.erf,
    "erfc": special.erfc,
    "erfcinv": special.erfcinv,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x),
    "exp2": np.exp2,
    "expm1": np.expm1,
    "fabs": np.abs,
    "fdim": lambda x, y: np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0.0)),
    "fdivide": np.divide,
    "floor": np.floor,
    "fma": lambda x, y, z: x * y + z,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "j0": special.j0,
    "j1": special.j1,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "lgamma": _gammaln,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "nearbyint": np.rint,
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "normcdf": special.ndtr,
    "normcdfinv": special.ndtri,
    "pow": np.power,
    "powi": np.power,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "remainder": lambda x, y: x - y * np.rint(x / y),
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "rint": np.rint,
    "rnorm3d": lambda x, y, z: 1.0 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, w: 1.0 / np.sqrt(x * x + y * y + z * z + w * w),
    "round": _round_half_away,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "saturate": lambda x: np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "sin": np.sin,
    "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "tgamma": special.gamma,
    "trunc": np.trunc,
    "y0": special.y0,
    "y1": special.y1,
    "dadd_rn": np.add,
    "ddiv_rn": np.divide,
    "dmul_rn": np.multiply,
    "drcp_rn": np.reciprocal,
    "dsqrt_rn": np.sqrt,
    "dsub_rn": np.subtract,
    "fadd_rn": np.add,
    "fdiv_rn": np.divide,
    "fmul_rn": np.multiply,
    "frcp_rn": np.reciprocal,
    "frsqrt_rn": lambda x: 1.0 / np.sqrt(x),
    "fsqrt_rn": np.sqrt,
    "fsub_rn": np.subtract,
}
# on the arguments as they are
EXACT: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "llabs": np.abs,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "isinff": np.isinf,
    "isinfd": np.isinf,
    "isnanf": np.isnan,
    "isnand": np.isnan,
    "signbitf": np.signbit,
    "signbitd": np.signbit,
    "nextafter": np.nextafter,
    "nextafterf": np.nextafter,
    "llrint": np.rint,
    "llrintf": np.rint,
    "llround": _round_half_away,
    "llroundf": _round_half_away,
    "popc": np.bitwise_count,
    "popcll": np.bitwise_count,
    "float2int_rz": np.trunc,
    "float2int_rn": np.rint,
    "float2int_rd": np.floor,
    "float2int_ru": np.ceil,
    "int2float_rn": lambda x: x,
    "float_as_int": lambda x: x.view(np.int32),
    "float_as_uint": lambda x: x.view(np.uint32),
    "int_as_float": lambda x: x.view(np.float32),
    "uint_as_float": lambda x: x.view(np.float32),
    "double_as_longlong": lambda x: x.view(np.int64),
    "longlong_as_double": lambda x: x.view(np.float64),
}


def create_extern_elementwise(
    self: Any, lib_name: str, lib_path: str, symbol: str, args: list[Any], ret_type: Any, is_pure: bool
) -> Any:
    """Stands for a call into a device library: libdevice in numpy; anything else is refused as not supported."""
    name = symbol.removeprefix("__nv_")
    values = [handle.data for handle in args]
    if name in EXACT:
        out = EXACT[name](*values)
    else:
        plain = name.removeprefix("fast_")
        function = FLOAT.get(plain) or FLOAT.get(plain.removesuffix("f"))
        if function is None:
            raise Unsupported(f"the device function {symbol} cannot run in the interpreter")
        out = function(*(value.astype(np.float64) for value in values))
    return TensorHandle(np.asarray(out).astype(np_dtype(ret_type)), ret_type.scalar)


def install(patch_builtins: Callable[[Any], None]) -> None:
    """`patch_builtins` makes a module's builtins callable from interpreted kernels."""
    from triton.language.extra import libdevice as generic
    from triton.language.extra.cuda import libdevice as cuda

    patch_builtins(cuda)
    for name in vars(generic):
        if not name.startswith("_") and hasattr(cuda, name):
            setattr(generic, name, getattr(cuda, name))
    stock.InterpreterBuilder.create_extern_elementwise = create_extern_elementwise
