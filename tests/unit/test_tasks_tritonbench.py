"""The suite `tritonbench_t`: complete, fair to prompts that state only float32 and shapes, and with right references."""

from __future__ import annotations

import ast
import json
import math
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from agentloop.commands import tasks as command
from agentloop.content import load_tasks
from oracle.case import Case
from oracle.compare import wrong_elements
from oracle.inputs import build, of_tensor
from oracle.layouts import LAYOUTS
from oracle.portfolio import portfolio
from oracle.reference import Quantity, ReferenceCache, reference
from oracle.schema import FULL_TIERS, Task, as_tuple
from oracle.tolerance import policy
from oracle.values import REGIMES

TASKS = {task.name: task for key, task in load_tasks().items() if key.startswith("tritonbench_t/")}
PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "tritonbench_t" / "tasks.jsonl"
REFERENCES = ReferenceCache()
each_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)

NAMES = """abs add add_gelu addmm argmax cos div elu_linear erf exp exp_mean gelu gelu_std leaky_relu log log1p
log_softmax_linear logsumexp matmul matrix_vector_dot max mean mul mul_relu relu relu_sqrt rsqrt scaled_add_norm sigmoid
silu_batch_norm softmax softmax_log softmax_mul sqrt std sub sum tanh tanh_linear adaptive_avg_pool2d
fused_layer_norm_relu_linear fused_add_mul_groupnorm selu combined_activation fused_embedding_add_tanh"""


@cache
def drawn(name: str) -> list[Case]:
    return portfolio(TASKS[name])


def cases(task: Task, *tiers: str, dtype: str | None = None) -> list[Case]:
    """Of the default portfolio, those of some tiers and a dtype."""
    return [case for case in drawn(task.name) if case.tier in (tiers or FULL_TIERS) and dtype in (None, case.dtype)]


# What is judged is what the published description states.


def test_the_suite_is_whole() -> None:
    assert set(TASKS) == set(NAMES.split())


@pytest.mark.data
@pytest.mark.skipif(not PUBLISHED.exists(), reason="the published tasks are not here")
def test_names_and_order_are_the_published_ones() -> None:
    lines = [json.loads(line) for line in PUBLISHED.read_text().splitlines()]
    assert [line["name"].rpartition(".")[2] for line in lines] == NAMES.split()


@each_task
def test_the_signature_agrees_with_tensors_and_keywords(task: Task) -> None:
    """Tensors by position come first and in order, the rest by a name that the signature has; required ones have no
    default there, others the one stated."""
    function = ast.parse(f"def {task.signature}: ...").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == task.entry
    places = [argument.arg for argument in function.args.args]
    named = places + [argument.arg for argument in function.args.kwonlyargs]
    defaults = [
        ast.literal_eval(value) for value in (*function.args.defaults, *filter(None, function.args.kw_defaults))
    ]
    stated = dict(zip(named[len(named) - len(defaults) :], defaults, strict=True))
    for keyword in task.keywords:
        assert keyword.name in named
        if not keyword.required and keyword.name in stated:
            assert stated[keyword.name] == keyword.default
        if keyword.required:
            assert keyword.name not in stated
    leading = [keyword.name for keyword in task.keywords if keyword.positional]
    for form in task.forms:
        placed = [tensor.name for tensor in form.tensors if not tensor.keyword]
        given = [
            name
            for name in leading
            if name in form.keywords or any(k.required for k in task.keywords if k.name == name)
        ]
        if placed == ["changed"]:  # input of the form that changes it
            placed = ["input"]
        assert (placed + given)[: len(places)] == places[: len(placed + given)], form.name
        assert all(tensor.name in named for tensor in form.tensors if tensor.keyword)


@each_task
def test_base_and_shapes_hold_only_what_the_prompts_state(task: Task) -> None:
    """float32, contiguous, finite, plain values, no size 0, no keyword changed, no destination, no 0-d argument."""
    plain = cases(task, "base", "shapes")
    assert {case.tier for case in plain} == {"base", "shapes"}
    for case in plain:
        assert (case.dtype, case.layout, case.regime, dict(case.keywords)) == ("float32", "contiguous", "uniform", {})
        form = task.form(case.form)
        assert not [tensor.name for tensor in form.tensors if tensor.keyword or tensor.values == "out"]
        optional = {keyword.name for keyword in task.keywords if not keyword.required}
        assert set(form.keywords) & optional <= {"normalized_shape"}
        dims = form.keywords.get("dim", 0)
        assert isinstance(dims, int)
        assert dims >= 0
        inputs = build(task, case)
        for buffer in inputs.tensors:
            assert buffer.dtype in ("float32", "int64")
            assert buffer.shape
            assert min(buffer.shape) >= 1
            assert buffer.values().flags.c_contiguous
            assert np.isfinite(buffer.values()).all()
        for quantity in quantities(task, case):
            assert np.isfinite(quantity.values).all(), "a non-finite result is not stated"


