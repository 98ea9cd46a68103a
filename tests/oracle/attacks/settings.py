"""Settings of torch, which change what a call without them would do, and autotune configurations."""

from __future__ import annotations

from tests.oracle.attacks.common import Attack, candidate

_TUNED = """
@triton.autotune([triton.Config({{"BLOCK": size}}) for size in {sizes}], key=[])
@triton.jit
def _tuned(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    {wrong}
    tl.store(o_ptr + i, tl.where(x != x, x, tl.where(x > 0, x, 0.0)), mask=i < n)
"""


def _tuned(sizes: tuple[int, ...], wrong: str = "") -> str:
    body = """
x = x.contiguous()
out = torch.empty_like(x)
if out.numel():
    _tuned[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
return out
"""
    return candidate(body, _TUNED.format(sizes=sizes, wrong=wrong))


_EMPTY = "x = x.contiguous()\nreturn launch(x, torch.empty(x.shape, dtype=x.dtype))"

ATTACKS = {
    "right_default_dtype": Attack(candidate("return right(x)", "torch.set_default_dtype(torch.float16)")),
    "right_default_device": Attack(candidate(_EMPTY, "torch.set_default_device('cuda')")),
    "right_default_device_in_the_call": Attack(candidate("torch.set_default_device('cuda')\n" + _EMPTY)),
    "right_no_grad": Attack(candidate("torch.set_grad_enabled(False)\ntorch.manual_seed(0)\nreturn right(x)")),
    "right_autotune": Attack(_tuned((128, 256, 512, 1024))),
    "right_autotune_of_six": Attack(_tuned((64, 128, 256, 512, 1024, 2048))),
    "autotune_wrong_small": Attack(
        _tuned((128, 256, 512, 1024), "x = tl.where((n < 100) & (BLOCK == 512), x + 1, x)"), ("numerical_mismatch",)
    ),
    "autotune_wrong_large": Attack(
        _tuned((128, 256, 512, 1024), "x = tl.where((n > 4000) & (BLOCK == 1024), x + 1, x)"), ("numerical_mismatch",)
    ),
}
