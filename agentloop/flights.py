"""One computation per key: whoever asks while it is under way waits for the same result."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Flights(Generic[T]):
    """Results are not kept once the computation has ended: they are looked up where they were recorded."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}

    async def join(self, key: Hashable, compute: Callable[[], Awaitable[T]]) -> T:
        """The result of `compute`, started at most once at a time per key; its error reaches everyone who waits."""
        task = self._tasks.get(key)
        if task is None:
            task = asyncio.ensure_future(compute())
            self._tasks[key] = task
            task.add_done_callback(lambda ended: self._land(key, ended))
        return await asyncio.shield(task)

    def _land(self, key: Hashable, ended: asyncio.Task[T]) -> None:
        del self._tasks[key]
        if not ended.cancelled():
            ended.exception()  # seen, even where all who waited were cancelled: asyncio would print it

    def cancel(self) -> None:
        for task in list(self._tasks.values()):
            task.cancel()
