"""How fast a candidate is beside eager PyTorch, on a GPU: one candidate at a time, and never on its own word alone."""

from oracle.speed.figures import Speed
from oracle.speed.stopwatch import Stopwatch, check_backend

__all__ = ["Speed", "Stopwatch", "check_backend"]
