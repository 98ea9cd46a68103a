"""How good shrinking is: known faults with known minima, in few executions."""

import statistics

import numpy as np
import pytest
from answers import task_of

from oracle.case import Case, Replay
from oracle.errors import UsageError
from oracle.inputs import build
from oracle.minimize import NotFailing, minimize
from oracle.schema import Dim, Form, Keyword, Task, Tensor

X = Tensor("x", ("B", "S", "H"))
ROWS = task_of(
    lambda x: x,
    (X,),
    dims=("B", "S", "H"),
    regimes=("normal", "zeros", "large", "one_nan"),
    keywords=(Keyword("eps", 1e-5, (1e-3,)), Keyword("k", 1, (2,))),
)
NOT_AT_ZERO = task_of(lambda x: x, (X,), dims=("B", "S", "H"), regimes=("normal",))
START = Case(ROWS.id, "base", {"B": 8, "S": 16, "H": 1025}, "float16", layout="transposed", regime="normal")


class Counted:
    """A fault: a predicate on built inputs. Counts executions; refuses what the task refuses, as a runner does."""

    def __init__(self, task: Task, fails):
        self.task, self.fails, self.count, self.last = task, fails, 0, None

    def __call__(self, case):
        self.count, self.last = self.count + 1, case
        return self.fails(build(self.task, case))


def shrink(fails, task=ROWS, start=START, **options):
    failing = Counted(task, fails)
    return minimize(start, failing, task=task, **options), failing


def values(inputs, name="x"):
    array = next(buffer for buffer in inputs.tensors if buffer.name == name).values()
    return array.astype(np.float64) if array.dtype.kind != "i" else array


def pow2(n):
    return 1 << (n - 1).bit_length()


