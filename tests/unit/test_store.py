"""The run folder: nothing recorded is lost or doubled, whatever ended the process that wrote it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentloop import Retry
from agentloop.errors import StorageError, UsageError
from agentloop.files import Log, read_lines, write_whole
from agentloop.records import Attempt, StreamVerdict
from agentloop.store import CONFIG_VERSION, Store, find_run
from oracle.case import TOKEN_LIMIT

CONFIG = {"version": CONFIG_VERSION, "settings": {}}


def attempt(number: int = 0, **changes: Any) -> Attempt:
    fields: dict[str, Any] = {
        "attempt_id": f"m:zero_shot:none:ops/x:{number}:0",
        "episode_id": f"m:zero_shot:none:ops/x:{number}",
        "model": "m",
        "author": "model",
        "prompt_strategy": "zero_shot",
        "feedback": "none",
        "task": "ops/x",
        "task_hash": "h",
        "sample": number,
        "round": 0,
        "oracle_version": "1",
        "tolerance": "derived",
        "domain": "full",
        "backend": "interpreter",
        "seed": 0,
        "tiers_stated": ["base"],
        "prompt_id": "p",
        "response_id": "r",
        "candidate_id": "c",
        "status": "fail",
        "status_stated": "fail",
        "time": 1.0,
    }
    return Attempt(**fields | changes)


def response(request_id: str, text: str) -> dict[str, Any]:
    said = {"text": text, "finish_reason": "stop", "prompt_tokens": None, "completion_tokens": 3, "seconds": 1.5}
    return {"request_id": request_id, **said}


def contents(path: Path) -> dict[str, bytes]:
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file() and f.name != ".lock"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A run folder with two attempts, one stored response, one failed request, one in doubt."""
    path = tmp_path / "runs" / "r"
    with Store.create(path, CONFIG) as store:
        for number in range(2):
            store.add(attempt(number))
        for request_id in ("stored", "failed", "doubt"):
            store.sent(request_id, "m", 0)
        store.save_response("stored", response("stored", "hello"), 2)
        store.failed("failed", "status 500", 6)
    return path


def test_what_was_written_is_read_again(path: Path) -> None:
    with Store.open(path) as store:
        assert list(store.attempts.values()) == [attempt(0), attempt(1)]
        assert store.has_response("stored")
        assert not store.has_response("failed")
        assert store.response("stored")["text"] == "hello"
        assert store.in_doubt == ["doubt"]


def test_doubts_are_booked_once_and_outlive_the_process(path: Path) -> None:
    Store.open(path).close()  # the doubts may not have been shown: they are listed until they are sent again
    with Store.open(path) as store:
        assert store.in_doubt == ["doubt"]
        events = [(r["event"], r["request_id"]) for r in read_lines(path / "requests.jsonl")[0]]
        assert events.count(("in_doubt", "doubt")) == 1
        store.sent("doubt", "m", 0)
        store.retry("doubt", Retry("status 500", 500, 0.5))
    with Store.open(path) as store:
        assert store.in_doubt == ["doubt"]
        assert [r["event"] for r in read_lines(path / "requests.jsonl")[0]].count("in_doubt") == 2
        store.save_response("doubt", response("doubt", "late"), 1)
    with Store.open(path) as store:
        assert store.in_doubt == []


def test_a_response_stored_just_before_a_kill_is_not_in_doubt(path: Path) -> None:
    with Store.open(path) as store:
        store.sent("late", "m", 0)
        store.retry("late", Retry("status 500", 500, 0.5))
    write_whole(path / "responses" / "late.json", json.dumps(response("late", "hello")).encode())
    with Store.open(path) as store:
        assert store.in_doubt == ["doubt"]
    done = [r for r in read_lines(path / "requests.jsonl")[0] if r["request_id"] == "late" and r["event"] == "done"]
    assert [(record["outcome"], record["tries"]) for record in done] == [("stored", 2)]


