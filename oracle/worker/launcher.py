"""A launcher for all signatures, for Triton versions that have gcc build one for each.

Up to version 3.6 Triton writes, compiles and loads a C module for every signature that it launches, a good part of the
time of judging a candidate, whose sizes differ from case to case. Here the driver is called through ctypes; what is
passed, checked and refused is the same. Later versions bring such a launcher of their own, and are left alone.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import triton.backends.nvidia.driver as driver

_BASE = 13  # arguments before the kernel's own: grid, stream, function, flags, scratch, metadata, hooks
_INVALID_VALUE = 1  # CUDA_ERROR_INVALID_VALUE
_DEVICE_POINTER = 3  # CU_POINTER_ATTRIBUTE_DEVICE_POINTER
_WARP = 32

# Range of the integers that a parameter takes (Python's own conversions: "b" is an unsigned byte), and what it stores.
_CHECKED = {
    "i1": (0, 255, ctypes.c_uint8),
    "i8": (0, 255, ctypes.c_uint8),
    "i16": (-(1 << 15), (1 << 15) - 1, ctypes.c_int16),
    "i32": (-(1 << 31), (1 << 31) - 1, ctypes.c_int32),
    "i64": (-(1 << 63), (1 << 63) - 1, ctypes.c_int64),
}
_WRAPPING = {"u1": ctypes.c_uint8, "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32}
_WRAPPING |= {"u64": ctypes.c_uint64}
_FLOATING = {"fp32": ctypes.c_float, "f32": ctypes.c_float, "fp64": ctypes.c_double}
_Store = Callable[[int, Any], Any]


def install() -> None:
    """Replace Triton's launcher where it needs gcc. Nothing of CUDA is loaded before the first launch."""
    if hasattr(driver, "make_launcher"):
        driver.CudaLauncher.__init__ = _initialise(driver.CudaLauncher.__init__)


def _initialise(original: Callable[..., None]) -> Callable[..., None]:
    def __init__(self: Any, src: Any, metadata: Any) -> None:
        stores = _stores(list(src.signature.values()))
        plain = metadata.num_ctas == 1 and not metadata.launch_cooperative_grid and not metadata.launch_pdl
        if stores is None or not plain:
            return original(self, src, metadata)
        self.num_ctas = metadata.num_ctas
        self.launch = _launch(stores)
        for name in ("global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align"):
            setattr(self, name, getattr(metadata, name))
        self.launch_cooperative_grid, self.launch_pdl = False, False
        return None

    return __init__


def _stores(types: Sequence[Any]) -> list[_Store | None] | None:
    """How each argument becomes a C value; None for a constant, and None for all where a type is out of the ordinary
    (tuples, descriptors, half-precision scalars)."""
    stores: list[_Store | None] = []
    for kind in types:
        if kind == "constexpr":
            stores.append(None)
        elif isinstance(kind, str) and kind.startswith("*"):
            stores.append(_pointer)
        elif kind in _CHECKED:
            stores.append(_checked(*_CHECKED[kind]))
        elif kind in _WRAPPING:
            stores.append(_wrapping(_WRAPPING[kind]))
        elif kind in _FLOATING:
            stores.append(_floating(_FLOATING[kind]))
        else:
            return None
    return stores


def _checked(low: int, high: int, kind: Any) -> _Store:
    def store(_index: int, value: Any) -> Any:
        number = operator.index(value)
        if not low <= number <= high:
            raise OverflowError(f"an integer argument is not in [{low}, {high}]")
        return kind(number)

    return store


def _wrapping(kind: Any) -> _Store:
    return lambda _index, value: kind(operator.index(value))


def _floating(kind: Any) -> _Store:
    return lambda _index, value: kind(value)


def _pointer(index: int, value: Any) -> Any:
    """A device pointer: an integer, None, or what has `data_ptr()` and can be reached from the GPU."""
    if value is None:
        return ctypes.c_uint64(0)
    if isinstance(value, int):
        return ctypes.c_uint64(value)
    if not hasattr(value, "data_ptr"):
        raise TypeError("Pointer argument must be either uint64 or have data_ptr method")
    address = value.data_ptr()
    if not isinstance(address, int):
        raise TypeError("data_ptr method of Pointer object must return 64-bit int")
    pointer = ctypes.c_uint64(address)
    if address:
        code = _cuda().cuPointerGetAttribute(ctypes.byref(pointer), _DEVICE_POINTER, ctypes.c_uint64(address))
        if code == _INVALID_VALUE:
            raise ValueError(f"Pointer argument (at {index}) cannot be accessed from Triton (cpu tensor?)")
        _check(code)
    return pointer


def _launch(stores: list[_Store | None]) -> Callable[..., None]:
    def launch(*arguments: Any) -> None:
        grid, (stream, function, _, _, *scratch) = arguments[:3], arguments[3:9]
        metadata, launch_metadata, enter_hook, exit_hook = arguments[9:_BASE]
        _ensure_context()
        sizes = [_dimension(size) for size in grid]
        if enter_hook is not None:
            enter_hook(launch_metadata)
        values = [_pointer(-1, memory) for memory in scratch]
        values = [*_values(stores, arguments[_BASE:]), *values]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        warps, _, shared = metadata[:3]
        if ctypes.c_int32(sizes[0] * sizes[1] * sizes[2]).value > 0:
            block = (_WARP * warps, 1, 1)
            call = _cuda().cuLaunchKernel
            _check(call(ctypes.c_void_p(function), *sizes, *block, shared, ctypes.c_void_p(stream), pointers, None))
        if exit_hook is not None:
            exit_hook(launch_metadata)

    return launch


def _values(stores: list[_Store | None], arguments: Sequence[Any]) -> Iterator[Any]:
    for index, (store, value) in enumerate(zip(stores, arguments, strict=True)):
        if store is not None:
            yield store(index, value)


def _dimension(size: Any) -> int:
    number = operator.index(size)
    if not -(1 << 31) <= number < 1 << 31:
        raise OverflowError("signed integer is greater than maximum")
    return number


_libcuda: Any = None


def _cuda() -> Any:
    global _libcuda
    if _libcuda is None:
        _libcuda = ctypes.CDLL("libcuda.so.1")
    return _libcuda


def _ensure_context() -> None:
    """A thread that has no context gets the device's."""
    cuda, context, device = _cuda(), ctypes.c_void_p(), ctypes.c_int()
    _check(cuda.cuCtxGetCurrent(ctypes.byref(context)))
    if not context:
        _check(cuda.cuDeviceGet(ctypes.byref(device), 0))
        _check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
        _check(cuda.cuCtxSetCurrent(context))


def _check(code: int) -> None:
    if code:
        text = ctypes.c_char_p()
        _cuda().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"Triton Error [CUDA]: {(text.value or b'unknown error').decode()}")
