"""Files and folders that a user names: whatever they are, one line and exit code 2, at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.helpers.command import main

KINDS = (
    "pipe",
    "endless",
    "folder",
    "absent",
    "dangling",
    "loop",
    "huge",
    "binary",
    "long",
    "below a file",
    "not UTF-8",
)
SETTINGS = ("--config", "--prices", "--task-dir", "--prompt-dir")
COMMANDS = {
    **{option: ["run", "--model", "offline", "--tasks", "seed/relu", "--dry-run", option] for option in SETTINGS},
    "--runs-dir": ["run", "--model", "offline", "--tasks", "seed/relu", "--runs-dir"],
    "sweep": ["sweep"],
    **{command: [command] for command in ("resume", "report", "show", "export", "compare", "rescore")},
    "judge": ["judge", "--task", "seed/relu"],
    "replay": ["replay", "al1:x:y"],
    "recorded": ["run", "--dry-run", "--model"],
}


def place(folder: Path, kind: str) -> str:
    path = folder / "given"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("nowhere")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "huge":
        path.write_bytes(bytes(5 << 20))
    elif kind == "binary":
        path.write_bytes(bytes(range(255, 0, -1)))
    elif kind == "below a file":
        path.write_text("")
    names = {"long": "x" * 300, "below a file": "given/x", "not UTF-8": "given\udcff"}
    return str(folder / names.get(kind, "given"))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_whatever_is_named_it_is_refused_in_one_line(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    given = place(tmp_path, kind)
    for what, arguments in COMMANDS.items():
        if (what, kind) in {("--runs-dir", "folder"), ("--runs-dir", "absent"), ("judge", "binary")}:
            continue  # these will do
        named = f"recorded:{given}" if what == "recorded" else given
        code = main(*arguments, named)
        lines = [line for line in capsys.readouterr().err.splitlines() if not line.endswith(" …")]
        assert (what, code, len(lines)) == (what, 2, 1), lines
        assert lines[0].startswith("error: "), what
        assert len(lines[0]) < 2100


def test_a_line_stays_a_line_however_long_a_value_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("run", "--dry-run", "--tasks", "x" * 100_000) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: --tasks")
    assert line.endswith("`agentloop tasks list` shows all")
    assert len(line) < 2100
