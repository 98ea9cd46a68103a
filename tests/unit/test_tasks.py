"""The suites `seed` and `ops`: complete, fair (what is judged is stated), and with references that are right."""

from __future__ import annotations

import ast
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import typer
from typer.testing import CliRunner

from agentloop.commands import tasks as command
from agentloop.content import load_tasks
from oracle.case import Case
from oracle.inputs import build, of_tensor
from oracle.layouts import LAYOUTS
from oracle.portfolio import portfolio
from oracle.reference import reference
from oracle.schema import CORE_TIERS, Task, as_tuple
from oracle.values import REGIMES

TASKS = {key: task for key, task in load_tasks().items() if key.startswith(("seed/", "ops/"))}
each_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)

SEED = "softmax layer_norm gelu silu rms_norm l2_norm relu leaky_relu sigmoid tanh elu matmul attention"
OPS = """softmax log_softmax masked_softmax layer_norm rms_norm add_rms_norm l2norm gelu silu relu sigmoid leaky_relu swiglu
add mul matmul bmm linear cross_entropy rope attention sum mean max argmax cumsum var std transpose embedding"""


def test_the_suites_are_whole() -> None:
    assert set(TASKS) == {f"seed/{name}" for name in SEED.split()} | {f"ops/{name}" for name in OPS.split()}


# What is stated.


def stated_parameters(task: Task) -> dict[str, Any]:
    """Parameters of the signature as stated to the author, with their defaults (`...` where there is none)."""
    function = ast.parse(f"def {task.signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == task.entry
    names = [argument.arg for argument in function.args.args]
    defaults = [ast.literal_eval(default) for default in function.args.defaults]
    return dict.fromkeys(names, ...) | dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))


@each_task
def test_the_signature_agrees_with_tensors_and_keywords(task: Task) -> None:
    stated = stated_parameters(task)
    keywords = {keyword.name: keyword.default for keyword in task.keywords}
    names = [name for name in stated if name not in keywords]
    assert {name: stated[name] for name in keywords} == keywords
    for form in task.forms:
        used = [tensor.name for tensor in form.tensors]
        assert used == names[: len(used)], form.name
        assert all(stated[name] is None for name in names[len(used) :]), "only an optional tensor may be left out"


@each_task
def test_the_contract_states_what_is_judged(task: Task) -> None:
    text = " ".join(task.contract.split())
    assert all(dtype in text for dtype in task.dtypes)
    assert "never modified" in text
    assert "contiguous tensor" in text
    assert all(output.contiguous for output in task.outputs)
    assert ("TF32 products are acceptable" in text) == task.tf32
    assert (
        "may be 0" in text or "0 included" in text or "or 0:" in text or "R is 0" in text or "no elements" in text
    ) == any(dim.empty for dim in task.dims.values())
    assert all(keyword.name in text for keyword in task.keywords)
    assert "NaN" in text or "on-finite" in text, "what becomes of non-finite inputs"
    if task.in_range is not None:
        assert "not judged" in text
    if task.layouts:
        assert {of_tensor(layout)[0] for layout in task.layouts} <= {
            *["transposed", "sliced", "strided", "expanded", "offset"]
        }
        assert "transposed, sliced with an offset, strided, expanded" in text
    assert 2 <= len(task.hazards) <= 5


@each_task
def test_regimes_and_layouts_exist(task: Task) -> None:
    assert {of_tensor(regime)[0] for regime in task.regimes} <= set(REGIMES)
    assert {of_tensor(layout)[0] for layout in task.layouts} <= set(LAYOUTS)
    assert len(set(task.regimes)) == len(task.regimes)


@each_task
def test_base_and_naive_sizes_need_no_tail(task: Task) -> None:
    for sizes in (task.base_dims(), task.naive_dims()):
        for size in sizes.values():
            assert size & (size - 1) == 0
        assert sum(math.prod(tensor.sizes(sizes)) for tensor in task.forms[0].tensors) <= 80_000
    last = task.forms[0].tensors[0].sizes(task.naive_dims())[-1]
    blocked = task.name in ("matmul", "bmm", "linear", "attention", "rope", "transpose", "embedding")
    assert last >= (32 if blocked else 256)


