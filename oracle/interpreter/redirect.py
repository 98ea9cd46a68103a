"""Torch functions of a candidate, redirected: everything on "cuda" lies on the CPU and still says that it is on cuda.

Tensors that the candidate puts on the CPU on purpose (or by leaving the device out) are marked as host tensors, so that
`.device` tells them apart and a kernel refuses them, as on a machine with a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils import _device as _device_module

from oracle.interpreter import allocations
from oracle.interpreter.cuda import DEVICE
from oracle.interpreter.host_compute import note_arithmetic
from oracle.interpreter.memory import memory

_MARK = "_on_host"
Handler = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]


def is_host(tensor: Any) -> bool:
    """Whether the candidate put this tensor on the CPU, where a kernel cannot reach it."""
    return _MARK in getattr(tensor, "__dict__", ())


def device_of(tensor: torch.Tensor) -> str:
    """Type of the device that the tensor would be on, were there a GPU."""
    if tensor.device.type != "cpu":
        return tensor.device.type
    return "cpu" if is_host(tensor) else "cuda"


@contextmanager
def redirected() -> Iterator[None]:
    """The context in which the candidate's module is executed and its function called."""
    with Redirect():
        yield


class Redirect(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        handler = _HANDLERS.get(func)
        if handler is not None:
            return handler(func, args, kwargs)
        note_arithmetic(func, args, kwargs)
        return _with_device(func, args, kwargs)


def _wanted(device: Any) -> str | None:
    """Type of a device as users write it: "cuda:0", an index, a torch.device; None stays None."""
    if device is None:
        return None
    if isinstance(device, int):
        return "cuda"
    return torch.device(device).type


def _with_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Any function that may take `device=`."""
    wanted = _wanted(kwargs.get("device"))
    if wanted is None:
        return func(*args, **kwargs)
    result = func(*args, **({**kwargs, "device": "cpu"} if wanted == "cuda" else kwargs))
    return _placed(result, wanted, args)


def _placed(result: Any, wanted: str, args: tuple[Any, ...]) -> Any:
    """The result marked as what it is on; a copy where it is the argument itself and changes sides."""
    if not isinstance(result, torch.Tensor) or result.device.type != "cpu":
        return result
    host = wanted == "cpu"
    if is_host(result) is not host and any(result is argument for argument in args):
        result = result.clone()
    if host:
        setattr(result, _MARK, True)
    return result


def _factory(fill: Any = None, *, padded: bool = True, value: int | None = None) -> Handler:
    """torch.empty and its like: a tensor without a device is on the host. `value`: position of the fill value."""

    def make(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        wanted = _wanted(kwargs.get("device")) or _wanted(_device_module.CURRENT_DEVICE) or "cpu"
        return _made(func, args, kwargs, wanted)

    def like(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        wanted = _wanted(kwargs.get("device")) or ("cpu" if is_host(args[0]) else "cuda")
        return _made(func, args, kwargs, wanted)

    def _made(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], wanted: str) -> Any:
        if wanted not in ("cpu", "cuda"):
            return func(*args, **kwargs)
        kwargs = {**kwargs, "device": "cpu"}
        filler = fill
        if value is not None:
            filler = args[value] if len(args) > value else kwargs.get("fill_value")
        made = allocations.allocate(func, args, kwargs, filler) if padded else None
        return _placed(func(*args, **kwargs) if made is None else made, wanted, ())

    def handle(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = args[0] if args else kwargs.get("input")
        return (like if isinstance(given, torch.Tensor) else make)(func, args, kwargs)

    return handle


def _to(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Tensor.to: the device may be any argument, or another tensor's."""
    wanted = None
    changed = []
    for argument in args[1:]:
        if isinstance(argument, (str, torch.device)) or type(argument) is int:
            wanted = _wanted(argument)
            argument = "cpu" if wanted == "cuda" else argument
        elif isinstance(argument, torch.Tensor):
            wanted = "cpu" if is_host(argument) else "cuda"
        changed.append(argument)
    other = kwargs.get("other")
    if isinstance(other, torch.Tensor):
        wanted = "cpu" if is_host(other) else "cuda"
    if kwargs.get("device") is not None:
        wanted = _wanted(kwargs["device"])
        kwargs = {**kwargs, "device": "cpu" if wanted == "cuda" else kwargs["device"]}
    result = func(args[0], *changed, **kwargs)
    return _placed(result, wanted or ("cpu" if is_host(args[0]) else "cuda"), args[:1])


def _cuda(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _placed(args[0], "cuda", args[:1])


def _cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _placed(args[0], "cpu", args[:1])


def _device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    device = func(*args, **kwargs)
    return DEVICE if device.type == "cpu" and not is_host(args[0]) else device


def _is_cuda(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return device_of(args[0]) == "cuda"


def _is_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return device_of(args[0]) == "cpu"


def _get_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    return -1 if is_host(args[0]) else 0


def _numpy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if not is_host(args[0]) and not kwargs.get("force"):
        raise TypeError(
            "can't convert cuda:0 device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    note_arithmetic(func, args, kwargs)
    return func(*args, **kwargs)


def _data_ptr(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    if args[0].device.type == "cpu" and not is_host(args[0]):
        memory.point(args[0])
    return func(*args, **kwargs)


def _ignored(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0]


_T = torch.Tensor
_HANDLERS: dict[Any, Handler] = {
    _T.to: _to,
    _T.cuda: _cuda,
    _T.cpu: _cpu,
    _T.numpy: _numpy,
    _T.data_ptr: _data_ptr,
    _T.get_device: _get_device,
    _T.pin_memory: _ignored,
    _T.device.__get__: _device,
    _T.is_cuda.__get__: _is_cuda,  # type: ignore[attr-defined]
    _T.is_cpu.__get__: _is_cpu,  # type: ignore[attr-defined]
    **dict.fromkeys(
        (torch.empty, torch.empty_like, torch.empty_strided, torch.empty_permuted, _T.new_empty, _T.new_empty_strided),
        _factory(),
    ),
    **dict.fromkeys((torch.zeros, torch.zeros_like, _T.new_zeros), _factory(0)),
    **dict.fromkeys((torch.ones, torch.ones_like, _T.new_ones), _factory(1)),
    **dict.fromkeys((torch.full, torch.full_like, _T.new_full), _factory(value=1)),
    **dict.fromkeys(
        (
            *(torch.arange, torch.linspace, torch.logspace, torch.eye, torch.tensor, torch.scalar_tensor, torch.rand),
            *(torch.randn, torch.randint, torch.randperm, torch.tril_indices, torch.triu_indices, torch.rand_like),
            *(torch.randn_like, torch.randint_like, _T.new_tensor, torch.as_tensor),
        ),
        _factory(padded=False),
    ),
}
_HANDLERS[_T.new_full] = _factory(value=2)


def _default_device(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`with torch.device(...)`, which torch applies before `Redirect`, and `torch.set_default_device`: after it."""
    kwargs = kwargs or {}
    if func in _device_module._device_constructors() and kwargs.get("device") is None:
        after = not any(isinstance(mode, Redirect) for mode in _get_current_function_mode_stack())
        kwargs = {**kwargs, "device": "cpu" if after and _wanted(self.device) == "cuda" else self.device}
    return func(*args, **kwargs)


def install() -> None:
    _device_module.DeviceContext.__torch_function__ = _default_device  # type: ignore[method-assign]
