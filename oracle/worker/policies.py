"""What each backend's processes need of the machine. Kept apart from the devices: the judge and the probe of the layers
must know it before torch is imported."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from glob import glob

from oracle.worker.isolation import GIB, MIB, Policy

# Triton compiles in the candidate's process: gcc builds its launcher and ptxas its kernels.
_COMPILER = frozenset({"fork", "vfork", "execve", "clone", "chmod", "fchmod", "fchmodat", "setpgid", "tkill"})
# CUDA starts only where it may open a socket; the network namespace must see to it that this leads nowhere.
_DRIVER = frozenset({"socket", "bind", "listen"})

# What lies below /dev but for links and for what outlives a process: a file left there would tell the next one.
_KEEPING = {"/dev/shm", "/dev/mqueue", "/dev/hugepages"}
_DEVICES = tuple(path for path in sorted(glob("/dev/*")) if path not in _KEEPING and not os.path.islink(path))

POLICIES = {
    "interpreter": Policy(),
    "compiler": Policy(makes_files=True),  # Triton keeps what it compiled
    "cuda": Policy(
        read=("/usr", "/etc/alternatives", "/opt", "/sys", "/bin", "/sbin", sys.prefix, sys.base_prefix),
        write=(*_DEVICES, "/proc"),
        listed=("/dev",),
        shared_memory=True,
        allow=_COMPILER | _DRIVER,
        memory=None,  # CUDA reserves addresses by the terabyte
        resident=24 * GIB,
        file_bytes=256 * MIB,
        descriptors=4096,
        makes_files=True,
        shared_cache=True,
        cache_bytes=512 * MIB,
        own_proc=True,
    ),
}

# Under compute-sanitizer (`oracle.sanitizer`) CUDA has started before these are laid on. `descriptors` would close what
# the tool and the driver hold open; as another user than the one that started it, the tool hangs as it reports an error
# (seen with version 2025.3). Since root may be that user, nothing of the machine may be written but the GPU's own devices.
SANITIZED = replace(
    POLICIES["cuda"],
    allow=_COMPILER,
    write=tuple(sorted(glob("/dev/nvidia*"))),
    own_proc=False,
    shared_cache=False,
    shared_memory=False,
)
LEFT_OUT = frozenset({"descriptors", "user", "network_namespace", "pid_namespace"})

ON_ONE_GPU = 8  # processes: with more, no more of them start in a second (measured on an H200)


def side_by_side(backend: str) -> int:
    """How many candidates are judged at once where nobody says: one per core that this process may use."""
    cores = len(os.sched_getaffinity(0))
    return min(cores, ON_ONE_GPU) if backend == "cuda" else cores
