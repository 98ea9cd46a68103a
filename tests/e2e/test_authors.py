"""Built-in authors behind a real loopback server, asked by the real client."""

import asyncio
import json
import random
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import replace
from functools import cache
from pathlib import Path

import openai
import pytest

from agentloop import authors
from agentloop.authors import recorded
from agentloop.authors.knowledge import Knowledge, plain
from agentloop.authors.offline import OfflineAuthor
from agentloop.content import load_tasks
from agentloop.errors import UsageError
from agentloop.extraction import extract
from agentloop.prompting import ARMS, Prompter, list_strategies
from oracle.backends import open_backend
from oracle.case import Case
from oracle.judge import Judge
from oracle.schema import Task
from oracle.verdict import Counterexample, Failure, NaiveResult, Verdict

DATA = Path(__file__).parents[3] / "shared/data/tritonbench_t"
TASKS = load_tasks()
SOFTMAX = TASKS["seed/softmax"]
FIRST = Prompter("zero_shot", "none").first(SOFTMAX)


def client(base_url: str) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=30)


@pytest.fixture(scope="module")
def offline():
    with authors.start("offline", seed=7) as author:
        yield author


@pytest.fixture
def answers(tmp_path):
    """Two models' recorded answers to two tasks."""
    tasks = [{"name": "torch.abs"}, {"name": "torch.special.erf"}]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    for model in ("one-1.5", "two"):
        lines = [
            {"instruction": f"write {t['name']}", "predict": f"{model} says {t['name']}", "label": ""} for t in tasks
        ]
        (tmp_path / f"answers-{model}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


# --- the server -----------------------------------------------------------------------------------------------------


def test_a_chat_completion_has_all_that_a_client_reads(offline):
    asked = {"model": "offline", "messages": list(FIRST.messages), "seed": 3, "temperature": 0.8, "max_tokens": 4096}
    said = client(offline.base_url).chat.completions.create(**asked)
    choice = said.choices[0]
    assert choice.finish_reason == "stop"
    assert choice.message.role == "assistant"
    assert extract(choice.message.content, "softmax").method == "fenced"
    assert said.usage.total_tokens == said.usage.prompt_tokens + said.usage.completion_tokens > 100
    assert said.system_fingerprint == "offline (simulation)"
    again = client(offline.base_url).chat.completions.create(**asked)
    assert again.choices[0].message.content == choice.message.content
    cut = client(offline.base_url).chat.completions.create(**asked | {"max_tokens": 10})
    assert (cut.choices[0].finish_reason, len(cut.choices[0].message.content)) == ("length", 40)


def test_models_are_listed(offline):
    assert [model.id for model in client(offline.base_url).models.list()] == ["offline"]
    assert (offline.name, offline.kind, offline.models) == ("offline", "offline", ("offline",))


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"model": "gpt"}, openai.NotFoundError, "does not exist; this server has offline"),
        ({"messages": []}, openai.BadRequestError, "messages must be a list"),
        ({"messages": [{"role": "user", "content": 5}]}, openai.BadRequestError, r"messages\[0\].content"),
        ({"n": 2}, openai.BadRequestError, "n must be 1"),
        ({"stream": True}, openai.BadRequestError, "stream is not supported"),
    ],
)
def test_bad_requests_are_the_apis_errors(offline, changes, kind, words):
    asked = {"model": "offline", "messages": [{"role": "user", "content": "hello"}]} | changes
    with pytest.raises(kind, match=words) as caught:
        client(offline.base_url).chat.completions.create(**asked)
    assert caught.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/chat/completions", b"{", 400),
        ("/chat/completions", b"[" * 100_000, 400),
        ("/chat/completions", b'"text"', 400),
        ("/chat/completions", b'{"model": null}', 400),
        ("/completions", b"{}", 404),
    ],
)
def test_nonsense_gets_an_error_and_the_server_lives_on(offline, path, body, status):
    request = urllib.request.Request(offline.base_url + path, data=body)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == status
    assert json.load(caught.value)["error"]["message"]
    assert client(offline.base_url).models.list().data


def test_three_hundred_requests_at_once(answers):
    async def ask_all(base_url):
        async with openai.AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0, timeout=30) as many:
            message = {"role": "user", "content": "write torch.abs"}
            calls = [many.chat.completions.create(model="two", messages=[message]) for _ in range(300)]
            return await asyncio.gather(*calls)

    with authors.start(f"recorded:{answers}") as author:
        said = asyncio.run(ask_all(author.base_url))
    assert {one.choices[0].message.content for one in said} == {"two says torch.abs"}


