"""Words requests: the first from a prompt strategy, later ones from a feedback arm.

Both are folders of Jinja2 templates (`prompts/STRATEGY`, `prompts/feedback/ARM`); a folder given with `--prompt-dir` is
looked into first. What a template may use is what `task_view` and `failure_view` return; an unknown name is an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from agentloop import Prompt
from agentloop.config import read_toml
from agentloop.content import content_dir
from agentloop.errors import UsageError
from agentloop.failures import failure_view, widest_view
from agentloop.history import Turn, conversation, cut_middle, turns_of
from agentloop.tokens import estimated_tokens, utf8_bytes
from agentloop.views import task_view
from oracle.schema import TIERS, Task
from oracle.verdict import FAILURE_KINDS, NaiveResult, Verdict

TEMPLATES = (".j2", ".toml", ".py")  # suffixes of files that prompts are made of
HIDDEN = "_"  # folders whose name begins so hold shared parts

ARMS = ("none", "verdict", "naive", "error", "counterexample", "minimized")


@dataclass(frozen=True)
class Strategy:
    """A prompt strategy as `agentloop prompts list` shows it."""

    name: str
    description: str
    tiers_stated: tuple[str, ...]
    forbids: tuple[str, ...]
    folder: Path


class Prompter:
    """One strategy and one feedback arm (`agentloop.Prompter`). Raises UsageError for an unknown or broken one.

    `history`: a later request repeats the `last` answer and what was told of it, or `all` of them. `budget`: about the
    most tokens of a prompt; `agentloop.history` says what is shortened to keep it.
    """

    def __init__(
        self,
        strategy: str,
        feedback: str,
        prompt_dirs: Iterable[str | Path] = (),
        *,
        history: str = "last",
        budget: int | None = None,
    ) -> None:
        self._folders = folders = _folders(prompt_dirs)
        self.strategy = find_strategy(strategy, prompt_dirs)
        self.feedback, self.history, self.budget = feedback, history, budget
        self.arm = _arm(feedback, folders)
        self._arm_template = f"feedback/{feedback}/user.j2"
        self._meanings = read_toml(_first(folders, "feedback/kinds.toml", "--feedback"), "--prompt-dir")
        self._environment = SandboxedEnvironment(
            loader=jinja2.FileSystemLoader(folders),
            undefined=jinja2.StrictUndefined,
            autoescape=False,
            trim_blocks=True,
            lstrip_blocks=True,
        )

    @property
    def digest(self) -> str:
        """A digest of the files behind the prompts: the strategy's, the arm's, and the shared parts of every folder."""
        found = hashlib.blake2b(digest_size=8)
        arm = _first(self._folders, f"feedback/{self.feedback}/arm.toml", "--feedback").parent
        shared = [folder / "_shared" for folder in self._folders]
        for place in (self.strategy.folder, arm, *shared):
            for path in sorted(file for file in place.rglob("*") if file.suffix in TEMPLATES and file.is_file()):
                found.update(f"{path.relative_to(place)}\0".encode() + path.read_bytes())
        found.update(json.dumps(self._meanings, sort_keys=True).encode())
        return found.hexdigest()

    def first(self, task: Task) -> Prompt:
        """The first request: the strategy's system and user message. It is never shortened: UsageError where it is over
        the budget."""
        view = task_view(task)
        messages = [
            {"role": role, "content": self._render(f"{self.strategy.name}/{role}.j2", view)}
            for role in ("system", "user")
        ]
        stated = [m for m in messages if m["content"]]
        if self.budget is not None and estimated_tokens(stated) > self.budget:
            raise UsageError(
                f"--prompt-tokens {self.budget} is less than the {estimated_tokens(stated)} of the first request for "
                f"{task.id}, which is never shortened; allow more"
            )
        return make_prompt(stated, self.strategy.tiers_stated, self.strategy.forbids)

    def next(
        self,
        task: Task,
        before: Prompt,
        answer: str,
        source: str | None,
        verdict: Verdict | None,
        naive: NaiveResult | None = None,
    ) -> Prompt:
        """The request after a failed attempt: the first request, with history `all` the turns that `before` holds, the
        author's last answer and what the arm tells of it. Arm `none` repeats the first request (at another sample index,
        which the loop chooses).

        `source` is the code found in `answer`, None where there was none; `naive` is the `kernelbench` profile's result,
        by default the verdict's.
        """
        first = self.first(task)
        if self.arm.get("fresh", False):
            return first
        if naive is None and verdict is not None:
            naive = verdict.naive.get("kernelbench")
        plain = task_view(task)

        def last(characters: int, detail: int) -> Turn:
            view = plain | failure_view(task, source, verdict, naive, self._meanings, detail)
            said = cut_middle(source or answer.strip() or "(an empty answer)", characters)
            return Turn(f"```python\n{said}\n```" if source else said, self._render(self._arm_template, view))

        earlier = turns_of(before.messages[len(first.messages) :]) if self.history == "all" else []
        messages = conversation(first.messages, earlier, last, self.budget)
        return make_prompt(messages, before.tiers_stated, before.forbids)

    def most_told(self, task: Task) -> int:
        """A bound on the tokens of what the arm tells of one answer; 0 where it tells nothing."""
        if self.arm.get("fresh", False):
            return 0
        widest = widest_view(task, self._meanings)
        views = (widest, widest | {"naive": None}, widest | {"no_code": True, "found": None, "shrunk": None})
        return max(utf8_bytes(self._render(self._arm_template, task_view(task) | view)) for view in views)

    def _render(self, name: str, view: Mapping[str, Any]) -> str:
        try:
            text = self._environment.get_template(name).render(view).strip()
            text.encode()  # a lone surrogate could not be sent
            return text
        except jinja2.TemplateNotFound as error:
            raise UsageError(f"--prompt-strategy {self.strategy.name}: template {error.name} does not exist") from None
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(
                f"template {error.filename or name}:{error.lineno} does not parse: {error.message}"
            ) from None
        except jinja2.UndefinedError as error:
            raise UsageError(f"template {name}: {error}; it may use {', '.join(sorted(view))}") from None
        except Exception as error:  # a template is a program of its own: it may fail in any way
            raise UsageError(f"template {name} fails: {type(error).__name__}: {error}") from None


def make_prompt(
    messages: Iterable[Mapping[str, str]], tiers_stated: Iterable[str], forbids: Iterable[str] = ()
) -> Prompt:
    """A prompt whose id is a digest of its messages."""
    plain = tuple(dict(message) for message in messages)
    digest = hashlib.blake2b(json.dumps(plain, sort_keys=True).encode(), digest_size=8).hexdigest()
    return Prompt(digest, plain, tuple(tiers_stated), tuple(forbids))


def list_strategies(prompt_dirs: Iterable[str | Path] = ()) -> list[Strategy]:
    """All strategies by name; a user's own hides ours of the same name."""
    found: dict[str, Strategy] = {}
    for folder in reversed(_folders(prompt_dirs)):
        for path in sorted(folder.glob("*/strategy.toml")):
            if not path.parent.name.startswith(HIDDEN):
                found[path.parent.name] = _strategy(path)
    return [found[name] for name in sorted(found)]


