"""One computation per key, and what becomes of its error."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from agentloop.flights import Flights


def test_who_asks_meanwhile_gets_the_same_result_and_later_a_new_one() -> None:
    async def go() -> list[int]:
        flights: Flights[int] = Flights()
        started = iter(range(10))

        async def compute() -> int:
            number = next(started)
            await asyncio.sleep(0.01)
            return number

        both = await asyncio.gather(flights.join("k", compute), flights.join("k", compute))
        return [*both, await flights.join("k", compute)]

    assert asyncio.run(go()) == [0, 0, 1]


def test_an_error_reaches_everyone_who_waits() -> None:
    async def go() -> None:
        flights: Flights[int] = Flights()

        async def compute() -> int:
            await asyncio.sleep(0.01)
            raise ValueError("no")

        waiting = [asyncio.ensure_future(flights.join("k", compute)) for _ in range(2)]
        for one in waiting:
            with pytest.raises(ValueError, match="no"):
                await one

    asyncio.run(go())


@pytest.mark.parametrize("late", [False, True])
def test_an_error_nobody_waits_for_any_more_is_not_printed(late: bool) -> None:
    """A run that stops (disk full, say) cancels its lanes; what is still under way then may fail for the same reason,
    before the cancelled ones have run or after."""
    printed: list[dict[str, Any]] = []

    async def go() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context))
        flights: Flights[int] = Flights()
        ready = asyncio.Event()

        async def compute() -> int:
            await ready.wait()
            raise OSError("full")

        one = asyncio.ensure_future(flights.join("k", compute))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if late:
            one.cancel()
            await asyncio.sleep(0)
        ready.set()
        await asyncio.sleep(0)
        one.cancel()
        with pytest.raises(asyncio.CancelledError):
            await one
        await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(go())
    assert printed == []
