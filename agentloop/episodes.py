"""What a run will do: its episodes, in order, and the request each round stands for."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass

from agentloop import Prompt, Request
from agentloop.config import Settings
from oracle.schema import Task

SEED_STRIDE = 1_000_003  # sample indices stay far below; seeds of different runs stay apart


@dataclass(frozen=True)
class Episode:
    """The rounds of one (model, prompt strategy, feedback arm, task, sample)."""

    model: str
    prompt_strategy: str
    feedback: str
    task: Task
    sample: int

    @property
    def id(self) -> str:
        return f"{self.model}:{self.prompt_strategy}:{self.feedback}:{self.task.id}:{self.sample}"

    def attempt_id(self, round_: int) -> str:
        return f"{self.id}:{round_}"

    def sample_index(self, round_: int, samples: int) -> int:
        """The index the round's request is sent with. Arm `none` repeats its first request, so round r of sample s
        takes index s + r·samples: no answer serves two of its episodes."""
        return self.sample + round_ * samples if self.feedback == "none" else self.sample


def plan(settings: Settings, models: Iterable[str], tasks: Iterable[Task]) -> list[Episode]:
    """All episodes of a run: every task's first sample before any task's second."""
    tasks = list(tasks)
    return [
        Episode(model, settings.prompt_strategy, settings.feedback, task, sample)
        for sample in range(settings.samples)
        for model in models
        for task in tasks
    ]


def request_for(settings: Settings, episode: Episode, round_: int, prompt: Prompt) -> Request:
    """The request of a round. Its `seed` is the sample index itself where the run's seed is 0."""
    index = episode.sample_index(round_, settings.samples)
    seed = (settings.seed * SEED_STRIDE + index) % (1 << 31)
    return Request(episode.model, prompt.messages, settings.parameters(seed), index)


def request_key(endpoint: str, request: Request) -> str:
    """A request's id: blake2b over everything that can change its answer. `endpoint` is a URL, or a built-in author's
    name (its port changes from run to run)."""
    content = [endpoint, request.model, request.parameters, list(request.messages), request.sample]
    data = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def most_requests(settings: Settings, episodes: list[Episode]) -> int:
    """Upper bound on distinct requests: every episode goes to its last round; arms share round 0."""
    first = {(e.model, e.prompt_strategy, e.task.id, e.sample) for e in episodes}
    return len(first) + len(episodes) * (settings.rounds - 1)
