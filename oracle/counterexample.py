"""A failing trial as evidence: shrunk, run once more in a fresh process, and written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import Any

from oracle.case import Case, Replay
from oracle.clock import spending
from oracle.compare import plain
from oracle.diagnose import diagnose
from oracle.inputs import Inputs
from oracle.integrity import run_check
from oracle.minimize import NotFailing, minimize
from oracle.runner import Runner, Trial
from oracle.schema import Task
from oracle.verdict import Counterexample

VALUES_SHOWN = 64  # elements of an input or output shown in full; larger ones show their worst elements only
SECONDS = 5.0  # for shrinking: a slow kernel is shown less shrunk
CLEAR = (
    16.0  # tolerances: an error that was larger stays larger than this, so that what is shown is no matter of rounding
)
NEVER_SHRUNK = ("timeout", "memory_limit", "tampering")  # slow or harmful to run again


def counterexample(
    runner: Runner, found: Trial, check: str, before: tuple[Case, ...], kind: str, *, shrink: bool = True
) -> Counterexample:
    """The evidence for a failure of `kind` that `check` found on a trial.

    Shrunk where the case fails on its own; a failure that needs earlier calls keeps them, and its case as it is.
    """
    used = runner.executions
    shown = found
    if shrink and not before and kind not in NEVER_SHRUNK:
        shown = _shrunk(runner, found, check, kind)
    replay = Replay(shown.case, runner.tolerance.name, runner.backend.name, check, before)
    pattern = diagnosis(shown, runner.task)
    if pattern is None and shown is not found and (pattern := diagnosis(found, runner.task)):
        pattern = f"on the input as it was found: {pattern}"
    return Counterexample(
        token=replay.token(),
        case=shown.case.to_json(),
        **_sides(shown),
        diagnosis=pattern,
        executions=runner.executions - used,
        original=None if shown is found else {"case": found.case.to_json(), **_sides(found)},
    )


def _shrunk(runner: Runner, found: Trial, check: str, kind: str) -> Trial:
    """The trial of the simplest case that fails in the same way, in a process of its own; the one as found where it does
    not fail again."""
    shown = [found]
    clear = CLEAR if (_ratio(found) or 0.0) >= CLEAR else 0.0

    def fails(trial: Trial) -> bool:
        if trial.failure is None or trial.failure.kind != kind:
            return False
        ratio = _ratio(trial)
        return ratio is None or ratio >= clear

    def verified(case: Case) -> bool:
        trial = run_check(runner.fresh(), case, check)
        shown.append(trial)
        return fails(trial)

    with suppress(NotFailing), spending("minimize"):
        case = minimize(
            found.case,
            lambda case: fails(run_check(runner, case, check)),
            task=runner.task,
            seconds=SECONDS,
            verify=verified,
        )
        return shown[-1] if shown[-1].case == case else found
    return found


def _ratio(trial: Trial) -> float | None:
    """The largest finite error in tolerances, None where there is none."""
    return trial.comparison.stats.get("max_ratio") if trial.comparison else None


def diagnosis(trial: Trial, task: Task) -> str | None:
    """The pattern of a numerical failure in words, or None where it is not known."""
    if trial.comparison is None or not trial.outcome.outputs:
        return None
    return diagnose(task, trial.inputs, trial.expected, trial.outcome)


def _sides(trial: Trial) -> dict[str, Any]:
    return {
        "inputs": shown_inputs(trial.inputs),
        "got": shown_outputs(trial, "got"),
        "expected": shown_outputs(trial, "expected"),
        "stats": dict(trial.comparison.stats) if trial.comparison else {},
    }


def shown_inputs(inputs: Inputs) -> dict[str, Any]:
    """Each input as {"shape", "dtype", "strides", "values"}; values null where there are too many to show, with "constant"
    then where all are one number."""
    shown = {}
    for tensor in inputs.tensors:
        values = tensor.values()
        array = {"shape": list(tensor.shape), "dtype": tensor.dtype, "strides": list(tensor.strides)}
        shown[tensor.name] = array | {"values": _values(values)}
        if values.size > VALUES_SHOWN and (values == values.flat[0]).all():
            shown[tensor.name]["constant"] = plain(values.flat[0])
    return shown


def shown_outputs(trial: Trial, side: str) -> list[Mapping[str, Any]]:
    """Outputs as {"shape", "dtype", "values", "worst"} for one side, "got" or "expected"."""
    worst = trial.comparison.worst if trial.comparison else []
    known: Sequence[tuple[str, tuple[int, ...], Any]]
    if side == "got":
        known = [(output.dtype, output.shape, output) for output in trial.outcome.outputs]
    else:
        known = [(quantity.dtype, quantity.values.shape, quantity.values) for quantity in trial.expected.outputs]
    return [
        {
            "shape": list(shape),
            "dtype": dtype,
            "values": _output(output, shape),
            "worst": [{"index": w["index"], side: w[side]} for w in worst if w.get("output", 0) == place],
        }
        for place, (dtype, shape, output) in enumerate(known)
    ]


def _output(output: Any, shape: Sequence[int]) -> list[Any] | None:
    if prod(shape) > VALUES_SHOWN:
        return None
    try:
        return _values(output.array() if hasattr(output, "array") else output)
    except (KeyError, ValueError):  # no dtype of ours, or bytes that do not fit
        return None


def _values(array: Any) -> list[Any] | None:
    """A small array as a flat list of JSON values; non-finite floats as "nan", "inf", "-inf"."""
    return [plain(value) for value in array.reshape(-1)] if array.size <= VALUES_SHOWN else None