@pytest.mark.parametrize("name", ["attempts.jsonl", "requests.jsonl", "faults.jsonl"])
def test_a_torn_last_line_is_moved_aside(path: Path, name: str) -> None:
    whole = (path / name).read_bytes()
    torn = b'{"attempt_id": "x", "episo'
    (path / name).write_bytes(whole + torn)
    with Store.open(path) as store:
        store.add(attempt(2))
    assert (path / name).read_bytes().startswith(whole)
    assert (path / f"{name}.torn").read_bytes() == torn + b"\n"
    with Store.open(path) as store:
        assert len(store.attempts) == 3


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_log_cut_anywhere_keeps_every_whole_line(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("log") / "log.jsonl"
    records = [{"n": i, "text": text} for i, text in enumerate(data.draw(st.lists(st.text(), max_size=5)))]
    log = Log(file)
    log.open()
    for record in records:
        log.append(record)
    log.close()
    raw = file.read_bytes()
    cut = data.draw(st.integers(0, len(raw)))
    file.write_bytes(raw[:cut])
    log = Log(file)
    log.open()
    log.append({"n": "next"})
    log.close()
    kept = read_lines(file)[0]
    assert kept[-1] == {"n": "next"}
    assert kept[:-1] == records[: len(kept) - 1]
    assert len(kept) - 1 >= raw[:cut].count(b"\n")


DAMAGE = {
    "attempts.jsonl": [b"nonsense\n", b"[1]\n", b'{"attempt_id": "a"}\n', b"\0\0\0\n", b"\xff\xfe\n"],
    "requests.jsonl": [b"nonsense\n", b'{"event": "other", "request_id": "x"}\n', b'{"event": "sent"}\n'],
    "faults.jsonl": [b"nonsense\n"],
}


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in DAMAGE.items() for line in lines])
def test_damage_is_refused_with_its_line_and_nothing_changes(path: Path, name: str, line: bytes) -> None:
    with (path / name).open("ab") as file:
        file.write(line)
    before = contents(path)
    number = before[name].count(b"\n")
    with pytest.raises(UsageError, match=f"{name} line {number}"):
        Store.open(path)
    assert contents(path) == before


def test_an_attempt_twice_is_damage(path: Path) -> None:
    lines = (path / "attempts.jsonl").read_bytes()
    (path / "attempts.jsonl").write_bytes(lines + lines)
    with pytest.raises(UsageError, match="line 3 repeats"):
        Store.open(path)


def test_an_attempt_is_recorded_once(path: Path) -> None:
    with Store.open(path) as store, pytest.raises(ValueError, match="already"):
        store.add(attempt(1))


DEEP = b"[" * 100_000
FOREIGN_CONFIGS = [
    *(
        b"",
        b"{",
        b"[]",
        DEEP,
        b'{"version": 1}',
        b'{"version": 99, "settings": {}}',
        b'{"version": 1, "settings": null}',
    ),
    b'{"version": 1, "settings": {}, "tasks": ["ops/relu"]}',
    b'{"version": 1, "settings": {}, "conditions": []}',
]


@pytest.mark.parametrize("config", FOREIGN_CONFIGS, ids=lambda config: repr(config[:50]))
def test_a_foreign_or_damaged_config_is_refused(path: Path, config: bytes) -> None:
    (path / "config.json").write_bytes(config)
    before = contents(path)
    with pytest.raises(UsageError, match=r"config\.json|format"):
        Store.open(path)
    assert contents(path) == before


@pytest.mark.parametrize("name", ["attempts", "requests", "faults"])
@pytest.mark.parametrize("line", [b"garbage", b"[1]", DEEP], ids=["garbage", "list", "deep"])
def test_a_damaged_line_is_refused(path: Path, name: str, line: bytes) -> None:
    with (path / f"{name}.jsonl").open("ab") as file:
        file.write(line + b"\n")
    before = contents(path)
    with pytest.raises(UsageError, match=rf"{name}\.jsonl line \d+ is damaged"):
        Store.open(path)
    assert contents(path) == before


@pytest.mark.parametrize(
    "changes", [{"event": "x"}, {"request_id": 5}, {"most_prompt_tokens": "many"}, {"time": None}, {"sample": []}]
)
def test_a_line_that_is_no_request_is_refused(path: Path, changes: dict[str, Any]) -> None:
    lines = path / "requests.jsonl"
    record = json.loads(lines.read_bytes().splitlines()[0]) | changes
    with lines.open("ab") as file:
        file.write(json.dumps(record).encode() + b"\n")
    with pytest.raises(UsageError, match="is not a request's"):
        Store.open(path)


