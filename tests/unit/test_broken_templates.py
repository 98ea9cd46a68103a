"""Prompt folders of a user's own: whatever is in them, a run says what is wrong before it asks for anything."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agentloop.config import Settings
from agentloop.content import content_dir, find_tasks, load_tasks
from agentloop.endpoints import open_prompters
from agentloop.errors import UsageError

TASKS = find_tasks("seed/relu", load_tasks())
TEMPLATES = {
    "undefined": "{{ nope }}",
    "syntax": "{% if %}",
    "binary": bytes(range(256)),
    "itself": '{% include "mine/user.j2" %}{% include "feedback/minimized/user.j2" %}',
    "outside": '{% include "../../../etc/passwd" %}',
    "division": "{{ 1 / 0 }}",
    "surrogate": '{{ "\\ud800" }}',
    "code": "{{ cycler.__init__.__globals__.os.system('true') }}",
    "endless": "{% for i in range(10 ** 9) %}{% endfor %}",
}
STRATEGIES = {
    "empty": "",
    "nested": "tiers_stated = [[1]]",
    "unknown": 'tiers_stated = ["shape"]',
    "forbids": 'tiers_stated = ["base"]\nforbids = [{a = 1}]',
    "binary": bytes(range(128, 256)),
    "pipe": None,
}


def refused(folder: Path) -> str:
    """What a run of two rounds says before it asks."""
    settings = Settings(prompt_strategy="mine", prompt_dirs=(str(folder),), rounds=2)
    with pytest.raises(UsageError) as error:
        open_prompters((settings,), TASKS)
    return str(error.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(content_dir("prompts") / "zero_shot", tmp_path / "prompts" / "mine")
    return tmp_path / "prompts"


@pytest.mark.parametrize("name", ["mine/user.j2", "feedback/minimized/user.j2"])
def test_a_template_that_fails_is_named(folder: Path, name: str) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for text in TEMPLATES.values():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        line = refused(folder)
        assert name in line or "passwd does not exist" in line


@pytest.mark.timeout(60)
def test_a_strategy_that_cannot_be_is_named(folder: Path) -> None:
    file = folder / "mine" / "strategy.toml"
    for text in STRATEGIES.values():
        file.unlink()
        if text is None:
            os.mkfifo(file)
        else:
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert str(file) in refused(folder)
