"""Whether a mutant is the same program as its original: found where it is one, whatever it looks like, and only there."""

from __future__ import annotations

import pytest

from agentloop.content import load_tasks
from oracle.corpus import kernels
from oracle.corpus.mutate import mutants
from oracle.validation.compiled import calls, same_programs

SOURCE = """
import torch
import triton
import triton.language as tl


@triton.jit
def _relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr, half=0.5):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n).to(tl.float32)
    tl.store(out_ptr + at, tl.maximum(x * 2.0, 0.0) * half, mask=at < n)


def relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    if x.numel() > 0:
        _relu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
"""
SAME = {
    "comments and lines": ("at = tl.program", "# where this program is at\n\n    at = tl.program"),
    "names": ("x = tl.load", "loaded = tl.load"),
    "Python that comes to the same": ("mask=at < n)\n\n", "mask=at < n + 2 - 2 * BLOCK // BLOCK)\n\n"),
    "another text of Triton's IR": ("x * 2.0", "x + x"),
    "host code": ("if x.numel() > 0", "if x.numel() >= 1"),
    "an option that is the default": ("BLOCK=256)", "BLOCK=256, num_warps=4)"),
}
OTHER = {
    "constant": ("* half", "* 0.25"),
    "a default": ("half=0.5", "half=0.25"),
    "cast": (".to(tl.float32)", ".to(tl.float32).to(x_ptr.dtype.element_ty)"),
    "mask": ("mask=at < n)\n\n", "mask=at <= n)\n\n"),
    "grid": ("(triton.cdiv(x.numel(), 256),)", "(triton.cdiv(x.numel(), 256) + 1,)"),
    "warps": ("BLOCK=256)", "BLOCK=256, num_warps=8)"),
    "memory": ("torch.empty_like", "torch.zeros_like"),
    "one call of many": (
        "    out = torch",
        "    if x.dtype == torch.bfloat16 and x.shape[-1] == 1:\n        x = x + 0\n    out =",
    ),
    "a second launch": ("    return out", "    _relu[(1,)](out, out, 1, BLOCK=1)\n    return out"),
    "host code that looks at results": (
        "    return out",
        "    return out if out.numel() == 0 or out.sum() > -1 else x",
    ),
    "refused": ("at = tl.program", "while n:\n        break\n    at = tl.program"),
    "raises": ("    return out", "    raise ValueError"),
}


@pytest.fixture(scope="module")
def told() -> dict[str, bool]:
    """What one comparing process says of all of them."""
    task = load_tasks()["seed/relu"]
    changes = {name: SOURCE.replace(*change) for name, change in {**SAME, **OTHER}.items()}
    changes["names"] = SOURCE.replace("x = tl.load", "loaded = tl.load").replace("x * 2.0", "loaded * 2.0")
    assert SOURCE not in changes.values()
    chosen = [call for call in calls(task) if call["tensors"][0]["dtype"] != "float16"][:6]
    small = [call for call in calls(task) if call["tensors"][0]["shape"][-1:] == [1]]
    chosen += [call for call in small if call["tensors"][0]["dtype"] == "bfloat16"][:1]
    chosen += [call for call in calls(task) if call["tensors"][0]["dtype"] == "float16"][:2]
    digits = {name: f"m{place}" for place, name in enumerate(changes)}
    order = {"entry": "relu", "original": SOURCE, "calls": chosen}
    found = same_programs("relu", {**order, "mutants": {digits[name]: text for name, text in changes.items()}})
    return {name: found[digits[name]] for name in changes}


@pytest.mark.parametrize("change", SAME)
def test_the_same_program_is_found(change: str, told: dict[str, bool]) -> None:
    assert told[change] is True


@pytest.mark.parametrize("change", OTHER)
def test_another_program_is_not_taken_for_the_same(change: str, told: dict[str, bool]) -> None:
    assert told[change] is False


@pytest.mark.slow
def test_mutants_of_the_corpus_on_the_whole_portfolio() -> None:
    """`shape[-1] if len(shape) > 0 else 1`: no case has no dims, so the first is the same; the others drop casts, which
    only the half types show, and fix the number of columns."""
    kernel = next(kernel for kernel in kernels(suite="ops") if kernel.name == "add__control_rows")
    made = {mutant.description: mutant for mutant in mutants(kernel.source)}
    branch = "shape[-1] if len(shape) > 0 else 1 → "
    cast = next(text for text in made if text.endswith("mask=mask)") and ".to(tl.float32)" in text)
    wanted = {made[branch + "shape[-1]"].digest: True, made[branch + "1"].digest: False, made[cast].digest: False}
    task = load_tasks()[kernel.task]
    sources = {mutant.digest: mutant.source for mutant in made.values() if mutant.digest in wanted}
    order = {"entry": task.entry, "original": kernel.source, "mutants": sources, "calls": calls(task)}
    assert same_programs(kernel.name, order) == wanted
