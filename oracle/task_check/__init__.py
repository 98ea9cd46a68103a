"""Whether a task can tell right from wrong: answers that know nothing, and sums kept in half precision, must fail.

soundness      a task agrees with itself: its reference, `eager` and tolerance
stand_ins      zeros, constants and copies of an input, as Triton sources
accumulation   sums of 1024 and more terms kept in half precision
check          all of these on one task, judged like any candidate, with the naive checks beside
"""

from oracle.task_check.check import (
    ACCEPTED,
    BROKEN,
    INAPPLICABLE,
    NAMES,
    REJECTED,
    UNMEASURED,
    Finding,
    TaskCheck,
    check_task,
)

__all__ = [
    "ACCEPTED",
    "BROKEN",
    "INAPPLICABLE",
    "NAMES",
    "REJECTED",
    "UNMEASURED",
    "Finding",
    "TaskCheck",
    "check_task",
]
