"""Notices tensor arithmetic that the candidate does on the host, by the names of torch's functions and operators.

Allocating, viewing, copying, casting and asking for shapes is host code's job; everything else on a tensor of more than
one element is arithmetic, and so is handing all its values to numpy or to Python. Functions are noted in every call;
where a call is watched, so are the operators below them, however they are reached: through TorchScript, a gradient, an
operator library of the candidate's. Kernels and this package's own work are not seen here, nor is arithmetic in other
threads or on the bytes that an address points at (through ctypes, say).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket
from torch.utils._python_dispatch import TorchDispatchMode

from oracle.interpreter.state import current

_ALLOWED = (
    # allocate
    "new empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like new_zeros ones "
    "ones_like new_ones full full_like new_full arange linspace logspace eye tensor new_tensor as_tensor asarray "
    "scalar_tensor rand randn randint randperm rand_like randn_like randint_like from_numpy frombuffer "
    "tril_indices triu_indices normal_ uniform_ random_ "
    # view
    "view reshape flatten unflatten squeeze squeeze_ unsqueeze unsqueeze_ expand expand_as broadcast_to "
    "broadcast_tensors permute transpose transpose_ t t_ swapaxes swapdims movedim moveaxis narrow select slice split "
    "split_with_sizes chunk unbind as_strided as_strided_ view_as reshape_as diagonal unfold tensor_split hsplit "
    "vsplit dsplit ravel adjoint view_as_real view_as_complex atleast_1d atleast_2d atleast_3d detach detach_ alias "
    "__getitem__ __get__ __set__ __iter__ resolve_conj resolve_neg meshgrid "
    # copy
    "contiguous clone copy_ __setitem__ cat concat concatenate stack hstack vstack dstack column_stack repeat tile "
    "repeat_interleave pad constant_pad_nd fill_ zero_ resize_ resize_as_ set_ flip fliplr flipud roll cpu cuda "
    "__deepcopy__ __copy__ "
    # cast
    "to type type_as float double half bfloat16 int long short char byte bool cfloat cdouble "
    # ask
    "size stride dim ndimension numel nelement element_size itemsize storage_offset data_ptr untyped_storage storage "
    "get_device item __len__ __bool__ __int__ __float__ __index__ __contains__ __repr__ __str__ __format__ "
    "__hash__ __dlpack_device__ __reduce_ex__ __dir__ broadcast_shapes result_type promote_types "
    "can_cast dim_order storage_type requires_grad_ retain_grad backward register_hook record_stream pin_memory "
    "share_memory_ sym_size sym_numel has_names set_default_dtype"
)
ALLOWED = frozenset(_ALLOWED.split())
_BELOW = (
    # what operators do for allowed functions under names of their own, seen in no-grad and in inference mode
    "lift lift_fresh lift_fresh_copy _to_copy _unsafe_view _reshape_alias copy fill zero resize _conj conj _neg_view "
    "mT mH numpy_T matrix_H real imag unsafe_chunk unsafe_split unsafe_split_with_sizes _lazy_clone _pin_memory set_data "
    "index index_put index_put_ _index_put_impl_ _unsafe_index index_select nonzero _local_scalar_dense "
    "select_scatter slice_scatter diagonal_scatter as_strided_scatter "
    "reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
    "_pad_circular _pad_enum normal _resize_output_ _has_compatible_shallow_copy_type output_nr retains_grad _version"
)
_KEYS = {
    "cpu": torch._C.DispatchKeySet(torch._C.DispatchKey.CPU),
    "cuda": torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA),
}
OPERATORS = ALLOWED | frozenset(_BELOW.split())
_CONTAINS = torch.Tensor.__contains__.__code__  # one answer, like that of `item`
_TORCH = frozenset(name.partition("::")[0] for name in torch._C._dispatch_get_all_op_names())  # libraries it brings


def note_arithmetic(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Find `host_compute` if the call is arithmetic on a tensor of more than one element."""
    name = getattr(func, "__name__", "").partition(".")[0]
    if name in ALLOWED or name.startswith("is_") or name.startswith("_is_") or _own(func):
        return
    if any(tensor.numel() > 1 for tensor in tensors_in([*args, *kwargs.values()])):
        current.find("host_compute", f"{_owner(func)}.{name}")


class Operations(TorchDispatchMode):
    """Notes arithmetic by the operators that run, whoever called them."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else the first operator imports all of torch._dynamo

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        device = next((tensor.device.type for tensor in tensors_in([*args, *kwargs.values()])), "")
        if _own(func) and device in _KEYS:
            with self:  # what it is made of
                return func.redispatch(_KEYS[device], *args, **kwargs)
        note_operator(func, args, kwargs, sys._getframe(1).f_code)
        return func(*args, **kwargs)


def watching() -> AbstractContextManager[Any]:
    """What the candidate's code runs under beside the modes of every call."""
    return Operations() if current.watched else nullcontext()


def note_operator(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], caller: Any) -> None:
    name = func.__name__.partition(".")[0]
    adds = name.startswith("index_put") and (args[3:4] == (True,) or kwargs.get("accumulate"))
    allowed = name in OPERATORS or name.startswith(("is_", "_is_", "sym_")) or name.endswith("_copy")
    if (allowed and not adds) or _own(func) or current.depth or caller is _CONTAINS:
        return
    if any(tensor.numel() > 1 for tensor in tensors_in([*args, *kwargs.values()])):
        current.find("host_compute", f"torch.ops.aten.{name}")


def _own(func: Any) -> bool:
    """Whether it is an operator of the candidate's own, which may well launch a kernel."""
    if not isinstance(func, (OpOverload, OpOverloadPacket)):
        return False
    packet = func if isinstance(func, OpOverloadPacket) else func.overloadpacket
    return packet._qualified_op_name.partition("::")[0] not in _TORCH


def _owner(func: Any) -> str:
    module = getattr(func, "__module__", None) or "torch.Tensor"
    if module.startswith("torch._ops"):
        return "torch.ops.aten"
    return {"torch._C._nn": "torch.nn.functional", "torch._tensor": "torch.Tensor"}.get(module, module)


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """Those among values, lists and tuples within them included."""
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)
