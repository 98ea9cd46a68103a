"""The compile gate: what it refuses and why, what it passes, and what it does not know."""

from functools import cache
from pathlib import Path

import pytest
import triton

from agentloop.content import load_tasks
from oracle.case import Case, Replay
from oracle.compile_gate import Answer, Gate, signature
from oracle.corpus import Kernel, kernels
from oracle.inputs import build
from oracle.judge import Judge
from oracle.verdict import FAIL, PASS

HERE = Path(__file__).parent
SOURCE = (HERE / "compile_gate_candidates.py").read_text()
RELU = load_tasks()["seed/relu"]
CASE = Case(RELU.id, RELU.forms[0].name, {"B": 2, "S": 4, "H": 8}, "float32")
REFUSED = {
    "breaks": ("break_kernel", "unsupported AST node type: Break (at `break`)"),
    "plain_global": ("global_kernel", "Cannot access global variable FACTOR"),
    "retyped": ("retyped_kernel", "total"),
    "block_if": ("block_if_kernel", "(at `if i > 2:`)"),
    "too_large": ("large_kernel", "out of resource: shared memory"),
    "tuned": ("tuned_kernel", "only the second configuration is wrong"),
    "many_warps": ("right_kernel", "num_warps must be a power of 2"),
}
PASSED = ("right", "raises", "fits", "wide_row", "size_one")


@pytest.fixture(scope="module")
def ask(backend):
    def asked(entry, case=CASE, seconds=60.0, answers=None):
        gate = Gate(backend, SOURCE, entry, {} if answers is None else answers, seconds)
        try:
            return gate.ask(build(RELU, case))
        finally:
            gate.close()

    return asked


@pytest.mark.parametrize("entry", REFUSED)
def test_refused(ask, entry):
    kernel, told = REFUSED[entry]
    answer = ask(entry)
    assert answer.refusal.startswith(f"kernel `{kernel}`: ")
    assert told in answer.refusal
    assert "\n" not in answer.refusal
    assert answer.unjudged == ""


@pytest.mark.parametrize("entry", PASSED)
def test_what_compiles_and_what_host_code_raises_is_not_refused(ask, entry):
    assert ask(entry) == Answer()


def test_a_size_of_one_is_a_constant_to_the_compiler(ask):
    answer = ask("size_one", CASE.with_(dims={"B": 1, "S": 4, "H": 8}))
    assert "kernel `scalar_kernel`: " in answer.refusal
    assert "tl.store(x, n.to(tl.float32))" in answer.refusal


def test_an_absent_api_is_told_apart(ask):
    answer = ask("block_pointer")
    if answer != Answer():  # this Triton still has it
        message = f"triton {triton.__version__} no longer has tl.make_block_ptr; an earlier version does"
        assert answer == Answer(unjudged=message)


def test_launches_that_depend_on_what_kernels_compute_are_left_out(ask):
    answer = ask("reads_result")
    assert answer.refusal == ""
    assert answer.unseen == "`block_if_kernel`, launched after host code called sum"
    assert ask("reads_input").refusal


def test_a_refusal_that_the_candidate_catches_to_launch_another_kernel(ask):
    answer = ask("goes_on_without")
    assert answer.refusal == ""
    assert answer.unjudged.startswith("kernel `break_kernel`: ")
    assert answer.unjudged.endswith("the candidate goes on without it, which cannot be run here")
    assert ask("gives_up").refusal.startswith("kernel `break_kernel`: ")


def test_time_that_is_up_is_no_refusal_and_is_not_remembered(ask):
    answers = {}
    assert ask("right", seconds=0.0, answers=answers) == Answer(unseen="the time for compiling was used up")
    assert ask("slow", seconds=0.5, answers=answers).unseen == "a kernel took too long to compile"
    assert not answers


def test_calls_that_differ_in_their_values_alone_are_asked_once(ask):
    answers = {}
    assert ask("right", answers=answers) == ask("right", CASE.with_(seed=5), seconds=0.0, answers=answers)
    assert list(answers) == [signature(build(RELU, CASE.with_(regime="zeros")))]
    assert ask("right", CASE.with_(dtype="float16"), seconds=0.0, answers=answers).unseen


# --- in the judge ----------------------------------------------------------------------------------------------------

