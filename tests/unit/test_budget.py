"""Budgets: never overrun, however requests overlap; what is used is what the run folder tells."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloop.budget import Budget, BudgetReached, Price, Use

PRICES = {"m": Price(prompt=2.0, completion=10.0)}
COUNTS = st.integers(0, 1000)


async def spend(budget: Budget, requests: list[tuple[int, int, float]]) -> tuple[list[Use], int]:
    """Requests of (bound, share used in percent, pause), all at once; returns what was used after each, and how many
    were refused."""
    seen, refused = [], 0

    async def one(most: int, percent: int, pause: float) -> None:
        nonlocal refused
        try:
            async with budget.room(budget.use("m", most, most)) as hold:
                await asyncio.sleep(pause)
                hold.used = budget.use("m", most * percent // 100, most * percent // 100)
        except BudgetReached:
            refused += 1
        seen.append(budget.spent)

    await asyncio.gather(*(one(*request) for request in requests))
    return seen, refused


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(COUNTS, st.integers(0, 100), st.sampled_from([0.0, 0.0001, 0.0003])), max_size=20),
    st.none() | st.integers(1, 12),
    st.none() | st.integers(1, 8000),
    st.none() | st.floats(0.0001, 0.05),
)
def test_no_budget_is_overrun_and_none_stops_too_early(
    requests: list[tuple[int, int, float]], most: int | None, tokens: int | None, money: float | None
) -> None:
    budget = Budget(most, tokens, money, PRICES)
    seen, refused = asyncio.run(spend(budget, requests))
    for use in seen:
        assert most is None or use.requests <= most
        assert tokens is None or use.tokens <= tokens
        assert money is None or use.money <= money
    assert budget.spent.requests == len(requests) - refused
    assert bool(refused) == bool(budget.reached)
    if refused:  # the first that was refused did not fit beside what had been used
        bounds = [budget.spent + budget.use("m", bound, bound) for bound, _, _ in requests]
        assert any(
            (most is not None and use.requests > most)
            or (tokens is not None and use.tokens > tokens)
            or (money is not None and use.money > money)
            for use in bounds
        )


def test_a_request_waits_for_room_that_those_under_way_may_leave() -> None:
    async def go() -> list[str]:
        budget, order = Budget(tokens=100), list[str]()

        async def one(name: str, most: int, used: int, pause: float) -> None:
            async with budget.room(budget.use("m", most, 0)) as hold:
                order.append(f"{name} leaves")
                await asyncio.sleep(pause)
                hold.used = budget.use("m", used, 0)

        await asyncio.gather(one("first", 90, 10, 0.02), one("large", 80, 80, 0), one("small", 5, 5, 0))
        assert budget.spent.tokens == 95
        return order

    assert asyncio.run(go()) == ["first leaves", "large leaves", "small leaves"]


def test_a_request_that_was_cut_off_counts_at_its_bound() -> None:
    async def go() -> Use:
        budget = Budget(tokens=100)
        with pytest.raises(KeyError):
            async with budget.room(budget.use("m", 60, 0)):
                raise KeyError
        with pytest.raises(BudgetReached, match="--budget-tokens 100: 60 used, and the next request may need 41"):
            async with budget.room(budget.use("m", 41, 0)):
                pass
        return budget.spent

    assert asyncio.run(go()).tokens == 60


def sent(name: str, **more: Any) -> dict[str, Any]:
    bound = {"most_prompt_tokens": 1000, "most_completion_tokens": 500}
    return {"event": "sent", "request_id": name, "model": "m", "sample": 0, **bound} | more


def done(name: str, **more: Any) -> dict[str, Any]:
    return {"event": "done", "request_id": name, "outcome": "stored", "tries": 1} | more


def test_earlier_sittings_are_counted() -> None:
    budget = Budget(prices=PRICES)
    budget.resume(
        [
            sent("a"),
            {"event": "retry", "request_id": "a"},
            done("a", prompt_tokens=100, completion_tokens=20),
            sent("no usage"),
            done("no usage"),
            sent("failed"),
            done("failed", outcome="failed"),
            sent("doubt"),
            {"event": "in_doubt", "request_id": "doubt"},
            sent("doubt"),
            done("doubt", prompt_tokens=10, completion_tokens=2),
            sent("other", model="unpriced"),
            done("other", prompt_tokens=1, completion_tokens=1),
            {"event": "sent", "request_id": "of an older version", "model": "m"},
        ]
    )
    bounded = 3  # no usage, in doubt, the older version's without an end
    assert budget.spent.requests == 7
    assert budget.spent.prompt_tokens == 100 + 1000 + 1000 + 10 + 1
    assert budget.spent.completion_tokens == 20 + 500 + 500 + 2 + 1
    assert budget.spent.bounded == bounded
    assert budget.spent.money == pytest.approx((2110 * 2 + 1022 * 10) / 1e6)