@pytest.mark.parametrize(
    "damage",
    [b"", b"{}", b"[]", DEEP, json.dumps(response("other", "hello")).encode(), b'{"request_id": "stored", "text": 3}'],
    ids=["empty", "object", "list", "deep", "of another request", "no text"],
)
def test_a_response_that_is_none_is_named(path: Path, damage: bytes) -> None:
    (path / "responses" / "stored.json").write_bytes(damage)
    with Store.open(path) as store, pytest.raises(UsageError, match=r"stored\.json is damaged; remove that file"):
        store.response("stored")


def test_a_foreign_folder_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="not an empty folder"):
        Store.create(tmp_path, CONFIG)
    with pytest.raises(UsageError, match=r"no config\.json"):
        find_run(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["mine.txt"]


def test_find_run_by_name_and_path(path: Path) -> None:
    assert find_run("r", path.parent) == path
    assert find_run(path) == path
    with pytest.raises(UsageError, match=r"no run 'other'.*it has r"):
        find_run("other", path.parent)


def test_two_processes_cannot_share_a_folder(path: Path) -> None:
    code = "import sys; from pathlib import Path; from agentloop.store import Store; Store.open(Path(sys.argv[1]))"
    with Store.open(path):
        done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert f"in use by process {os.getpid()}" in done.stderr
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 0


FILL = """
import json, resource, sys
from pathlib import Path
from agentloop.errors import StorageError
from agentloop.store import Store
store = Store.open(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, resource.RLIM_INFINITY))
written = 0
try:
    for number in range(1000):
        store.fault(f"attempt {number}", "judge", "x" * 300)
        written += 1
except StorageError as error:
    print(json.dumps([written, str(error)]))
"""


def test_a_full_disk_is_one_clear_error_and_loses_nothing(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FILL, str(path)], capture_output=True, text=True, check=True)
    written, message = json.loads(done.stdout)
    assert 5 < written < 1000
    assert "faults.jsonl" in message
    assert "nothing recorded is lost" in message
    raw = (path / "faults.jsonl").read_bytes()
    assert raw.endswith(b"\n")
    assert raw.count(b"\n") == written


def test_a_failed_whole_write_keeps_the_old_file(tmp_path: Path) -> None:
    file = tmp_path / "f"
    write_whole(file, b"old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(StorageError, match="cannot write"):
            write_whole(file, b"new" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["f"]


def test_candidates_are_stored_once_under_their_digest(path: Path) -> None:
    with Store.open(path) as store:
        first = store.save_candidate("x = 1\n")
        assert store.save_candidate("x = 1\n") == first
        assert store.save_candidate("x = 2\n") != first
        assert (path / "candidates" / f"{first}.py").read_text() == "x = 1\n"


def test_a_long_token_names_its_file(path: Path) -> None:
    example = {"token": "al1:" + "x" * TOKEN_LIMIT, "inputs": {"x": 1}}
    with Store.open(path) as store:
        kept = store.shorten(example)
        assert json.loads((path / kept["token"]).read_text()) == example
        assert store.shorten({"token": "al1:short"}) == {"token": "al1:short"}


def test_a_record_reads_back_equal_even_with_non_finite_figures(path: Path) -> None:
    verdict = StreamVerdict(
        status="fail", counterexample={"token": "al1:x", "stats": {"max": float("nan")}, "shape": (1, 2)}
    )
    with Store.open(path) as store:
        returned = store.add(attempt(5, score=verdict))
    with Store.open(path) as store:
        assert store.attempts[returned.attempt_id] == returned


def test_a_run_knows_which_models_have_answered(tmp_path: Path) -> None:
    with Store.create(tmp_path / "r", CONFIG) as store:
        store.sent("a", "m", 0)
        store.sent("b", "other", 0)
        store.save_response("a", response("a", "x"), 1)
    with Store.open(tmp_path / "r") as store:
        assert store.has_answers_of(["other", "m"])
        assert not store.has_answers_of(["other"])
