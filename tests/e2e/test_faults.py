"""A server that misbehaves in every way of `tests/helpers/ways.py`, at the whole command line: what is retried, owed,
refused or an answer; what is logged, stored and shown; and never a fault of ours booked as the model's failure.

One run meets all ways, each on the request of an episode of its own; between two of them is an episode that no fault
meets.
"""

from __future__ import annotations

import contextlib
import io
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentloop.files import read_lines
from agentloop.scoring import summarize
from tests.helpers import command
from tests.helpers.folders import attempts, key_of, requests, stored
from tests.helpers.servers import Handler, serving
from tests.helpers.sitting import graded
from tests.helpers.ways import WAYS, Way, of

STRUCK = {name: 2 * place + 3 for place, name in enumerate(WAYS)}  # the sample whose request it strikes
SAMPLES = max(STRUCK.values()) + 2
EPISODE = "m:zero_shot:minimized:seed/relu:{}"


@dataclass
class Stage:
    """A server's behaviour: `on` maps samples to the way that strikes, `times` times each. Notes when what arrived."""

    endpoint: str = ""
    on: dict[int, Way] = field(default_factory=dict)
    times: int = 1
    arrivals: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def strike(self, on: dict[int, Way], times: int = 1) -> None:
        """For the next run: it asks for everything anew."""
        self.on, self.times = on, times
        self.arrivals.clear()

    def mend(self) -> None:
        self.on = {}

    def __call__(self, handler: Handler, body: dict[str, Any]) -> None:
        seen = self.arrivals[key_of(self.endpoint, body)]
        seen.append(time.monotonic())
        way = self.on.get(body["seed"])
        (way.behaviour if way and len(seen) <= self.times else graded)(handler, body)


@dataclass(frozen=True)
class Ran:
    """One sitting: its folder, exit code, output, and what reached the server until its end."""

    path: Path
    code: int
    out: str
    err: str
    arrivals: dict[str, list[float]]
    attempts: dict[str, dict[str, Any]]
    requests: dict[str, list[dict[str, Any]]]
    stored: set[str]

    def of(self, name: str) -> tuple[str, list[dict[str, Any]]]:
        """The request that a way strikes, and its lines."""
        sample = STRUCK[name]
        return next((key, rows) for key, rows in self.requests.items() if rows[0]["sample"] == sample)


class Bench:
    """Runs the command line against one server."""

    def __init__(self, folder: Path, stage: Stage) -> None:
        self.folder, self.stage = folder, stage

    def run(self, name: str, **options: Any) -> Ran:
        given = {"model": "m", "base-url": self.stage.endpoint, "tasks": "seed/relu", "samples": SAMPLES, "rounds": 1}
        given |= {"timeout": 3, "runs-dir": self.folder, "name": name} | options
        return self._sit(name, "run", *(str(word) for key, value in given.items() for word in (f"--{key}", value)))

    def resume(self, name: str) -> Ran:
        return self._sit(name, "resume", str(self.folder / name))

    def _sit(self, name: str, *arguments: str) -> Ran:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = command.main(*arguments)
        path = self.folder / name
        arrivals = {key: list(times) for key, times in self.stage.arrivals.items()}
        assert "Traceback" not in err.getvalue()
        return Ran(path, code, out.getvalue(), err.getvalue(), arrivals, attempts(path), requests(path), stored(path))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    stage = Stage()
    with pytest.MonkeyPatch.context() as patch, serving(stage) as server:
        command.stand_in(patch)
        patch.setenv("OPENAI_API_KEY", "none")
        stage.endpoint = server.base_url
        yield Bench(tmp_path_factory.mktemp("runs"), stage)


@pytest.fixture(scope="module")
def calm(bench: Bench) -> Ran:
    """The run that no fault meets."""
    bench.stage.strike({})
    return bench.run("calm")


@pytest.fixture(scope="module")
def once(bench: Bench, calm: Ran) -> Ran:
    """Every way once, but those at which a run stops."""
    bench.stage.strike({STRUCK[name]: way for name, way in WAYS.items() if way.outcome != "refused"})
    return bench.run("once")


@pytest.fixture(scope="module")
def once_mended(bench: Bench, once: Ran) -> Ran:
    bench.stage.mend()
    return bench.resume("once")


@pytest.fixture(scope="module")
def lasting(bench: Bench, once_mended: Ran) -> Ran:
    """Every way that is worth another try, until no try is left. One request at a time: others succeed between."""
    bench.stage.strike({STRUCK[name]: way for name, way in of("retried").items()}, times=1000)
    return bench.run("lasting", tries=1, timeout=0.5, concurrency=1)


@pytest.fixture(scope="module")
def lasting_mended(bench: Bench, lasting: Ran) -> Ran:
    bench.stage.mend()
    return bench.resume("lasting")


def episode(name: str) -> str:
    return EPISODE.format(STRUCK[name])


def rows_of(ran: Ran, episode_id: str) -> dict[str, Any]:
    return {name: row for name, row in ran.attempts.items() if row["episode_id"] == episode_id}


def check_owed(ran: Ran, name: str) -> None:
    """The struck attempt is owed, logged and shown; nothing is stored of it and nothing booked to the model."""
    key, lines = ran.of(name)
    assert [line["event"] for line in lines] == ["sent", "done"]
    assert (lines[1]["outcome"], lines[1]["tries"]) == ("failed", 1)
    assert key not in ran.stored
    assert rows_of(ran, episode(name)) == {}
    [fault] = [f for f in read_lines(ran.path / "faults.jsonl")[0] if f["attempt_id"] == f"{episode(name)}:0"]
    assert fault["stage"] == "request"
    assert WAYS[name].reason in fault["message"]
    assert fault["message"].isprintable()
    assert f"owed: {episode(name)}:0: {fault['message']}" in ran.err