def test_it_listens_on_loopback_alone_and_stops(answers):
    with authors.start(f"recorded:{answers}") as author:
        assert author.base_url.startswith("http://127.0.0.1:")
        with pytest.raises(UsageError, match=r"--port .* cannot listen"):
            authors.start(f"recorded:{answers}", port=int(author.base_url.split(":")[2].split("/")[0]))
    with pytest.raises(openai.APIConnectionError):
        client(author.base_url).models.list()


def test_serve_command(answers):
    command = [sys.executable, "-m", "agentloop.cli", "serve", "recorded", "--port", "0", "--path", str(answers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            base_url, models = server.stdout.readline().strip().split("  models: ")
            assert models == "one-1.5, two"
            message = {"role": "user", "content": "write torch.abs"}
            said = client(base_url).chat.completions.create(model="one-1.5", messages=[message])
            assert said.choices[0].message.content == "one-1.5 says torch.abs"
        finally:
            server.kill()


# --- recorded -------------------------------------------------------------------------------------------------------


def test_recorded_answers_come_back_to_their_own_requests(answers):
    with authors.start(f"recorded:{answers / 'answers-one-1.5.jsonl'}") as author:
        assert author.models == ("one-1.5",)
        ask = client(author.base_url).chat.completions.create
        said = ask(model="one-1.5", messages=[{"role": "user", "content": "write torch.special.erf"}], max_tokens=1)
        assert said.choices[0].message.content == "one-1.5 says torch.special.erf"
        with pytest.raises(openai.BadRequestError, match="only recorded instructions"):
            ask(model="one-1.5", messages=[{"role": "user", "content": "write something else"}])


def test_recorded_prompts(answers):
    known = [task for task in TASKS.values() if task.id in ("tritonbench_t/abs", "tritonbench_t/erf")]
    prompts = recorded.prompts(answers, known)
    assert set(prompts) == {task.id for task in known}
    for task in known:
        assert prompts[task.id].tiers_stated == ("base", "shapes")
        assert prompts[task.id].messages[0]["content"].endswith(task.name)
    with pytest.raises(UsageError, match=r"--tasks: seed/softmax has no recorded answer .* abs, erf"):
        recorded.prompts(answers, [SOFTMAX])


def serve_and_word(path: Path) -> None:
    """What a run does before its first request."""
    authors.start(f"recorded:{path}").close()
    recorded.prompts(path, [])


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("answers-two.jsonl", "", "is empty"),
        ("answers-two.jsonl", "{\n", "answers-two.jsonl:1 is not a line of JSON"),
        ("answers-two.jsonl", '{"instruction": "a"}\n', "answers-two.jsonl:1 must be an object with the strings"),
        ("answers-two.jsonl", '{"instruction": "a", "predict": ""}\n' * 2, "answers-two.jsonl:2 repeats"),
        ("answers-two.jsonl", '{"instruction": "a", "predict": ""}\n', "has 1 lines, tasks.jsonl beside it 2"),
        ("tasks.jsonl", "[]\n", "tasks.jsonl:1 must be an object"),
        ("tasks.jsonl", None, "tasks.jsonl: No such file"),
    ],
)
def test_odd_files_are_one_clear_line(answers, file, text, words):
    (answers / file).unlink()
    if text is not None:
        (answers / file).write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        serve_and_word(answers)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("recorded:/nowhere", "does not exist; PATH is a file"),
        ("recorded:", "holds no answers-MODEL"),
        ("online", "it may be offline or recorded:PATH"),
    ],
)
def test_unknown_authors_are_refused(spec, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=words):
        authors.start(spec)


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason="no ../shared/data")
def test_real_recordings_answer_every_task_of_the_suite():
    suite = [task for task in TASKS.values() if task.suite == "tritonbench_t"]
    prompts = recorded.prompts(DATA, suite)
    with authors.start(f"recorded:{DATA}") as author:
        assert len(author.models) == 4
        for task in suite[:3]:
            for model in author.models:
                said = client(author.base_url).chat.completions.create(
                    model=model, messages=list(prompts[task.id].messages)
                )
                assert task.entry in said.choices[0].message.content


# --- offline --------------------------------------------------------------------------------------------------------

