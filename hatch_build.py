"""Packs tasks and prompts into the wheel, under agentloop/_content.

Not into an editable install: that one reads them where they lie, and a copy in site-packages would be stale, and
readable by candidates.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ContentHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":
            return
        root = Path(self.root)
        for name in ("tasks", "prompts"):
            for path in sorted((root / name).rglob("*")):
                inside = path.relative_to(root)
                if path.is_file() and "__pycache__" not in inside.parts:
                    build_data["force_include"][str(path)] = f"agentloop/_content/{inside.as_posix()}"
