"""A sweep's file: which conditions it stands for, what is refused, and what it could ask and cost at most."""

from __future__ import annotations

import io
import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agentloop import forecast, sweep
from agentloop.budget import Budget, Price
from agentloop.config import Settings, build
from agentloop.content import find_tasks, load_tasks
from agentloop.endpoints import models_of, open_budget, open_prompters
from agentloop.episodes import plan, request_for
from agentloop.errors import UsageError
from agentloop.prompting import ARMS

TASKS = find_tasks("seed/softmax,seed/gelu", load_tasks())


def write(path: Path, text: str) -> Path:
    file = path / "my sweep.toml"
    file.write_text(text)
    return file


def conditions(tmp_path: Path, text: str, **given: Any) -> sweep.Conditions:
    return sweep.read(write(tmp_path, text), given)


THREE_AXES = """
model = ["small", {model = "large", label = "large, hot", temperature = 1.5, base_url = "http://h:1/v1"}]
prompt_strategy = ["zero_shot", "edge_cases"]
feedback = ["none", "error", "minimized"]
temperature = 0.2
samples = 3
rounds = 2
"""


def test_all_combinations_each_with_its_settings(tmp_path: Path) -> None:
    found = conditions(tmp_path, THREE_AXES, workers=7, name=None)
    names = [(s.called, s.prompt_strategy, s.feedback) for s in found]
    wanted = product(["small", "large, hot"], ["zero_shot", "edge_cases"], ["none", "error", "minimized"])
    assert names == list(wanted)
    for settings in found:
        large = settings.model == "large"
        assert settings.temperature == (1.5 if large else 0.2)
        assert settings.base_url == ("http://h:1/v1" if large else None)
        assert (settings.samples, settings.rounds, settings.workers, settings.name) == (3, 2, 7, "my-sweep")


def test_one_value_is_a_list_of_one_and_what_is_left_out_has_its_default(tmp_path: Path) -> None:
    [only] = conditions(tmp_path, 'feedback = "error"\n')
    assert only == build({"feedback": "error", "name": "my-sweep"}, "test")


def test_a_runs_file_is_a_sweep_of_one(tmp_path: Path) -> None:
    text = 'model = "m"\nprompt_strategy = "one_shot"\nfeedback = "none"\ntasks = ["seed/*", "ops/add"]\n'
    [only] = conditions(tmp_path, text)
    assert (only.model, only.prompt_strategy, only.feedback, only.tasks) == ("m", "one_shot", "none", "seed/*,ops/add")


