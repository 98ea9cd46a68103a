"""Telling a mistake from an API that another supported Triton version has: a kernel may be right for that one."""

from __future__ import annotations

import re

import triton

# names of triton.language by the versions that have them, within the supported range (compared: 3.6.0 and 3.9.0)
_REMOVED = ("make_block_ptr", "advance")
_ADDED = ("to_tensor", "unsqueeze", "squeeze", "atomic_load", "atomic_store", "atomic_poll")
_MISSING = re.compile(r"has no attribute '(\w+)'")
_GONE = "Block pointers have been removed"


def absent_api(message: str) -> str | None:
    """A sentence if an error message says that the installed Triton lacks what another supported version has."""
    missing = _MISSING.search(message)
    name = missing.group(1) if missing else None
    if _GONE in message:
        name = "make_block_ptr"
    if name in _REMOVED:
        return f"triton {triton.__version__} no longer has tl.{name}; an earlier version does"
    if name in _ADDED and missing and "triton.language" in message:
        return f"triton {triton.__version__} has no tl.{name} yet; a later version does"
    return None
