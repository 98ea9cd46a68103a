"""Which of the mutants that the oracle misses compile to the same code as their originals.

One process per kernel file (`oracle.validation.compile_child`) compiles for sm_90, on any machine. A mutant is the same
program if on every case of the default portfolio it makes the same launches of the same code with the same arguments.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from oracle.corpus import Kernel, kernels
from oracle.corpus.mutate import mutants
from oracle.errors import InfrastructureError
from oracle.inputs import Inputs, build
from oracle.portfolio import portfolio
from oracle.schema import Task
from oracle.validation.bench import Bench, Job
from oracle.validation.mutation import missed
from oracle.worker.protocol import Argument, TensorBuffer

PART = "compiled"
SECONDS = 1500.0  # for one kernel file and its mutants
ROOT = Path(__file__).resolve().parents[2]


def jobs(mutated: Mapping[str, Mapping[str, Any]]) -> list[Job]:
    """One job per kernel file with mutants that the oracle misses; `mutated`: the records of `oracle.validation.mutation`
    by digest."""
    wanted: dict[str, list[str]] = defaultdict(list)
    for digest, record in mutated.items():
        if missed(record):
            wanted[f"{record['task']} {record['kernel']}"].append(digest)
    known = {f"{kernel.task} {kernel.name}": kernel for kernel in kernels()}
    return [Job(PART, name, partial(_compared, known[name], digests)) for name, digests in sorted(wanted.items())]


def _compared(kernel: Kernel, digests: list[str], bench: Bench) -> dict[str, Any]:
    """ "same": {digest: whether it is the same program} of one kernel file."""
    task = bench.tasks[kernel.task]
    sources = {mutant.digest: mutant.source for mutant in mutants(kernel.source)}
    order = {
        "entry": task.entry,
        "original": kernel.source,
        "mutants": {digest: sources[digest] for digest in digests},
        "calls": calls(task),
    }
    return {"task": kernel.task, "kernel": kernel.name, "same": same_programs(kernel.name, order)}


def same_programs(name: str, order: Mapping[str, Any]) -> dict[str, bool]:
    """What a comparing process says of an order (see `oracle.validation.compile_child`); InfrastructureError where it fails
    or takes too long."""
    with tempfile.TemporaryDirectory(prefix="agentloop-") as cache:
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        environment |= {"TRITON_CACHE_DIR": cache, "TRITON_DISABLE_LINE_INFO": "1", "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(
                [sys.executable, "-W", "ignore", "-m", "oracle.validation.compile_child"],
                input=json.dumps(order),
                capture_output=True,
                text=True,
                timeout=SECONDS,
                cwd=ROOT,
                env=environment,
            )
        except subprocess.TimeoutExpired:
            raise InfrastructureError(f"compiling the mutants of {name} took more than {SECONDS:.0f} s") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise InfrastructureError(f"compiling the mutants of {name} failed: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def calls(task: Task) -> list[dict[str, Any]]:
    """The calls of the default portfolio, the base case first, those of equal arguments but for their contents once."""
    found: dict[str, dict[str, Any]] = {}
    for case in portfolio(task):
        call = _described(build(task, case))
        found.setdefault(json.dumps(call, sort_keys=True), call)
    return list(found.values())


def _described(inputs: Inputs) -> dict[str, Any]:
    """A call's arguments as JSON: tensors by dtype, shape, strides, offset and size of their storage, in elements."""
    call = inputs.call()
    buffers = call.buffers()
    place = {id(buffer): index for index, buffer in enumerate(buffers)}

    def argument(value: Argument) -> dict[str, Any]:
        return {"tensor": place[id(value)]} if isinstance(value, TensorBuffer) else {"json": value}

    return {
        "tensors": [
            {
                "dtype": buffer.dtype,
                "shape": list(buffer.shape),
                "strides": list(buffer.strides),
                "offset": buffer.offset,
                "size": buffer.storage.nbytes // buffer.values().itemsize,
            }
            for buffer in buffers
        ],
        "positional": [argument(value) for value in call.positional],
        "keyword": {name: argument(value) for name, value in call.keyword.items()},
    }


def same(records: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Whether it is the same program, by digest, from this part's records."""
    return {digest: found for record in records for digest, found in record["same"].items()}