@pytest.mark.parametrize("name", of("retried"))
def test_it_is_retried_and_changes_no_attempt(calm: Ran, once: Ran, name: str) -> None:
    way = WAYS[name]
    key, lines = once.of(name)
    assert [line["event"] for line in lines] == ["sent", "retry", "done"]
    retry, done = lines[1:]
    assert retry["status"] == way.status
    assert way.reason in retry["reason"]
    assert retry["reason"].isprintable()
    assert f"s: {retry['reason']}" in once.err
    assert (done["outcome"], done["tries"]) == ("stored", 2)
    first, second = once.arrivals[key][-2:]
    assert second - first >= retry["waits"] >= way.waits
    assert key in once.stored
    assert rows_of(once, episode(name)) == rows_of(calm, episode(name))


@pytest.mark.parametrize("name", of("owed"))
def test_it_is_owed_at_once(once: Ran, name: str) -> None:
    check_owed(once, name)


@pytest.mark.parametrize("name", of("retried"))
def test_it_is_owed_where_it_lasts(lasting: Ran, name: str) -> None:
    check_owed(lasting, name)


@pytest.mark.parametrize("name", of("answered"))
def test_it_is_an_answer_and_judged(once: Ran, name: str) -> None:
    way = WAYS[name]
    key, lines = once.of(name)
    assert [line["event"] for line in lines] == ["sent", "done"]
    response = json.loads((once.path / "responses" / f"{key}.json").read_text())
    assert (response["text"], response["finish_reason"]) == (way.text, way.finish)
    assert response["completion_tokens"] == way.tokens
    row = once.attempts[f"{episode(name)}:0"]
    assert (row["response_id"], row["status"], row["infrastructure_error"]) == (key, "fail", None)
    assert row["extraction"]["finish_reason"] == way.finish
    assert row["usage"]["completion_tokens"] == way.tokens
    kind = row["score"]["failure"]["kind"]
    assert kind == ("numerical_mismatch" if "GRADE" in way.text else "no_code")


def test_exit_codes_and_what_is_shown(calm: Ran, once: Ran, lasting: Ran) -> None:
    assert (calm.code, once.code, lasting.code) == (0, 3, 3)
    for ran, owed, retries in ((once, of("owed"), of("retried")), (lasting, of("retried"), {})):
        assert f"{len(owed)} owed: `agentloop resume {ran.path}` tries again" in ran.out
        figures = summarize(ran.path)["requests"]
        assert (figures["failed"], figures["retries"], figures["in_doubt"]) == (len(owed), len(retries), 0)
        assert len(read_lines(ran.path / "faults.jsonl")[0]) == len(owed)


def test_episodes_between_are_as_ever(calm: Ran, once: Ran, lasting: Ran) -> None:
    between = [EPISODE.format(sample) for sample in range(SAMPLES) if sample not in STRUCK.values()]
    for name in between:
        assert rows_of(calm, name) == rows_of(once, name) == rows_of(lasting, name) != {}


def test_a_resume_makes_good_what_is_owed_and_nothing_else(
    calm: Ran, once: Ran, once_mended: Ran, lasting: Ran, lasting_mended: Ran
) -> None:
    answered = {f"{episode(name)}:0" for name in of("answered")}
    for before, after, expected in (
        (once, once_mended, {name: row for name, row in calm.attempts.items() if name not in answered}),
        (lasting, lasting_mended, calm.attempts),
    ):
        assert after.code == 0
        assert {name: row for name, row in after.attempts.items() if name in expected} == expected
        assert set(after.attempts) - set(expected) <= answered
        assert all(after.arrivals[key] == before.arrivals[key] for key in before.stored), "asked for what is stored"
        assert after.stored == {row["response_id"] for row in after.attempts.values()}


def test_what_we_are_is_refused_and_the_run_stops(bench: Bench, calm: Ran) -> None:
    """Each way in turn, on the same request: the run stops, a resume meets the next, the last finds all well."""
    struck = EPISODE.format(3)
    for place, (name, way) in enumerate(of("refused").items()):
        bench.stage.strike({3: way}, times=1000)
        ran = bench.resume("refused") if place else bench.run("refused", samples=5, concurrency=1, workers=1)
        assert ran.code == 2, name
        [line] = [line for line in ran.err.splitlines() if line.startswith("error: ")]
        assert way.reason in line
        assert f"agentloop resume {ran.path}" in line
        assert "another --name" not in line
        [(key, lines)] = [(k, rows) for k, rows in ran.requests.items() if rows[0]["sample"] == 3]
        assert [row["event"] for row in lines] == ["sent", "done"] * (place + 1)
        assert (lines[-1]["outcome"], lines[-1]["tries"]) == ("failed", 1)
        assert key not in ran.stored
        assert rows_of(ran, struck) == {}
        assert key not in ran.out, "listed as in doubt"
    bench.stage.mend()
    ran = bench.resume("refused")
    assert ran.code == 0
    assert ran.attempts == {name: row for name, row in calm.attempts.items() if row["sample"] < 5}


def test_where_nothing_was_ever_answered_the_line_names_a_way_to_begin_anew(bench: Bench) -> None:
    """A wrong --model, say: a resume would ask for it again."""
    bench.stage.strike({0: WAYS["404"]}, times=1000)
    try:
        ran = bench.run("first", samples=1, concurrency=1, workers=1)
    finally:
        bench.stage.mend()
    [line] = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert ran.code == 2
    assert "--model" in line
    assert "another --name" in line
