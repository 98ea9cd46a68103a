"""A call repeated and timed on the GPU: the same loop for a candidate, in its process, and for eager PyTorch, in the
judge's.

Before each repetition the GPU is kept waiting for a millisecond, so that the host gets ahead: the time that Python takes
to launch a kernel counts only as far as it is longer. Then the inputs are renewed where they lie: other contents at the
same addresses, so that no answer kept from before is right, nor one that another stream finds in the meantime. Then as
much memory is written as empties the L2 cache. Two events on the caller's stream enclose the call; the host's clock runs
until the whole device is idle, which tells of work on other streams.

Everything used here was fetched before the candidate's code ran; CUDA's own functions are built in and cannot be replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from oracle.worker.device import Columns
from oracle.worker.outputs import guarded
from oracle.worker.protocol import shrunk

AHEAD = 2_000_000  # cycles of the GPU: about a millisecond
FLUSH_BYTES = 256 << 20  # several times the L2 cache of any GPU so far
SECONDS = 5.0  # no further repetition begins after so long,
LEAST = 4  # unless there were fewer than these


def _absent(*_: Any) -> Any:
    raise RuntimeError("this torch has no CUDA")


_now = time.perf_counter_ns
_Event: Any = torch._C._CudaEventBase
_record, _elapsed, _wait = (getattr(_Event, name, _absent) for name in ("record", "elapsed_time", "synchronize"))
_device_idle, _device_waits = (getattr(torch._C, name, _absent) for name in ("_cuda_synchronize", "_cuda_sleep"))
_set_stream, _default_stream = torch.cuda.set_stream, torch.cuda.default_stream
_empty, _copy, _narrow, _fill = torch.empty, torch.Tensor.copy_, torch.Tensor.narrow, torch.Tensor.fill_
_view, _clone, _numel = torch.Tensor.view, torch.Tensor.clone, torch.Tensor.numel
_is_float, _multiply = torch.Tensor.is_floating_point, torch.Tensor.mul_


def repeat(
    tensors: Sequence[Any], offsets: Sequence[int], call: Callable[[], Any], launches: Callable[[], int]
) -> tuple[Any, Columns]:
    """What the last repetition returned, and the columns of `oracle.worker.protocol.Times`. `tensors` are the inputs,
    contiguous; `launches` counts kernels."""
    with guarded():
        targets = [_view(tensor, -1) for tensor in tensors]
        kept = [_clone(target) for target in targets]
        scratch = _empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    stream, began, result = _default_stream(), _now(), None
    columns: Columns = ([], [], [])
    for done, offset in enumerate(offsets):
        if done >= LEAST and _now() - began > 1e9 * SECONDS:
            break
        result = None  # its memory is free again
        _device_idle()
        before, launched = _now(), launches()
        start, end = (_Event(enable_timing=True) for _ in range(2))
        with guarded():
            _device_waits(AHEAD)
            for target, source in zip(targets, kept, strict=True):
                renew(target, source, offset)
            _fill(scratch, done)
        _record(start, stream)
        result = call()
        _record(end, stream)
        _wait(end)
        _device_idle()
        columns[1].append((_now() - before) / 1e3)
        columns[0].append(1e3 * _elapsed(start, end))
        columns[2].append(launches() - launched)
        _set_stream(stream)
    return result, columns


def renew(target: Any, source: Any, offset: int) -> None:
    """Fill `target` with what `source` becomes by `oracle.inputs.renewed`; both flat and contiguous."""
    size = _numel(source)
    first = offset % size if size else 0
    _copy(_narrow(target, 0, 0, size - first), _narrow(source, 0, first, size - first))
    _copy(_narrow(target, 0, size - first, first), _narrow(source, 0, 0, first))
    if _is_float(target):
        _multiply(target, shrunk(offset))
