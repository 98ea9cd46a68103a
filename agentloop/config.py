"""What a run is asked to do: defaults, then a TOML file, then the command line; and what is written to `config.json`."""

from __future__ import annotations

import json
import os
import re
import reprlib
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from agentloop.budget import Price
from agentloop.errors import UsageError
from agentloop.files import GIVEN_BYTES, read_regular

HOSTED = "https://api.openai.com/v1"
KEY_VARIABLES = ("AGENTLOOP_API_KEY", "OPENAI_API_KEY")

Arm = Literal["none", "verdict", "naive", "error", "counterexample", "minimized"]

# Settings that change neither a request nor a verdict, and that a resume may therefore give anew.
ADJUSTABLE = (
    *("concurrency", "workers", "timeout", "tries", "requests_per_minute", "key_variable"),
    *("budget_requests", "budget_tokens", "budget_money", "prices", "speed", "sanitize"),
)
NEUTRAL = frozenset({"name", "runs_dir", *ADJUSTABLE})

# A recorded answer was given once, to a fixed prompt: these settings are not free.
RECORDED: dict[str, Any] = {"prompt_strategy": "recorded", "feedback": "none", "samples": 1, "rounds": 1, "label": ""}
AXES = ("model", "prompt_strategy", "feedback")  # what a sweep varies
RECORDED_TASKS = "tritonbench_t/*"

# Sample indices of different runs stay apart (`episodes.SEED_STRIDE`) while samples × rounds stays within a million.
MOST_SAMPLES, MOST_ROUNDS = 10_000, 100
MOST_SEED = 10**12  # what is sent, a million times this, is an integer of 64 bits
MOST_LETTERS = 200  # of a name


