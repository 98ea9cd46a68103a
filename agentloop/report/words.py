"""A run in words: what happened, why, and how to repeat it. Computed from the figures and the run's settings alone."""

from __future__ import annotations

import json
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agentloop.config import NEUTRAL, Settings, option
from agentloop.content import content_dir
from agentloop.records import Attempt
from agentloop.scoring import loud_over, status_over
from oracle.naive.profiles import PROFILES
from oracle.verdict import FAIL, PASS

EXAMPLES = 6  # kernels that the headline check accepts wrongly, told one by one
AUTHORS = {"offline": "simulation", "recorded": "recorded answers"}  # labels of authors that are no live model
ALWAYS = (
    "model",
    "tasks",
    "prompt_strategy",
    "feedback",
    "samples",
    "rounds",
    "seed",
)  # said even where they are defaults
TIER_WORDS = {
    "base": "the plain case: the task's base shape, float32, contiguous, ordinary values",
    "shapes": "other sizes: 1, odd, beyond block boundaries, large",
    "dtypes": "float16, bfloat16 and whatever else the task allows",
    "values": "zeros, ties, very large and very small values, NaN and infinities",
    "keywords": "keyword arguments other than their defaults",
    "empty": "dimensions of size 0",
    "layouts": "transposed, sliced, strided, offset and expanded tensors",
    "portability": "undefined lanes and the order of programs: reported, never decides",
}
DRAWS = {"rand": "values in [0, 1)", "randn": "normal values", "uniform10": "values in [−10, 10]"}


