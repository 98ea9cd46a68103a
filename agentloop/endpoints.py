"""Where answers come from: the endpoint of each model of a run, and who words the requests that go there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentloop import Prompt, Prompter, authors, prompting
from agentloop.authors import recorded
from agentloop.budget import Budget, Price
from agentloop.client import check_endpoint
from agentloop.config import Settings, api_key
from agentloop.errors import UsageError
from agentloop.tokens import most_answer_tokens
from oracle.schema import Task
from oracle.verdict import NaiveResult, Verdict

Prompters = Mapping[tuple[str, str], Prompter]  # by prompt strategy and feedback arm

FREE = Price(prompt=0, completion=0)  # built-in authors


@dataclass(frozen=True)
class Endpoint:
    """One author's address. `name` stands for it in request keys; `kind` is "model", "offline" or "recorded"; `models`
    are asked there, as records call them."""

    base_url: str
    key: str
    name: str
    kind: str
    models: tuple[str, ...]


class RecordedPrompts:
    """The requests that recorded answers were given to (a `Prompter`); there is no second round."""

    def __init__(self, prompts: dict[str, Prompt]) -> None:
        self._prompts = prompts

    def first(self, task: Task) -> Prompt:
        return self._prompts[task.id]

    def next(
        self,
        task: Task,
        before: Prompt,
        answer: str,
        source: str | None,
        verdict: Verdict | None,
        naive: NaiveResult | None = None,
    ) -> Prompt:
        raise UsageError("--rounds must be 1 with --model recorded:PATH: a recorded answer has no second round")


def by_model(conditions: Sequence[Settings]) -> dict[str, Settings]:
    """One condition of each model, by what records call it: all of a model's conditions share its endpoint."""
    return {settings.called: settings for settings in reversed(conditions)}


def models_of(conditions: Sequence[Settings]) -> dict[str, tuple[str, ...]]:
    """The models that each condition's model stands for: itself, or those of a recording."""
    return {
        called: recorded.models(settings.recording) if settings.recorded else (called,)
        for called, settings in by_model(conditions).items()
    }


@contextlib.contextmanager
def open_endpoints(conditions: Sequence[Settings]) -> Iterator[dict[str, Endpoint]]:
    """The endpoints by what their model is called; built-in authors are served meanwhile. UsageError for a missing key."""
    with contextlib.ExitStack() as stack:
        yield {
            called: stack.enter_context(_endpoint(settings, models_of(conditions)[called]))
            for called, settings in by_model(conditions).items()
        }


def open_prompters(conditions: Sequence[Settings], tasks: Sequence[Task]) -> Prompters:
    """Who words the requests. Every first request, and what the arm may tell, is worded once, so that a broken
    template or one over its token budget is found before anything is asked."""
    found: dict[tuple[str, str], Prompter] = {}
    for settings in conditions:
        pair = settings.prompt_strategy, settings.feedback
        if pair not in found:
            found[pair] = prompter = _prompter(settings, tasks)
            for task in tasks:
                prompter.first(task)
                if isinstance(prompter, prompting.Prompter) and settings.rounds > 1:
                    prompter.most_told(task)
    return found


def open_budget(conditions: Sequence[Settings]) -> Budget:
    """The run's budget. UsageError where a limit could not be kept: no price, or no bound on an answer."""
    settings, prices = conditions[0], dict[str, Price]()
    for called, own in by_model(conditions).items():
        price = own.prices.get(called) or own.prices.get(own.model) or (FREE if own.builtin else None)
        if price is None and settings.budget_money is not None:
            raise UsageError(
                f"--budget-money needs a price for {own.model}: a table [{own.model!r}] with prompt and completion, money "
                f"per million tokens, in --prices"
            )
        limited = settings.budget_money or settings.budget_tokens
        if limited and not own.builtin and most_answer_tokens(own.parameters(0)) is None:
            raise UsageError(f"--budget-tokens and --budget-money need --max-tokens: answers of {called} have no bound")
        if price is not None:
            prices |= dict.fromkeys(models_of(conditions)[called], price)
    return Budget(settings.budget_requests, settings.budget_tokens, settings.budget_money, prices)


@contextlib.contextmanager
def _endpoint(settings: Settings, models: tuple[str, ...]) -> Iterator[Endpoint]:
    if not settings.builtin or (settings.base_url and not settings.recorded):
        served = settings.builtin  # the offline author, behind `agentloop serve`
        url, key = settings.endpoint(), "built-in" if served else api_key(settings.key_variable)
        check_endpoint(url, key)
        yield Endpoint(url, key, url, settings.model if served else "model", models)
        return
    if settings.base_url is not None:
        raise UsageError("--base-url has no meaning with --model recorded:PATH: that author brings its own server")
    with authors.start(settings.model, settings.seed) as author:
        yield Endpoint(author.base_url, "built-in", author.name, author.kind, models)


def _prompter(settings: Settings, tasks: Sequence[Task]) -> Prompter:
    if settings.recorded:
        return RecordedPrompts(recorded.prompts(settings.recording, tasks))
    return prompting.Prompter(
        settings.prompt_strategy,
        settings.feedback,
        settings.prompt_dirs,
        history=settings.history,
        budget=settings.prompt_tokens,
    )


def endpoint_names(endpoints: Mapping[str, Endpoint], field: str) -> str:
    """One field of all endpoints, each value once."""
    return ", ".join(dict.fromkeys(getattr(endpoint, field) for endpoint in endpoints.values()))