# fault → (sizes of the minimum, what its values must be)
FAULTS = {
    "always": (lambda i: True, (1, 1, 1), {0}),
    "lanes past the row": (lambda i: i.case.dims["H"] != pow2(i.case.dims["H"]), (1, 1, 3), {0}),
    "tail of 128": (lambda i: i.case.dims["H"] % 128 > 0 and i.case.dims["H"] > 128, (1, 1, 129), {0}),
    "past one block": (lambda i: i.case.dims["H"] > 1024, (1, 1, 1025), {0}),
    "past an odd size": (lambda i: i.case.dims["H"] > 700, (1, 1, 701), {0}),
    "second row": (lambda i: i.case.dims["B"] * i.case.dims["S"] > 1, None, {0}),
    "two sizes": (lambda i: i.case.dims["S"] > 2 and i.case.dims["H"] > 64, (1, 3, 65), {0}),
    "not at zero": (lambda i: (values(i) != 0).any(), (1, 1, 1), {1}),
    "negative": (lambda i: (values(i) < 0).any(), (1, 1, 1), {-1}),
    "above two": (lambda i: (values(i) > 2).any(), (1, 1, 1), None),
    "only float16": (lambda i: i.case.dtype == "float16" and (values(i) != 0).any(), (1, 1, 1), {1}),
    "only transposed": (lambda i: i.case.layout.startswith("transposed"), (1, 1, 1), {0}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_known_minima(name):
    fails, sizes, plain = FAULTS[name]
    case, failing = shrink(fails)
    assert fails(build(ROWS, case)), "the end fails"
    assert failing.count <= 40
    if sizes:
        assert tuple(case.dims.values()) == sizes
    assert case.dtype == ("float16" if name == "only float16" else "float32")
    assert case.layout == ("transposed:x" if name == "only transposed" else "contiguous")
    if plain:
        assert set(values(build(ROWS, case)).reshape(-1).tolist()) == plain


def test_values_keep_their_kind():
    """A token's JSON tells true, 1 and 1.0 apart."""
    tensors = (
        Tensor("x", ("R", "N")),
        Tensor("m", ("R", "N"), values="mask"),
        Tensor("i", ("R",), values="index", high="N"),
    )
    task = task_of(lambda x, m, i: x, tensors, regimes=("zeros",))
    start = Case(task.id, "base", {"R": 2, "N": 3}, "float32")
    case, _ = shrink(lambda i: (values(i) != 0).any(), task, start)
    assert {name: {type(value) for value in flat} for name, flat in case.values.items()} == {
        "x": {float}, "m": {bool}, "i": {int},
    }  # fmt: skip
    assert all(case.values["m"]), "a mask hides nothing where that does not matter"


def test_a_sum_of_rows_shrinks_to_two_elements():
    case, _ = shrink(FAULTS["second row"][0])
    assert sorted(case.dims.values()) == [1, 1, 2]


def test_a_rare_value_is_kept_alone():
    case, failing = shrink(lambda i: (values(i) > 2).any(), start=START.with_(dims={"B": 1, "S": 1, "H": 300}))
    found = values(build(ROWS, case)).reshape(-1)
    assert (found > 2).sum() == 1
    assert found.size == 1
    assert failing.count <= 40


def test_median_of_executions():
    counts = []
    for fails, _, _ in FAULTS.values():
        for dtype, dims in (("float32", (2, 3, 257)), ("float16", (8, 16, 1025)), ("bfloat16", (3, 7, 4097))):
            start = START.with_(dims=dict(zip("BSH", dims, strict=True)), dtype=dtype)
            if fails(build(ROWS, start)):
                counts.append(shrink(fails, start=start)[1].count)
    assert max(counts) <= 40
    assert statistics.median(counts) <= 20


def test_gelu_as_published_shrinks_to_two_elements_at_most():
    """Twice too large: shows wherever x is not 0."""
    case, _ = shrink(lambda i: (np.abs(values(i)) > 1e-4).any(), task=NOT_AT_ZERO)
    assert np.prod(list(case.dims.values())) <= 2


def test_value_dependent_faults_shrink_to_few_simple_values():
    start = START.with_(dims={"B": 1, "S": 2, "H": 33}, dtype="float32", regime="normal")

    def fails(i):  # a maximum that only looks at the first 8 of a row
        rows = values(i).reshape(-1, i.case.dims["H"])
        return bool((rows[:, :8].max(-1) < rows.max(-1)).any())

    case, failing = shrink(fails, start=start)
    left = values(build(ROWS, case)).reshape(-1)
    assert 9 <= case.dims["H"] <= 16  # other sizes draw other values, and those at 9 need not show it
    assert set(left.tolist()) <= {-1.0, 0.0, 1.0}
    assert failing.count <= 40


def test_keywords_go_back_to_their_defaults():
    start = START.with_(keywords={"eps": 1e-3, "k": 2})
    assert shrink(lambda i: True, start=start)[0].keywords == {}
    assert shrink(lambda i: i.keywords["k"] == 2, start=start)[0].keywords == {"k": 2}


def test_forms_go_back_to_the_base_form():
    forms = (Form("two", (X, Tensor("y", ("H",)))), Form("one", (X,)))
    task = task_of(lambda x, y=None: x, dims=("B", "S", "H"), forms=forms)
    start = START.with_(form="one")
    assert shrink(lambda i: True, task, start)[0].form == "two"
    assert shrink(lambda i: i.case.form == "one", task, start)[0].form == "one"


def test_sizes_keep_what_divides_all_of_the_tasks_own():
    task = task_of(lambda x: x, (Tensor("x", ("R", "D")),), dims=("R", "D"))
    object.__setattr__(task, "dims", {"R": Dim((1, 2), base=4), "D": Dim((8, 24, 64), base=64)})
    start = Case(task.id, "base", {"R": 2, "D": 64}, "float32")
    assert shrink(lambda i: True, task, start)[0].dims == {"R": 1, "D": 8}
    assert shrink(lambda i: i.case.dims["D"] > 20, task, start)[0].dims == {"R": 1, "D": 24}


def test_an_empty_size_stays_empty():
    task = task_of(lambda x: x, dims=("R", "N"))
    object.__setattr__(task, "dims", {"R": Dim((1, 2), base=4, empty=True), "N": Dim((1, 2), base=4)})
    start = Case(task.id, "base", {"R": 0, "N": 4}, "float32")
    assert shrink(lambda i: i.case.dims["R"] == 0, task, start)[0].dims == {"R": 0, "N": 1}


def test_masks_and_indices_shrink_too():
    tensors = (
        Tensor("x", ("R", "N")),
        Tensor("m", ("R", "N"), values="mask"),
        Tensor("i", ("R",), values="index", high="N"),
    )
    task = task_of(lambda x, m, i: x, tensors, regimes=("zeros",))
    start = Case(task.id, "base", {"R": 3, "N": 5}, "float32")
    case, _ = shrink(lambda i: not values(i, "m").all() and (values(i, "i") > 1).any(), task, start, budget=60)
    inputs = build(task, case)
    assert not values(inputs, "x").any()
    assert values(inputs, "i").max() > 1
    assert not values(inputs, "m").all()


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 15, 40])
def test_the_budget_holds_and_the_end_was_seen_to_fail(budget):
    for fails, _, _ in FAULTS.values():
        case, failing = shrink(fails, budget=budget)
        assert failing.count <= budget
        assert fails(build(ROWS, case))


def test_the_same_start_gives_the_same_end():
    for fails, _, _ in FAULTS.values():
        assert shrink(fails)[0] == shrink(fails)[0]


def test_a_start_that_does_not_fail_is_refused():
    with pytest.raises(NotFailing, match="does not fail"):
        shrink(lambda i: False)


def test_an_end_that_does_not_fail_again_is_not_shown():
    seen = []

    def once(inputs):  # fails the first time it sees a case: state in the candidate's process
        seen.append(inputs.case)
        return seen.count(inputs.case) == 1

    assert shrink(once)[0] == START


def test_what_the_task_refuses_counts_as_passing():
    def refusing(inputs):
        if inputs.case.dims["B"] < 4:
            raise UsageError("no such case")
        return True

    assert shrink(refusing)[0].dims == {"B": 4, "S": 1, "H": 1}


def test_a_trouble_of_ours_at_the_start_is_raised():
    def broken(inputs):
        raise UsageError("no such task")

    with pytest.raises(UsageError):
        shrink(broken)


def test_shrunk_values_survive_the_token():
    case, _ = shrink(lambda i: (values(i) < 0).any())
    again = Replay.from_token(Replay(case).token()).case
    assert again == case
    assert build(ROWS, again).digest == build(ROWS, case).digest
