"""Runs a naive profile: draws its inputs, calls the candidate in a session of its own, applies the published rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from oracle.clock import spending
from oracle.dtypes import NUMPY, torch_dtype
from oracle.inputs import arrange, decode
from oracle.layouts import place
from oracle.naive.profiles import PROFILES, Profile
from oracle.schema import Form, Task, Tensor, as_tuple, shape_entry
from oracle.verdict import FAIL, PASS, UNJUDGED, NaiveResult
from oracle.worker.protocol import RAISED, RETURNED, Backend, Call, Outcome, Session
from oracle.worker.protocol import TIMEOUT as TIMED_OUT

SEED = 42  # KernelBench's and GEAK's
TIMEOUT = 60.0  # seconds a call may take
HURRIED = 10.0  # the same once a call of the candidate's has timed out
EXAMPLE_KEYWORDS = 3  # example calls with a keyword off its default, at most


@dataclass(frozen=True)
class NaiveCall:
    """One call of a naive check: form, sizes and keyword values."""

    form: Form
    dims: Mapping[str, int]
    keywords: Mapping[str, Any]


def run_naive(backend: Backend, task: Task, source: str, *, seed: int = 0) -> dict[str, NaiveResult]:
    """Every profile's verdict on a source. `seed` is unused by the published procedures, which fix their own."""
    with spending("naive"), _Sessions(backend, source, task.entry) as sessions:
        return {name: _run_profile(sessions, task, profile) for name, profile in PROFILES.items()}


def run_profile(
    backend: Backend, task: Task, source: str, profile: Profile, calls: list[NaiveCall] | None = None
) -> NaiveResult:
    """One profile's verdict; `calls` replaces the profile's own (a published test's shapes, say)."""
    with _Sessions(backend, source, task.entry) as sessions:
        return _run_profile(sessions, task, profile, calls)


class _Sessions:
    """The processes that the profiles of one candidate run in. A process serves further profiles, since starting a GPU
    costs more than the calls, as long as nothing which earlier calls left behind (answers kept, a lost device) can be held
    against a candidate: a failure counts in a process of the profile's own, or where every call so far raised the same."""

    def __init__(self, backend: Backend, source: str, entry: str) -> None:
        self._open = lambda: backend.open(source, entry)
        self._session: Session | None = None
        self.used = False  # whether an earlier profile ran in the present one
        self.raised: set[str] = set()  # what its calls raised; "" for one that did not
        self.timeout = TIMEOUT

    def __enter__(self) -> _Sessions:
        return self

    def __exit__(self, *_: object) -> None:
        self.fresh()

    def fresh(self) -> None:
        if self._session is not None:
            self._session.close()
        self._session, self.used, self.raised = None, False, set()

    def call(self, call: Call) -> Outcome:
        if self._session is None:
            self._session = self._open()
        outcome = self._session.call(call, timeout=self.timeout)
        self.raised.add(f"{outcome.error_kind}: {outcome.message}" if outcome.status == RAISED else "")
        if outcome.status == TIMED_OUT:  # one endless kernel is waited for once, not six times
            self.timeout = HURRIED
        return outcome

    def shared(self, passed: bool) -> bool:
        """Whether a profile's result stands although earlier ones ran in the present process, and it may serve the next:
        every call returned and the profile passed, or every call raised, and the same."""
        return self.raised == {""} if passed else len(self.raised) == 1 and "" not in self.raised


def _run_profile(
    sessions: _Sessions, task: Task, profile: Profile, calls: list[NaiveCall] | None = None
) -> NaiveResult:
    used = sessions.used
    result = _trials(sessions, task, profile, calls)
    if sessions.shared(result.status == PASS):
        sessions.used = True
        return result
    sessions.fresh()
    if not used:
        return result
    result = _trials(sessions, task, profile, calls)
    sessions.fresh()
    return result


def _trials(sessions: _Sessions, task: Task, profile: Profile, calls: list[NaiveCall] | None) -> NaiveResult:
    torch.manual_seed(SEED)
    for trial in range(profile.trials):
        for call in calls or naive_calls(task, profile):
            generator = torch.Generator().manual_seed(_trial_seed(trial, profile.trials))
            tensors = draw(call, profile.draw, generator)
            outcome = sessions.call(_call(task, call, tensors))
            if outcome.error_kind == "unsupported":
                return NaiveResult(UNJUDGED, outcome.message)
            failure = _judge_call(task, profile, call, tensors, outcome)
            if failure is not None:
                return NaiveResult(FAIL, failure if profile.trials == 1 else f"trial {trial + 1}: {failure}")
    return NaiveResult(PASS, f"{profile.trials} trial{'s' if profile.trials > 1 else ''} passed")


def first_calls(task: Task, profile: Profile) -> Iterator[tuple[Call, Any]]:
    """The calls of a profile's first trial, and what `eager` gives on each."""
    for call in naive_calls(task, profile):
        tensors = draw(call, profile.draw, torch.Generator().manual_seed(_trial_seed(0, profile.trials)))
        with torch.no_grad():
            yield _call(task, call, tensors), _eager(task, call, tensors)