KNOWLEDGE = Knowledge()
AUTHOR = OfflineAuthor(seed=1)
RIGHT = {skill.lines for skill in KNOWLEDGE.skills[SOFTMAX.id]}
EPISODES = 320

# What each nature of mistake looks like to the oracle: tier, dims, regime, layout, pattern.
LOOKS = {
    "bounds": (
        "shapes",
        1025,
        "uniform",
        "contiguous",
        "only the last partial block of H is wrong (index ≥ 1024 of 1025)",
    ),
    "padding": (
        "shapes",
        3,
        "zeros",
        "contiguous",
        "what H padded with zeros from 3 to 4 gives: masked lanes take part",
    ),
    "addressing": (
        "layouts",
        64,
        "uniform",
        "transposed",
        "what x read as contiguous memory gives: its strides are ignored",
    ),
    "precision": ("dtypes", 64, "uniform", "contiguous", "nearly right: to about 9 bits of its terms"),
    "special": ("values", 64, "one_nan", "contiguous", "only rows in which x has NaN are wrong"),
    "keyword": ("keywords", 64, "uniform", "contiguous", "what eps=1e-05 gives: eps is ignored"),
    "formula": ("base", 256, "uniform", "contiguous", "2 times the reference"),
    "host": ("empty", 0, "uniform", "contiguous", None),
}


def evidence_for(source: str) -> Verdict:
    """What the oracle would say of the first mistake in a source."""
    skill = KNOWLEDGE.nearest(SOFTMAX.id, plain(source))
    nature = sorted(skill.mistakes_in(plain(source))[0].natures)[0]
    tier, size, regime, layout, pattern = LOOKS[nature]
    case = Case(SOFTMAX.id, "rank3", {"B": 1, "S": 1, "H": size}, "float32", layout, regime, tier=tier)
    shown = {"shape": [1, 1, size], "dtype": "float32", "values": None}
    counterexample = Counterexample("token", case.to_json(), {"x": shown}, [shown], [shown], {}, pattern)
    failure = Failure("numerical_mismatch", tier, "out is wrong")
    naive = {"kernelbench": NaiveResult("pass", "5 of 5 trials")}
    return Verdict(
        SOFTMAX.id,
        "id",
        "interpreter",
        "full",
        0,
        "derived",
        {tier: "fail"},
        {tier: failure},
        naive=naive,
        counterexample=counterexample,
    )


def say(messages, seed: int) -> str:
    return code(AUTHOR.say("offline", messages, {"seed": seed}).text)


def code(answer: str) -> str:
    return answer.partition("```python\n")[2].removesuffix("```\n")


@cache
def solved(source: str) -> bool:
    return plain(source) in RIGHT


@pytest.fixture(scope="module")
def failed() -> list[tuple[int, str]]:
    """Wrong first answers, with their seeds."""
    first = [(seed, say(FIRST.messages, seed)) for seed in range(EPISODES)]
    return [(seed, source) for seed, source in first if not solved(source)]


def repaired(arm: str, failed: list[tuple[int, str]], shuffled: bool = False) -> float:
    """Share of wrong answers that are right one round later. `shuffled`: each is told what another one should be."""
    prompter = Prompter("zero_shot", arm)
    prompts = [prompter.next(SOFTMAX, FIRST, "", source, evidence_for(source)) for _, source in failed]
    told = [prompt.messages[-1] for prompt in prompts]
    if shuffled:
        random.Random(0).shuffle(told)
    count = 0
    for (seed, _), prompt, message in zip(failed, prompts, told, strict=True):
        count += solved(say([*prompt.messages[:-1], message], seed + EPISODES))
    return count / len(failed)


@pytest.mark.parametrize("strategy", [strategy.name for strategy in list_strategies()])
def test_it_recognises_every_task_it_knows(strategy):
    prompter = Prompter(strategy, "none")
    for task_id, task in KNOWLEDGE.tasks.items():
        seen = KNOWLEDGE.recognise(prompter.first(task).messages[-1]["content"])
        assert seen == task_id or (strategy.startswith("bare_") and seen is not None and seen.endswith(f"/{task.name}"))


def test_first_answers_vary_and_some_are_right(failed):
    share = 1 - len(failed) / EPISODES
    assert 0.15 < share < 0.4
    assert len({source for _, source in failed}) > 0.6 * len(failed)
    for _, source in failed[:50]:
        assert KNOWLEDGE.nearest(SOFTMAX.id, plain(source)).mistakes_in(plain(source))


