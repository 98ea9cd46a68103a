"""The corpus holds what it says: the paper's entries, right kernels that are right, bugs that are wrong."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from agentloop.content import load_tasks
from oracle.corpus import BUG, CONTROL, kernels, right_kernels

CHILD = Path(__file__).with_name("corpus_child.py")
ROOT = CHILD.parents[2]

# What host code of a right kernel may call: allocation, views, copies, casts, shapes and plain numbers.
TORCH_FUNCTIONS = {"empty", "zeros", "broadcast_shapes", "promote_types"}
TENSOR_METHODS = {
    *("numel", "dim", "stride", "contiguous", "reshape", "expand", "flatten", "unsqueeze", "view", "copy_"),
    *("cdiv", "next_power_of_2", "sqrt"),  # of triton and math
}


def start(suite: str, device: str = "cpu") -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    if device == "cpu":
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, "-W", "ignore", str(CHILD), suite, device]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> dict[str, list[str]]:
    out, err = process.communicate(timeout=280)
    assert process.returncode == 0, err[-2000:]
    return json.loads(out.splitlines()[-1])


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """Problems of every kernel, by SUITE/NAME, from two processes side by side."""
    running = {suite: start(suite) for suite in ("seed", "ops")}
    return {f"{suite}/{name}": p for suite, process in running.items() for name, p in outcome(process).items()}


def test_right_kernels_are_right(found: dict[str, list[str]]) -> None:
    wrong = {f"{k.suite}/{k.name}": found[f"{k.suite}/{k.name}"][:3] for k in kernels(label=CONTROL)}
    assert {name: problems for name, problems in wrong.items() if problems} == {}


def test_bugs_are_wrong_and_run(found: dict[str, list[str]]) -> None:
    for kernel in kernels(label=BUG):
        problems = found[f"seed/{kernel.name}"]
        assert problems, kernel.name
        assert not [p for p in problems if "raised" in p or "dtype" in p.split(":")[-1]], kernel.name


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_the_same_on_a_gpu() -> None:
    for suite in ("seed", "ops"):
        found = outcome(start(suite, "cuda"))
        for kernel in kernels(suite=suite):
            assert bool(found[kernel.name]) == (kernel.label == BUG), (kernel.name, found[kernel.name][:3])


def test_the_papers_entries() -> None:
    seed = kernels(suite="seed")
    assert Counter(kernel.label for kernel in seed) == {CONTROL: 16, BUG: 10}
    manifest = json.loads((seed[0].path.parent / "manifest.json").read_text())
    assert sorted(entry["name"] for entry in manifest) == [kernel.name for kernel in seed]
    assert all(bool(entry["wrong"]) == (entry["label"] == BUG) for entry in manifest)
    assert all(kernel.paper for kernel in seed)
    assert Counter(kernel.op for kernel in seed if kernel.label == BUG) == {
        **dict.fromkeys(("gelu", "silu", "rms_norm", "l2_norm", "leaky_relu", "matmul"), 1),
        **dict.fromkeys(("softmax", "attention"), 2),
    }
    two_controls = {op for op, n in Counter(k.op for k in seed if k.label == CONTROL).items() if n == 2}
    assert two_controls == {"softmax", "matmul", "attention"}


def test_every_operator_has_right_kernels_and_twenty_have_three() -> None:
    tasks = [task for task in load_tasks() if task.startswith(("ops/", "seed/"))]
    counts = {task: len(right_kernels(task)) for task in tasks}
    assert min(counts.values()) >= 1
    assert sum(count >= 3 for task, count in counts.items() if task.startswith("ops/")) >= 20


def test_signatures_are_the_tasks() -> None:
    tasks = load_tasks()
    for kernel in kernels():
        task = tasks[kernel.task]
        entry = next(
            n for n in ast.parse(kernel.source).body if isinstance(n, ast.FunctionDef) and n.name == task.entry
        )
        stated = ast.parse(f"def {task.signature}: ...").body[0]
        assert isinstance(stated, ast.FunctionDef)
        assert ast.dump(entry.args) == ast.dump(stated.args), kernel.name


def test_host_code_computes_nothing() -> None:
    for kernel in kernels():
        for function in ast.parse(kernel.source).body:
            if not isinstance(function, ast.FunctionDef) or function.decorator_list:
                continue
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if isinstance(call.func, ast.Attribute):
                    allowed = TORCH_FUNCTIONS if ast.unparse(call.func.value) == "torch" else TENSOR_METHODS
                    assert call.func.attr in allowed, (kernel.name, ast.unparse(call))
                else:
                    launch = isinstance(call.func, ast.Subscript)
                    assert launch or ast.unparse(call.func) in ("min", "max", "float", "len"), (
                        kernel.name,
                        ast.unparse(call),
                    )


def test_narrowing() -> None:
    assert {kernel.task for kernel in kernels(suite="ops", op="softmax")} == {"ops/softmax"}
    assert [kernel.name for kernel in kernels(op="gelu", label=BUG)] == ["gelu__bug_half_dropped"]
    assert right_kernels("ops/nothing") == []