REFUSED = {
    "unknown key": ("models = ['a']", "unknown setting models; allowed: model"),
    "empty axis": ("feedback = []", "--feedback: the list is empty"),
    "unknown arm": ("feedback = ['none', 'loud']", "--feedback: must be 'none'"),
    "twice": ("feedback = ['none', 'none']", "offline · zero_shot · none is there twice.*label"),
    "model twice": ("model = ['m', {model = 'm', temperature = 0.1}]", "m · zero_shot · minimized is there twice"),
    "label is a name": ("model = ['m', {model = 'n', label = 'm'}]", "is there twice"),
    "model's own": (
        "model = [{model = 'm', rounds = 3}]",
        "a model's table may not set rounds; it may set model, label",
    ),
    "nameless": ("model = [{temperature = 1.0}]", "must name its `model`"),
    "recorded": ("model = ['m', 'recorded:x']", "agentloop run --model recorded:x"),
    "model of another kind": ("model = [3]", "--model: must be a valid string"),
    "not TOML": ("model = ", "is not TOML"),
    "price": ("prices = {m = {prompt = 1}}", "--prices m completion: Field required"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    text, pattern = REFUSED[name]
    with pytest.raises(UsageError, match=pattern) as caught:
        conditions(tmp_path, text)
    assert "\n" not in str(caught.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"FILE .*nothing.toml: No such file"):
        sweep.read(tmp_path / "nothing.toml", {})


@pytest.mark.parametrize("text", [THREE_AXES, 'feedback = "error"'])
def test_a_folder_gives_back_the_conditions_it_was_given(text: str, tmp_path: Path) -> None:
    found = conditions(tmp_path, text)
    config = json.loads(json.dumps(sweep.to_config(found)))
    again = sweep.stored(config, tmp_path / "runs" / "my-sweep", {"concurrency": None})
    assert sweep.differences(found, again) == []
    assert [s.model_copy(update={"runs_dir": "runs"}) for s in again] == list(found)
    assert ("conditions" in config) == (len(found) > 1)
    for key in config.get("conditions", [{}])[0]:
        assert key not in config["settings"]
    changed = sweep.stored(config, tmp_path / "runs" / "my-sweep", {"concurrency": 3, "budget_money": 5.0})
    assert {(s.concurrency, s.budget_money) for s in changed} == {(3, 5.0)}
    assert sweep.differences(found, changed) == []


def test_differences_name_what_differs(tmp_path: Path) -> None:
    old = conditions(tmp_path, THREE_AXES)
    new = conditions(tmp_path, THREE_AXES.replace('"error", ', "").replace("rounds = 2", "rounds = 4"))
    assert sweep.differences(old, new) == [
        "feedback: stored 'none', 'error', 'minimized', given 'none', 'minimized'",
        "rounds: stored 2, given 4",
    ]


def test_the_plan_compares_early(tmp_path: Path) -> None:
    """Every prefix of the plan is balanced: a task and sample has all its conditions before the next begins."""
    found = conditions(tmp_path, THREE_AXES)
    episodes = plan(found, models_of(found), TASKS)
    assert len(episodes) == 2 * 2 * 3 * len(TASKS) * 3 == len({episode.id for episode in episodes})
    blocks = [(e.sample, TASKS.index(e.task)) for e in episodes]
    assert blocks == sorted(blocks)


def test_a_label_is_for_records_and_the_name_for_the_endpoint(tmp_path: Path) -> None:
    found = conditions(tmp_path, THREE_AXES)
    episode = plan(found, models_of(found), TASKS)[-1]
    prompt = open_prompters(found, TASKS)["edge_cases", "minimized"].first(TASKS[0])
    assert episode.model == "large, hot"
    request = request_for(episode, 0, prompt)
    assert (request.model, request.parameters["temperature"]) == ("large", 1.5)


# --- what it could ask and cost


def told(found: sweep.Conditions) -> forecast.Forecast:
    return forecast.forecast(
        plan(found, models_of(found), TASKS), open_prompters(found, TASKS), Budget(prices=found[0].prices)
    )


def test_the_number_of_requests_is_that_of_the_longest_course(tmp_path: Path) -> None:
    """Arms share their first answers: one per model, strategy, task and sample; then one a round and episode."""
    found = conditions(tmp_path, THREE_AXES)
    assert told(found).total.requests == 2 * 2 * len(TASKS) * 3 + len(found) * len(TASKS) * 3 * (2 - 1)
    [alone] = conditions(tmp_path, "rounds = 4\nsamples = 5\nfeedback = 'none'")
    assert told((alone,)).total.requests == len(TASKS) * 5 * 4


def test_the_cost_follows_from_prices_and_bounds(tmp_path: Path) -> None:
    text = 'model = ["a", "b"]\nrounds = 1\nmax_tokens = 100\nprices = {a = {prompt = 0, completion = 10000}}\n'
    found = told(conditions(tmp_path, text))
    assert found.use["a"].completion_tokens == found.use["b"].completion_tokens == 100 * len(TASKS)
    assert found.use["a"].money == pytest.approx(len(TASKS) * 100 * 0.01)
    assert found.use["b"].money == 0


@pytest.mark.parametrize("history", ["last", "all"])
def test_bounds_grow_with_what_is_repeated_and_told(history: str, tmp_path: Path) -> None:
    bounds = {}
    for arm in ARMS:
        [settings] = conditions(tmp_path, f"feedback = '{arm}'\nrounds = 4\nhistory = '{history}'")
        prompter = open_prompters([settings], TASKS)[settings.prompt_strategy, arm]
        bounds[arm] = forecast.most_prompts(settings, TASKS[0], prompter, 4096)
    first = bounds["none"][0]
    assert bounds["none"] == [first] * 4
    for arm in ARMS[1:]:
        turn = bounds[arm][1] - first
        assert bounds[arm] == [
            first,
            first + turn,
            *([first + turn] * 2 if history == "last" else [first + 2 * turn, first + 3 * turn]),
        ]
        assert turn > 4096
    assert bounds["verdict"][1] < bounds["error"][1] < bounds["minimized"][1]


def test_answers_without_a_limit_have_no_bound() -> None:
    def one(**settings: Any) -> forecast.Forecast:
        return told((build({"model": "m", "rounds": 1} | settings, "test"),))

    unlimited = {"max_tokens": None}, {"extra_body": {"max_tokens": None}}
    assert not any(one(**settings).answers_bounded for settings in unlimited)
    for settings in ({"max_tokens": 20}, {"max_tokens": None, "extra_body": {"max_completion_tokens": 20}}):
        assert one(**settings).total.completion_tokens == 20 * len(TASKS)
        assert one(**settings).answers_bounded


def printed(found: sweep.Conditions) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    forecast.tell(found, console)
    return console.export_text()


def test_a_dry_run_says_it_all(tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('["small"]\nprompt = 1.0\ncompletion = 2.0\n["large, hot"]\nprompt = 3\ncompletion = 4\n')
    text = THREE_AXES + f'tasks = "seed/softmax,seed/gelu"\nprices = "{prices}"\n'
    said = printed(conditions(tmp_path, text))
    total = told(conditions(tmp_path, text)).total
    for words in (
        "12 conditions",
        f"at most {total.requests} requests",
        f"at most {total.prompt_tokens} tokens of prompts",
        f"at most {total.completion_tokens} tokens of answers",
        "small: at most",
        "large, hot: at most",
        "cost at most",
    ):
        assert words in said
    unpriced = printed(conditions(tmp_path, THREE_AXES))
    assert "no cost for large, hot, small: --prices FILE has no price" in unpriced
    assert "cost at most" not in unpriced


# --- budgets that could not be kept


def test_a_money_budget_needs_prices_and_limits(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--budget-money needs a price for m: a table \['m'\]"):
        open_budget(conditions(tmp_path, "model = 'm'\nbudget_money = 1.0"))
    priced = "model = 'm'\nbudget_money = 1.0\nprices = {m = {prompt = 1, completion = 1}}\n"
    with pytest.raises(UsageError, match="need --max-tokens: answers of m have no bound"):
        open_budget([s.model_copy(update={"max_tokens": None}) for s in conditions(tmp_path, priced)])
    assert open_budget(conditions(tmp_path, priced)).prices == {"m": Price(prompt=1, completion=1)}
    assert open_budget(conditions(tmp_path, "budget_money = 1.0")).prices == {"offline": Price(prompt=0, completion=0)}


def test_every_setting_of_a_resume_is_neutral() -> None:
    from agentloop.config import ADJUSTABLE, NEUTRAL

    assert set(ADJUSTABLE) <= NEUTRAL <= set(Settings.model_fields)


EXPERIMENTS = sorted((Path(__file__).parents[2] / "experiments").glob("*.toml"))


@pytest.mark.parametrize("file", EXPERIMENTS, ids=[file.stem for file in EXPERIMENTS])
def test_the_experiments_can_be_run_without_a_key_and_within_their_budget(file: Path) -> None:
    found = sweep.read(file, {})
    assert all(settings.builtin for settings in found)
    tasks = find_tasks(found[0].tasks, load_tasks())
    bound = forecast.forecast(
        plan(found, models_of(found), tasks), open_prompters(found, tasks), open_budget(found)
    ).total
    limit = found[0].budget_requests
    assert limit is None or bound.requests <= limit


def test_the_arms_are_compared_on_enough_tasks() -> None:
    from agentloop.statistics import FEW_TASKS

    [file] = [file for file in EXPERIMENTS if file.stem == "feedback_arms"]
    found = sweep.read(file, {})
    assert tuple(settings.feedback for settings in found) == ARMS
    assert len(find_tasks(found[0].tasks, load_tasks())) >= FEW_TASKS
