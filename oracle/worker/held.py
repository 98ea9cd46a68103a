"""What a candidate's process has in memory when it launches a kernel, as bytes.

Looked at where kernels are emptied: an answer that is in memory then was computed by host code. Whether a kernel is given
it as an argument, in a tuple, in a wrapper or by its address makes no difference: every tensor that is alive is read, as
it lies in memory (its storage) and as it is read (its values in order).
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import torch

from oracle.worker.isolation import MIB
from oracle.worker.outputs import guarded

LARGEST, MOST = 32 * MIB, 64 * MIB  # bytes of one chunk, and of all that is kept of a call
CHUNKS, LOOKS = 512, 256  # of one call

_string_at, _get_objects, _unfreeze, _issubclass = ctypes.string_at, gc.get_objects, gc.unfreeze, issubclass
_Tensor, _empty, _uint8, _strided, _as_tensor = torch.Tensor, torch.empty, torch.uint8, torch.strided, torch.as_tensor
_detach, _contiguous, _is_contiguous, _cpu = _Tensor.detach, _Tensor.contiguous, _Tensor.is_contiguous, _Tensor.cpu
_storage, _set = _Tensor.untyped_storage, _Tensor.set_
# of torch itself, before anything is patched: without a GPU none of it is called
_gpu, _synchronize, _snapshot = torch.cuda.is_initialized, torch.cuda.synchronize, torch.cuda.memory_snapshot
_is_capturing = torch.cuda.is_current_stream_capturing


def only_what_follows() -> None:
    """Called once, before the candidate's code: what there is already need not be looked through at every launch."""
    gc.freeze()


def fitting(chunks: list[bytes], room: int) -> list[bytes]:
    """As many of the chunks, from the first, as a message has room for."""
    taken = []
    for chunk in chunks:
        room -= len(chunk)
        if room < 0:
            break
        taken.append(chunk)
    return taken


class Held:
    """Of one call: `chunks`, each content once."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self._seen: set[int] = set()
        self._room, self._looks = MOST, 0
        self._frozen = gc.get_freeze_count()

    def look(self) -> None:
        """Read every living tensor. Never raises: what cannot be read is left out."""
        self._looks += 1
        if self._looks > LOOKS:
            return
        with suppress(Exception), guarded():
            if _gpu():
                if _is_capturing():  # nothing that is captured has run, and nothing may be waited for
                    return
                _synchronize()
            for tensor in self._tensors():
                with suppress(Exception):
                    for chunk in _contents(tensor):
                        self._keep(chunk)

    def everything(self) -> list[bytes]:
        """Look once more, and at all that torch's allocator has on the GPU: an address outlives its tensor."""
        self.look()
        with suppress(Exception), guarded():
            for segment in _snapshot() if _gpu() else []:
                with suppress(Exception):
                    if segment["total_size"] <= LARGEST:
                        self._keep(_bytes(_as_tensor(_Segment(segment), device="cuda")))
        return self.chunks

    def _tensors(self) -> Iterator[Any]:
        if gc.get_freeze_count() != self._frozen:  # by the candidate, which may have something to hide
            _unfreeze()
            self._frozen = 0
        return (found for found in _get_objects() if _issubclass(type(found), _Tensor))

    def _keep(self, chunk: bytes) -> None:
        known = hash(chunk)
        if known not in self._seen and len(chunk) <= self._room and len(self.chunks) < CHUNKS:
            self._seen.add(known)
            self._room -= len(chunk)
            self.chunks.append(chunk)


class _Segment:
    """Memory on the GPU that torch can make a tensor of."""

    def __init__(self, segment: dict[str, Any]) -> None:
        shape, data = (segment["total_size"],), (segment["address"], False)
        self.__cuda_array_interface__ = {"shape": shape, "typestr": "|u1", "data": data, "strides": None, "version": 2}


def _contents(tensor: Any) -> Iterator[bytes]:
    """A tensor's storage, and its values in order where they lie otherwise in it."""
    plain = _detach(tensor)
    if plain.layout != _strided or plain.device.type not in ("cpu", "cuda"):
        return
    storage, nbytes = _storage(plain), plain.numel() * plain.element_size()
    if 0 < storage.nbytes() <= LARGEST:
        yield _bytes(_set(_empty(0, dtype=_uint8, device=plain.device), storage))
    if 0 < nbytes <= LARGEST and (nbytes != storage.nbytes() or not _is_contiguous(plain)):
        yield _bytes(_contiguous(plain))


def _bytes(dense: Any) -> bytes:
    host = _cpu(dense) if dense.is_cuda else dense
    return _string_at(host.data_ptr(), host.numel() * host.element_size())