def naive_calls(task: Task, profile: Profile) -> list[NaiveCall]:
    """The calls of a profile on a task: the base form at its fixed shape, or small examples from the signature."""
    base = task.forms[0]
    plain = {**_defaults(task), **base.keywords}
    if profile.calls == "fixed":
        return [NaiveCall(base, task.naive_dims(), plain)]
    calls = [NaiveCall(base, task.base_dims(), plain)]
    if profile.rule == "assert_close":
        calls += [
            NaiveCall(f, task.base_dims(), {**_defaults(task), **f.keywords}) for f in task.forms[1:] if plain_form(f)
        ]
    for keyword in task.keywords[:EXAMPLE_KEYWORDS]:
        values = base.keyword_values.get(keyword.name, keyword.values)
        if values and keyword.name not in base.keywords:
            calls.append(NaiveCall(base, task.base_dims(), {**plain, keyword.name: values[0]}))
    return calls


def plain_form(form: Form) -> bool:
    """Whether all floating tensors of a form have the case's dtype."""
    return all(tensor.dtype is None or tensor.values in ("index", "mask") for tensor in form.tensors)


def draw(call: NaiveCall, how: str, generator: torch.Generator) -> dict[str, torch.Tensor]:
    """Inputs as a benchmark draws them, float32 on the CPU: "rand" in [0, 1), "randn", or "uniform10" in [-10, 10)."""
    return {tensor.name: _draw_tensor(tensor, call, how, generator) for tensor in call.form.tensors}


def _draw_tensor(tensor: Tensor, call: NaiveCall, how: str, generator: torch.Generator) -> torch.Tensor:
    sizes = tensor.sizes(call.dims)
    if tensor.values == "index":
        assert tensor.high is not None
        return torch.randint(0, max(1, shape_entry(tensor.high, call.dims)), sizes, generator=generator)
    if tensor.values == "mask":
        return torch.rand(sizes, generator=generator) < 0.75
    dtype = torch_dtype(tensor.dtype or "float32")
    if how == "randn":
        values = torch.randn(sizes, generator=generator)
    else:
        values = torch.rand(sizes, generator=generator)
        values = values * 20 - 10 if how == "uniform10" else values
    return (values.abs() if tensor.values == "positive" else values).to(dtype)


def _judge_call(
    task: Task, profile: Profile, call: NaiveCall, tensors: dict[str, torch.Tensor], outcome: Outcome
) -> str | None:
    """None if the call passes the profile's rule, else why not, in one line."""
    if outcome.status != RETURNED:
        return f"{outcome.error_kind or outcome.status}: {outcome.message}".strip(": ")
    if profile.rule == "runs":
        return None
    with torch.no_grad():
        expected = as_tuple(_eager(task, call, tensors))
    got = _outputs(outcome)
    if got is None or len(got) != len(expected):
        return "the structure of the result differs"
    for want, have in zip(expected, got, strict=True):
        failure = _rule(profile, want, have)
        if failure is not None:
            return failure
    return None


def _rule(profile: Profile, want: torch.Tensor, have: torch.Tensor) -> str | None:
    if profile.rule == "assert_close":
        try:
            torch.testing.assert_close(have, want, atol=profile.atol, rtol=profile.rtol, equal_nan=True)
        except AssertionError as error:
            return str(error).strip().splitlines()[0]
        return None
    if want.shape != have.shape:
        return f"output shape {list(have.shape)}, expected {list(want.shape)}"
    try:
        close = torch.allclose(want, have, atol=profile.atol, rtol=profile.rtol)
    except RuntimeError as error:  # as published: only allclose itself notices a wrong dtype
        return str(error).splitlines()[0]
    if close:
        return None
    worst = (want.double() - have.double()).abs().max().item() if want.numel() else 0.0
    return f"not close at atol={profile.atol:g}, rtol={profile.rtol:g}: largest difference {worst:.3g}"


def _outputs(outcome: Outcome) -> list[torch.Tensor] | None:
    """Returned tensors, or None where one has no shape or dtype that torch could compare."""
    tensors = []
    for raw in outcome.outputs:
        try:
            dtype = torch_dtype(raw.dtype)
            tensors.append(torch.frombuffer(bytearray(raw.data), dtype=dtype).reshape(raw.shape))
        except (KeyError, ValueError, RuntimeError):
            if raw.dtype in NUMPY and 0 in raw.shape:
                tensors.append(torch.empty(raw.shape, dtype=torch_dtype(raw.dtype)))
            else:
                return None
    return tensors if outcome.structure in ("tensor", "tuple") else None


def _eager(task: Task, call: NaiveCall, tensors: dict[str, torch.Tensor]) -> Any:
    args, kwargs = arrange(task, call.form, tensors, call.keywords)
    return (task.eager or task.reference)(*map(decode, args), **{k: decode(v) for k, v in kwargs.items()})


def _call(task: Task, call: NaiveCall, tensors: dict[str, torch.Tensor]) -> Call:
    buffers = {
        name: place(name, str(tensor.dtype).removeprefix("torch."), _array(tensor), "contiguous")
        for name, tensor in tensors.items()
    }
    return Call(*arrange(task, call.form, buffers, call.keywords))


def _array(tensor: torch.Tensor) -> Any:
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(NUMPY["bfloat16"])
    return tensor.numpy()


def _defaults(task: Task) -> dict[str, Any]:
    return {keyword.name: keyword.default for keyword in task.keywords}


def _trial_seed(trial: int, trials: int) -> int:
    """Seed of a trial as KernelBench draws them: integers from a generator seeded 42."""
    generator = torch.Generator().manual_seed(SEED)
    seeds = torch.randint(0, 2**32 - 1, (trials,), generator=generator)
    return int(seeds[trial].item())
