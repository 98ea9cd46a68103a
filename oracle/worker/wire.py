"""Messages between the judge and a candidate's process: a length, a JSON object, then raw bytes.

The object's `payload` lists the sizes of the raw parts that follow. The child's side works on bare descriptors with
functions fetched before the candidate's code runs; the judge's side trusts nothing that it reads.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any

MAX_HEADER = 1 << 20
MAX_PAYLOAD = 256 << 20
ARENA_BYTES = 512 << 20  # shared memory in which a call's inputs lie
_LENGTH = struct.Struct("<I")


class Closed(Exception):
    """The other side closed the channel."""


class Late(Exception):
    """Nothing complete came before the deadline."""


class Garbage(Exception):
    """What came is not a message."""


def pack(message: dict[str, Any], parts: Sequence[bytes] = ()) -> list[bytes]:
    """The message as chunks to be written in order."""
    header = json.dumps({**message, "payload": [len(part) for part in parts]}).encode()
    return [_LENGTH.pack(len(header)) + header, *parts]


def write(descriptor: int, chunks: Sequence[bytes], _write: Any = os.write, _closed: type[Exception] = Closed) -> None:
    for chunk in chunks:
        view = memoryview(chunk)
        while view:
            try:
                view = view[_write(descriptor, view) :]
            except OSError:
                raise _closed from None


def read(descriptor: int, _read: Any = os.read, _loads: Any = json.loads, _length: Any = _LENGTH) -> dict[str, Any]:
    """One message without raw parts from the judge; blocks. Raises Closed when the judge is gone."""

    def exactly(count: int) -> bytes:
        data = b""
        while len(data) < count:
            chunk = _read(descriptor, min(count - len(data), 1 << 16))
            if not chunk:
                raise Closed
            data += chunk
        return data

    return _loads(exactly(_length.unpack(exactly(4))[0]))


class Channel:
    """The judge's end. Every wait has a deadline (time.monotonic())."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end

    def send(self, message: dict[str, Any], deadline: float) -> None:
        """Raises Closed or Late."""
        try:
            self._socket.settimeout(_left(deadline))
            self._socket.sendall(b"".join(pack(message)))
        except TimeoutError:
            raise Late from None
        except OSError:
            raise Closed from None

    def receive(self, deadline: float) -> tuple[dict[str, Any], list[bytes]]:
        """The next message and its raw parts. Raises Closed, Late or Garbage, and nothing else."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline))
        if length > MAX_HEADER:
            raise Garbage(f"a header of {length} bytes")
        try:
            message = json.loads(self._exactly(length, deadline))
        except (ValueError, RecursionError):
            raise Garbage("a header that is not JSON") from None
        sizes = message.get("payload") if isinstance(message, dict) else None
        if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
            raise Garbage("a header without payload sizes")
        if sum(sizes) > MAX_PAYLOAD:
            raise Garbage(f"a payload of {sum(sizes)} bytes")
        return message, [self._exactly(size, deadline) for size in sizes]

    def _exactly(self, count: int, deadline: float) -> bytes:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            try:
                self._socket.settimeout(_left(deadline))
                received = self._socket.recv_into(view)
            except TimeoutError:
                raise Late from None
            except OSError:
                raise Closed from None
            if received == 0:
                raise Closed
            view = view[received:]
        return bytes(data)

    def close(self) -> None:
        self._socket.close()


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
