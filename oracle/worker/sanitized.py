"""One candidate's process under NVIDIA's compute-sanitizer, which sees every access of a kernel to the GPU's memory.

Started by `oracle.sanitizer` as `compute-sanitizer … python -m oracle.worker.sanitized SOCKET SCRATCH LAYERS`, once per
candidate and not forked: the sanitizer attaches where CUDA starts, so CUDA is started first and the process contained then,
as `oracle.worker.policies.SANITIZED` says.

Every input lies in an allocation of exactly its extent, and so does all that the candidate allocates (torch's cache is off,
there are no red zones): whatever is touched beside a tensor is outside of every allocation.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from oracle.worker import seccomp
from oracle.worker.cuda import Cuda
from oracle.worker.isolation import Cell
from oracle.worker.policies import SANITIZED

_default_stream, _set_stream = torch.cuda.default_stream, torch.cuda.set_stream


class Sanitized(Cuda):
    """The CUDA device without red zones and without an arena."""

    policy = SANITIZED

    def start(self) -> None:
        """CUDA runs already."""

    @contextmanager
    def running(self) -> Iterator[None]:
        try:
            yield
        finally:
            _set_stream(_default_stream())

    def place(self, arena: memoryview, inputs: list[dict[str, Any]]) -> list[Any]:
        return [_exactly(arena, item) for item in inputs]

    def alias(self, tensor: Any) -> int | None:
        return None

    def give_back(self) -> None:
        """Inputs were compared when the candidate was judged."""


def _exactly(arena: memoryview, item: dict[str, Any]) -> torch.Tensor:
    dtype, shape, strides = getattr(torch, item["dtype"]), item["shape"], item["strides"]
    if 0 in shape:
        return torch.empty_strided(shape, strides, dtype=dtype, device="cuda")
    span = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    start = item["start"] + item["offset"] * dtype.itemsize
    host = torch.frombuffer(arena, dtype=torch.uint8, count=span * dtype.itemsize, offset=start)
    return host.cuda().view(dtype).as_strided(shape, strides)


def main() -> None:
    path, scratch, layers = sys.argv[1:4]
    sys.dont_write_bytecode = True
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.connect(path)
        _, (channel, arena), _, _ = socket.recv_fds(door, 16, 2)
    from oracle.worker.child import ARENA, CHANNEL, live, settle, watch

    settle(channel, arena)  # before anything else takes their places
    device = Sanitized()
    device.warm()
    torch.cuda.init()
    torch.empty(1, device="cuda")
    seccomp.prepare(device.policy.allow)
    live(CHANNEL, ARENA, Cell(scratch, 0, device.policy), layers.split(","), device, watch())


if __name__ == "__main__":
    main()
