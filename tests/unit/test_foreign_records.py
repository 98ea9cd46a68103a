"""A run folder whose files were torn, mixed up or written by another: one line and exit code 2, or what is left is shown."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.attempts import attempt
from tests.helpers.command import main
from tests.helpers.made import contents, make_run

ARRAY = {"shape": [2], "dtype": "float32", "strides": [1], "values": [1.0, 2.0]}
EXAMPLE = {"token": "al1:x", "case": {"dims": {"N": 2}, "keywords": {}}, "inputs": {"x": ARRAY}, "got": [ARRAY]}
READERS = (["show"], ["show", "--texts"], ["export", "--texts"], ["report"], ["compare"])
WRONG: dict[str, tuple[Any, ...]] = {
    "naive.kernelbench": ({}, {"status": "", "reason": ""}, {"status": "pass"}, 3),
    "round": (-1, "x", None),
    "sample": (-1,),
    "score.tiers.shapes": ("", "right"),
    "score.tiers": ({"nowhere": "fail"}, [1]),
    "score.failure": ({}, {"kind": "bad luck", "tier": "base", "message": ""}),
    "score.failures.shapes.message": (None, 3),
    "score.counterexample": ({}, {"token": None}),
    "score.counterexample.case": (3, {"dims": 3}, {"keywords": [1]}),
    "score.counterexample.inputs": ([], {"x": {}}, {"x": ARRAY | {"shape": [[1]]}}, {"x": ARRAY | {"strides": 3}}),
    "score.counterexample.got": ([{}], [ARRAY | {"shape": [-1]}], [ARRAY | {"worst": [{}]}]),
    "score.counterexample.stats": (3,),
    "score.sanitizer": ({"error": 3},),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    wrong = attempt(False)
    assert wrong.score is not None
    wrong = wrong.model_copy(update={"score": wrong.score.model_copy(update={"counterexample": EXAMPLE})})
    return make_run(tmp_path / "r", [(wrong, "x = 1"), (attempt(True, sample=1, round_=0), "x = 2")])


def commands(folder: Path) -> list[list[str]]:
    """The readers, as they are typed; `show --texts` of one episode."""
    episode = json.loads((folder / "attempts.jsonl").read_text().splitlines()[0]).get("episode_id", "m")
    other = str(folder.parent / "other")
    more = {"--texts": [episode]}
    return [
        [words[0], str(folder), *(more.get(words[-1], []) if words[0] == "show" else []), *words[1:]]
        + ([other] if words[0] == "compare" else [])
        for words in READERS
    ]


def test_a_part_of_an_attempt_that_is_none_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(folder, folder.parent / "other")
    lines = [json.loads(line) for line in (folder / "attempts.jsonl").read_text().splitlines()]
    for place, values in WRONG.items():
        *path, last = place.split(".")
        for value in values:
            line = inner = copy.deepcopy(lines[0])
            for name in path:
                inner = inner[name]
            inner[last] = value
            (folder / "attempts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (line, lines[1])))
            before = contents(folder)
            for words in commands(folder):
                code = main(*words)
                said = capsys.readouterr().err.splitlines()
                if words[0] == "export":  # as recorded, whatever it is
                    assert code == 0
                    continue
                assert (code, len(said)) == (2, 1), (place, value, words, said)
                assert "attempts.jsonl line 1 is not an attempt of this version (" in said[0]
                assert place.split(".")[0] in said[0]
            assert contents(folder) == before


def test_an_attempt_that_is_there_twice_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(folder, folder.parent / "other")
    text = (folder / "attempts.jsonl").read_text()
    (folder / "attempts.jsonl").write_text(text + text)
    for words in commands(folder):
        code, said = main(*words), capsys.readouterr().err
        assert words[0] == "export" or (code == 2 and "line 3 repeats an attempt" in said)


def _pipe(file: Path) -> None:
    os.mkfifo(file)


def _loop(file: Path) -> None:
    file.symlink_to(file.name)


def _endless(file: Path) -> None:
    file.symlink_to("/dev/zero")


ODD: dict[str, Callable[[Path], Any]] = {
    "absent": lambda file: None,
    "folder": Path.mkdir,
    "pipe": _pipe,
    "loop": _loop,
    "endless": _endless,
    "binary": lambda file: file.write_bytes(bytes(range(255, -1, -1))),
    "list": lambda file: file.write_text("[1]"),
    "messages": lambda file: file.write_text('{"messages": 3, "text": [1]}'),
    "message": lambda file: file.write_text('{"messages": [3, {"role": 1}], "text": null}'),
    "markup": lambda file: file.write_text('{"messages": [{"role": "[/]", "content": "[/x]"}], "text": "[/red]"}'),
    "deep": lambda file: file.write_text("[" * 100_000),
    "surrogate": lambda file: file.write_text(
        '{"messages": [{"role": "user", "content": "\\ud800"}], "text": "\\ud800"}'
    ),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ODD)
def test_what_was_said_is_shown_as_far_as_it_is_there(
    folder: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder, folder.parent / "other")
    for file in [*(folder / "responses").iterdir(), *(folder / "candidates").iterdir()]:
        file.unlink()
        ODD[kind](file)
    for words in commands(folder):
        code, said = main(*words), capsys.readouterr()
        assert (code, said.err) == (0, ""), (words, said.err)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", ["folder", "pipe", "loop", "endless"])
@pytest.mark.parametrize("name", ["attempts.jsonl", "requests.jsonl", "speed.jsonl", "config.json"])
def test_a_record_that_is_no_file_is_named(
    folder: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).unlink(missing_ok=True)
    ODD[kind](folder / name)
    for command in ("report", "resume"):
        code, said = main(command, str(folder)), capsys.readouterr().err.splitlines()
        if (command, name) == ("resume", "speed.jsonl"):
            continue  # it is read where candidates are timed
        lines = [line for line in said if not line.endswith(" …")]
        assert (code, len(lines)) == (2, 1), said
        assert str(folder) in lines[0]


def test_a_name_is_no_markup(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "r", [(attempt(False, model="[/red] m", strategy="[bold]"), "x = 1")])
    for command in ("show", "report"):
        assert main(command, str(folder)) == 0
        assert "[/red] m" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["response_id", "candidate_id"])
def test_an_id_names_no_file_elsewhere(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [json.loads(line) for line in (folder / "attempts.jsonl").read_text().splitlines()]
    lines[0][name] = "../../elsewhere"
    (folder / "attempts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in ("rescore", "show"):
        assert main(command, str(folder), "--runs-dir", str(folder.parent)) == 2
        assert name in capsys.readouterr().err.splitlines()[-1]


@pytest.mark.parametrize("rescored", [3, {}, {"run": 3, "changes": {}, "command": ""}])
def test_a_rescoring_that_is_none_is_named(folder: Path, rescored: Any, capsys: pytest.CaptureFixture[str]) -> None:
    config = json.loads((folder / "config.json").read_text()) | {"rescored": rescored}
    (folder / "config.json").write_text(json.dumps(config))
    assert main("resume", str(folder)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "config.json is damaged" in line


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--name", "../x", "--name"),
        ("--tasks", "ü", "ü"),
        ("--tasks", "x" * 300, "--name"),
        ("--domain", "ü", "--domain"),
    ],
)
def test_a_rescore_names_the_option(
    folder: Path, option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("rescore", str(folder), "--runs-dir", str(folder.parent), option, value) == 2
    assert said in capsys.readouterr().err.splitlines()[-1].partition(", got")[0]


@pytest.mark.parametrize("place", ["", ".", "/"])
def test_a_page_is_no_folder(folder: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("report", str(folder), "--html", place) == 2
    assert "--html" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["/proc/page.html", "/dev/null/page.html"])
def test_a_page_has_a_place_that_can_be_written(folder: Path, place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("report", str(folder), "--html", place) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"--html {place}: cannot write" in line


def test_a_page_in_no_folder(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("report", str(folder), "--html", str(tmp_path / "none" / "page.html")) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "there is no folder" in line


def test_a_page_elsewhere_leaves_the_run_as_it_is(folder: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert main("report", str(folder), "--html", str(tmp_path / "page.html")) == 0
    assert (tmp_path / "page.html").stat().st_size
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_run_that_cannot_be_written_is_reported_elsewhere(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.chmod(0o555)
    try:
        assert main("report", str(folder)) == 2
        assert "--html FILE" in capsys.readouterr().err
        assert main("report", str(folder), "--html", str(tmp_path / "page.html")) == 0
    finally:
        folder.chmod(0o755)


def test_a_token_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("replay", f" {tmp_path / 'x.json'} ", "k.py") == 2
    assert "No such file" in capsys.readouterr().err
