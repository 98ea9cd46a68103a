"""What the parts of an attempt's line that stay dictionaries must hold, so that every reader may rely on it.

A line that lacks something of this is not an attempt, and is named where it is read: no report meets it half-way.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, NonNegativeInt, TypeAdapter

from oracle.sanitizer import Looked
from oracle.schema import TIERS
from oracle.verdict import Failure

Status = Literal["pass", "fail", "unjudged"]


class Worst(BaseModel):
    index: list[int]


class Array(BaseModel):
    """An input or an output as it is shown."""

    shape: list[NonNegativeInt]
    dtype: str
    strides: list[int] | None = None
    values: list[Any] | None = None  # flat; None where they are too many
    constant: Any = None  # the one value of an array whose values are too many
    worst: list[Worst] | None = None


class CaseShown(BaseModel):
    form: str = ""
    dims: dict[str, int] = {}
    dtype: str = ""
    layout: str = ""
    regime: str = ""
    tier: str = ""
    keywords: dict[str, Any] = {}
    values: dict[str, list[Any]] | None = None


class Example(BaseModel):
    """As much of a `Counterexample.to_json()` as is read again."""

    token: str  # or the file of the run folder that holds one too long for a line
    case: CaseShown = CaseShown()
    inputs: dict[str, Array] = {}
    got: list[Array] = []
    expected: list[Array] = []
    stats: dict[str, Any] = {}
    diagnosis: str | None = None
    original: dict[str, Any] | None = None


class Naive(BaseModel):
    status: Status
    reason: str


def _holds(kind: Any) -> AfterValidator:
    """Refuses a dictionary that lacks something of `kind` or holds it as another type; the dictionary stays as it is."""
    adapter = TypeAdapter(kind)

    def check(value: Any) -> Any:
        adapter.validate_python(value)
        return value

    return AfterValidator(check)


def _known(tier: str) -> str:
    if tier not in TIERS:
        raise ValueError(f"unknown tier {tier!r}")
    return tier


Tiers = dict[Annotated[str, AfterValidator(_known)], Status]
FailurePart = Annotated[dict[str, Any], _holds(Failure)]
NaivePart = Annotated[dict[str, str], _holds(Naive)]
ExamplePart = Annotated[dict[str, Any], _holds(Example)]
LookedPart = Annotated[dict[str, Any], _holds(Looked)]