@each_task
def test_sizes_hold_the_boundaries(task: Task) -> None:
    assert all(1 in dim.values and any(size % 2 for size in dim.values) for dim in task.dims.values())
    if task.reduces:
        assert max(task.dims[task.reduces].values) > 4096


@pytest.mark.parametrize("name", SEED.split())
def test_the_published_schema_stands_beside_ours(name: str) -> None:
    published = TASKS[f"seed/{name}"].published
    assert published is not None
    assert set(published.dims) == set(TASKS[f"seed/{name}"].dims)
    assert set(published.atol) == set(published.dtypes)
    assert (published.low, published.high) == (-10.0, 10.0)


# References, in float64.


def causal_attention(q: Any, k: Any, v: Any, causal: bool = False, scale: float | None = None) -> torch.Tensor:
    """One query at a time, straight from the contract."""
    out = torch.empty_like(q)
    group = q.shape[1] // k.shape[1]
    for b, h, i in np.ndindex(*q.shape[:3]):
        seen = min(i + 1, k.shape[2]) if causal else k.shape[2]
        keys, values = k[b, h // group, :seen], v[b, h // group, :seen]
        weights = torch.softmax(keys @ q[b, h, i] * (q.shape[3] ** -0.5 if scale is None else scale), 0)
        out[b, h, i] = weights @ values
    return out


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """As complex numbers: (x_i + j·x_{i+P})·(cos + j·sin)."""
    pairs = cos.shape[1]
    turned = torch.complex(x[..., :pairs], x[..., pairs : 2 * pairs]) * torch.complex(cos, sin)[:, None, :]
    return torch.cat((turned.real, turned.imag, x[..., 2 * pairs :]), -1)


def kept_losses(logits: torch.Tensor, target: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    """A row that holds inf is NaN, as PyTorch has it: its maximum is subtracted from every logit."""
    rows = [r for r in range(len(target)) if target[r] != ignore_index]
    losses = [torch.logsumexp(logits[r], 0) - logits[r, target[r]] for r in rows]
    losses = [
        loss * torch.nan if (logits[r] == torch.inf).any() else loss for r, loss in zip(rows, losses, strict=True)
    ]
    return torch.stack(losses).mean() if losses else torch.tensor(torch.nan, dtype=logits.dtype)


def masked_rows(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for row in np.ndindex(*x.shape[:-1]):
        out[row][mask[row]] = torch.softmax(x[row][mask[row]], -1)
    return out


def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    inner = torch.erf(x / 2**0.5) if approximate == "none" else torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + inner)


def rms(x: torch.Tensor, weight: torch.Tensor | float, eps: float) -> torch.Tensor:
    return x / torch.sqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def centred(x: torch.Tensor, eps: float) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, correction=0, keepdim=True) + eps)


# Each operator a second time, another way: PyTorch's own operator where the reference is a formula, else the formula.
DEFINITIONS: dict[str, Callable[..., Any]] = {
    "softmax": lambda x: (
        torch.exp(x - x.amax(-1, keepdim=True)) / torch.exp(x - x.amax(-1, keepdim=True)).sum(-1, True)
    ),
    "log_softmax": lambda x: (x - x.amax(-1, True)) - torch.log(torch.exp(x - x.amax(-1, True)).sum(-1, True)),
    "masked_softmax": masked_rows,
    "ops/layer_norm": lambda x, weight, bias, eps=1e-5: centred(x, eps) * weight + bias,
    "seed/layer_norm": lambda x: centred(x, 1e-5),
    "ops/rms_norm": lambda x, weight, eps=1e-6: F.rms_norm(x, x.shape[-1:], weight, eps),
    "seed/rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-5),
    "add_rms_norm": lambda x, residual, weight, eps=1e-6: (rms(x + residual, weight, eps), x + residual),
    "l2norm": lambda x, eps=1e-12: F.normalize(x, dim=-1, eps=eps),
    "l2_norm": lambda x: x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-12),
    "ops/gelu": gelu,
    "seed/gelu": lambda x: gelu(x, "tanh"),
    "silu": lambda x: x * torch.sigmoid(x),
    "relu": lambda x: torch.where(x <= 0, 0.0, x),
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "leaky_relu": lambda x, negative_slope=0.01: F.leaky_relu(x, negative_slope),
    "tanh": lambda x: 2 * torch.sigmoid(2 * x) - 1,
    "elu": lambda x: torch.where(x > 0, x, torch.exp(x) - 1),
    "swiglu": lambda a, b: a * torch.sigmoid(a) * b,
    "add": torch.add,
    "mul": torch.mul,
    "matmul": lambda a, b: torch.einsum("mk,kn->mn", a, b),
    "bmm": lambda a, b: torch.einsum("bmk,bkn->bmn", a, b),
    "linear": lambda x, weight, bias=None: torch.matmul(x, weight.mT) + (0 if bias is None else bias),
    "cross_entropy": kept_losses,
    "rope": rotated,
    "ops/attention": causal_attention,
    "seed/attention": lambda q, k, v: causal_attention(q[None, None], k[None, None], v[None, None])[0, 0],
    "sum": lambda x: torch.sum(x, -1),
    "mean": lambda x: torch.mean(x, -1),
    "max": lambda x: torch.max(x, -1).values if x.numel() else x.new_empty(x.shape[:-1]),
    "argmax": lambda x: torch.argmax(x, -1),
    "cumsum": lambda x: torch.cumsum(x, -1),
    "var": lambda x, correction=1: torch.var(x, -1, correction=correction),
    "std": lambda x, correction=1: torch.std(x, -1, correction=correction),
    "transpose": lambda x: torch.transpose(x, -1, -2),
    "embedding": lambda idx, weight: weight[idx],
}
SMALL = 40_000  # elements over the tensors of a case that is computed a second time