class Settings(BaseModel):
    """The settings of one run. TOML keys are the field names; `--prompt-strategy` sets `prompt_strategy`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, protected_namespaces=())

    model: str = Field("offline", min_length=1, description="a model's name, offline, or recorded:PATH")
    label: str = Field("", max_length=MOST_LETTERS, description="what records call the model; its name unless given")
    base_url: str | None = Field(
        None, description="OpenAI-compatible endpoint (default: OPENAI_BASE_URL, else OpenAI's)"
    )
    key_variable: str | None = Field(
        None, description=f"environment variable with the endpoint's key (default: {' or '.join(KEY_VARIABLES)})"
    )
    tasks: str = Field("seed/*", description="comma-separated globs over task ids")
    task_dirs: tuple[str, ...] = Field((), strict=False, description="more folders of task suites")
    prompt_strategy: str = Field("zero_shot", description="how the first request is worded: a folder of prompts/")
    prompt_dirs: tuple[str, ...] = Field((), strict=False, description="more folders of prompt strategies")
    feedback: Arm = Field(
        "minimized",
        description="what a failed attempt tells the author: none, verdict, naive, error, counterexample or minimized",
    )
    history: Literal["last", "all"] = Field(
        "last",
        description="what a later request repeats of its episode: the last answer and what was told of it, or all",
    )
    prompt_tokens: int | None = Field(
        None,
        ge=1,
        description="about the most tokens of a prompt; earlier answers, the traceback and the last answer are shortened, "
        "in this order, the request and the counterexample never",
    )
    samples: int = Field(1, ge=1, le=MOST_SAMPLES, description="independent episodes per task")
    rounds: int = Field(3, ge=1, le=MOST_ROUNDS, description="most attempts per episode, the first included")
    temperature: float | None = Field(0.8, ge=0, allow_inf_nan=False, description="sampling temperature")
    top_p: float | None = Field(None, gt=0, le=1, description="nucleus sampling; not sent unless set")
    max_tokens: int | None = Field(4096, ge=1, le=10**9, description="most tokens per answer")
    extra_body: dict[str, Any] = Field(
        default_factory=dict, description="JSON merged into each request; null removes a key"
    )
    timeout: float = Field(600.0, gt=0, le=86_400, description="seconds one request may take in all")
    tries: int = Field(
        6, ge=1, le=100, description="most tries per request before it counts as an infrastructure fault"
    )
    requests_per_minute: float | None = Field(
        None, ge=0.01, allow_inf_nan=False, description="rate limit on requests; none unless set"
    )
    budget_requests: int | None = Field(None, ge=1, description="stop before this many requests are exceeded")
    budget_tokens: int | None = Field(
        None, ge=1, description="stop before this many tokens of prompts and answers are exceeded"
    )
    budget_money: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="stop before this much money is exceeded, at --prices"
    )
    prices: dict[str, Price] = Field(
        default_factory=dict,
        description='TOML file: a table per model with the prices of a million tokens, as "MODEL" = {prompt = 2.5, '
        "completion = 10}; a TOML of settings may hold the tables itself",
    )
    concurrency: int = Field(8, ge=1, le=1024, description="requests in flight at once")
    workers: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="candidates judged at once; as many as there are cores (on a GPU at most 8) unless set",
    )
    backend: Literal["auto", "interpreter", "cuda"] = Field(
        "auto", description="where candidates run: auto, interpreter or cuda"
    )
    tolerance: str = Field("derived", description="tolerance policy: derived, paper or calibrated")
    domain: Literal["core", "full"] = Field("full", description="the tiers that decide the status: core or full")
    seed: int = Field(0, ge=0, le=MOST_SEED, description="master seed of cases and of sampling")
    stop: Literal["oracle", "naive"] = Field(
        "oracle", description="what ends an episode: oracle (its feedback stream passes) or naive (kernelbench passes)"
    )
    speed: bool = Field(
        False, description="time the candidates that the oracle or a naive check passes, on a GPU, after all are judged"
    )
    sanitize: int = Field(
        0,
        ge=0,
        description="on a GPU with compute-sanitizer, run one in so many of the candidates that pass the stated tiers under "
        "it too, and note what it finds; none unless set",
    )
    allow_unsafe: bool = Field(False, description="run candidates without file and network blocking")
    name: str = Field(
        "", max_length=200, description="the run's folder under --runs-dir; made up from model and time unless given"
    )
    runs_dir: str = Field("runs", min_length=1, description="folder of run folders")

    @field_validator("tasks", mode="before")
    @classmethod
    def _join(cls, value: Any) -> Any:
        return ",".join(value) if isinstance(value, list) and all(isinstance(glob, str) for glob in value) else value

    @field_validator("prices", mode="before")
    @classmethod
    def _price_file(cls, value: Any) -> Any:
        return read_toml(value, "--prices") if isinstance(value, (str, Path)) else value

    @field_validator("name")
    @classmethod
    def _plain_name(cls, value: str) -> str:
        if value and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", value):
            raise ValueError("must be a plain folder name: letters, digits, '.', '_' and '-'")
        return value

    @field_validator("model", "label")
    @classmethod
    def _one_line(cls, value: str) -> str:
        if not value.isprintable() or value != value.strip():
            raise ValueError("must be printable characters on one line, without spaces around them")
        if value == "recorded":
            raise ValueError("needs the path of its answers: recorded:PATH")
        return value

    @field_validator("key_variable")
    @classmethod
    def _variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
            raise ValueError("must be the name of an environment variable: letters, digits and '_'")
        return value

    @field_validator("task_dirs", "prompt_dirs", "runs_dir", "tasks", "prompt_strategy", "model")
    @classmethod
    def _no_nul(cls, value: Any) -> Any:
        if any("\0" in text for text in ((value,) if isinstance(value, str) else value)):
            raise ValueError("must not hold a zero byte")
        return value

    @field_validator("base_url")
    @classmethod
    def _http_url(cls, value: str | None) -> str | None:
        return None if value is None else _endpoint_url(value)

    @field_validator("extra_body")
    @classmethod
    def _ours_stay(cls, value: dict[str, Any]) -> dict[str, Any]:
        taken = sorted({"model", "messages", "stream", "n"} & set(value))
        if taken:
            raise ValueError(f"must not set {', '.join(taken)}: the loop sends one request per answer")
        try:
            json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"cannot be sent as JSON: {error}") from None
        return value

    @property
    def called(self) -> str:
        """What records call the model."""
        return self.label or self.model

    @property
    def builtin(self) -> bool:
        """Whether the author is one of ours (a simulation or a recording) and needs neither key nor endpoint."""
        return self.model == "offline" or self.recorded

    @property
    def recorded(self) -> bool:
        return self.model.startswith("recorded:")

    @property
    def recording(self) -> str:
        """PATH of recorded:PATH."""
        return self.model.partition(":")[2]

    def endpoint(self) -> str:
        """The real model's endpoint. For a built-in author the loop uses the author's name instead."""
        if self.base_url is not None:
            return self.base_url
        given = os.environ.get("OPENAI_BASE_URL")
        try:
            return _endpoint_url(given) if given else HOSTED
        except ValueError as error:
            raise UsageError(f"OPENAI_BASE_URL {error}, got {given!r}") from None

    def parameters(self, seed: int) -> dict[str, Any]:
        """The sampling parameters of one request, as sent. `seed` is the sample index combined with the run's seed."""
        given = {"temperature": self.temperature, "top_p": self.top_p, "max_tokens": self.max_tokens, "seed": seed}
        merged = {key: value for key, value in given.items() if value is not None} | self.extra_body
        return {key: value for key, value in merged.items() if value is not None}