CONTROL = next(k for k in kernels("seed", op="relu") if k.name == "relu__control_flat")
SEED = cache(load_tasks)
# what the interpreter accepts: the bodies give right numbers there
WRONG = {
    "a break": """
    for _ in range(2):
        if tl.program_id(0) >= 0:
            break
""",
    "a plain global": """
    offsets = offsets + SHIFT
""",
    "more shared memory than there is": """
    tile = tl.load(x_ptr + tl.arange(0, 256)[:, None] * 0 + tl.arange(0, 256)[None, :] * 0)
    offsets = offsets + (tl.max(tl.dot(tile, tl.trans(tile))) > 1e38).to(tl.int32)
""",
    "a variable of two types": """
    count = 0
    for i in range(tl.program_id(0) * 0 + 2):
        count = count + tl.load(x_ptr + i * 0)
""",
}


def judged(backend, source, **options):
    return Judge(backend, limit=8).judge(RELU, source, naive=False, **options)


def relu(body: str = "", keywords: str = "") -> str:
    return f"""
import torch
import triton
import triton.language as tl

SHIFT = 0

@triton.jit
def _relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK){body}
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    tl.store(out_ptr + offsets, tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL), mask=offsets < n)

def relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel():
        _relu[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024{keywords})
    return out
"""


def test_a_right_kernel_passes(backend):
    verdict = judged(backend, relu())
    assert (verdict.status, verdict.failure) == (PASS, None)
    assert verdict.within["compile_gate"] > 0


@pytest.mark.parametrize("name", WRONG)
def test_what_only_the_compiler_refuses_fails_with_its_message(backend, name):
    verdict = judged(backend, relu(WRONG[name]))
    assert verdict.status == FAIL
    assert verdict.failure.kind == "compile_error"
    assert verdict.failure.tier == "base"
    assert "kernel `_relu`: " in verdict.failure.message


@pytest.mark.parametrize("slope", ["0.0", "0.1"])
def test_a_way_around_a_refusal_cannot_be_judged_here_be_it_right_or_wrong(backend, slope):
    first = relu(WRONG["a break"])
    second = (
        relu()
        .partition("@triton.jit")[2]
        .replace("relu", "second")
        .replace("tl.maximum(x, 0.0", f"tl.maximum(x, {slope}")
    )
    around = "def relu(x):\n    try:\n        return first(x)\n    except Exception:\n        return second(x)\n"
    source = f"{first.replace('def relu', 'def first')}\n@triton.jit{second}\n{around}"
    verdict = judged(backend, source)
    assert verdict.status == "unjudged"
    assert "the candidate goes on without it" in " ".join(verdict.notes)


def test_the_counterexample_of_a_refusal_is_shrunk_and_replays(backend):
    body = "\n    if WIDE:\n        for _ in range(2):\n            break"
    source = relu(body, ", WIDE=x.shape[-1] > 100").replace(
        "BLOCK: tl.constexpr", "BLOCK: tl.constexpr, WIDE: tl.constexpr"
    )
    verdict = judged(backend, source)
    assert verdict.failure.kind == "compile_error"
    example = verdict.counterexample
    assert list(example.case["dims"].values()) == [1, 1, 101]
    assert example.executions <= 41
    trial = Judge(backend).replay(RELU, source, Replay.from_token(example.token))
    assert trial.failure.kind == "compile_error"
    assert Judge(backend).replay(RELU, relu(), Replay.from_token(example.token)).failure is None


def test_nothing_is_compiled_of_a_candidate_that_fails_in_its_first_tiers(backend):
    verdict = judged(backend, relu().replace("tl.maximum(x, 0.0, ", "tl.maximum(x, 0.1, "))
    assert verdict.status == FAIL
    assert "compile_gate" not in verdict.within


@pytest.mark.slow
@pytest.mark.parametrize("kernel", kernels(label="control"), ids=lambda kernel: f"{kernel.suite}-{kernel.name}")
def test_no_right_kernel_of_the_corpus_is_refused(backend, kernel: Kernel):
    from oracle.portfolio import portfolio

    task, answers = SEED()[kernel.task], {}
    gate = Gate(backend, kernel.source, task.entry, answers, 120.0)
    found = {gate.ask(build(task, case)) for case in portfolio(task)}
    gate.close()
    assert found == {Answer()}