def definition(task: Task) -> Callable[..., Any]:
    return DEFINITIONS.get(task.id) or DEFINITIONS[task.name]


def cases(task: Task, dtype: str | None = None, limit: int = 40) -> list[Case]:
    return [case for case in portfolio(task, limit=limit) if dtype in (None, case.dtype)]


@each_task
def test_references_agree_with_a_second_way(task: Task) -> None:
    """All regimes, forms, keywords and empty sizes; non-finite values at equal places wherever they are judged."""
    tested = [case for case in cases(task, limit=60) if math.prod(case.dims.values()) <= SMALL]
    assert {case.tier for case in tested} >= {"values", "empty"}
    for case in tested:
        inputs = build(task, case)
        expected = reference(task, inputs)
        args, kwargs = inputs.arguments64()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's var at N <= correction
            again = as_tuple(definition(task)(*args, **kwargs))
        for quantity, other in zip(expected.outputs, again, strict=True):
            assert tuple(other.shape) == quantity.values.shape, case
            got, want = other.numpy()[quantity.judged], quantity.values[quantity.judged]
            atol = 1e-9 * quantity.scale[quantity.judged] if quantity.scale.any() else 0
            with np.errstate(invalid="ignore"):
                close = (np.abs(got - want) <= atol + 1e-9 * np.abs(want)) | (got == want)
            assert (close | (np.isnan(got) & np.isnan(want))).all(), case


NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "arguments", "want"),
    [
        (
            "ops/softmax",
            [[[INF, 0.0], [NAN, 0.0], [-INF, 0.0], [-INF, -INF], [3e38, -3e38]]],
            [[NAN] * 2, [NAN] * 2, [0, 1], [NAN] * 2, [1, 0]],
        ),
        ("ops/relu", [[NAN, INF, -INF, -0.0]], [NAN, INF, 0, 0]),
        ("seed/elu", [[[[NAN, INF, -INF, 1e30]]]], [[[NAN, INF, -1, 1e30]]]),
        ("seed/tanh", [[[[NAN, INF, -INF, 1e30]]]], [[[NAN, 1, -1, 1]]]),
        ("ops/gelu", [[INF, -INF, NAN, 1e30, -1e30]], [INF, NAN, NAN, 1e30, 0]),
        ("ops/silu", [[INF, -INF, NAN, 1e30, -1e30]], [INF, NAN, NAN, 1e30, 0]),
        ("ops/max", [[[1.0, NAN, 3.0], [-INF, -INF, -INF], [-INF, INF, 0.0]]], [NAN, -INF, INF]),
        ("ops/argmax", [[[1.0, NAN, NAN], [2.0, 1.0, 2.0], [-INF, -INF, -INF], [0.0, -0.0, -1.0]]], [1, 0, 0, 0]),
        ("ops/cumsum", [[1.0, INF, 1.0, -INF, 1.0]], [1, INF, INF, NAN, NAN]),
        ("ops/sum", [[[], []]], [0, 0]),
        ("ops/var", [[[3.0], [5.0]]], [NAN, NAN]),
        ("ops/std", [[[3.0, 3.0], [5.0, 7.0]]], [0, 2**0.5]),
        ("ops/l2norm", [[[0.0, 0.0], [NAN, 1.0], [INF, 1.0]]], [[0, 0], [NAN, NAN], [NAN, 0]]),
        ("seed/rms_norm", [[[[0.0, 0.0], [NAN, 1.0], [INF, 1.0]]]], [[[0, 0], [NAN, NAN], [NAN, 0]]]),
        ("ops/masked_softmax", [[[NAN, 0.0], [INF, NAN]], [[False, True], [False, False]]], [[0, 1], [0, 0]]),
        ("ops/cross_entropy", [[[NAN, 1.0], [2.0, 2.0]], [-100, 1]], math.log(2)),
        ("ops/cross_entropy", [[[0.0, 1.0]], [-100]], NAN),
    ],
)  # fmt: skip
def test_edge_values(name: str, arguments: list[Any], want: Any) -> None:
    torch.set_default_dtype(torch.float64)
    try:
        tensors, wanted = [torch.tensor(argument) for argument in arguments], torch.tensor(want, dtype=torch.float64)
    finally:
        torch.set_default_dtype(torch.float32)
    got = TASKS[name].reference(*tensors)
    assert torch.allclose(got.double(), wanted, rtol=1e-14, atol=1e-300, equal_nan=True)


def test_variance_at_and_below_the_correction() -> None:
    for name in ("ops/var", "ops/std"):
        rows = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
        assert TASKS[name].reference(rows, correction=2).isinf().all()
        assert TASKS[name].reference(rows, correction=3).isinf().all()
        assert TASKS[name].reference(rows[:, :1], correction=3).isnan().all()


# The tolerance's inputs.

U32 = 2.0**-24


def two_pass(x: torch.Tensor, correction: int) -> torch.Tensor:
    squares = (x - x.mean(-1, keepdim=True)).square().sum(-1)
    return squares / max(x.shape[-1] - correction, 0)


