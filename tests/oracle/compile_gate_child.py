"""Checks the entries named on the command line in one process and prints a JSON object of reports."""

import dataclasses
import json
import os
import sys
import tempfile

import torch

from oracle import compile_gate

compile_gate.install()
path, *entries = sys.argv[1:]
calls = [((torch.rand(100),), {})]
print(json.dumps({e: dataclasses.asdict(compile_gate.check(path, e, calls)) for e in entries}))
print(json.dumps(dataclasses.asdict(compile_gate.check(path, "right", calls, budget=0.0))))

with tempfile.NamedTemporaryFile() as no_folder:
    os.environ["TRITON_CACHE_DIR"] = no_folder.name
    print(json.dumps(dataclasses.asdict(compile_gate.check(path, "right", calls))))
