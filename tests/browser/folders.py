"""Run folders made through the real record classes: any size, any text, no judge.

`python -m tests.browser.folders FOLDER [ATTEMPTS]` writes one to look at. Sources are the corpus's kernels with names and
constants of their own, values are drawn anew for each attempt: what a page must pack is as hard to pack as a real run's.
"""

from __future__ import annotations

import json
import random
import re
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentloop.content import find_tasks, load_tasks
from agentloop.prompting import Prompter
from agentloop.records import Attempt, RequestDone, RequestSent, StreamVerdict, Usage
from agentloop.store import CONFIG_VERSION
from oracle.case import Case, Replay
from oracle.naive.profiles import PROFILES
from oracle.schema import FULL_TIERS, Task
from oracle.verdict import FAIL, LOUD_KINDS, PASS, candidate_id

ROUNDS = 3
ARMS = ("none", "error", "minimized")
MODELS = ("model-a", "vendor/model-b:free")
KINDS = ("numerical_mismatch", "out_of_bounds", "unwritten_output", "compile_error", "wrong_dtype")
KERNELS = Path(__file__).parents[2] / "oracle" / "corpus" / "kernels" / "ops"
WORDS = (
    "the",
    "kernel",
    "masks",
    "loads",
    "rows",
    "block",
    "size",
    "in",
    "float32",
    "then",
    "stores",
    "casts",
    "output",
)


