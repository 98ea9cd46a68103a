"""The loop: prompt → answer → candidate → verdict → feedback → record, for every episode of a run.

It reads the same whether a run is new or resumed: an answer that is stored and an attempt that is recorded are taken
from the run folder, all else is asked and judged.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from agentloop import Answer, Prompt, Prompter
from agentloop.config import Settings
from agentloop.episodes import Episode, request_for
from agentloop.errors import EpisodeFault, InfrastructureError, UsageError
from agentloop.extraction import Extraction, extract
from agentloop.judging import Judging, ask, restore, shown_inputs, to_record
from agentloop.progress import RunProgress
from agentloop.records import Attempt, Usage
from agentloop.replies import Replies
from agentloop.store import Store
from oracle.verdict import PASS, NaiveResult, Verdict

FAULTS_IN_A_ROW = 3  # at one stage, with no success between: the run stops, it would only go on failing
NAIVE = "kernelbench"  # the profile of feedback arm `naive` and of stop = "naive"


@dataclass
class Outcome:
    """How a run ended: attempts owed to infrastructure faults, and those recorded as unjudged."""

    owed: list[str] = field(default_factory=list)
    last_fault: str = ""
    unjudged: int = 0


class Loop:
    """Runs episodes side by side; everything it needs is given to it."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        replies: Replies,
        judging: Judging,
        prompter: Prompter,
        progress: RunProgress,
        about: dict[str, Any],
    ) -> None:
        """`about` holds what every attempt of the run says of it: author, oracle_version, tolerance, backend."""
        self.settings, self.store, self.replies, self.judging = settings, store, replies, judging
        self.prompter, self.progress, self.about = prompter, progress, about
        self.outcome = Outcome()
        self._in_a_row: Counter[str] = Counter()

    async def run(self, episodes: Iterable[Episode]) -> Outcome:
        """All episodes. Raises UsageError or InfrastructureError where the run cannot go on; what is recorded stays."""
        waiting = iter(episodes)

        async def lane() -> None:
            for episode in waiting:
                await self.finish(episode)
                self.progress.ended()

        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(self.settings.concurrency + 2 * self.settings.workers):
                    lanes.create_task(lane())
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self.replies.stop()
            self.judging.stop()
        self.outcome.unjudged = sum(attempt.status_stated == "unjudged" for attempt in self.store.attempts.values())
        return self.outcome

    async def finish(self, episode: Episode) -> None:
        """One episode to its end, or to an infrastructure fault: then its next attempt is owed."""
        round_ = 0
        try:
            prompt = self.prompter.first(episode.task)
            shown: frozenset[str] = frozenset()
            for round_ in range(self.settings.rounds):
                answer = await self.replies.get(request_for(self.settings, episode, round_, prompt))
                self._in_a_row["request"] = 0
                found = extract(answer.text, episode.task.entry)
                attempt = await self.attempt(episode, round_, prompt, answer, found, shown)
                self._in_a_row["judge"] = 0
                told = restore(attempt, "feedback")
                if self.ends(attempt, told) or round_ == self.settings.rounds - 1:
                    return
                naive = NaiveResult(**attempt.naive[NAIVE])
                shown |= shown_inputs(episode.task, episode.feedback, told)
                prompt = self.prompter.next(episode.task, prompt, answer.text, found.source, told, naive)
        except EpisodeFault as fault:
            self.owe(episode.attempt_id(round_), fault)

    async def attempt(
        self, episode: Episode, round_: int, prompt: Prompt, answer: Answer, found: Extraction, shown: frozenset[str]
    ) -> Attempt:
        """Judge an answer and record it, or take it from the record."""
        recorded = self.store.attempts.get(episode.attempt_id(round_))
        if recorded is not None:
            if recorded.prompt_id != prompt.prompt_id:
                raise UsageError(
                    f"the prompts changed since {recorded.attempt_id} was recorded; restore them to resume, or start "
                    f"another run with another --name"
                )
            return recorded
        judged = await self.judge(episode, round_, prompt, found.source, shown)
        attempt = Attempt(
            attempt_id=episode.attempt_id(round_),
            episode_id=episode.id,
            model=episode.model,
            prompt_strategy=episode.prompt_strategy,
            feedback=episode.feedback,
            task=episode.task.id,
            task_hash=episode.task.digest,
            sample=episode.sample,
            round=round_,
            domain=self.settings.domain,
            seed=self.settings.seed,
            tiers_stated=list(prompt.tiers_stated),
            prompt_id=prompt.prompt_id,
            response_id=answer.request_id,
            candidate_id=self.store.save_candidate(found.source) if found.source is not None else None,
            extraction=found.to_json() | {"finish_reason": answer.finish_reason},
            usage=Usage(prompt_tokens=answer.prompt_tokens, completion_tokens=answer.completion_tokens),
            time=time.time(),
            **judged,
            **self.about,
        )
        attempt = self.store.add(attempt)
        self.judging.recorded(attempt)
        self.progress.attempt(attempt)
        return attempt

    async def judge(
        self, episode: Episode, round_: int, prompt: Prompt, source: str | None, shown: frozenset[str]
    ) -> dict[str, Any]:
        """The attempt's fields that judging gives. The feedback stream is not judged in the last round: nobody is told."""
        task, forbidden = episode.task, prompt.forbids
        scoring = ask(task, source, "score", minimized=True, excluded=shown, forbidden=forbidden)
        telling = ask(
            task,
            source,
            "feedback",
            minimized=episode.feedback == "minimized",
            excluded=frozenset(),
            forbidden=forbidden,
        )
        last = round_ == self.settings.rounds - 1
        questions = [scoring] if last else [scoring, telling]
        verdicts = await asyncio.gather(*(self.judging.verdict(task, source, question) for question in questions))
        records = [to_record(v, q, self.store) for v, q in zip(verdicts, questions, strict=True)]
        return {
            "status": verdicts[0].status,
            "status_stated": verdicts[0].status_over(prompt.tiers_stated),
            "naive": {name: asdict(result) for name, result in verdicts[0].naive.items()},
            "score": records[0],
            "feedback_verdict": None if last else records[1],
            "timings": {q.stream: round(v.seconds, 3) for v, q in zip(verdicts, questions, strict=True)},
        }

    def ends(self, attempt: Attempt, told: Verdict | None) -> bool:
        """Whether the episode ends with this attempt: in every arm by the feedback stream over the stated tiers."""
        if self.settings.stop == "naive":
            return attempt.naive[NAIVE]["status"] == PASS
        return told is not None and told.status_over(tuple(attempt.tiers_stated)) == PASS

    def owe(self, attempt_id: str, fault: EpisodeFault) -> None:
        """Book a fault; after several in a row at one stage the run stops."""
        self.store.fault(attempt_id, fault.stage, str(fault), fault.detail)
        self.progress.fault(attempt_id, str(fault))
        self.outcome.owed.append(attempt_id)
        self.outcome.last_fault = str(fault)
        self._in_a_row[fault.stage] += 1
        if self._in_a_row[fault.stage] >= FAULTS_IN_A_ROW:
            raise InfrastructureError(f"stopped after {FAULTS_IN_A_ROW} {fault.stage} faults in a row; last: {fault}")