# what pydantic calls things, as a writer of TOML and of command lines knows them
WORDS = {"Input should be": "must be", "valid tuple": "list", "valid dictionary": "table", "or instance of Price": ""}


def load(file: str | Path | None, given: Mapping[str, Any]) -> Settings:
    """Settings from defaults < the TOML file < what the command line gave (None and () mean not given).

    Raises UsageError with one line that names the option and what is allowed.
    """
    values = {} if file is None else read_toml(file, "--config")
    values |= {key: value for key, value in given.items() if value is not None and value != ()}
    several = [option(axis) for axis in AXES if isinstance(values.get(axis), list)]
    if several:
        raise UsageError(f"{several[0]} is a list: `agentloop sweep {file}` runs every combination")
    if str(values.get("model", "")).startswith("recorded:"):
        _fix_recorded(values)
    settings = build(values, f"--config {file}" if file else "settings")
    return settings if settings.name else settings.model_copy(update={"name": _make_name(settings.model)})


def build(values: Mapping[str, Any], source: str) -> Settings:
    """Validate settings; `source` names where they came from in the one-line UsageError."""
    unknown = sorted(set(values) - set(Settings.model_fields))
    if unknown:
        allowed = ", ".join(Settings.model_fields)
        raise UsageError(f"{source}: unknown setting {', '.join(unknown)}; allowed: {allowed}")
    try:
        return Settings(**values)
    except ValidationError as error:
        first = error.errors()[0]
        field, *place = map(str, first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        for theirs, ours in WORDS.items():
            message = message.replace(theirs, ours)
        raise UsageError(
            f"{' '.join([option(field), *place])}: {message}, got {reprlib.repr(first['input'])}"
        ) from None


def option(field: str) -> str:
    """The command-line option of a setting."""
    return {"task_dirs": "--task-dir", "prompt_dirs": "--prompt-dir"}.get(field, "--" + field.replace("_", "-"))


def differences(stored: Settings, given: Settings) -> list[str]:
    """Settings that differ and would change requests or verdicts, as "key: stored X, given Y"."""
    old, new = stored.model_dump(), given.model_dump()
    return [
        f"{key}: stored {old[key]!r}, given {new[key]!r}" for key in old if key not in NEUTRAL and old[key] != new[key]
    ]


def parse_extra_body(text: str | None) -> dict[str, Any] | None:
    """`--extra-body`: a JSON object."""
    if text is None:
        return None
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--extra-body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise UsageError("--extra-body must be a JSON object, as '{\"top_k\": 20}'")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _endpoint_url(value: str) -> str:
    """ValueError where this cannot be a server's address."""
    parts = urlsplit(value)
    if not value.isprintable() or " " in value or parts.query or parts.fragment:
        raise ValueError("must look like http://HOST:PORT/v1, without spaces, '?' and '#'")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("must look like http://HOST:PORT/v1")
    if parts.username or parts.password:
        raise ValueError(f"must not hold a password; set {KEY_VARIABLES[1]}")
    return value.rstrip("/")


def api_key(variable: str | None = None) -> str:
    """The key for a real model, from the environment alone. Raises UsageError where there is none."""
    variables = KEY_VARIABLES if variable is None else (variable,)
    for name in variables:
        if os.environ.get(name, "").strip():
            return os.environ[name]
    raise UsageError(
        f"no API key: set {' or '.join(reversed(variables))}; a local server takes any string, "
        f"as in `export {variables[-1]}=none`; without a key, try --model offline"
    )


def read_toml(path: str | Path, option: str) -> dict[str, Any]:
    """A TOML file that `option` names. Raises UsageError where there is none or it is none."""
    try:
        return tomllib.loads(read_regular(Path(path), GIVEN_BYTES).decode())
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}; name a TOML file") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{option} {path} is not TOML: {error}") from None


def _fix_recorded(values: dict[str, Any]) -> None:
    """Fill in the settings a recorded author fixes; refuse others."""
    for key, fixed in RECORDED.items():
        if values.setdefault(key, fixed) != fixed:
            raise UsageError(
                f"{option(key)} must be {fixed!r} (or left out) with --model recorded:PATH, got {values[key]}"
            )
    values.setdefault("tasks", RECORDED_TASKS)


def _make_name(model: str) -> str:
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", model.partition(":")[0]).strip("-.") or "run"
    return f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
