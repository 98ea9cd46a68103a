"""Tokens: a case survives the round trip through one line of text, and a damaged line is refused in one line."""

import base64
import hashlib
import json
import zlib

import pytest
from example_tasks import SOFTMAX
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle.case import CASE_VERSION, TOKEN_LIMIT, Case, Replay
from oracle.errors import UsageError
from oracle.inputs import build
from oracle.portfolio import portfolio
from oracle.tiers import base_case

json_values = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**40), 2**40), st.floats(allow_nan=False), st.text(max_size=8)
)
cases = st.builds(
    Case,
    task=st.sampled_from(["ops/softmax", "seed/matmul"]),
    form=st.text(max_size=6),
    dims=st.dictionaries(st.sampled_from("BRN"), st.integers(0, 2**20), max_size=3),
    dtype=st.sampled_from(["float32", "float16", "bfloat16"]),
    layout=st.sampled_from(["contiguous", "sliced:b"]),
    regime=st.text(max_size=6),
    keywords=st.dictionaries(
        st.text(max_size=5), st.one_of(json_values, st.lists(json_values, max_size=2)), max_size=2
    ),
    seed=st.integers(0, 2**64),
    index=st.integers(0, 10**6),
    values=st.one_of(st.none(), st.dictionaries(st.text(max_size=3), st.lists(json_values, max_size=5), max_size=2)),
)
replays = st.builds(
    Replay, cases, tolerance=st.sampled_from(["derived", "paper"]), before=st.lists(cases, max_size=2).map(tuple)
)


@given(replays)
@settings(max_examples=100, deadline=None)
def test_a_token_is_one_line_and_gives_the_replay_back(replay):
    token = replay.token()
    assert not set(token) & set(" \n\t\"'$&|")  # safe to paste into a shell
    assert Replay.from_token(token) == replay
    assert Replay.from_token(f"  {token}\n") == replay
    assert json.loads(json.dumps(replay.case.to_json())) == replay.case.to_json()
    assert Case.from_json(replay.case.to_json()) == replay.case


def test_a_token_names_the_same_input_bytes():
    for case in portfolio(SOFTMAX, limit=12):
        token = Replay(case).token()
        assert len(token) < TOKEN_LIMIT / 4
        assert build(SOFTMAX, Replay.from_token(token).case).digest == build(SOFTMAX, case).digest


TOKEN = Replay(base_case(SOFTMAX)).token()


@given(st.integers(0, len(TOKEN) - 1), st.characters(codec="utf-8"))
@settings(max_examples=300, deadline=None)
def test_one_wrong_character_is_refused(place, character):
    wrong = TOKEN[:place] + character + TOKEN[place + 1 :]
    if wrong == TOKEN or wrong.strip() == TOKEN:
        return
    try:
        read = Replay.from_token(wrong)
    except UsageError:
        return
    assert read == Replay.from_token(TOKEN)  # base64's unused last bits: nothing is lost


@given(st.one_of(st.text(max_size=40), st.integers(0, len(TOKEN) - 1).map(lambda cut: TOKEN[:cut])))
@settings(max_examples=200, deadline=None)
def test_anything_else_is_refused_in_one_line(text):
    with pytest.raises(UsageError) as error:
        Replay.from_token(text)
    assert "\n" not in str(error.value)


def packed(data) -> str:
    """A token with a right digest around any content."""
    raw = zlib.compress(data if isinstance(data, bytes) else json.dumps(data).encode())
    digest = hashlib.blake2b(raw, digest_size=4).hexdigest()
    return f"al1:{digest}:{base64.urlsafe_b64encode(raw).decode().rstrip('=')}"


WHOLE = {
    "v": CASE_VERSION,
    "case": base_case(SOFTMAX).to_json(),
    "tolerance": "derived",
    "backend": "interpreter",
    "check": "compare",
    "before": [],
}


def test_packed_is_how_tokens_are_made():
    assert Replay.from_token(packed(WHOLE)) == Replay(base_case(SOFTMAX))


@pytest.mark.parametrize(
    "data",
    [
        b"not json",
        b"\xff",
        b"",
        [],
        7,
        {},
        {**WHOLE, "v": CASE_VERSION + 1},
        {**WHOLE, "case": {}},
        {**WHOLE, "case": []},
        {**WHOLE, "case": {**WHOLE["case"], "colour": "red"}},
        {**WHOLE, "before": 3},
        {**WHOLE, "before": [3]},
        *({**WHOLE, name: value} for name in ("tolerance", "backend", "check") for value in (3, [1], {})),
        {**WHOLE, "case": {**WHOLE["case"], "task": 3}},
        b" " * (1 << 22),  # expands beyond what a token may hold
    ],
    ids=str,
)
def test_well_packed_nonsense_is_refused_in_one_line(data):
    with pytest.raises(UsageError) as error:
        Replay.from_token(packed(data))
    assert "\n" not in str(error.value)


def test_another_version_is_named():
    with pytest.raises(UsageError, match=f"version {CASE_VERSION + 1}"):
        Replay.from_token(packed({**WHOLE, "v": CASE_VERSION + 1}))
