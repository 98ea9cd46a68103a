"""The judge on kernels whose label is known: right ones pass, the paper's bugs fail with a token that replays."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from agentloop.content import load_tasks
from oracle.backends import WorkerBackend
from oracle.case import Replay
from oracle.corpus import BUG, CONTROL, Kernel, kernels
from oracle.errors import UsageError
from oracle.judge import Judge, Limits
from oracle.naive import PROFILES
from oracle.verdict import FAIL, PASS, UNJUDGED, Verdict

tasks = cache(load_tasks)
ROOT = Path(__file__).parents[2]
# softmax and matmul have two right builds; the slow one of matmul is judged by the corpus tests
CONTROLS = [kernel for kernel in kernels("seed", label=CONTROL) if kernel.name != "matmul__control_outer"]
BUGS = kernels("seed", label=BUG)


@pytest.fixture(scope="module")
def judge(backend: WorkerBackend) -> Judge:
    return Judge(backend)


@pytest.mark.parametrize("kernel", CONTROLS, ids=lambda kernel: kernel.name)
def test_a_right_kernel_of_every_seed_operator_passes_in_the_full_domain(judge: Judge, kernel: Kernel):
    verdict = judge.judge(tasks()[kernel.task], kernel.source)
    assert (verdict.status, verdict.failure) == (PASS, None)
    assert verdict.tiers["portability"] == PASS
    assert {name: result.status for name, result in verdict.naive.items()} == dict.fromkeys(PROFILES, PASS)


def test_every_seed_operator_has_a_right_kernel():
    assert {kernel.task for kernel in CONTROLS} == {task for task in tasks() if task.startswith("seed/")}


@pytest.mark.parametrize("kernel", BUGS, ids=lambda kernel: kernel.name)
def test_a_bug_of_the_paper_fails_and_its_token_replays(judge: Judge, backend: WorkerBackend, kernel: Kernel):
    verdict = judge.judge(tasks()[kernel.task], kernel.source, naive=False)
    assert verdict.status == FAIL
    assert verdict.failure is not None
    assert verdict.failure.kind == "numerical_mismatch"
    example = verdict.counterexample
    assert example is not None
    assert len(example.token) < 4096
    again = Judge(backend).replay(tasks()[kernel.task], kernel.source, Replay.from_token(example.token))
    assert again.failure is not None
    assert again.failure.kind in ("numerical_mismatch", "nonfinite_mismatch")
    assert again.case.to_json() == example.case


def test_published_minimal_examples_are_reached_or_beaten(judge: Judge):
    """softmax [1, 1, 3] and gelu with two elements, as the paper shrank them."""
    softmax, gelu = (k for k in BUGS if k.name in ("softmax__bug_other_zero", "gelu__bug_half_dropped"))
    sizes = {}
    for kernel in (softmax, gelu):
        example = judge.judge(tasks()[kernel.task], kernel.source, naive=False).counterexample
        assert example is not None
        sizes[kernel.task] = tuple(example.case["dims"].values())
    assert sizes["seed/softmax"] == (1, 1, 3)
    assert max(sizes["seed/gelu"]) <= 2


def test_the_naive_columns_are_measured(judge: Judge):
    """The paper's corpus says "pass" for every bug; measured, a gelu twice too large fails any allclose."""
    measured: dict[str, Verdict] = {}
    for kernel in BUGS:
        if kernel.name in ("softmax__bug_tail_128", "gelu__bug_half_dropped"):
            measured[kernel.name] = judge.judge(tasks()[kernel.task], kernel.source, minimized=False)
    assert measured["softmax__bug_tail_128"].illusion["kernelbench"]
    gelu = measured["gelu__bug_half_dropped"].naive
    assert {name: gelu[name].status for name in ("kernelbench", "kernelbench_v0", "gpuemu", "tritonbench")} == {
        "kernelbench": FAIL,
        "kernelbench_v0": FAIL,
        "gpuemu": FAIL,
        "tritonbench": PASS,
    }


def test_the_same_seed_gives_the_same_verdict_twice_over(backend: WorkerBackend):
    kernel = next(k for k in BUGS if k.name == "softmax__bug_other_zero")

    def told(seed: int) -> dict:
        data = Judge(backend, seed=seed).judge(tasks()[kernel.task], kernel.source).to_json()
        del data["seconds"]
        return data

    assert told(0) == told(0)
    assert told(0)["failure"] != told(1)["failure"]


