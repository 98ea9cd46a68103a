"""What a run will do: its episodes, in order, and the request each round stands for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentloop import Prompt, Request
from agentloop.config import Settings
from oracle.schema import Task

SEED_STRIDE = 1_000_003  # sample indices stay far below; seeds of different runs stay apart


@dataclass(frozen=True)
class Episode:
    """The rounds of one (model, prompt strategy, feedback arm, task, sample).

    `settings` are those of its condition: model, strategy and arm, rounds, sampling parameters. `model` is what records
    call the model (a recording holds several).
    """

    settings: Settings
    model: str
    task: Task
    sample: int

    @property
    def prompt_strategy(self) -> str:
        return self.settings.prompt_strategy

    @property
    def feedback(self) -> str:
        return self.settings.feedback

    @property
    def id(self) -> str:
        return f"{self.model}:{self.prompt_strategy}:{self.feedback}:{self.task.id}:{self.sample}"

    def attempt_id(self, round_: int) -> str:
        return f"{self.id}:{round_}"

    def sample_index(self, round_: int) -> int:
        """The index the round's request is sent with. Arm `none` repeats its first request, so round r of sample s
        takes index s + r·samples: no answer serves two of its episodes."""
        return self.sample + round_ * self.settings.samples if self.feedback == "none" else self.sample


def plan(conditions: Sequence[Settings], models: Mapping[str, Sequence[str]], tasks: Iterable[Task]) -> list[Episode]:
    """All episodes of a run: every task's first sample before any task's second, and the conditions of one task and
    sample side by side, so that a run that is stopped has something to compare.

    `models` maps what a condition's model is called to the models asked there: itself, or those of a recording.
    """
    tasks = list(tasks)
    return [
        Episode(settings, model, task, sample)
        for sample in range(max(settings.samples for settings in conditions))
        for task in tasks
        for settings in conditions
        for model in models[settings.called]
    ]


def request_for(episode: Episode, round_: int, prompt: Prompt) -> Request:
    """The request of a round. Its `seed` is the sample index itself where the run's seed is 0."""
    settings, index = episode.settings, episode.sample_index(round_)
    seed = (settings.seed * SEED_STRIDE + index) % (1 << 31)
    model = episode.model if settings.recorded else settings.model
    return Request(model, prompt.messages, settings.parameters(seed), index)


def request_key(endpoint: str, request: Request) -> str:
    """A request's id: blake2b over everything that can change its answer. `endpoint` is a URL, or a built-in author's
    name (its port changes from run to run)."""
    content = [endpoint, request.model, request.parameters, list(request.messages), request.sample]
    data = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.blake2b(data, digest_size=16).hexdigest()
