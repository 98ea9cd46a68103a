"""A case: one fully determined input, as small JSON and as a one-line token.

The same case gives the same input bytes on any machine and library version (`oracle.inputs` draws the values).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from oracle.errors import UsageError

CASE_VERSION = 2
TOKEN_PREFIX = "al1"
TOKEN_LIMIT = 4096  # characters; a longer token is stored in a file and named instead


@dataclass(frozen=True)
class Case:
    """One input of a task. `values` (flat lists by tensor name) replaces drawn values after shrinking; a float is a
    JSON number or "nan", "inf", "-inf" and is exact in the tensor's dtype."""

    task: str
    form: str
    dims: Mapping[str, int]
    dtype: str
    layout: str = "contiguous"
    regime: str = "uniform"
    keywords: Mapping[str, Any] = field(default_factory=dict)
    stream: str = "score"
    seed: int = 0
    index: int = 0
    tier: str = "base"
    values: Mapping[str, list[Any]] | None = None

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        if self.values is None:
            del data["values"]
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Case:
        try:
            return cls(**data)
        except TypeError as error:
            raise UsageError(f"not a case: {error}") from None

    def with_(self, **changes: Any) -> Case:
        return replace(self, **changes)


@dataclass(frozen=True)
class Replay:
    """All that is needed to see a verdict on one case again: the case, how it was judged, and calls made before it.

    `check` names the examination that failed: "compare" (plain run and comparison) or one of `oracle.integrity`'s.
    """

    case: Case
    tolerance: str = "derived"
    backend: str = "interpreter"
    check: str = "compare"
    before: tuple[Case, ...] = ()

    def token(self) -> str:
        """`al1:DIGEST:BASE64` of the compressed JSON; the digest catches a torn or mistyped token."""
        data = {
            "v": CASE_VERSION,
            "case": self.case.to_json(),
            "tolerance": self.tolerance,
            "backend": self.backend,
            "check": self.check,
            "before": [case.to_json() for case in self.before],
        }
        packed = zlib.compress(json.dumps(data, separators=(",", ":"), sort_keys=True).encode(), 9)
        return f"{TOKEN_PREFIX}:{_digest(packed)}:{base64.urlsafe_b64encode(packed).decode().rstrip('=')}"

    @classmethod
    def from_token(cls, token: str) -> Replay:
        """Raises UsageError with one clear line for anything that is not a whole token of this version."""
        prefix, _, rest = token.strip().partition(":")
        digest, _, body = rest.partition(":")
        if prefix != TOKEN_PREFIX or not body:
            raise UsageError(f"TOKEN must look like {TOKEN_PREFIX}:DIGEST:DATA, as printed by `agentloop judge`")
        try:
            packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            if _digest(packed) != digest:
                raise ValueError("digest differs")
            decompressor = zlib.decompressobj()
            raw = decompressor.decompress(packed, 1 << 20)
            if decompressor.unconsumed_tail:
                raise ValueError("too large")
            data = json.loads(raw)
            if data["v"] != CASE_VERSION:
                raise UsageError(f"TOKEN is of case version {data['v']}; this oracle reads version {CASE_VERSION}")
            names = {name: data[name] for name in ("tolerance", "backend", "check")}
            cases = [Case(**case) for case in (data["case"], *data["before"])]
            if not all(isinstance(name, str) for name in (*names.values(), *(case.task for case in cases))):
                raise ValueError("a name is none")
            return cls(cases[0], **names, before=tuple(cases[1:]))
        except (ValueError, KeyError, TypeError, RecursionError, binascii.Error, zlib.error):
            raise UsageError("TOKEN is damaged: copy the whole line that `agentloop judge` printed") from None


def _digest(packed: bytes) -> str:
    return hashlib.blake2b(packed, digest_size=4).hexdigest()