BAD = {
    "empty": ("", "no_code"),
    "a comment": ("# nothing\n", "no_code"),
    "binary": ("\0\1\2", "syntax_error"),
    "broken": ("def relu(x:\n", "syntax_error"),
    "no function": ("x = 1\n", "missing_entry_point"),
    "raises at import": ("import nothing_of_that_name\n", "import_error"),
    "plain torch": ("import torch\ndef relu(x):\n    return torch.relu(x)\n", "host_compute"),
    "hangs at import": ("while True: pass\n", "timeout"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_is_no_kernel_fails_with_its_kind(backend: WorkerBackend, name: str):
    source, kind = BAD[name]
    limits = Limits(call_seconds=1.0) if kind == "timeout" else None
    verdict = Judge(backend, limits=limits).judge(tasks()["seed/relu"], source, naive=False)
    assert verdict.status == FAIL
    assert verdict.failure is not None
    assert verdict.failure.kind == kind
    assert all(status == FAIL for tier, status in verdict.tiers.items() if kind != "host_compute")


def test_a_launch_that_does_nothing_for_the_answer_is_an_unused_kernel(backend: WorkerBackend):
    source = """
import torch, triton
import triton.language as tl
@triton.jit
def decoy(x_ptr, BLOCK: tl.constexpr):
    tl.load(x_ptr + tl.arange(0, BLOCK))
def relu(x):
    if x.numel():
        decoy[(1,)](x, BLOCK=1)
    return torch.relu(x).contiguous()
"""
    verdict = Judge(backend).judge(tasks()["seed/relu"], source, naive=False, forbid=frozenset())
    assert verdict.failure is not None
    assert verdict.failure.kind == "unused_kernel"


def test_a_memory_of_earlier_answers_is_a_stale_result(backend: WorkerBackend):
    source = (ROOT / "oracle/corpus/kernels/seed/relu__control_flat.py").read_text()
    source = source.replace("def relu(", "def _fresh(") + (
        "\n_SEEN = {}\n\ndef relu(x):\n    key = (x.data_ptr(), tuple(x.shape), x.dtype)\n"
        "    if key not in _SEEN:\n        _SEEN[key] = _fresh(x)\n    return _SEEN[key].clone()\n"
    )
    verdict = Judge(backend).judge(tasks()["seed/relu"], source, naive=False)
    assert verdict.failure is not None
    assert verdict.failure.kind == "stale_result"
    example = verdict.counterexample
    assert example is not None
    replay = Replay.from_token(example.token)
    assert replay.before, "the calls before it are part of the evidence"
    assert Judge(backend).replay(tasks()["seed/relu"], source, replay).failure is not None


def test_a_timeout_in_an_examination_is_unjudged_on_the_interpreter(backend: WorkerBackend):
    """Slow only where fresh memory is poisoned in the second way, as a busy machine is slow at any time."""
    source = (ROOT / "oracle/corpus/kernels/seed/relu__control_flat.py").read_text()
    source = source.replace("def relu(", "def _fresh(") + (
        "\nimport time\n\ndef relu(x):\n    value = float(torch.empty(1, device=x.device))\n"
        "    if value == value:\n        time.sleep(20)\n    return _fresh(x)\n"
    )
    judge = Judge(backend, domain="core", limit=4, limits=Limits(call_seconds=1.5))
    verdict = judge.judge(tasks()["seed/relu"], source, naive=False)
    assert (verdict.status, verdict.failures) == (UNJUDGED, {}), verdict
    assert any("repeated" in note for note in verdict.notes), verdict.notes


def test_a_token_with_an_unknown_examination_is_refused(judge: Judge):
    kernel = next(k for k in CONTROLS if k.task == "seed/relu")
    verdict = judge.judge(tasks()["seed/gelu"], BUGS[2].source, naive=False)
    assert verdict.counterexample is not None
    replay = Replay.from_token(verdict.counterexample.token)
    with pytest.raises(UsageError, match="examination"):
        judge.replay(
            tasks()["seed/relu"], kernel.source, Replay(replay.case.with_(task="seed/relu"), check="no such thing")
        )


def test_judge_and_replay_by_command_line(tmp_path: Path):
    """What a user types: exit codes, one JSON object, and the token in another process."""
    bug = next(k for k in BUGS if k.name == "softmax__bug_other_zero")
    command = [sys.executable, "-m", "agentloop.cli"]
    judged = subprocess.run(
        [*command, "judge", str(bug.path), "--task", "seed/softmax", "--json"], capture_output=True, text=True, cwd=ROOT
    )
    assert judged.returncode == 1, judged.stderr
    verdict = json.loads(judged.stdout)
    keys = {"task", "candidate", "backend", "domain", "seed", "tolerance", "status", "failure", "tiers", "cases_run"}
    keys |= {"naive", "illusion", "counterexample", "notes", "not_exercised", "isolation", "seconds", "executions"}
    assert keys <= set(verdict)
    replayed = subprocess.run(
        [*command, "replay", verdict["counterexample"]["token"], str(bug.path), "--json"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert replayed.returncode == 1, replayed.stderr
    assert json.loads(replayed.stdout)["failure"]["kind"] == verdict["failure"]["kind"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["judge", "no/such/file.py", "--task", "seed/relu"], "FILE"),
        (["judge", "README.md", "--task", "seed/reloo"], "relu"),
        (["judge", "README.md", "--task", "seed/relu", "--domain", "half"], "--domain"),
        (["replay", "al1:nonsense", "README.md"], "TOKEN"),
        (["replay", "not a token", "README.md"], "TOKEN"),
    ],
)
def test_bad_arguments_give_one_clear_line_and_exit_code_2(arguments: list[str], says: str):
    ended = subprocess.run(
        [sys.executable, "-m", "agentloop.cli", *arguments], capture_output=True, text=True, cwd=ROOT
    )
    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.strip().splitlines()) <= 3


@pytest.mark.parametrize(
    ("body", "kind"),
    [("return torch.relu(x)", "no_kernel_launch"), ("decoy[(1,)](x)\n    return torch.relu(x)", "unused_kernel")],
)
def test_no_tier_passes_without_the_kernels_even_where_another_tier_fails(backend: WorkerBackend, body: str, kind: str):
    """A prompt that states few tiers must not be answered by torch: here only the layouts go wrong."""
    source = f"""
import torch, triton
import triton.language as tl
@triton.jit
def decoy(x_ptr):
    tl.load(x_ptr)
def relu(x):
    if not x.is_contiguous():
        raise ValueError("not contiguous")
    {body}
"""
    task = tasks()["seed/relu"]
    verdict = Judge(backend).judge(task, source, naive=False, forbid=frozenset())
    assert verdict.failures["base"].kind == kind
    assert PASS not in {status for tier, status in verdict.tiers.items() if tier != "empty"}
