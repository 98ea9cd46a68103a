"""Eager PyTorch on the same inputs, in the judge's own process: a task's own code runs nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from oracle.errors import InfrastructureError
from oracle.inputs import Inputs
from oracle.speed.floor import Peaks
from oracle.worker.repeating import repeat


class Baseline:
    """A task's `eager` (or its reference in the test dtype) on the GPU. TF32 is on where the task allows it to candidates.

    `operations`: of the products that it makes, as torch counts them; elementwise work is not counted.
    """

    def __init__(self, inputs: Inputs) -> None:
        self.inputs, task = inputs, inputs.task
        self._function = task.eager or task.reference
        properties = torch.cuda.get_device_properties(0)
        self.peaks = Peaks.of(properties, inputs.case.dtype)
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            self._call(*self._arguments())
        self.operations = int(counter.get_total_flops())

    def measure(self, offsets: Sequence[int]) -> tuple[list[float], list[float]]:
        """Microseconds per repetition: on the GPU, and by the host's clock."""
        args, kwargs = self._arguments()
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor)]
        before = torch.backends.cuda.matmul.allow_tf32
        torch.backends.cuda.matmul.allow_tf32 = self.inputs.task.tf32
        try:
            with torch.no_grad():
                _, (event_us, host_us, _) = repeat(tensors, offsets, lambda: self._call(args, kwargs), lambda: 0)
        except RuntimeError as error:
            raise InfrastructureError(
                f"task {self.inputs.task.id}: its own `eager` fails on the GPU: {error}"
            ) from error
        finally:
            torch.backends.cuda.matmul.allow_tf32 = before
        return event_us, host_us

    def _call(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return self._function(*args, **kwargs)

    def _arguments(self) -> tuple[list[Any], dict[str, Any]]:
        args, kwargs = self.inputs.arguments()
        return [_placed(value) for value in args], {name: _placed(value) for name, value in kwargs.items()}


def _placed(value: Any) -> Any:
    return value.cuda() if isinstance(value, torch.Tensor) else value
