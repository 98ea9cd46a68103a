"""What a later prompt repeats, what is shortened first to keep a token budget, and what never is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloop import Prompt
from agentloop.content import load_tasks
from agentloop.errors import UsageError
from agentloop.failures import MAX_DETAIL
from agentloop.history import LEFT_OUT
from agentloop.prompting import ARMS, Prompter
from agentloop.tokens import estimated_tokens, most_tokens, utf8_bytes
from oracle.case import Case
from oracle.verdict import FAILURE_KINDS, Counterexample, Failure, NaiveResult, Verdict

TASKS = load_tasks()
TASK = TASKS["seed/softmax"]
CASE = Case(TASK.id, "rank3", {"B": 1, "S": 1, "H": 3}, "float16", tier="shapes").to_json()
TRACE = "".join(f'  File "kernel.py", line {line}, in softmax\n    step_{line}()\n' for line in range(100))
BIG = 10**9


def verdict(number: int) -> Verdict:
    """A failure whose traceback and counterexample tell its number."""
    shown = [{"shape": [3], "dtype": "float16", "values": [float(number), 0.25, 0.5]}]
    failure = Failure("numerical_mismatch", "shapes", f"message {number}", TRACE + f"Error: end of trace {number}")
    return Verdict(
        TASK.id,
        "id",
        "interpreter",
        "full",
        0,
        "derived",
        {"shapes": "fail"},
        {"shapes": failure},
        naive={"kernelbench": NaiveResult("pass", "fine")},
        counterexample=Counterexample("al1:token", CASE, {}, shown, shown, {}, f"pattern {number}"),
    )


def source(number: int) -> str:
    return f"FIRST_LINE = {number}\n" + "x = 1\n" * 300 + f"LAST_LINE = {number}\n"


def after(rounds: int, arm: str = "minimized", **how: Any) -> Prompt:
    """The prompt after so many failed answers."""
    prompter = Prompter("zero_shot", arm, **how)
    prompt = prompter.first(TASK)
    for number in range(rounds):
        prompt = prompter.next(TASK, prompt, "words", source(number), verdict(number))
    return prompt


FIRST = after(0)


def told(prompt: Prompt) -> list[str]:
    return [message["content"] for message in prompt.messages[len(FIRST.messages) :] if message["role"] == "user"]


def answers(prompt: Prompt) -> list[str]:
    return [message["content"] for message in prompt.messages if message["role"] == "assistant"]


def test_history_all_repeats_every_round_and_last_only_one() -> None:
    whole, last = after(3, history="all"), after(3)
    assert [message["role"] for message in whole.messages] == ["system", "user", *["assistant", "user"] * 3]
    assert whole.messages[: len(FIRST.messages)] == last.messages[: len(FIRST.messages)] == FIRST.messages
    for number in range(3):
        assert f"FIRST_LINE = {number}\n" in answers(whole)[number]
        assert f"Pattern: pattern {number}." in told(whole)[number]
    assert whole.messages[-2:] == last.messages[-2:]
    assert len(last.messages) == len(FIRST.messages) + 2
    assert after(1, history="all") == after(1)


def test_arm_none_repeats_the_first_request_whatever_the_history() -> None:
    assert after(3, "none", history="all") == FIRST


def test_a_budget_that_is_kept_changes_nothing() -> None:
    whole = after(3, history="all")
    assert after(3, history="all", budget=estimated_tokens(whole.messages)) == whole


def parts(prompt: Prompt) -> tuple[int, int, int, int]:
    """How much is left of each part, the least useful first: earlier answers, earlier turns, traceback, last answer."""
    earlier = answers(prompt)[:-1]
    trace = told(prompt)[-1].partition("Traceback:")[2].partition("Smallest failing input")[0]
    return sum(answer != LEFT_OUT for answer in earlier), len(earlier), len(trace), len(answers(prompt)[-1])


def test_the_least_useful_is_shortened_first() -> None:
    """From the whole conversation down: a part is touched only when those before it are gone."""
    whole = after(4, history="all")
    full = parts(whole)
    first, shorter = estimated_tokens(FIRST.messages), full
    for budget in range(estimated_tokens(whole.messages), first, -97):
        prompt = after(4, history="all", budget=budget)
        left = parts(prompt)
        for place in range(1, 4):
            if left[place] < full[place]:
                assert not any(left[:place]) or (place == 1 and left[0] == 0)
        assert left <= shorter
        shorter = left
    assert shorter[:3] == (0, 0, 0)
    assert shorter[3] < 100


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 20_000), st.sampled_from(["last", "all"]), st.integers(1, 4))
def test_request_failure_and_counterexample_are_never_shortened(over: int, history: str, rounds: int) -> None:
    budget = estimated_tokens(FIRST.messages) + over
    prompt, whole = after(rounds, history=history, budget=budget), after(rounds, history=history)
    assert prompt.messages[: len(FIRST.messages)] == FIRST.messages
    case = told(whole)[-1].partition("Smallest failing input found:")[2]
    assert told(prompt)[-1].endswith("Smallest failing input found:" + case)
    assert f"Message: message {rounds - 1}\n" in told(prompt)[-1]
    kept_in_full = estimated_tokens([*FIRST.messages, {"content": told(prompt)[-1]}, {"content": answers(prompt)[-1]}])
    assert estimated_tokens(prompt.messages) <= max(budget, kept_in_full)
    if estimated_tokens(prompt.messages) > budget:
        assert parts(prompt)[:3] == (0, 0, 0)
        assert len(answers(prompt)[-1]) < 100


def test_a_shortened_traceback_keeps_its_end() -> None:
    whole = told(after(1))[-1]
    budget = estimated_tokens(after(1).messages) - 100
    said = told(after(1, budget=budget))[-1]
    assert len(said) < len(whole)
    assert "Error: end of trace 0\n```" in said
    assert "line 99" in said
    assert "line 0," not in said


def test_a_shortened_answer_keeps_both_ends() -> None:
    essential = estimated_tokens(FIRST.messages) + 1_000
    [said] = answers(after(1, budget=essential))
    assert said.startswith("```python\nFIRST_LINE = 0\n")
    assert said.endswith("LAST_LINE = 0\n```")
    assert "characters left out" in said


def test_a_budget_below_the_first_request_is_refused() -> None:
    with pytest.raises(
        UsageError, match=r"--prompt-tokens 50 is less than the \d+ of the first request for seed/softmax"
    ):
        Prompter("zero_shot", "none", budget=50).first(TASK)


TEXT = st.text(max_size=50) | st.sampled_from(
    ["x" * 50_000, "∞" * 50_000, "```\n" * 9_000, "\ud800" * 4_000, "1 \n" * 9_000]
)
NUMBERS = st.lists(st.floats() | st.sampled_from(["nan", "-inf"]) | st.integers(), max_size=80)
WORST = st.lists(
    st.builds(dict, index=st.lists(st.integers(), max_size=70), got=st.floats(), expected=st.floats()), max_size=9
)
ARRAYS = st.lists(
    st.builds(
        dict,
        shape=st.lists(st.just(1), min_size=1, max_size=500),
        dtype=st.sampled_from(["float32", "bfloat16"]),
        values=st.none() | NUMBERS,
        worst=WORST,
    ),
    max_size=9,
)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_what_is_told_stays_within_its_bound(data: Any) -> None:
    """Whatever a candidate returned or raised: the bound that a dry run counts with holds."""
    counterexample = Counterexample(
        "al1:token",
        CASE | {"layout": data.draw(TEXT), "keywords": {"eps": data.draw(TEXT)}},
        {"x": {"shape": [80], "dtype": "float32", "strides": [1], "values": data.draw(st.none() | NUMBERS)}},
        data.draw(ARRAYS),
        data.draw(ARRAYS),
        {"exceeding": 10**30, "judged": 10**30, "max_abs": 1e300, "max_rel": 1e-300, "max_ratio": float("inf")},
        data.draw(st.none() | TEXT),
    )
    judged = verdict(0)
    kind = data.draw(st.sampled_from(FAILURE_KINDS))
    judged.failures["shapes"] = Failure(kind, "shapes", data.draw(TEXT), data.draw(TEXT))
    judged.counterexample = data.draw(st.sampled_from([counterexample, None]))
    naive = NaiveResult("fail", data.draw(TEXT))
    for arm in ARMS[1:]:
        prompter = PROMPTERS[arm]
        prompt = prompter.next(TASK, FIRST, "", data.draw(st.sampled_from([None, "x = 1"])), judged, naive)
        assert utf8_bytes(prompt.messages[-1]["content"]) <= prompter.most_told(TASK)


PROMPTERS = {arm: Prompter("zero_shot", arm) for arm in ARMS}


@pytest.mark.parametrize("task", TASKS.values(), ids=list(TASKS))
def test_a_bound_exists_for_every_task_and_arm(task: Any) -> None:
    bounds = [PROMPTERS[arm].most_told(task) for arm in ("none", "verdict", "error", "counterexample")]
    assert bounds == sorted(bounds)
    assert bounds[0] == 0
    assert bounds[2] > MAX_DETAIL


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_the_estimate_is_within_the_bound(text: str) -> None:
    messages = [{"content": text}]
    assert estimated_tokens(messages) <= most_tokens(messages)
