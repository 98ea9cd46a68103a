"""Exports: nothing lost in either form, readable by other programs."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from agentloop.cli import app
from agentloop.export import json_lines, table
from agentloop.files import read_lines
from tests.browser.folders import write_run
from tests.helpers.attempts import attempt
from tests.helpers.made import make_run

names = st.sampled_from(["a", "b", "c"])
scalars = st.integers(0, 9) | st.booleans() | st.none() | st.floats() | st.sampled_from(["", "x", "1,\n", "inf"])
values = st.recursive(scalars, lambda v: st.lists(v, max_size=2) | st.dictionaries(names, v, max_size=2), max_leaves=4)
records = st.dictionaries(names, values, max_size=3)


@given(st.lists(records, max_size=3))
def test_every_value_of_every_record_stands_in_a_cell(given_records: list[dict[str, Any]]):
    columns, rows = table(given_records)
    assert len(set(columns)) == len(columns)
    for record, row in zip(given_records, rows, strict=True):
        cells = dict(zip(columns, row, strict=True))
        for path, value in leaves(record):
            if value is not None and value != "":
                assert cells[".".join(path)] == value


def leaves(value: Any, path: tuple[str, ...] = ()) -> Any:
    """What cells must hold: up to three names, then JSON; an empty object holds nothing."""
    if isinstance(value, dict) and len(path) < 3:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif value == {}:
        return
    elif isinstance(value, str) or value is None:
        yield path, value
    else:
        held = json.loads(next(json_lines([{"v": value}])))["v"]
        yield path, held if isinstance(held, str) else json.dumps(held)


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "r", 40)


def test_json_lines_are_the_records(folder: Path) -> None:
    lines = run("export", str(folder), "--format", "jsonl").splitlines()
    loaded = [json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON")) for line in lines]
    text = json.dumps(read_lines(folder / "attempts.jsonl")[0])
    assert loaded == json.loads(text.replace("Infinity", '"inf"').replace("NaN", '"nan"'))


def test_the_table_has_a_column_for_every_figure(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run("export", str(folder)), newline="")))
    recorded = read_lines(folder / "attempts.jsonl")[0]
    assert len(rows) == len(recorded)
    for row, record in zip(rows, recorded, strict=True):
        assert row["attempt_id"] == record["attempt_id"]
        assert row["score.tiers.layouts"] == record["score"]["tiers"]["layouts"]
        assert row["usage.prompt_tokens"] == str(record["usage"]["prompt_tokens"])
        assert row["naive.geak.status"] == record["naive"]["geak"]["status"]
        example = record["score"]["counterexample"]
        assert row["score.counterexample.token"] == (example["token"] if example else "")
        assert json.loads(row["tiers_stated"]) == record["tiers_stated"]
    assert {"infrastructure_error", "rescored_from", "ends", "timings.score", "oracle_version"} <= set(rows[0])
    assert "score.failure" not in rows[0]


def test_texts_come_along_when_asked_for(tmp_path: Path) -> None:
    made = make_run(tmp_path / "r", [(attempt(True), "x = 1\r\n# \u2028 =cmd()\n"), (attempt(False, sample=1), None)])
    one, two = map(json.loads, run("export", str(made), "--format", "jsonl", "--texts").splitlines())
    assert one["source"] == one["answer"] == "x = 1\r\n# \u2028 =cmd()\n"
    assert one["messages"] == [{"role": "user", "content": "please, ops/a"}]
    assert (two["source"], two["answer"]) == (None, "I would rather not.")
    rows = list(csv.DictReader(io.StringIO(run("export", str(made), "--texts"), newline="")))
    assert rows[0]["source"] == one["source"]


def test_a_run_without_attempts_is_an_empty_table(tmp_path: Path) -> None:
    made = make_run(tmp_path / "r", [])
    assert run("export", str(made)).strip() == ""
    assert run("export", str(made), "--format", "jsonl") == ""
