"""The loop: prompt → answer → candidate → verdict → feedback → record, for every episode of a run.

It reads the same whether a run is new or resumed: an answer that is stored and an attempt that is recorded are taken
from the run folder, all else is asked and judged.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from agentloop import Answer, Prompt, Prompter
from agentloop.budget import BudgetReached
from agentloop.episodes import Episode, request_for
from agentloop.errors import EpisodeFault, InfrastructureError, UsageError
from agentloop.extraction import Extraction, extract
from agentloop.judging import Judging, ask, restore, shown_inputs, to_record
from agentloop.progress import RunProgress
from agentloop.records import Attempt, Usage
from agentloop.replies import Replies
from agentloop.store import Store
from oracle.verdict import PASS, NaiveResult, Verdict

FAULTS_IN_A_ROW = 3  # of the judge or of one model's requests, with no success between: it would only go on failing
NAIVE = "kernelbench"  # the profile of feedback arm `naive` and of stop = "naive"


@dataclass
class Outcome:
    """How a run ended: attempts owed to infrastructure faults, those recorded as unjudged, episodes given up because
    their model was down, episodes that the budget left undone (`budget` says which), and candidates that could not be
    timed."""

    owed: list[str] = field(default_factory=list)
    last_fault: str = ""
    unjudged: int = 0
    given_up: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    untimed: list[str] = field(default_factory=list)
    budget: str = ""


class Loop:
    """Runs episodes side by side; everything it needs is given to it."""

    def __init__(
        self,
        store: Store,
        replies: Mapping[str, Replies],
        judging: Judging,
        prompters: Mapping[tuple[str, str], Prompter],
        progress: RunProgress,
        about: dict[str, Any],
    ) -> None:
        """`replies` by what a condition's model is called, `prompters` by prompt strategy and feedback arm; `about` holds
        what every attempt of the run says of it: oracle_version, tolerance, backend."""
        self.store, self.replies, self.judging, self.prompters = store, replies, judging, prompters
        self.progress, self.about = progress, about
        self.outcome = Outcome()
        self._in_a_row: Counter[tuple[str, str]] = Counter()  # faults by stage and model

    async def run(self, episodes: Iterable[Episode]) -> Outcome:
        """All episodes. Raises UsageError or InfrastructureError where the run cannot go on; what is recorded stays."""
        by_model: defaultdict[str, list[Episode]] = defaultdict(list)
        for episode in episodes:
            by_model[episode.settings.called].append(episode)
        try:
            async with asyncio.TaskGroup() as lanes:
                for model, group in by_model.items():
                    waiting = iter(group)
                    for _ in range(self.replies[model].concurrency + 2 * self.judging.workers):
                        lanes.create_task(self.lane(waiting))
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            for replies in self.replies.values():
                replies.stop()
            self.judging.stop()
        self.outcome.unjudged = sum(attempt.status_stated == "unjudged" for attempt in self.store.attempts.values())
        return self.outcome

    async def lane(self, waiting: Iterator[Episode]) -> None:
        """One episode of a model after another; models have lanes of their own, so that a slow one holds up no other."""
        for episode in waiting:
            if self.down("request", episode.settings.called):
                self.outcome.given_up.append(episode.id)
            else:
                await self.finish(episode)
            self.progress.ended()

    async def finish(self, episode: Episode) -> None:
        """One episode to its end, to an infrastructure fault (then its next attempt is owed) or to the budget's end."""
        settings, task, round_ = episode.settings, episode.task, 0
        replies, prompter = self.replies[settings.called], self.prompters[settings.prompt_strategy, settings.feedback]
        try:
            prompt = prompter.first(task)
            shown: frozenset[str] = frozenset()
            for round_ in range(settings.rounds):
                answer = await replies.get(request_for(episode, round_, prompt))
                self._in_a_row["request", settings.called] = 0
                found = extract(answer.text, task.entry)
                attempt = await self.attempt(episode, round_, prompt, answer, found, shown)
                if attempt.candidate_id is not None:  # an answer without code says nothing of the judge
                    self._in_a_row["judge", ""] = 0
                told = restore(attempt, "feedback")
                if self.ends(episode, round_, attempt.naive, attempt.tiers_stated, told):
                    return
                naive = NaiveResult(**attempt.naive[NAIVE])
                shown |= shown_inputs(task, episode.feedback, told)
                prompt = prompter.next(task, prompt, answer.text, found.source, told, naive)
        except EpisodeFault as fault:
            self.owe(episode, round_, fault)
        except BudgetReached as reached:
            self.outcome.left.append(episode.id)
            self.outcome.budget = str(reached)

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
            author=self.replies[episode.settings.called].kind,
            domain=episode.settings.domain,
            seed=episode.settings.seed,
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
        last = round_ == episode.settings.rounds - 1
        questions = [scoring] if last else [scoring, telling]
        verdicts = await asyncio.gather(*(self.judging.verdict(task, source, question) for question in questions))
        records = [to_record(v, q, self.store) for v, q in zip(verdicts, questions, strict=True)]
        naive = {name: asdict(result) for name, result in verdicts[0].naive.items()}
        return {
            "status": verdicts[0].status,
            "status_stated": verdicts[0].status_over(prompt.tiers_stated),
            "naive": naive,
            "score": records[0],
            "feedback_verdict": None if last else records[1],
            "ends": self.ends(episode, round_, naive, prompt.tiers_stated, None if last else verdicts[1]),
            "timings": {q.stream: round(v.seconds, 3) for v, q in zip(verdicts, questions, strict=True)},
        }

    def ends(
        self,
        episode: Episode,
        round_: int,
        naive: Mapping[str, Mapping[str, str]],
        stated: Iterable[str],
        told: Verdict | None,
    ) -> bool:
        """Whether an attempt is its episode's last: in every arm by the feedback stream over the stated tiers."""
        if round_ == episode.settings.rounds - 1:
            return True
        if episode.settings.stop == "naive":
            return naive[NAIVE]["status"] == PASS
        return told is not None and told.status_over(tuple(stated)) == PASS

    def owe(self, episode: Episode, round_: int, fault: EpisodeFault) -> None:
        """Book a fault. After several in a row the run stops, or, where other models answer, that model's part of it."""
        attempt_id, model = episode.attempt_id(round_), episode.settings.called
        self.store.fault(attempt_id, fault.stage, str(fault), fault.detail)
        self.progress.fault(attempt_id, str(fault))
        self.outcome.owed.append(attempt_id)
        self.outcome.last_fault = str(fault)
        if not fault.alone:
            self._in_a_row[fault.stage, model if fault.stage == "request" else ""] += 1
        if self.down("judge", "") or all(self.down("request", called) for called in self.replies):
            raise InfrastructureError(f"stopped after {FAULTS_IN_A_ROW} {fault.stage} faults in a row; last: {fault}")

    def down(self, stage: str, model: str) -> bool:
        return self._in_a_row[stage, model] >= FAULTS_IN_A_ROW
