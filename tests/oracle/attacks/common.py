"""Kernels for the task `ops/relu` that attack the judge on a GPU, with right ones beside them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Attack:
    """`kinds`: the failure kinds that fit; () where the kernel is right and must pass."""

    source: str
    kinds: tuple[str, ...] = ()


PRELUDE = """
import os
import torch
import triton
import triton.language as tl

@triton.jit
def _relu(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(o_ptr + i, tl.where(x != x, x, tl.where(x > 0, x, 0.0)), mask=i < n)

def launch(x, out, **options):
    if out.numel():
        _relu[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256, **options)
    return out

def right(x):
    x = x.contiguous()
    return launch(x, torch.empty_like(x))
"""


def candidate(body: str, before: str = "") -> str:
    """A source whose `relu(x)` has the given body; `before` stands at the module's top level."""
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    return f"{PRELUDE}\n{before}\n\ndef relu(x):\n{lines}\n"