def write_run(
    folder: Path,
    attempts: int,
    *,
    models: tuple[str, ...] = MODELS,
    arms: tuple[str, ...] = ARMS,
    author: str = "model",
    text: str | None = None,
) -> Path:
    """A run folder of at least `attempts` attempts. `text` replaces what authors say and raise (hostile text, say)."""
    draw = random.Random(attempts)
    tasks = find_tasks("ops/*", load_tasks())
    for name in ("responses", "candidates", "counterexamples"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    settings = {
        "model": models[0],
        "tasks": "ops/*",
        "rounds": ROUNDS,
        "feedback": arms[-1],
        "base_url": "http://localhost:1",
    }
    config = {"version": CONFIG_VERSION, "author": author, "created": "2026-01-01T00:00:00Z", "settings": settings}
    (folder / "config.json").write_text(json.dumps(config))
    prompts = {task.id: Prompter("zero_shot", "minimized").first(task) for task in tasks}
    kernels = [path.read_text() for path in sorted(KERNELS.glob("*control*.py"))]
    with (folder / "attempts.jsonl").open("w") as lines, (folder / "requests.jsonl").open("w") as requests:
        written = 0
        for model, arm, task, sample in _episodes(models, arms, tasks):
            messages = list(prompts[task.id].messages)
            for attempt, answer in _rounds(folder, draw, kernels, author, model, arm, task, sample, messages, text):
                lines.write(attempt.model_dump_json() + "\n")
                written += 1
                key = attempt.response_id or ""
                sent = RequestSent(request_id=key, model=model, sample=sample, time=0.0)
                done = RequestDone(request_id=key, outcome="stored", tries=1, time=0.0)
                requests.write(sent.model_dump_json() + "\n" + done.model_dump_json() + "\n")
                response = {"request_id": key, "model": model, "messages": messages, "text": answer}
                (folder / "responses" / f"{key}.json").write_text(json.dumps(response))
                told = f"Your answer failed the checks.\n{json.dumps(attempt.score and attempt.score.counterexample)[:3000]}"
                messages = [*messages[:2], {"role": "assistant", "content": answer}, {"role": "user", "content": told}]
            if written >= attempts:
                break
    return folder


def _episodes(
    models: tuple[str, ...], arms: tuple[str, ...], tasks: list[Task]
) -> Iterator[tuple[str, str, Task, int]]:
    for sample in range(1_000_000):
        for task in tasks:
            for model in models:
                for arm in arms:
                    yield model, arm, task, sample


def _rounds(
    folder: Path,
    draw: random.Random,
    kernels: list[str],
    author: str,
    model: str,
    arm: str,
    task: Task,
    sample: int,
    messages: list[dict[str, str]],
    text: str | None,
) -> Iterator[tuple[Attempt, str]]:
    mends = draw.randrange(ROUNDS + 2)  # the round that is right; often none
    for round_ in range(min(mends, ROUNDS - 1) + 1):
        source = _source(draw, kernels) if text is None else f"x = '''{text}'''\n"
        prose = _prose(draw) if text is None else text
        answer = f"{prose}\n```python\n{source}```\n{_prose(draw)}"
        verdict = _verdict(draw, task, failing=round_ != mends, text=text)
        name = candidate_id(source)
        (folder / "candidates" / f"{name}.py").write_text(source)
        episode = f"{model}:zero_shot:{arm}:{task.id}:{sample}"
        yield (
            Attempt(
                attempt_id=f"{episode}:{round_}", episode_id=episode, model=model, author=author,
                prompt_strategy="zero_shot", feedback=arm, task=task.id, task_hash="0", sample=sample, round=round_,
                oracle_version="1", tolerance="derived", domain="full", backend="interpreter", seed=0,
                tiers_stated=list(FULL_TIERS), prompt_id="p", response_id=f"{draw.getrandbits(128):032x}",
                candidate_id=name, extraction={"method": "fenced", "steps": []},
                naive={profile: {"status": draw.choice([PASS, FAIL]), "reason": text or "5 trials"} for profile in PROFILES},
                score=verdict, feedback_verdict=verdict, status=verdict.status, status_stated=verdict.status,
                usage=Usage(prompt_tokens=1200, completion_tokens=900), timings={"score": 1.5}, time=0.0,
            ),
            answer,
        )  # fmt: skip


def _verdict(draw: random.Random, task: Task, failing: bool, text: str | None) -> StreamVerdict:
    tiers = dict.fromkeys(FULL_TIERS, PASS)
    if not failing:
        return StreamVerdict(status=PASS, tiers=tiers, cases_run=80)
    kind, tier = draw.choice(KINDS), draw.choice(FULL_TIERS)
    said = (
        text or f"{draw.randrange(64)} of 64 elements beyond the tolerance (kernel `_k`, line {draw.randrange(2, 20)})"
    )
    failure = {"kind": kind, "tier": tier, "loud": kind in LOUD_KINDS, "message": said, "detail": said}
    case = Case(task.id, task.forms[0].name, task.base_dims(), "float32", seed=draw.randrange(1 << 30), tier=tier)
    array = {"shape": [4, 16], "dtype": "float32"}
    example: dict[str, Any] = {
        "token": Replay(case).token(),
        "case": case.to_json(),
        "inputs": {"x": {**array, "values": _values(draw)}},
        "got": [{**array, "values": _values(draw), "worst": [{"index": [0, 3], "got": draw.random()}]}],
        "expected": [{**array, "values": _values(draw), "worst": [{"index": [0, 3], "expected": draw.random()}]}],
        "stats": {"max_abs": draw.random(), "max_rel": float("inf"), "exceeding": 1, "count": 64},
        "diagnosis": text or "only the last partial block of N is wrong",
        "executions": 40,
        "original": case.to_json(),
    }
    return StreamVerdict(
        status=FAIL, tiers={**tiers, tier: FAIL}, failure=failure, failures={tier: failure}, counterexample=example,
        cases_run=40, cases_failed={tier: 1}, executions=60,
    )  # fmt: skip


def _values(draw: random.Random) -> list[float]:
    return [round(draw.uniform(-10, 10), 7) for _ in range(64)]


def _source(draw: random.Random, kernels: list[str]) -> str:
    """A kernel of the corpus in an author's own names and constants."""
    source = draw.choice(kernels)
    for name in set(re.findall(r"\b[a-z]+_[a-z]+\b", source)):
        if draw.random() < 0.6:
            source = re.sub(rf"\b{name}\b", "".join(draw.choices(string.ascii_lowercase, k=8)), source)
    return re.sub(r"\b(64|128|256|1024)\b", lambda _: str(draw.choice([16, 32, 64, 128, 512, 2048])), source)


def _prose(draw: random.Random) -> str:
    return " ".join(draw.choices(WORDS, k=60)) + "."


if __name__ == "__main__":
    write_run(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 10_000)
