"""`agentloop tasks check`: sound tasks hold, unsound ones are found and their author is told what to mend."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from answers import task_of

from agentloop.commands.tasks_check import summary
from agentloop.content import load_tasks
from oracle.backends import WorkerBackend
from oracle.portfolio import portfolio
from oracle.reference import ReferenceCache
from oracle.schema import Dim, Output, Task, Tensor
from oracle.task_check import ACCEPTED, INAPPLICABLE, REJECTED, UNMEASURED, Finding, TaskCheck, check_task
from oracle.task_check.accumulation import TERMS, InHalf
from oracle.task_check.check import BY_VALUES, HALF, emulated_over
from oracle.task_check.soundness import unsound
from oracle.task_check.stand_ins import KINDS
from oracle.validation import Bench

# The sum of a row; FACTOR widens its tolerance.
SUM = """
from oracle import scale
from oracle.schema import Dim, Form, Task, Tensor

TASK = Task(
    suite="mine",
    name="row_sum",
    signature="row_sum(x)",
    contract="Sum of x over its last dimension.",
    dims={"R": Dim((1, 3), base=2), "N": Dim((1, 3, 33, 1025, 4097), base=64)},
    forms=(Form("rank2", (Tensor("x", ("R", "N")),)),),
    reference=lambda x: x.sum(-1),
    scale=lambda x: FACTOR * scale.total(x),
    reduces="N",
    dtypes=("float16",),
    regimes=("normal", "half_sum"),
    layouts=(),
)
"""


PASSES = "passes every case of the core domain: tighten `scale` and `storage`"


def bench(backend: WorkerBackend, task: Task) -> Bench:
    return Bench(backend, {task.id: task})


@pytest.mark.parametrize("name", ["seed/relu", "tritonbench_t/matrix_vector_dot"])
def test_a_task_fails_its_stand_ins_for_their_values(backend: WorkerBackend, name: str):
    task = load_tasks()[name]
    found = check_task(bench(backend, task), task)
    assert (found.holds, found.unsound) == (True, [])
    assert set(found.stand_ins) == {*KINDS, HALF}
    for finding in found.stand_ins.values():
        assert finding.status in (REJECTED, INAPPLICABLE)
        assert finding.status == INAPPLICABLE or finding.kind in BY_VALUES
    assert found.stand_ins["zero"].tier == "base"
    assert found.stand_ins["zero"].naive["tritonbench"] == "pass"  # which passes whatever does not raise
    # of values in [0, 1) the positive part is a copy
    assert (found.stand_ins["copy"].naive.get("kernelbench") == "pass") == (name == "seed/relu")
    assert (found.stand_ins[HALF].status == REJECTED) == (name == "tritonbench_t/matrix_vector_dot")


def test_an_unsound_task_of_a_users_own_is_found(tmp_path: Path):
    (tmp_path / "mine").mkdir()
    for name, factor in (("wide", 1e9), ("right", 1.0)):
        text = SUM.replace("FACTOR", repr(factor)).replace("row_sum", name)
        (tmp_path / "mine" / f"{name}.py").write_text(text)
    line = [sys.executable, "-m", "agentloop.cli", "tasks", "check", "mine/*", "--task-dir", str(tmp_path)]
    ended = subprocess.run([*line, "--workers", "1"], capture_output=True, text=True, timeout=200)
    assert ended.returncode == 1, ended.stderr
    assert "1 of 2 tasks hold" in ended.stdout
    said = [
        line.partition(" (")[0].partition(", or let")[0]
        for line in ended.stdout.splitlines()
        if " does not hold: " in line
    ]
    assert said == [
        *(f"mine/wide does not hold: stand-in {name}: {PASSES}" for name in ("zero", "one", "mean")),
        "mine/wide does not hold: stand-in half: passes in float16",
    ]
    assert "add `half_sum` to `regimes`" in ended.stdout
    assert "mine/wide does NOT hold" in ended.stderr


def test_sums_that_are_not_recognised_are_said_to_be_unmeasured(backend: WorkerBackend):
    def reference(x):
        return sum(x.unbind(-1))

    task = task_of(reference, dims={"R": 2, "N": 4}, reduces="N", scale=lambda x: x.abs().sum(-1))
    task = replace(task, dims={**task.dims, "N": Dim((1, 3, 1025), 4)})
    found = emulated_over(bench(backend, task), task, portfolio(task))
    assert (found.status, found.reason) == (UNMEASURED, "no long sum over N was recognised in `reference`")


def test_the_summary_names_what_a_naive_check_passes():
    found = TaskCheck("mine/a", stand_ins={"zero": Finding(REJECTED, naive={"geak": "pass", "gpuemu": "fail"})})
    passing = TaskCheck("mine/b", stand_ins={"zero": Finding(ACCEPTED, naive={"geak": "pass"})})
    data = json.loads(json.dumps(summary([found, passing], "interpreter", 1.0)))
    assert (data["holding"], data["measured"]["zero"]) == (1, 2)
    assert (data["accepted"]["geak"]["zero"], data["accepted"]["gpuemu"]["zero"]) == (["mine/a"], [])


def test_what_a_contract_asks_for_is_no_stand_in(backend: WorkerBackend):
    task = task_of(lambda x: x.clone(), regimes=(), layouts=(), dtypes=("float32",))
    found = check_task(bench(backend, task), task)
    assert (found.stand_ins["copy"].status, found.stand_ins["zero"].status) == (INAPPLICABLE, REJECTED)


def test_stand_ins_know_flags_integers_tuples_and_changed_arguments(backend: WorkerBackend):
    def reference(x, y):
        y.add_(x)
        return x > 0, (x > 1).sum(-1)

    task = task_of(
        reference,
        (Tensor("x", ("R", "N")), Tensor("y", ("R", "N"))),
        outputs=(Output("flags", dtype="bool"), Output("count", dtype="int64")),
        mutates=("y",),
        regimes=("normal",),
        layouts=("transposed",),
        dtypes=("float32", "float16"),
    )
    found = check_task(bench(backend, task), task)
    assert found.unsound == []
    assert {name: finding.status for name, finding in found.stand_ins.items()} == {
        **dict.fromkeys(("zero", "one", "mean", "copy"), REJECTED),
        HALF: INAPPLICABLE,
    }


@pytest.mark.parametrize(
    ("task", "said"),
    [
        (task_of(torch.log), "`reference` is not finite on the base case"),
        (task_of(torch.relu, in_range=lambda x: x > 0), "`in_range` leaves elements of out unjudged"),
        (task_of(torch.relu, eager=lambda x: x), "`eager` disagrees with the float64 `reference`"),
        (task_of(torch.relu, eager=lambda x: x.nope()), "`eager` raises on float32 form base"),
        (task_of(lambda x: 1e4 + x - 1e4), "or state in `scale` all that float32 arithmetic adds up"),
    ],
)
def test_a_task_that_contradicts_itself_is_told_so(task: Task, said: str):
    faults = unsound(task, portfolio(task, domain="core"), ReferenceCache())
    assert any(said in fault for fault in faults)
    assert not any("\n" in fault for fault in faults)


def test_a_reference_that_raises_is_the_task_files_fault(backend: WorkerBackend):
    task = task_of(lambda x: x.nope())
    found = check_task(bench(backend, task), task)
    assert not found.holds
    assert "its own `reference` raised AttributeError" in found.unsound[0]


X = torch.randn(4, 2100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
SUMS = {
    "sum": lambda x: x.sum(-1),
    "sum of all": lambda x: x.sum(),
    "sum over both, kept": lambda x: x.sum((0, 1), keepdim=True),
    "mean": lambda x: x.mean(1, keepdim=True),
    "mean of columns": lambda x: x.mT.mean(0),
    "var": lambda x: x.var(-1),
    "std": lambda x: x.std(),
    "softmax": lambda x: torch.softmax(x, -1),
    "softmax of a masked row": lambda x: torch.softmax(x.masked_fill(x < 1, -torch.inf), -1),
    "log_softmax": lambda x: torch.log_softmax(x.mT, 0),
    "logsumexp": lambda x: torch.logsumexp(x, (0, 1)),
    "norm": lambda x: torch.linalg.vector_norm(x, dim=-1),
    "layer_norm": lambda x: F.layer_norm(x, (2100,), x[0], x[1]),
    "group_norm": lambda x: F.group_norm(x.reshape(2, 4, 1050), 2, x[0, :4], x[1, :4]),
    "mm": lambda x: x @ x.mT,
    "bmm": lambda x: x[None] @ x.mT[None],
    "mv": lambda x: x @ x[0],
    "dot": lambda x: x[1] @ x[0],
    "linear": lambda x: F.linear(x, x[:3], x[0, :3]),
    "addmv": lambda x: torch.addmv(x[:, 0], x, x[0], beta=2, alpha=3),
    "cumsum": lambda x: x.cumsum(-1),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 5, 9, 1])),
}


@pytest.mark.parametrize("name", SUMS)
def test_long_sums_are_rounded_and_nothing_else(name: str):
    """Without rounding every rule is PyTorch's own operator; with it the result differs, by not much."""
    function = SUMS[name]
    right = function(X)
    with InHalf(torch.float64) as exact:
        same = function(X)
    with InHalf(torch.float16) as half:
        rounded = function(X)
    assert exact.count == half.count > 0
    torch.testing.assert_close(same, right, rtol=1e-11, atol=1e-11)
    assert not torch.allclose(rounded, right, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(rounded, right, rtol=0.1, atol=0.5)


def test_short_sums_are_left_alone():
    with InHalf(torch.float16) as sums:
        torch.softmax(X[:, : TERMS - 1], -1), X[:, :100] @ X[:, :100].mT, X.amax(-1), (X > 0).sum()
    assert sums.count == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_task_holds(backend: WorkerBackend):
    tasks = load_tasks()
    every = Bench(backend, tasks)
    found = [check_task(every, task) for task in tasks.values()]
    assert [check.task for check in found if not check.holds] == []
    adds = {task.id for task in tasks.values() if task.reduces and task.scale is not None}
    assert {check.task for check in found if check.stand_ins[HALF].status == REJECTED} == adds
    assert not {check.task for check in found if ACCEPTED in {f.status for f in check.stand_ins.values()}}
