"""The loop's rules, over a real server, prompts and run folder, with a stand-in judge."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentloop.episodes import request_key
from agentloop.errors import InfrastructureError, StorageError, UsageError
from agentloop.files import read_lines
from agentloop.records import Attempt
from oracle.errors import InfrastructureError as JudgeTrouble
from oracle.schema import Task
from oracle.verdict import UNJUDGED, Verdict
from tests.helpers.servers import Handler, ScriptedServer, breaks_off, refuses, sends, serving
from tests.helpers.sitting import StandInJudge, graded, open_or_create, settings, sit

TASKS = "seed/softmax,seed/relu,seed/gelu"


def run(
    path: Path, server: ScriptedServer | str, judge: Any = None, **changes: Any
) -> tuple[dict[str, Any], list[Attempt]]:
    """One sitting; its outcome and all attempts recorded so far."""
    url = server if isinstance(server, str) else server.base_url
    with open_or_create(path) as store:
        outcome = asyncio.run(sit(store, url, settings(**{"tasks": TASKS} | changes), judge or StandInJudge(), 0.001))
        return outcome, list(store.attempts.values())


def plain(attempts: list[Attempt]) -> list[dict[str, Any]]:
    """Attempts without what time tells, in order of id."""
    rows = [attempt.model_dump(exclude={"time", "timings"}) for attempt in attempts]
    for row in rows:
        for stream in ("score", "feedback_verdict"):
            if row[stream]:
                row[stream].pop("seconds")
    return sorted(rows, key=lambda row: row["attempt_id"])


def rounds(attempts: list[Attempt]) -> dict[str, list[Attempt]]:
    episodes: dict[str, list[Attempt]] = {}
    for attempt in sorted(attempts, key=lambda attempt: attempt.round):
        episodes.setdefault(attempt.episode_id, []).append(attempt)
    return episodes


@pytest.mark.parametrize("arm", ["none", "verdict", "naive", "error", "counterexample", "minimized"])
def test_an_episode_ends_when_the_feedback_stream_passes(tmp_path: Path, arm: str) -> None:
    with serving(graded) as server:
        outcome, attempts = run(tmp_path / "r", server, feedback=arm, samples=4)
    assert outcome == {"owed": [], "unjudged": 0, "in_doubt": []}
    episodes = rounds(attempts)
    assert len(episodes) == 12
    ended_early = 0
    for rows in episodes.values():
        assert [row.round for row in rows] == list(range(len(rows)))
        for row in rows[:-1]:
            assert row.feedback_verdict is not None
            assert row.feedback_verdict.status == "fail"
        if len(rows) < 3:
            assert rows[-1].feedback_verdict is not None
            assert rows[-1].feedback_verdict.status == "pass"
            ended_early += 1
        else:
            assert rows[-1].feedback_verdict is None
    assert ended_early


def test_stop_at_a_naive_pass(tmp_path: Path) -> None:
    with serving(graded) as server:
        _, attempts = run(tmp_path / "r", server, stop="naive", samples=4)
    for rows in rounds(attempts).values():
        assert all(row.naive["kernelbench"]["status"] == "fail" for row in rows[:-1])
        assert rows[-1].naive["kernelbench"]["status"] == "pass" or len(rows) == 3


def test_arm_none_gives_no_answer_to_two_episodes(tmp_path: Path) -> None:
    with serving(graded) as server:
        _, attempts = run(tmp_path / "r", server, feedback="none", samples=3)
    asked = [(body["messages"][-1]["content"], body["seed"]) for body in server.log]
    assert len(asked) == len(set(asked)) == len(attempts)
    assert len({attempt.response_id for attempt in attempts}) == len(attempts)
    for attempt in attempts:
        response = json.loads((tmp_path / "r" / "responses" / f"{attempt.response_id}.json").read_text())
        assert response["sample"] == attempt.sample + 3 * attempt.round


def test_arms_share_their_first_answers(tmp_path: Path) -> None:
    with serving(graded) as server:
        run(tmp_path / "r", server, feedback="verdict")
        before = len(server.log)
        _, attempts = run(tmp_path / "r", server, feedback="minimized")
    first = {(a.feedback, a.task, a.sample): a.response_id for a in attempts if a.round == 0}
    for (arm, task, sample), response in first.items():
        assert first["verdict", task, sample] == response or arm == "verdict"
    later = [a for a in attempts if a.feedback == "minimized" and a.round > 0]
    assert len(server.log) - before == len({a.response_id for a in later})


def test_the_runs_seed_changes_what_is_sent(tmp_path: Path) -> None:
    with serving(graded) as server:
        run(tmp_path / "a", server, rounds=1, samples=2, seed=0)
        seeds = {body["seed"] for body in server.log}
        run(tmp_path / "b", server, rounds=1, samples=2, seed=1)
    assert seeds == {0, 1}
    assert {body["seed"] for body in server.log[6:]}.isdisjoint(seeds)


def test_equal_candidates_are_judged_once(tmp_path: Path) -> None:
    judge = StandInJudge(0.02)
    with serving(graded) as server:
        _, attempts = run(tmp_path / "r", server, judge, samples=8, rounds=1)
        assert len(judge.judged) == len(set(judge.judged))
        assert len(judge.judged) < len([a for a in attempts if a.candidate_id])
        again = StandInJudge()
        _, more = run(tmp_path / "r", server, again, samples=16, rounds=1)
    assert len(more) == 48
    assert not set(again.judged) & set(judge.judged)


def test_inputs_shown_are_left_out_of_the_score(tmp_path: Path) -> None:
    with serving(graded) as server:
        _, shown = run(tmp_path / "a", server, feedback="minimized", samples=4)
        _, hidden = run(tmp_path / "b", server, feedback="error", samples=4)
    for rows in rounds(shown).values():
        assert rows[0].score is not None
        assert rows[0].score.excluded == []
        for row in rows[1:]:
            assert row.score is not None
            previous = [r for r in rows[: row.round] if r.feedback_verdict and r.feedback_verdict.counterexample]
            assert bool(row.score.excluded) == bool(previous)
    assert all(row.score is not None and row.score.excluded == [] for row in hidden)


class ShiftedJudge(StandInJudge):
    """Fails for our reasons on one task."""

    def __init__(self, trouble: Exception, task: str, times: int = 10_000) -> None:
        super().__init__()
        self.trouble, self.task, self.times = trouble, task, times

    def judge(self, task: Task, source: str, **how: Any) -> Verdict:
        if task.id == self.task and self.times:
            self.times -= 1
            raise self.trouble
        return super().judge(task, source, **how)


@pytest.mark.parametrize("trouble", [JudgeTrouble("no worker starts"), ZeroDivisionError("a bug\nof ours")])
def test_a_fault_of_the_judge_is_owed_and_made_good(tmp_path: Path, trouble: Exception) -> None:
    with serving(graded) as server:
        _, whole = run(tmp_path / "whole", server, samples=1)
        task = next(a.task for a in whole if a.round == 0 and a.candidate_id)  # an answer without code is not judged
        outcome, attempts = run(tmp_path / "r", server, ShiftedJudge(trouble, task, 1), samples=1)
        assert [name.split(":")[3] for name in outcome["owed"]] == [task]
        assert not {a.attempt_id for a in attempts} & set(outcome["owed"])
        [fault] = read_lines(tmp_path / "r" / "faults.jsonl")[0]
        assert fault["stage"] == "judge"
        assert "\n" not in fault["message"]
        before = len(server.log)
        outcome, attempts = run(tmp_path / "r", server, samples=1)
        resent = [body for body in server.log[before:] if body in server.log[:before] and len(body["messages"]) == 2]
    assert outcome["owed"] == []
    assert resent == []
    assert plain(attempts) == plain(whole)


def test_a_judge_that_always_fails_stops_the_run(tmp_path: Path) -> None:
    class Broken(StandInJudge):
        def judge(self, task: Task, source: str, **how: Any) -> Verdict:
            raise JudgeTrouble("no worker starts")

    with serving(graded) as server, pytest.raises(InfrastructureError, match="no worker starts"):
        run(tmp_path / "r", server, Broken())
    assert all(row["candidate_id"] is None for row in read_lines(tmp_path / "r" / "attempts.jsonl")[0])


def test_unjudged_is_recorded_and_counted(tmp_path: Path) -> None:
    class Unsure(StandInJudge):
        def judge(self, task: Task, source: str, **how: Any) -> Verdict:
            verdict = super().judge(task, source, **how)
            verdict.tiers["base"] = UNJUDGED
            verdict.tiers["shapes"] = "pass"
            return verdict

    with serving(graded) as server:
        outcome, attempts = run(tmp_path / "r", server, Unsure(), rounds=1, samples=1)
    coded = [a for a in attempts if a.candidate_id]
    assert outcome["unjudged"] == len(coded) > 0
    assert {a.status for a in coded} == {"unjudged"}


def test_faults_on_the_way_change_no_attempt(tmp_path: Path) -> None:
    faults = [
        refuses(500),
        refuses(429, retry_after_ms="1"),
        breaks_off,
        sends(b"{}"),
        sends(b"<html>", 200),
        refuses(408),
    ]
    script = [behaviour for fault in faults for behaviour in (fault, graded, graded)]
    with serving(graded) as calm, serving(*script, graded) as rough:
        _, expected = run(tmp_path / "calm", calm)
        outcome, attempts = run(tmp_path / "rough", rough, tries=10)
    assert outcome["owed"] == []
    assert plain(attempts) == plain(expected)
    records = read_lines(tmp_path / "rough" / "requests.jsonl")[0]
    done = [r for r in records if r["event"] == "done"]
    assert [r["event"] for r in records].count("retry") == sum(r["tries"] - 1 for r in done) == len(faults)
    assert len(rough.log) == len(calm.log) + len(faults)


def test_requests_that_fail_for_good_are_owed_and_sent_again(tmp_path: Path) -> None:
    with serving(graded) as server:
        _, expected = run(tmp_path / "whole", server)
    with serving(refuses(500), refuses(500), graded) as server:
        outcome, attempts = run(tmp_path / "r", server, tries=1)
        assert len(outcome["owed"]) == 2
        assert len(rounds(attempts)) == 4
        outcome, attempts = run(tmp_path / "r", server)
    assert outcome["owed"] == []
    assert plain(attempts) == plain(expected)


def test_requests_that_alone_are_refused_are_owed_and_stop_nothing(tmp_path: Path) -> None:
    """Prompts too long for a model, say: any number in a row says nothing of the other requests."""
    too_long = refuses(400, "exceed_context_size_error", "too long")
    with serving(graded, *[too_long] * 5, graded) as server:
        outcome, attempts = run(tmp_path / "r", server, concurrency=1, workers=1, samples=3, rounds=1)
    assert (len(outcome["owed"]), len(attempts)) == (5, 4)


def test_an_outage_stops_the_run_and_a_resume_completes_it(tmp_path: Path) -> None:
    with serving(graded) as server:
        _, expected = run(tmp_path / "whole", server)
        url = server.base_url
    with pytest.raises(InfrastructureError, match=r"3 request faults in a row.*cannot connect"):
        run(tmp_path / "r", url, concurrency=1)
    with serving(graded) as server:
        outcome, attempts = run(tmp_path / "r", server)
    assert outcome["owed"] == []
    assert plain(attempts) == plain(expected)


def test_a_refused_key_stops_the_run_with_its_reason(tmp_path: Path) -> None:
    with serving(refuses(401)) as server, pytest.raises(UsageError, match="OPENAI_API_KEY"):
        run(tmp_path / "r", server, concurrency=1, workers=1)
    assert read_lines(tmp_path / "r" / "attempts.jsonl")[0] == []


def test_what_waits_when_the_disk_fails_is_not_sent(tmp_path: Path) -> None:
    """Requests whose answers nobody could store would all be in doubt."""
    responses = tmp_path / "r" / "responses"

    def breaks_the_folder(handler: Handler, body: dict[str, Any]) -> None:
        if responses.is_dir():
            responses.rename(tmp_path / "away")
        graded(handler, body)

    with serving(breaks_the_folder) as server, pytest.raises(StorageError, match="responses"):
        run(tmp_path / "r", server, concurrency=2, samples=8)
    responses.mkdir()
    with open_or_create(tmp_path / "r") as store:
        assert 1 <= len(store.in_doubt) <= 2
    assert len(server.log) <= 2


def test_changed_prompts_refuse_a_resume(tmp_path: Path) -> None:
    with serving(graded) as server:
        run(tmp_path / "r", server, samples=1, rounds=2)
        log = tmp_path / "r" / "attempts.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        kept = [line | {"prompt_id": "other"} for line in lines if line["round"] == 0]
        log.write_text("".join(json.dumps(line) + "\n" for line in kept))
        with pytest.raises(UsageError, match="the prompts changed"):
            run(tmp_path / "r", server, samples=1, rounds=2)


def test_request_keys_tell_requests_apart() -> None:
    from agentloop import Request

    base = Request("m", ({"role": "user", "content": "x"},), {"temperature": 0.5}, 0)
    others = [
        Request("n", base.messages, base.parameters, 0),
        Request("m", ({"role": "user", "content": "y"},), base.parameters, 0),
        Request("m", base.messages, {"temperature": 0.6}, 0),
        Request("m", base.messages, base.parameters, 1),
    ]
    keys = {request_key("here", request) for request in (base, *others)} | {request_key("there", base)}
    assert len(keys) == 6
    assert request_key("here", base) == request_key("here", Request("m", base.messages, {"temperature": 0.5}, 0))