def list_arms(prompt_dirs: Iterable[str | Path] = ()) -> dict[str, str]:
    """Feedback arms in the order of `ARMS`, with their descriptions."""
    folders = _folders(prompt_dirs)
    return {arm: str(_arm(arm, folders).get("description", "")) for arm in ARMS}


def find_strategy(name: str, prompt_dirs: Iterable[str | Path] = ()) -> Strategy:
    """The strategy of that name; raises UsageError that names the others."""
    known = {strategy.name: strategy for strategy in list_strategies(prompt_dirs)}
    if name not in known:
        raise UsageError(f"--prompt-strategy {name!r} does not exist; it may be {', '.join(known)}")
    return known[name]


def _strategy(path: Path) -> Strategy:
    data = read_toml(path, "--prompt-dir")
    tiers = data.get("tiers_stated")
    if not isinstance(tiers, list) or not tiers or not all(tier in TIERS for tier in tiers):
        raise UsageError(f"{path}: tiers_stated must list some of {', '.join(TIERS)}")
    forbids = data.get("forbids", [])
    if not isinstance(forbids, list) or not all(kind in FAILURE_KINDS for kind in forbids):
        raise UsageError(f"{path}: forbids must list failure kinds that the prompt rules out, as host_compute")
    return Strategy(path.parent.name, str(data.get("description", "")), tuple(tiers), tuple(forbids), path.parent)


def _arm(name: str, folders: list[Path]) -> dict[str, Any]:
    if name not in ARMS:
        raise UsageError(f"--feedback {name!r} does not exist; it may be {', '.join(ARMS)}")
    return read_toml(_first(folders, f"feedback/{name}/arm.toml", "--feedback"), "--prompt-dir")


def _folders(prompt_dirs: Iterable[str | Path]) -> list[Path]:
    folders = [Path(folder) for folder in prompt_dirs]
    for folder in folders:
        if not any(folder.glob("*/strategy.toml")) and not (folder / "feedback").is_dir():
            raise UsageError(
                f"--prompt-dir {folder} holds no STRATEGY/strategy.toml; copy prompts/zero_shot to begin one"
            )
    return [*folders, content_dir("prompts")]


def _first(folders: list[Path], name: str, option: str) -> Path:
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise UsageError(f"{option}: {name} is in none of {', '.join(map(str, folders))}")