def headline(summary: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Per model and prompt strategy: name, author and sentences that say what happened."""
    return [
        {"name": name, "author": model["author"], "sentences": [*_first_answers(model), *_repairs(name, summary)]}
        for name, model in summary["models"].items()
    ]


def headline_profile(model: Mapping[str, Any]) -> str | None:
    """The naive check that headlines speak of: `kernelbench`, or the first one measured."""
    profiles = model["disagreement"]
    return "kernelbench" if "kernelbench" in profiles else next(iter(profiles), None)


def _first_answers(model: Mapping[str, Any]) -> list[str]:
    profile = headline_profile(model)
    if profile is None:
        return []
    figures = model["disagreement"][profile]["stated"]
    cells = figures["cells"]
    total = sum(cells.values())
    right = sum(count for cell, count in cells.items() if cell.endswith(f"_oracle_{PASS}"))
    accepted = sum(count for cell, count in cells.items() if cell.startswith(f"naive_{PASS}_"))
    said = [f"{right} of {total} first answers are right on everything that the prompt states."]
    if not accepted:
        return [*said, f"The {profile} check accepts none of them."]
    judged = figures["p_oracle_fails_given_naive_passes"]
    wrong = (
        f"{figures['illusions']} of these {accepted} {'is' if figures['illusions'] == 1 else 'are'} wrong"
        f"{interval(judged)}, {figures['silent']} silently: no error says that they are wrong"
        if figures["illusions"]
        else f"the oracle finds none of these wrong{interval(judged)}"
    )
    said.append(f"The {profile} check accepts {accepted} of {total}; {wrong}.")
    unjudged = accepted - judged["n"]
    return [*said, f"{unjudged} of these could not be judged."] if unjudged else said


def _repairs(name: str, summary: Mapping[str, Any]) -> list[str]:
    said = []
    for arm, figures in summary["repair"].items():
        points = figures["solved_by_round"]
        if not arm.startswith(f"{name} · ") or len(points) < 2:
            continue
        counts = [round((point["value"] or 0) * point["n"]) for point in points]
        feedback = arm.removeprefix(f"{name} · ")
        said.append(
            f"With feedback “{feedback}” {counts[0]} of {points[0]['n']} episodes were solved at the first answer and "
            f"{counts[-1]} after round {points[-1]['round']}{interval(points[-1])}."
        )
    return said


def interval(estimate: Mapping[str, Any]) -> str:
    """An estimate in brackets: " (50%, 95% interval 19 to 81%)"; empty where nothing was observed."""
    if estimate["value"] is None:
        return ""
    value, low, high = (f"{100 * estimate[key]:.0f}" for key in ("value", "low", "high"))
    return f" ({value}%, 95% interval {low} to {high}%)"


def points(difference: Mapping[str, Any]) -> str:
    """A difference of shares in points of percent: "+42 [17, 66]"; "–" where it is undefined."""
    if difference["value"] is None:
        return "–"
    value, low, high = (100 * difference[key] for key in ("value", "low", "high"))
    return f"{value:+.0f} [{low:.0f}, {high:.0f}]"


def ranking(family: Mapping[str, Any]) -> str:
    """What a comparison of conditions says, ties included."""
    if not family["pairs"]:
        return "Nothing to compare: they have no task in common."
    order = ", then ".join(f"{row['name']}{interval(row)}" for row in family["ranking"])
    apart = [pair for pair in family["pairs"] if pair["ahead"]]
    ahead: dict[str, list[str]] = {}
    for pair in apart:
        ahead.setdefault(pair["ahead"], []).append(pair["b"] if pair["ahead"] == pair["a"] else pair["a"])
    said = [f"{name} is ahead of {', '.join(behind)}" for name, behind in ahead.items()]
    alike = len(family["pairs"]) - len(apart)
    if alike:
        said.append(f"{alike} of {len(family['pairs'])} pairs are not told apart" if apart else "no two are told apart")
    return f"In order of the share solved: {order}. {'; '.join(said)}."


def profile_words(name: str) -> str:
    """What a naive profile does, in one line; empty for one that this version does not know."""
    profile = PROFILES.get(name)
    if profile is None:
        return ""
    if profile.rule == "runs":
        return "its example calls; passes whatever does not raise"
    times = "once" if profile.trials == 1 else f"{profile.trials} times"
    where = "at one fixed shape" if profile.calls == "fixed" else "on a few small calls"
    return f"{times} {where}, {DRAWS[profile.draw]}, {profile.rule} with atol {profile.atol:g}, rtol {profile.rtol:g}"


def kind_words() -> dict[str, str]:
    """What each failure kind means: the same words that authors are told."""
    return tomllib.loads((content_dir("prompts") / "feedback" / "kinds.toml").read_text(encoding="utf-8"))


def examples(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Some first answers that the headline check passes and the oracle fails over the stated tiers: silent ones first,
    one of each task and failure kind before a second."""
    found: dict[tuple[str, str], Attempt] = {}
    for attempt in attempts:
        naive = attempt.naive.get("kernelbench", {}).get("status")
        failure = attempt.score.failure if attempt.score else None
        if attempt.round == 0 and naive == PASS and failure and status_over(attempt, attempt.tiers_stated) == FAIL:
            found.setdefault((attempt.task, failure["kind"]), attempt)
    ranked = sorted(found.values(), key=lambda attempt: loud_over(attempt, attempt.tiers_stated))
    return [_example(attempt) for attempt in ranked[:EXAMPLES]]


def _example(attempt: Attempt) -> dict[str, Any]:
    assert attempt.score is not None
    assert attempt.score.failure is not None
    example = attempt.score.counterexample or {}
    return {
        "episode": attempt.episode_id,
        "task": attempt.task,
        "author": attempt.author,
        "kind": attempt.score.failure["kind"],
        "tier": attempt.score.failure["tier"],
        "message": attempt.score.failure["message"],
        "diagnosis": example.get("diagnosis"),
    }


def replay_command(run: Path, attempt: Attempt, config: Mapping[str, Any]) -> str | None:
    """The command that runs an attempt's counterexample again; None where there is none."""
    example = attempt.score.counterexample if attempt.score else None
    if not example or not attempt.candidate_id:
        return None
    token = str(example["token"])
    if token.endswith(".json"):  # too long for a line: a file of the run folder holds it
        token = str(run / token)
    settings = config.get("settings") or {}
    options = [
        word for key in ("task_dirs", "allow_unsafe") if settings.get(key) for word in _given(key, settings[key])
    ]
    return shlex.join(["agentloop", "replay", token, str(run / "candidates" / f"{attempt.candidate_id}.py"), *options])


def repeat_command(run: Path, config: Mapping[str, Any]) -> str | None:
    """The `agentloop run`, or `sweep` of the file that the folder keeps, that asks for the same again, or the `rescore`
    that judges the same again; None where config.json does not say what was asked."""
    settings = config.get("settings") or {}
    if config.get("rescored"):
        return str(config["rescored"]["command"])
    if config.get("conditions"):
        return shlex.join(["agentloop", "sweep", str(run / "sweep.toml"), "--name", f"{run.name}-again"])
    if "model" not in settings:
        return None
    words = ["agentloop", "run"]
    for key, default in Settings.model_fields.items():
        value = settings.get(key)
        free = key in NEUTRAL or (key not in ALWAYS and value == _plain(default.get_default(call_default_factory=True)))
        if free or value is None:
            continue
        words += _given(key, value)
    return shlex.join(words)


def conditions(config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Under what a run was made: endpoint, backend, versions, hardware, containment, as far as config.json says."""
    plain = {key: config.get(key) for key in ("author", "endpoint", "backend", "oracle_version", "git_commit")}
    found = plain | (config.get("versions") or {}) | (config.get("hardware") or {})
    found["candidates contained by"] = config.get("isolation")
    found["not exercised by this backend"] = config.get("not_exercised")
    return [
        (name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in found.items()
        if value
    ]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _given(key: str, value: Any) -> list[str]:
    if value is True:
        return [option(key)]
    values = value if isinstance(value, list) else [value]
    return [word for one in values for word in (option(key), json.dumps(one) if isinstance(one, dict) else str(one))]
