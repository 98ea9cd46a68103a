"""Kernel files as a user may name them, and what is said of a source without running it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentloop.commands.judge import read_source, read_token
from agentloop.errors import UsageError
from oracle.case import TOKEN_PREFIX, Case, Replay
from oracle.static import check_source


def test_text_is_read_with_and_without_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "ünï [bold].py"
    for data in (b"x = 1\r\n", b"\xef\xbb\xbfx = 1\r\n"):
        file.write_bytes(data)
        assert check_source(read_source(file)) is None


@pytest.mark.parametrize(
    ("data", "kind", "message"),
    [
        (b"", "no_code", "no code"),
        (b"# nothing\n", "no_code", "no statement"),
        (b"x = 1\n\0", "syntax_error", "NUL"),
        ("x = 1".encode("utf-16"), "syntax_error", "NUL"),
        (b"x = 1\ns = '\xe9'\n", "syntax_error", "line 2 is not UTF-8"),
        (b"def f(:\n", "syntax_error", "line 1"),
        (b"(" * 100_000, "syntax_error", "nested"),
        (b"x = 1\n" * 200_000, "no_code", "limit"),
    ],
    ids=["empty", "comment", "NUL", "UTF-16", "latin-1", "broken", "deep", "long"],
)
def test_a_source_that_cannot_run(tmp_path: Path, data: bytes, kind: str, message: str) -> None:
    file = tmp_path / "kernel.py"
    file.write_bytes(data)
    failure = check_source(read_source(file))
    assert failure is not None
    assert failure.kind == kind
    assert message in failure.message


CASE = Case("ops/relu", "rank1", {"N": 3}, "float32")


@pytest.mark.parametrize("change", ["cut", "longer", "upper", "reversed", "other version", "empty", "no body", "deep"])
def test_a_token_that_is_none_is_one_line(change: str) -> None:
    token = Replay(CASE).token()
    assert Replay.from_token(f"  {token}\n").case == CASE
    changed = {
        "cut": token[:-4],
        "longer": token + "AAAA",
        "upper": token.upper(),
        "reversed": token[::-1],
        "other version": token.replace(TOKEN_PREFIX, "al2"),
        "empty": "",
        "no body": f"{TOKEN_PREFIX}:",
        "deep": "é" * 5000,
    }[change]
    with pytest.raises(UsageError, match=r"^TOKEN (must look like|is damaged)"):
        Replay.from_token(changed)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"token": ', "[" * 100_000])
def test_a_token_file_that_is_none_is_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    with pytest.raises(UsageError, match="is not a counterexample"):
        read_token(str(file))