@each_task
def test_base_and_naive_sizes_need_no_tail(task: Task) -> None:
    for sizes in (task.base_dims(), task.naive_dims()):
        assert all(size & (size - 1) == 0 for size in sizes.values())
        assert sum(math.prod(tensor.sizes(sizes)) for tensor in task.forms[0].tensors) <= 80_000
    assert task.forms[0].tensors[0].sizes(task.naive_dims())[-1] >= (
        256 if task.name != "fused_embedding_add_tanh" else 16
    )


@each_task
def test_regimes_layouts_and_the_description_exist(task: Task) -> None:
    assert {of_tensor(regime)[0] for regime in task.regimes} <= set(REGIMES)
    assert {of_tensor(layout)[0] for layout in task.layouts} <= set(LAYOUTS)
    assert len(set(task.regimes)) == len(task.regimes)
    text = " ".join(task.contract.split())
    assert all(dtype in text for dtype in task.dtypes)
    assert all(keyword.name in text for keyword in task.keywords)
    assert task.in_range is None or "not judged" in text.lower()
    assert ("may use TF32" in text) == task.tf32
    assert 2 <= len(task.hazards) <= 6
    assert json.loads(json.dumps(command.describe(task)))["contract"] == task.contract


# References.


def quantities(task: Task, case: Case) -> list[Quantity]:
    expected = REFERENCES.get(task, build(task, case))
    return [*expected.outputs, *expected.mutated.values()]


def changes_y(function: Callable[..., Any]) -> Callable[..., Any]:
    def changed(*args: Any) -> Any:
        y, result = function(*args)
        args[{3: 0, 5: 2}[len(args)]].copy_(y)
        return result

    return changed


