"""The default portfolio: which cases judge a candidate, ordered by what is likely to reveal most for the fewest executions.

Proposals are made as changes from the base case: in each tier first one thing changed, then combinations. The tier of a
case follows from what it changes (the latest of their tiers), so a failure is booked where it belongs. Of the proposals at
most `limit` per dtype are chosen, in turn from each tier. What is drawn (which boundary, which combination) depends on the
seed; that a boundary of each kind is there does not.
"""

from __future__ import annotations

from itertools import zip_longest

from oracle.case import Case
from oracle.errors import UsageError
from oracle.proposals import Proposer
from oracle.schema import DOMAINS, FULL_TIERS, Task
from oracle.tiers import changes

# Cases that a tier gives in one turn of the choice; `shapes` one more for every two forms beyond FEW_FORMS.
SHARES = {"base": 1, "shapes": 3, "dtypes": 3, "values": 4, "keywords": 2, "empty": 1, "layouts": 2}
FEW_FORMS = 2


def portfolio(
    task: Task,
    *,
    domain: str = "full",
    seed: int = 0,
    stream: str = "score",
    limit: int = 40,
    exclude: frozenset[str] = frozenset(),
) -> list[Case]:
    """Cases of a domain, tier by tier, one-change cases first; at most `limit` of the full domain per dtype.

    The core domain's cases are those of the full one, and a smaller limit's those of a larger one. A case whose input
    digest is in `exclude` is drawn again, at other sizes if need be, and left out if nothing new can be drawn.
    """
    if domain not in DOMAINS:
        raise UsageError(f"--domain {domain!r}: must be one of {', '.join(DOMAINS)}")
    if limit < 1:
        raise UsageError(f"--cases {limit}: must be at least 1")
    proposer = Proposer(task, seed, stream)
    proposals = proposer.all()
    chosen = [
        case for dtype in task.dtypes for case in _choose([c for c in proposals if c.dtype == dtype], task, limit)
    ]
    chosen.sort(key=lambda case: (FULL_TIERS.index(case.tier), len(changes(task, case)) > 1))
    kept = [case for case in chosen if case.tier in DOMAINS[domain]]
    return [fresh for case in kept if (fresh := proposer.outside(case, exclude) if exclude else case) is not None]


def _choose(proposals: list[Case], task: Task, limit: int) -> list[Case]:
    """At most `limit`, in turns: each tier gives its share of a turn, one-change cases and combinations mixed."""
    shares = SHARES | {"shapes": SHARES["shapes"] + max(0, _shape_forms(task) - FEW_FORMS) // 2}
    lanes = {tier: _mix([case for case in proposals if case.tier == tier], task) for tier in FULL_TIERS}
    order: list[Case] = []
    while any(lanes.values()):
        for tier, lane in lanes.items():
            order += lane[: shares[tier]]
            del lane[: shares[tier]]
    taken = {case.index for case in order[:limit]}
    return [case for case in proposals if case.index in taken]


def _shape_forms(task: Task) -> int:
    """How many ways to call the operator belong to tier `shapes`, base included."""
    return sum(form.tier == "shapes" for form in task.forms)


def _mix(cases: list[Case], task: Task) -> list[Case]:
    """Two one-change cases, then a combination, and so on."""
    counts = [len(changes(task, case)) for case in cases]
    single = [case for case, count in zip(cases, counts, strict=True) if count <= 1]
    several = [case for case, count in zip(cases, counts, strict=True) if count > 1]
    groups = zip_longest(single[0::2], single[1::2], several)
    return [case for group in groups for case in group if case is not None]
