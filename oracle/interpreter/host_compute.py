"""Notices tensor arithmetic that the candidate does on the host, by the names of torch's functions.

Allocating, viewing, copying, casting and asking for shapes is host code's job; everything else on a tensor of more than
one element is arithmetic, and so is handing all its values to numpy or to Python. Kernels and this package's own work are
not seen here, nor is arithmetic on the bytes that an address points at (through ctypes, say).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

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


def note_arithmetic(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Find `host_compute` if the call is arithmetic on a tensor of more than one element."""
    name = getattr(func, "__name__", "").partition(".")[0]
    if name in ALLOWED or name.startswith("is_") or name.startswith("_is_"):
        return
    if any(tensor.numel() > 1 for tensor in _tensors([*args, *kwargs.values()])):
        current.find("host_compute", f"{_owner(func)}.{name}")


def _owner(func: Any) -> str:
    module = getattr(func, "__module__", None) or "torch.Tensor"
    if module.startswith("torch._ops"):
        return "torch.ops.aten"
    return {"torch._C._nn": "torch.nn.functional", "torch._tensor": "torch.Tensor"}.get(module, module)


def _tensors(values: Any) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)