def test_an_unknown_task_gets_an_honest_wrong_answer():
    task = replace(
        SOFTMAX, name="median", entry="median", signature="median(x, *, dim=-1)", contract="The median of x."
    )
    text = AUTHOR.say("offline", Prompter("zero_shot", "none").first(task).messages, {}).text
    assert "I do not know this function" in text
    assert f"def {task.entry}(" in extract(text, task.entry).source
    hello = AUTHOR.say("offline", [{"role": "user", "content": "hello"}], {}).text
    assert "I do not know" in hello


def test_arm_none_does_not_beat_resampling(failed):
    """Solved by round 4 in arm `none`, against four independent samples."""
    prompter, tries, rounds = Prompter("zero_shot", "none"), 200, 4
    told = evidence_for(failed[0][1])
    by_arm = by_sampling = 0
    for episode in range(tries):
        prompt, source = FIRST, ""
        for round_ in range(rounds):
            source = say(prompt.messages, 10_000 + episode + round_ * tries)
            if solved(source):
                by_arm += 1
                break
            prompt = prompter.next(SOFTMAX, prompt, "", source, told)
        by_sampling += any(solved(say(FIRST.messages, 50_000 + episode * rounds + i)) for i in range(rounds))
    deviation = (2 * tries * 0.25) ** 0.5
    assert abs(by_arm - by_sampling) < 3 * deviation
    assert prompter.next(SOFTMAX, FIRST, "", "x = 1", told) == FIRST


@pytest.fixture(scope="module")
def rates(failed) -> dict[str, float]:
    """Share of wrong answers repaired in one round by arm; "shuffled": each is shown another answer's counterexample."""
    return {arm: repaired(arm, failed) for arm in ARMS} | {"shuffled": repaired("minimized", failed, shuffled=True)}


def test_feedback_helps_by_what_it_says(rates):
    assert rates["naive"] < rates["verdict"] + 0.05
    assert rates["verdict"] + 0.03 < rates["error"] < rates["counterexample"] - 0.03
    assert rates["counterexample"] < rates["minimized"] - 0.05


def test_shuffled_counterexamples_remove_the_gain(rates, failed):
    """Another candidate's counterexample is worth no more than asking afresh."""
    noise = 3 * (0.25 / len(failed)) ** 0.5
    assert rates["minimized"] > rates["none"] + noise
    assert rates["shuffled"] < rates["none"] + noise
    assert rates["shuffled"] < rates["minimized"] - noise


@pytest.mark.slow
def test_the_gain_is_real_and_goes_when_counterexamples_are_shuffled():
    """The same with the oracle's own verdicts on some forty wrong answers to two tasks, each asked again 25 times."""
    prompter = Prompter("zero_shot", "minimized")
    wrong: list[tuple[Task, tuple, tuple]] = []  # task, first messages, messages with feedback
    backend = open_backend("interpreter")
    try:
        judge = Judge(backend, limit=12)
        for task in (TASKS["ops/softmax"], TASKS["ops/mean"]):
            first = prompter.first(task)
            for seed in range(30):
                source = code(AUTHOR.say("offline", first.messages, {"seed": seed}).text)
                verdict = judge.judge(task, source, stream="feedback", naive=False)
                if verdict.status == "fail":
                    wrong.append((task, first.messages, prompter.next(task, first, "", source, verdict).messages))
    finally:
        backend.close()
    assert len(wrong) > 30

    def share(conversations: list) -> float:
        """Share of right kernels among 25 answers to each conversation."""
        count = 0
        for index, ((task, _, _), messages) in enumerate(zip(wrong, conversations, strict=True)):
            right = {skill.lines for skill in KNOWLEDGE.skills[task.id]}
            for seed in range(25):
                text = AUTHOR.say("offline", messages, {"seed": 1000 * index + seed + 100}).text
                count += plain(code(text)) in right
        return count / (25 * len(wrong))

    told = [messages[-1] for _, _, messages in wrong]
    random.Random(0).shuffle(told)
    own = share([messages for _, _, messages in wrong])
    shuffled = share([[*messages[:-1], other] for (_, _, messages), other in zip(wrong, told, strict=True)])
    afresh = share([messages for _, messages, _ in wrong])
    assert own > afresh + 0.05
    assert shuffled < afresh + 0.02
    assert shuffled < own - 0.1
