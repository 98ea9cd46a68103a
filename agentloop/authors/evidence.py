"""What the offline author reads out of a feedback message, and the natures of the mistakes it makes.

Both are put in the same few words (`NATURES`), so that a failure can point at a mistake: a wrong last block suspects
bounds and padding, an ignored stride suspects addressing. Only the text of the message is used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Mutation operators by the nature of the mistake; an operator may have two.
NATURES: dict[str, tuple[str, ...]] = {
    "bounds": (
        "mask_dropped",
        "mask_part_dropped",
        "mask_joined_by_or",
        "bound_moved",
        "grid_short",
        "loop_shortened",
        "block_fixed",
        "block_mismatched",
        "size_fixed",
        "program_id_changed",
    ),
    "padding": ("other_changed", "other_dropped", "mask_dropped"),
    "addressing": (
        "offset_dropped",
        "stride_dropped",
        "stride_swapped",
        "stride_assumed",
        "contiguous_dropped",
        "output_like_input",
        "arguments_swapped",
        "grid_swapped",
    ),
    "precision": ("cast_dropped", "cast_narrowed", "accumulator_rounded", "reduction_rounded", "dtype_changed"),
    "special": ("nan_lost", "choice_fixed", "comparison_changed", "update_dropped"),
    "keyword": ("keyword_ignored", "default_changed", "eps_dropped", "eps_moved"),
    "formula": (
        "operator_swapped",
        "operand_dropped",
        "operands_swapped",
        "function_swapped",
        "function_dropped",
        "axis_changed",
        "constant_changed",
        "sign_dropped",
        "accumulator_assigned",
        "update_dropped",
        "branch_fixed",
    ),
    "host": ("dtype_changed", "view_for_reshape", "output_like_input"),
}

# How much a message says, from nothing to a shrunk case with its pattern.
VERDICT, NAIVE_PASS, NAIVE_FAIL, ERROR, CASE, SHRUNK = "verdict", "naive pass", "naive fail", "error", "case", "shrunk"

# (pattern in the diagnosis, what it suspects), the first match counts.
_PATTERNS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("strides? (is|are) ignored|read as contiguous|transposed reference", ("addressing",)),
    ("masked lanes", ("padding", "bounds")),
    ("partial block|left out|never written|only index|only rows? |shifted|diagonal", ("bounds", "addressing")),
    ("is ignored", ("keyword", "formula")),
    ("NaN|infinit", ("special", "padding")),
    ("nearly right|bits of its terms", ("precision",)),
    ("only where .* [≥≤]", ("special", "precision", "formula")),
    ("times the reference|half the reference|a quarter of|sign flipped|the reference [+−]", ("formula",)),
)

_TIERS: dict[str, tuple[str, ...]] = {
    "base": ("formula", "addressing", "bounds"),
    "shapes": ("bounds", "padding"),
    "dtypes": ("precision",),
    "values": ("special", "padding", "formula"),
    "keywords": ("keyword",),
    "empty": ("host",),
    "layouts": ("addressing",),
}

_KINDS: dict[str, tuple[str, ...]] = {
    "nonfinite_mismatch": ("special", "padding"),
    "out_of_bounds": ("bounds", "addressing"),
    "unwritten_output": ("bounds",),
    "wrong_shape": ("host",),
    "wrong_dtype": ("host", "precision"),
    "compile_error": ("precision", "formula"),
}


@dataclass(frozen=True)
class Evidence:
    """`level` says how much was told; `suspects` are natures of mistakes that it points to; `lines` are line numbers of
    the author's own file that a traceback names; `call` is the signature that a failing case is about, if any."""

    level: str
    suspects: frozenset[str] = frozenset()
    lines: frozenset[int] = frozenset()
    call: str | None = None


def natures(operator: str) -> frozenset[str]:
    """Natures of a mutation operator's mistakes; what is listed nowhere counts as a wrong formula."""
    return frozenset(n for n, operators in NATURES.items() if operator in operators) or frozenset({"formula"})


def read(message: str) -> Evidence:
    """The evidence in a feedback message. What it cannot make out counts as the bare word that the answer failed."""
    naive = re.search(r"^Result: (\w+)", message, re.MULTILINE)
    if naive:
        return Evidence(NAIVE_PASS if naive[1] == "pass" else NAIVE_FAIL)
    failure = re.search(r"^Failure: (\w+)(?: \(tier (\w+)\))?", message, re.MULTILINE)
    if failure is None:
        return Evidence(VERDICT)
    kind, tier = failure[1], failure[2] or ""
    traceback = message.partition("Traceback:")[2].partition("failing input")[0]
    lines = frozenset(int(number) for number in re.findall(r"\b(?:line |at )(\d{1,6})\b", traceback))
    suspects = set(_KINDS.get(kind, _TIERS.get(tier, ())))
    shrunk = "Smallest failing input found:" in message
    if not shrunk and "Failing input:" not in message:
        return Evidence(ERROR, frozenset(suspects), lines)
    suspects |= _of_case(message)
    pattern = re.search(r"^Pattern: (.*)$", message, re.MULTILINE)
    if pattern:
        told = next((natures for text, natures in _PATTERNS if re.search(text, pattern[1])), ())
        suspects = set(told) or suspects
    call = re.search(r"^- call: `(.*)`", message, re.MULTILINE)
    return Evidence(SHRUNK if shrunk else CASE, frozenset(suspects), lines, call[1] if call else None)


def _of_case(message: str) -> set[str]:
    """What the case itself points to: the one thing in which it differs from a plain one."""
    fields = dict(re.findall(r"^- (tier|sizes|dtype|layout|values|keywords): (.*)$", message, re.MULTILINE))
    suspects = set(_TIERS.get(fields.get("tier", ""), ()))
    if fields.get("layout", "contiguous") != "contiguous":
        suspects.add("addressing")
    if fields.get("keywords", "defaults") != "defaults" and fields.get("tier") == "keywords":
        suspects.add("keyword")
    if re.match(r"(nonfinite|one_nan|one_inf|infinite_rows)", fields.get("values", "")):
        suspects |= {"special", "padding"}
    return suspects