def welford(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    """Sixteen lanes of Welford's recurrence, joined by Chan's formula, all in float32."""
    width = 16 * -(-x.shape[-1] // 16)
    lanes = F.pad(x, (0, width - x.shape[-1])).unflatten(-1, (-1, 16))
    live = F.pad(torch.ones(x.shape[-1]), (0, width - x.shape[-1])).unflatten(-1, (-1, 16))
    count, mean, squares = live[0], lanes[..., 0, :], torch.zeros_like(lanes[..., 0, :])
    for step in range(1, lanes.shape[-2]):
        here, count = live[step], count + live[step]
        delta = (lanes[..., step, :] - mean) * here
        mean = mean + delta / count.clamp(min=1)
        squares = squares + delta * (lanes[..., step, :] - mean)
    whole = (mean * count).sum(-1, keepdim=True) / x.shape[-1]
    total = (squares + count * (mean - whole).square()).sum(-1)
    return total / max(x.shape[-1] - correction, 0)


def base_two_softmax(x: torch.Tensor) -> torch.Tensor:
    """Scaled by log2(e) before the maximum is subtracted, as flash kernels do."""
    scaled = x * 1.4426950408889634
    e = torch.exp2(scaled - scaled.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def normalised(x: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return (x - x.mean(-1, keepdim=True)) * torch.rsqrt(two_pass(x, 0)[..., None] + eps)


# Right float32 implementations that are not PyTorch's own CPU operators (which often compute in float64 inside).
PLAIN: dict[str, list[Callable[..., Any]]] = {
    "ops/softmax": [DEFINITIONS["softmax"], base_two_softmax],
    "ops/log_softmax": [DEFINITIONS["log_softmax"]],
    "ops/layer_norm": [lambda x, weight, bias, eps=1e-5: normalised(x, eps) * weight + bias],
    "seed/layer_norm": [normalised],
    "ops/gelu": [gelu],
    "ops/sigmoid": [DEFINITIONS["sigmoid"]],
    "ops/silu": [lambda x: x / (1 + torch.exp(-x))],
    "seed/silu": [lambda x: x * (1 / (1 + torch.exp(-x)))],
    "seed/tanh": [DEFINITIONS["tanh"]],
    "seed/elu": [DEFINITIONS["elu"]],
    "ops/attention": [TASKS["ops/attention"].reference],
    "seed/attention": [TASKS["seed/attention"].reference],
    "ops/var": [lambda x, correction=1: two_pass(x, correction), welford],
    "ops/std": [
        lambda x, correction=1: torch.sqrt(two_pass(x, correction)),
        lambda x, correction=1: torch.sqrt(welford(x, correction)),
    ],
}


def excess(task: Task, case: Case, function: Callable[..., Any]) -> float:
    """Largest error beyond one rounding of the result, in units of u32 · scale, where reference and result are finite."""
    inputs = build(task, case)
    args, kwargs = inputs.arguments()
    worst = 0.0
    for quantity, got in zip(reference(task, inputs).outputs, as_tuple(function(*args, **kwargs)), strict=True):
        values, found = quantity.values, got.double().numpy()
        finite = quantity.judged & np.isfinite(values) & np.isfinite(found)
        assert np.isfinite(quantity.scale[np.isfinite(values)]).all()
        assert (quantity.scale[finite] >= 0).all()
        allowed = 2.0**-124 + U32 * np.abs(values)
        with np.errstate(invalid="ignore"):
            error = np.where(finite, np.maximum(np.abs(values - found) - allowed, 0), 0)
        worst = max(worst, float((error / (U32 * np.maximum(quantity.scale, 2.0**-149))).max(initial=0, where=finite)))
    return worst


@each_task
def test_right_float32_implementations_stay_within_a_few_scales(task: Task) -> None:
    ratios = {
        (function, index): excess(task, case, function)
        for index, case in enumerate(cases(task, "float32", limit=60))
        for function in PLAIN.get(task.id, [task.eager or task.reference])
    }
    assert max(ratios.values()) <= 4, max(ratios, key=lambda key: ratios[key])


def rows(n: int, **dims: int) -> dict[str, int]:
    return {"B": 2, "S": 4, "R": 8, "N": n, "H": n, **dims}


def moments(x: torch.Tensor, correction: int = 1) -> torch.Tensor:
    n = x.shape[-1]
    return ((x * x).mean(-1) - x.mean(-1).square()) * (n / (n - correction))


def half_product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(*a.shape[:-1], b.shape[-1], dtype=torch.float16)
    for start in range(0, a.shape[-1], 32):
        part = a[..., start : start + 32].half().float() @ b[..., start : start + 32, :].half().float()
        total = (total.float() + part).half()
    return total.float()


def half_sum(x: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(x.shape[:-1], dtype=torch.float16)
    for column in x.half().unbind(-1):
        total = total + column
    return total.float()


def without_cross_term(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    mean = (x * x + residual * residual).mean(-1, keepdim=True)
    return (x + residual) * torch.rsqrt(mean + 1e-6) * weight, x + residual


MOMENT_NORM = lambda x, *_: (x - x.mean(-1, keepdim=True)) * torch.rsqrt(moments(x, 0).clamp(min=0)[..., None] + 1e-5)  # noqa: E731


@pytest.mark.parametrize(
    ("name", "wrong", "regime", "dims"),
    [
        *(("seed/layer_norm", MOMENT_NORM, "offset", rows(n)) for n in (64, 256, 1024, 4097)),
        *(("ops/layer_norm", lambda x, w, b: MOMENT_NORM(x) * w + b, "offset:x", rows(n)) for n in (256, 1024)),
        *(("ops/var", moments, "offset", rows(n)) for n in (64, 256, 1024)),
        *(("ops/std", lambda x: moments(x).clamp(min=0).sqrt(), "offset", rows(n)) for n in (64, 256, 1024)),
        ("seed/matmul", half_product, "uniform", {"M": 32, "N": 32, "K": 4096}),
        ("ops/matmul", half_product, "normal", {"M": 32, "N": 32, "K": 4096}),
        ("ops/bmm", half_product, "normal", {"B": 2, "M": 32, "N": 32, "K": 1024}),
        ("ops/sum", half_sum, "normal", rows(1025)),
        ("ops/mean", lambda x: half_sum(x) / x.shape[-1], "normal", rows(1025)),
        ("ops/cumsum", lambda x: x.half().cumsum(-1).float(), "normal", rows(1025)),
        ("ops/softmax", lambda x: torch.zeros_like(x), "large", rows(256)),
        ("ops/gelu", lambda x: F.gelu(x, approximate="tanh"), "uniform", rows(256)),
        ("ops/sigmoid", lambda x: 0.5 * (1 + torch.tanh(x / 2)), "uniform_1e3", rows(256)),
        ("ops/add_rms_norm", without_cross_term, "correlated", rows(256)),
    ],
)
def test_the_scale_excuses_no_known_fault(
    name: str, wrong: Callable[..., Any], regime: str, dims: dict[str, int]
) -> None:
    """Beyond 16 u32 · scale, the factor of tolerance `derived`."""
    task = TASKS[name]
    sizes = {key: dims.get(key, dim.base) for key, dim in task.dims.items()}
    assert excess(task, Case(task.id, task.forms[0].name, sizes, "float32", regime=regime), wrong) > 16


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@each_task
def test_eager_gives_the_stated_dtype_and_shape_in_every_dtype(task: Task) -> None:
    """What the naive checks compare with; the core tiers, every form, every dtype."""
    for case in cases(task):
        if case.tier not in CORE_TIERS or math.prod(case.dims.values()) > 2 * SMALL:
            continue
        inputs = build(task, case)
        args, kwargs = inputs.arguments()
        found = as_tuple((task.eager or task.reference)(*args, **kwargs))
        for quantity, tensor in zip(reference(task, inputs).outputs, found, strict=True):
            assert tuple(tensor.shape) == quantity.values.shape
            assert str(tensor.dtype) == f"torch.{quantity.dtype}", case


@each_task
def test_base_cases_are_judged_in_full(task: Task) -> None:
    for dtype in task.dtypes:
        case = Case(task.id, task.forms[0].name, task.base_dims(), dtype)
        assert all(quantity.judged.all() for quantity in reference(task, build(task, case)).outputs)


# The command.


def run(*arguments: str) -> Any:
    app = typer.Typer()
    command.register(app)
    app.command("other")(lambda: None)
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["tasks", *arguments])


def test_list_shows_and_prints_json() -> None:
    shown = run("list", "ops/*")
    assert shown.exit_code == 0
    assert all(f"ops/{name}" in shown.output for name in OPS.split())
    listed = json.loads(run("list", "seed/*", "--json").output)
    assert {line["id"] for line in listed} == {f"seed/{name}" for name in SEED.split()}
    matmul = next(line for line in listed if line["id"] == "seed/matmul")
    assert matmul["dtypes"] == ["float32"]
    assert matmul["tiers"] == ["base", "shapes", "values", "empty", "layouts"]
    assert matmul["digest"] == TASKS["seed/matmul"].digest


@each_task
def test_what_is_described_is_the_task(task: Task) -> None:
    data = json.loads(json.dumps(command.describe(task)))
    assert data["contract"] == task.contract
    assert {name: tuple(dim["values"]) for name, dim in data["dims"].items()} == {
        n: d.values for n, d in task.dims.items()
    }
    assert data["dtypes"] == list(task.dtypes)
    assert data["tolerance"]["scale"] or task.scale is None


@pytest.mark.parametrize("name", ["ops/linear", "seed/softmax"])
def test_show_tells_all_that_is_judged(name: str) -> None:
    task = TASKS[name]
    assert json.loads(run("show", name, "--json").output) == json.loads(json.dumps(command.describe(task)))
    text = run("show", name).output
    assert task.contract in text
    for word in (*task.regimes, *task.layouts, *(form.name for form in task.forms), *task.dims, *task.hazards):
        assert word in text


def test_errors_are_one_line(tmp_path: Path) -> None:
    for arguments in (["show", "sofmax"], ["list", "nix/*"], ["list", "--task-dir", str(tmp_path / "none")]):
        result = run(*arguments)
        assert "\n" not in str(result.exception)
        assert type(result.exception).__name__ == "UsageError"