def pooled(input: torch.Tensor, output_size: Any) -> torch.Tensor:
    """Window by window, as the contract says."""
    pair = output_size if isinstance(output_size, tuple) else (output_size, output_size)
    high, wide = (n if s is None else s for n, s in zip(input.shape[-2:], pair, strict=True))
    out = input.new_empty((*input.shape[:-2], high, wide))
    for i, j in np.ndindex(high, wide):
        lines = slice(i * input.shape[-2] // high, -(-(i + 1) * input.shape[-2] // high))
        columns = slice(j * input.shape[-1] // wide, -(-(j + 1) * input.shape[-1] // wide))
        out[..., i, j] = input[..., lines, columns].mean((-1, -2))
    return out


def normalised(x: torch.Tensor, eps: float) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + eps)


def group_norm(x: torch.Tensor, y: torch.Tensor, weight: Any, bias: Any, num_groups: int, eps: float = 1e-5) -> Any:
    product = (x + y) * y
    if not product.numel():
        return product
    normal = normalised(product.reshape(x.shape[0], num_groups, -1), eps).reshape(x.shape)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return normal * weight.reshape(shape) + bias.reshape(shape)


def batch_norm(
    x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, momentum: Any = 0, eps: float = 1e-5
) -> Any:
    shape = (1, -1) + (1,) * (x.ndim - 2)
    value = (x - mean.reshape(shape)) / torch.sqrt(var.reshape(shape) + eps)
    value = value if weight is None else value * weight.reshape(shape)
    value = value if bias is None else value + bias.reshape(shape)
    return value / (1 + torch.exp(-value))


def gelu(x: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    inner = torch.erf(x / 2**0.5) if approximate == "none" else torch.tanh((2 / math.pi) ** 0.5 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + inner)


def tanh(x: torch.Tensor) -> torch.Tensor:
    return 2 / (1 + torch.exp(-2 * x)) - 1


def softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def deviation(x: torch.Tensor, dim: Any = None, correction: int = 1, keepdim: bool = False) -> torch.Tensor:
    every = tuple(range(x.ndim)) if dim is None else dim
    count = x.numel() // max(x.sum(every).numel(), 1)
    squares = (x - x.mean(every, keepdim=True)).square().sum(every, keepdim=keepdim)
    return torch.sqrt(squares / max(count - correction, 0))


def mean(x: torch.Tensor, dim: Any, keepdim: bool = False) -> torch.Tensor:
    total = x.sum(dim, keepdim=keepdim)
    return total / (x.numel() // max(total.numel(), 1))


def elu(x: torch.Tensor, alpha: float) -> torch.Tensor:
    return torch.where(x > 0, x, alpha * (torch.exp(x) - 1))


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    return x @ weight.mT if bias is None else x @ weight.mT + bias


def log_softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    shifted = x - x.amax(dim, keepdim=True)
    return shifted - torch.log(torch.exp(shifted).sum(dim, keepdim=True))


def log_sum_exp(x: torch.Tensor, dim: int, keepdim: bool = False) -> torch.Tensor:
    peak = x.amax(dim, keepdim=True)
    peak = torch.where(torch.isinf(peak), 0.0, peak)
    total = torch.log(torch.exp(x - peak).sum(dim, keepdim=True)) + peak
    return total if keepdim else total.squeeze(dim)


def first_maximum(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    values = x.amax(dim, keepdim=True)
    hits = (x == values) | torch.isnan(x)
    count = torch.arange(x.shape[dim]).reshape([-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
    indices = torch.where(hits, count, x.shape[dim]).amin(dim, keepdim=True)
    return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))


def embedded(indices: Any, weight: Any, other: Any, **_: Any) -> torch.Tensor:
    return tanh(weight[indices] + other)


SCALE, ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717

# Each operator a second time, as a textbook formula: right in float64, and a right way to compute it in float32.
TEXTBOOK: dict[str, Callable[..., Any]] = {
    "abs": lambda x: torch.where(x < 0, -x, x),
    "add": lambda x, y, alpha=1: x + alpha * y,
    "add_gelu": lambda x, y, alpha=1, approximate="none": gelu(x + alpha * y, approximate),
    "addmm": lambda i, a, b, beta=1, alpha=1: (beta * i if beta else 0) + alpha * (a @ b),
    "argmax": lambda x, dim, keepdim=False: torch.argmax(x, dim, keepdim),
    "cos": lambda x: torch.sin(x + math.pi / 2),
    "div": lambda x, y, rounding_mode=None: {None: lambda q: q, "trunc": torch.trunc, "floor": torch.floor}[
        rounding_mode
    ](x / y),
    "elu_linear": lambda x, w, b=None, alpha=1.0, inplace=False: elu(linear(x, w, b), alpha),
    "erf": lambda x: torch.where(
        x.abs() < 1e-3,
        1.1283791670955126 * (x - x**3 / 3),
        torch.sign(x) * torch.special.gammainc(torch.tensor(0.5, dtype=x.dtype), x * x),
    ),
    "exp": lambda x: torch.exp2(x * 1.4426950408889634),
    "exp_mean": lambda x, dim=None, keepdim=False: mean(
        torch.exp(x), tuple(range(x.ndim)) if dim is None else dim, keepdim
    ),
    "gelu": gelu,
    "gelu_std": lambda x, dim=None, keepdim=False, correction=1, approximate="none": deviation(
        gelu(x, approximate), dim, correction, keepdim
    ),
    "leaky_relu": lambda x, negative_slope=0.01: F.leaky_relu(x, negative_slope),
    "log": lambda x: torch.log2(x) * 0.6931471805599453,
    "log1p": torch.log1p,
    "log_softmax_linear": lambda x, w, b=None, dim=-1: log_softmax(linear(x, w, b), dim),
    "logsumexp": log_sum_exp,
    "matmul": lambda a, b: torch.matmul(a, b),
    "matrix_vector_dot": changes_y(
        lambda A, x, y, alpha, beta: (new := alpha * (A * x).sum(-1) + beta * y, (new * x).sum())
    ),
    "max": first_maximum,
    "mean": mean,
    "mul": lambda x, y: x * y,
    "mul_relu": lambda x, y: torch.where(x * y <= 0, 0.0, x * y),
    "relu": lambda x: torch.where(x <= 0, 0.0, x),
    "relu_sqrt": lambda x: torch.sqrt(torch.where(x <= 0, 0.0, x)),
    "rsqrt": lambda x: 1 / torch.sqrt(x),
    "scaled_add_norm": changes_y(lambda y, x, alpha: (new := y + alpha * x, (new * new).sum().sqrt())),
    "sigmoid": lambda x: 1 / (1 + torch.exp(-x)),
    "silu_batch_norm": batch_norm,
    "softmax": softmax,
    "softmax_log": lambda x, dim=-1: x / x.sum(dim, keepdim=True),
    "softmax_mul": lambda x, other, dim: softmax(x, dim) * other,
    "sqrt": lambda x: torch.sqrt(x),
    "std": deviation,
    "sub": lambda x, y, alpha=1: x - alpha * y,
    "sum": lambda x, dim, keepdim=False: torch.sum(x, dim, keepdim),
    "tanh": tanh,
    "tanh_linear": lambda x, w, b=None: tanh(linear(x, w, b)),
    "adaptive_avg_pool2d": pooled,
    "fused_layer_norm_relu_linear": lambda x, w, b=None, eps=1e-5, **_: normalised(torch.relu(linear(x, w, b)), eps),
    "fused_add_mul_groupnorm": group_norm,
    "selu": lambda x: SCALE * (x.clamp(min=0) + (ALPHA * (torch.exp(x) - 1)).clamp(max=0)),
    "combined_activation": lambda x, w, v, b: tanh(1 / (1 + torch.exp(-(x @ w)))) * v + b,
    "fused_embedding_add_tanh": embedded,
}


def computed(task: Task, case: Case, double: bool) -> list[np.ndarray]:
    """Results of the textbook formula, then changed arguments, in the order of the expected quantities."""
    inputs = build(task, case)
    args, kwargs = inputs.arguments64() if double else inputs.arguments()
    out, _, inplace = kwargs.pop("out", None), kwargs.pop("dtype", None), kwargs.pop("inplace", False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = as_tuple(TEXTBOOK[task.name](*args, **kwargs))
    names = [tensor.name for tensor in inputs.form.tensors]
    changed = [args[names.index("y")]] if "y" in task.mutates else list(results) if out is not None or inplace else []
    if task.name == "elu_linear":
        changed = []
    return [tensor.numpy() for tensor in (*results, *changed)]


def agree(got: np.ndarray, quantity: Quantity) -> bool:
    """Equal where judged, but for float64 rounding of the terms; non-finite in the same places."""
    want = quantity.values
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(got - want) <= 1e-9 * (np.abs(want) + np.where(np.isfinite(want), quantity.scale, 0)) + 1e-300
    return bool((close | (got == want) | (np.isnan(got) & np.isnan(want)) | ~quantity.judged).all())


def wrong(quantity: Quantity, got: np.ndarray, bound: Any) -> bool:
    assert got.shape == quantity.values.shape
    return quantity.index != "value" and bool(wrong_elements(got, quantity, np.broadcast_to(bound, got.shape)).any())


@each_task
def test_references_agree_with_a_second_way(task: Task) -> None:
    """In float64, in every tier, for float32 inputs: values, shapes, non-finite places."""
    tested = [case for case in cases(task, dtype="float32") if math.prod(case.dims.values()) <= 40_000]
    for case in tested:
        if task.name == "addmm" and case.form == "ignored":
            continue
        for quantity, got in zip(quantities(task, case), computed(task, case, double=True), strict=True):
            assert got.shape == quantity.values.shape
            if quantity.index != "value":
                assert agree(got, quantity), (case, quantity.name)


@each_task
def test_textbook_float32_implementations_pass(task: Task) -> None:
    """Within the derived tolerance of both backends, in the tiers base, shapes and values."""
    rule = policy("derived")
    for case in cases(task, "base", "shapes", "values", dtype="float32"):
        inputs = build(task, case)
        for quantity, got in zip(quantities(task, case), computed(task, case, double=False), strict=True):
            bound = rule.bounds(task, inputs, quantity)
            assert not wrong(quantity, got, bound), (case, quantity.name)


@pytest.mark.parametrize("name", ["add", "matmul", "fused_add_mul_groupnorm", "combined_activation", "addmm"])
def test_broadcasts_and_ranks_are_judged_at_the_default_size(name: str) -> None:
    """Forms are part of what `shapes` means: at most one may be left out."""
    stated = {form.name for form in TASKS[name].forms if form.tier == "shapes"}
    reached = {case.form for case in portfolio(TASKS[name]) if case.tier in ("base", "shapes")}
    assert len(stated - reached) <= 1


@each_task
def test_every_case_has_a_reference(task: Task) -> None:
    for case in cases(task):
        for quantity in quantities(task, case):
            assert quantity.values.shape == quantity.scale.shape == quantity.judged.shape


@each_task
def test_base_cases_are_judged_in_full(task: Task) -> None:
    for dtype in task.dtypes:
        case = Case(task.id, task.forms[0].name, task.base_dims(), dtype)
        assert all(quantity.judged.all() for quantity in quantities(task, case))


@each_task
def test_eager_gives_the_stated_dtype_in_every_dtype(task: Task) -> None:
    for case in cases(task, "base", "shapes", "dtypes"):
        inputs = build(task, case)
        args, kwargs = inputs.arguments()
        found = as_tuple((task.eager or task.reference)(*args, **kwargs))
        for quantity, tensor in zip(REFERENCES.get(task, inputs).outputs, found, strict=True):
            assert tuple(tensor.shape) == quantity.values.shape
            assert str(tensor.dtype) == f"torch.{quantity.dtype}", case


# What the tolerance must not excuse.


KEYWORDS = {"std": {"dim": 1}}


@pytest.mark.parametrize(
    ("name", "faulty", "regime"),
    [
        ("gelu", lambda x: gelu(x, "tanh"), "uniform"),
        ("tanh", lambda x: (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x)), "uniform_1e3"),
        ("log1p", lambda x: torch.log(1 + x), "small"),
        ("erf", lambda x: torch.sign(x) * (1 - torch.exp(-1.27 * x * x)).sqrt(), "uniform"),
        ("erf", lambda x: 1 - (1 - torch.erf(x)), "small"),
        ("std", lambda x, dim: x.std(dim, correction=0), "uniform"),
        (
            "std",
            lambda x, dim: ((x * x).mean(dim) - x.mean(dim) ** 2).clamp(min=0).sqrt() * (256 / 255) ** 0.5,
            "offset",
        ),
        ("softmax", lambda x, dim: torch.exp(x) / torch.exp(x).sum(dim, keepdim=True), "large"),
        ("logsumexp", lambda x, dim: torch.log(torch.exp(x).sum(dim)), "large"),
        ("mean", lambda x, dim: x.sum(dim) / 255, "uniform"),
        ("tanh_linear", lambda x, w, b: torch.tanh(linear(x, w)), "uniform"),
        ("selu", lambda x: SCALE * F.elu(x), "uniform"),
        ("silu_batch_norm", lambda x, m, v, w, b: F.silu(F.batch_norm(x, m, v, b, w)), "uniform"),
    ],
)
def test_known_faults_fail(name: str, faulty: Callable[..., Any], regime: str) -> None:
    task = TASKS[name]
    keywords = KEYWORDS.get(name, {})
    case = Case(task.id, task.forms[0].name, task.base_dims(), "float32", regime=regime, keywords=keywords)
    inputs = build(task, case)
    args, kwargs = inputs.arguments()
    (quantity,) = reference(task, inputs).outputs
    assert wrong(quantity, faulty(*args, **kwargs).numpy(), policy("derived").bounds(task, inputs, quantity))


def test_destinations_hold_the_result() -> None:
    """`out` and, in the form that says so, the first argument are judged like the result; no other form may change it."""
    for name, form in (("add", "out"), ("relu", "inplace"), ("std", "out_dim"), ("matmul", "out")):
        task = TASKS[name]
        expected = reference(task, build(task, Case(task.id, form, task.base_dims(), "float32")))
        (changed,) = expected.mutated.values()
        assert np.array_equal(changed.values, expected.outputs[0].values)
        plain = reference(task, build(task, Case(task.id, task.forms[0].name, task.base_dims(), "float32")))
        assert not plain.mutated


def test_a_0d_argument_gives_a_0d_result() -> None:
    task = TASKS["exp"]
    (quantity,) = quantities(task, Case(task.id, "rank0", task.base_dims(), "bfloat16"))
    assert quantity.values.shape == ()


def test_functions_that_change_y_are_judged_by_both_results() -> None:
    task = TASKS["scaled_add_norm"]
    inputs = build(task, Case(task.id, "vectors", {"N": 3}, "float32", keywords={"alpha": 2}))
    y, x = (torch.from_numpy(buffer.values()) for buffer in inputs.tensors)
    expected = reference(task, inputs)
    assert np.allclose(expected.mutated["y"].values, (y + 2 * x).numpy())
    assert np.isclose(expected.outputs[0].values, torch.linalg.vector_norm(y + 2 * x))
