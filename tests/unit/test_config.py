"""Settings: what cannot be meant is refused in one line that names the option, before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentloop.config import MOST_ROUNDS, MOST_SAMPLES, Settings, build, load, parse_extra_body
from agentloop.endpoints import open_endpoints
from agentloop.episodes import SEED_STRIDE
from agentloop.errors import UsageError

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("samples", value) for value in (0, -1, 1.5, "many", 10**9)),
        *(("rounds", value) for value in (0, 10**21)),
        *(("temperature", value) for value in (-1, INF, NAN)),
        *(("top_p", value) for value in (0, 2, NAN)),
        *(("timeout", value) for value in (0, -1, INF, NAN, 1e300)),
        *(("requests_per_minute", value) for value in (0, 1e-300, INF, NAN)),
        *((field, value) for field in ("tries", "concurrency", "workers", "max_tokens") for value in (0, -3)),
        *((field, 10**7) for field in ("tries", "concurrency", "workers")),
        *(("name", value) for value in ("../x", "a b", ".", "x" * 300, "a\n", "é")),
        *(
            ("base_url", value)
            for value in (
                "",
                "h",
                "ftp://h",
                "http://u:p@h",
                "http://[::1/v1",
                "http://h:99999/v1",
                "http://a b/v1",
                "http://h/v1?a=b",
                "http://h/v1#x",
                "http://h\x01/",
            )
        ),
        *(("seed", value) for value in (-1, "x", 10**30)),
        *((field, "x") for field in ("feedback", "stop", "domain", "backend")),
        *(("extra_body", value) for value in ({"model": "x"}, [1], {"a": INF}, {"a": "\ud800"}, {"a": object()})),
        *(("model", value) for value in ("", None, 3, " ", "x\ny", "\x1b[31m", "recorded")),
        *(("label", value) for value in ("x\ny", "\x1b[31m", " x", "x" * 1000)),
        *(("key_variable", value) for value in ("", "A=B", "x\x01")),
        *((field, "a\0b") for field in ("runs_dir", "tasks", "prompt_strategy")),
    ],
)
def test_a_value_that_cannot_be_meant_names_its_option(field: str, value: Any) -> None:
    with pytest.raises(UsageError, match=f"^--{field.replace('_', '-')}") as error:
        build({field: value}, "settings")
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 200


def test_sample_indices_of_different_runs_stay_apart() -> None:
    assert MOST_SAMPLES * MOST_ROUNDS < SEED_STRIDE


@pytest.mark.parametrize("text", ["{", "[1]", "1", '{"a": NaN}', '{"a": -Infinity}', "[" * 100_000, '{"a": ' * 50_000])
def test_an_extra_body_that_is_no_json_object(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--extra-body"):
        parse_extra_body(text)


@pytest.mark.parametrize(
    "text", [b"samples =", b"\xff", b"samples = 1\nsamples = 2", b"sample = 1", b"[samples]\nx = 1"]
)
def test_a_file_of_settings_that_is_none(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "run.toml"
    file.write_bytes(text)
    with pytest.raises(UsageError, match=r"^--(config|samples)") as error:
        load(file, {})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("url", ["junk", "ftp://h", "http://u:p@h/v1", "http://h:99999/v1"])
def test_an_address_in_the_environment_is_checked_as_one_given(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(UsageError, match=r"^OPENAI_BASE_URL "):
        Settings(model="m").endpoint()
    assert Settings(model="m", base_url="http://h/v1/").endpoint() == "http://h/v1"


def test_the_offline_author_may_be_served_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """`agentloop serve offline` and `run --model offline --base-url …`: no key is needed, figures stay a simulation's."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with open_endpoints([Settings(model="offline", base_url="http://127.0.0.1:1/v1")]) as endpoints:
        endpoint = endpoints["offline"]
    assert (endpoint.base_url, endpoint.kind, endpoint.name) == ("http://127.0.0.1:1/v1", "offline", endpoint.base_url)
    recording = Settings(model="recorded:x", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(UsageError), open_endpoints([recording]):
        pass
