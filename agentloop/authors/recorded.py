"""Answers that real models once gave, said again to the very requests they were given to.

PATH is a file `answers-MODEL.jsonl` or a folder of them, each one model named MODEL. Line i answers line i of the
`tasks.jsonl` beside it; the request that was sent is that line's `instruction`, alone, as the user's message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentloop import Prompt
from agentloop.authors.server import ApiError, Said
from agentloop.errors import UsageError
from agentloop.files import read_regular
from agentloop.prompting import make_prompt
from oracle.schema import Task

SUITE = "tritonbench_t"
TIERS_STATED = ("base", "shapes")  # these prompts say nothing of dtypes, layouts or special values
STRATEGY = "recorded"
PREFIX, SUFFIX = "answers-", ".jsonl"


class RecordedAuthor:
    """Says the recorded answer to a recorded instruction (`authors.server.Speaker`). Sampling parameters change nothing."""

    kind = "recorded"
    fingerprint = "recorded answers"

    def __init__(self, path: str | Path) -> None:
        self._answers = {
            _model(file): {line["instruction"]: line["predict"] for line in _answers(file)}
            for file in _files(Path(path))
        }
        self.models = tuple(self._answers)

    def say(self, model: str, messages: Sequence[Mapping[str, str]], parameters: Mapping[str, Any]) -> Said:
        answer = self._answers[model].get(messages[-1]["content"])
        if answer is None:
            raise ApiError(
                400, f"{model} was never asked this: only recorded instructions can be answered", "not_recorded"
            )
        return Said(answer)


def models(path: str | Path) -> tuple[str, ...]:
    """The models whose answers PATH holds, by file name."""
    return tuple(_model(file) for file in _files(Path(path)))


def prompts(path: str | Path, tasks: Iterable[Task]) -> dict[str, Prompt]:
    """The recorded request of each task, by task id. Raises UsageError for a task that was never asked."""
    asked = _instructions(Path(path))
    found: dict[str, Prompt] = {}
    for task in tasks:
        instruction = asked.get(task.name) if task.suite == SUITE else None
        if instruction is None:
            names = ", ".join(sorted(asked))
            raise UsageError(
                f"--tasks: {task.id} has no recorded answer in {path}; it has {SUITE}/ with NAME one of {names}"
            )
        found[task.id] = make_prompt([{"role": "user", "content": instruction}], TIERS_STATED)
    return found


def _instructions(path: Path) -> dict[str, str]:
    """The instruction of each task by name (the last part of its dotted name); the same in every model's file."""
    files = _files(path)
    names = [str(line["name"]).rpartition(".")[2] for line in _lines(files[0].with_name("tasks.jsonl"), ("name",))]
    asked: dict[str, str] = {}
    for file in files:
        lines = _answers(file)
        if len(lines) != len(names):
            raise UsageError(
                f"{file} has {len(lines)} lines, tasks.jsonl beside it {len(names)}; line i must answer line i"
            )
        for number, (name, line) in enumerate(zip(names, lines, strict=True), 1):
            if asked.setdefault(name, line["instruction"]) != line["instruction"]:
                raise UsageError(f"{file}:{number}: the instruction for {name} differs from that of {files[0].name}")
    return asked


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        files = sorted(path.glob(f"{PREFIX}*{SUFFIX}"))
        if not files:
            raise UsageError(f"recorded:{path}: the folder holds no {PREFIX}MODEL{SUFFIX}")
        return files
    if not path.is_file():
        raise UsageError(f"recorded:{path} does not exist; PATH is a file {PREFIX}MODEL{SUFFIX} or a folder of them")
    if not (path.name.startswith(PREFIX) and path.name.endswith(SUFFIX) and _model(path)):
        raise UsageError(f"recorded:{path}: the file must be called {PREFIX}MODEL{SUFFIX}")
    return [path]


def _model(file: Path) -> str:
    return file.name.removeprefix(PREFIX).removesuffix(SUFFIX)


def _answers(file: Path) -> list[dict[str, Any]]:
    """The lines of an answers file; an instruction may stand in it once."""
    lines = _lines(file, ("instruction", "predict"))
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        first = seen.setdefault(line["instruction"], number)
        if first != number:
            raise UsageError(
                f"{file}:{number} repeats the instruction of line {first}: which answer is meant is unclear"
            )
    return lines


def _lines(file: Path, keys: tuple[str, ...]) -> list[dict[str, Any]]:
    """JSON lines with these keys, all strings; raises UsageError that names file and line."""
    try:
        raw = read_regular(file).splitlines()
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; it must stand beside the answers") from None
    lines = []
    for number, text in enumerate(raw, 1):
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            raise UsageError(f"{file}:{number} is not a line of JSON") from None
        if not isinstance(line, dict) or not all(isinstance(line.get(key), str) for key in keys):
            raise UsageError(f"{file}:{number} must be an object with the strings {', '.join(keys)}")
        lines.append(line)
    if not lines:
        raise UsageError(f"{file} is empty")
    return lines
