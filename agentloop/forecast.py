"""What a run would ask and could cost at most, from its settings alone: `--dry-run`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from agentloop import Prompter, prompting
from agentloop.budget import Budget, Use
from agentloop.config import Settings
from agentloop.content import find_tasks, load_tasks
from agentloop.endpoints import Prompters, models_of, open_budget, open_prompters
from agentloop.episodes import Episode, plan
from agentloop.history import most_repeated
from agentloop.sweep import Conditions
from agentloop.tokens import estimated_tokens, most_answer_tokens, most_tokens
from oracle.schema import Task
from oracle.tolerance import check_covered


@dataclass(frozen=True)
class Forecast:
    """Upper bounds. `use` by model; `answers_bounded` is false where some answer has no limit: tokens of answers and
    money are then missing from `use`, and so are they from prompts that repeat such answers."""

    episodes: int
    use: dict[str, Use]
    answers_bounded: bool

    @property
    def total(self) -> Use:
        return sum(self.use.values(), Use())


def forecast(episodes: Sequence[Episode], prompters: Prompters, budget: Budget) -> Forecast:
    """Every episode goes to its last round, every prompt and answer is as long as it may be; arms share round 0."""
    use: defaultdict[str, Use] = defaultdict(Use)
    bounds: dict[tuple[str, str, str, str], list[int]] = {}
    first_requests, bounded = set(), True
    for episode in episodes:
        settings, task = episode.settings, episode.task
        answer = most_answer_tokens(settings.parameters(0))
        bounded &= answer is not None or settings.recorded
        key = settings.called, settings.prompt_strategy, settings.feedback, task.id
        if key not in bounds:
            prompter = prompters[settings.prompt_strategy, settings.feedback]
            bounds[key] = most_prompts(settings, task, prompter, answer)
        first = episode.model, settings.prompt_strategy, task.id, episode.sample
        for prompt in bounds[key][first in first_requests :]:
            use[episode.model] += budget.use(episode.model, prompt, answer)
        first_requests.add(first)
    return Forecast(len(episodes), dict(use), bounded)


def most_prompts(settings: Settings, task: Task, prompter: Prompter, answer: int | None) -> list[int]:
    """The most tokens of each round's prompt, by `tokens.most_tokens`."""
    first = most_tokens(prompter.first(task).messages)
    told = prompter.most_told(task) if isinstance(prompter, prompting.Prompter) else 0
    if not told:
        return [first] * settings.rounds
    turn = most_repeated(answer) + told
    turns = range(settings.rounds) if settings.history == "all" else [0, *[1] * (settings.rounds - 1)]
    return [first + count * turn for count in turns]


def tell(conditions: Conditions, console: Console) -> None:
    """Say what a run would ask and use at most, and do nothing."""
    settings = conditions[0]
    tasks = find_tasks(settings.tasks, load_tasks(settings.task_dirs))
    check_covered(settings.tolerance, tasks)
    budget = open_budget(conditions)
    episodes = plan(conditions, models_of(conditions), tasks)
    words = open_prompters(conditions, tasks)
    firsts = [estimated_tokens(prompter.first(task).messages) for prompter in words.values() for task in tasks]
    found = forecast(episodes, words, budget)
    total = found.total

    def say(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    say(f"{len(tasks)} tasks: {', '.join(task.id for task in tasks)}")
    if len(conditions) > 1:
        say(f"{len(conditions)} conditions (model · prompt strategy · feedback), {settings.samples} samples each")
    say(f"{found.episodes} episodes of at most {settings.rounds} rounds: at most {total.requests} requests")
    say(f"first requests: about {sum(firsts) // len(firsts)} tokens each, estimated")
    say(f"at most {total.prompt_tokens} tokens of prompts (one a byte, and all that is told as long as it may be)")
    if found.answers_bounded:
        say(f"at most {total.completion_tokens} tokens of answers (--max-tokens)")
    else:
        say("no bound on tokens of answers and cost: --max-tokens is not set for every model")
    priced = [model for model in found.use if model in budget.prices]
    for model in priced if found.answers_bounded else ():
        use = found.use[model]
        say(f"{model}: at most {use.requests} requests, {use.tokens} tokens, cost {use.money:.2f}")
    if len(priced) < len(found.use):
        say(f"no cost for {', '.join(sorted(set(found.use) - set(priced)))}: --prices FILE has no price")
    elif found.answers_bounded:
        say(f"cost at most {total.money:.2f}, in the currency of --prices")
