"""`agentloop doctor`: can candidates be judged on this machine, with which backend, and how are they contained?"""

from __future__ import annotations

import json
import os
import platform
import re
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agentloop.errors import EXIT_INFRASTRUCTURE, OracleError
from agentloop.progress import announce
from oracle.backends import WorkerBackend, cuda_device, open_backend
from oracle.worker.isolation import WITHOUT, missing_protection
from oracle.worker.policies import POLICIES

DISTRIBUTION = "agentloop-kernels"


@dataclass(frozen=True)
class Version:
    """An installed package (or Python): `wanted` is the range that this project asks for."""

    name: str
    found: str
    wanted: str

    @property
    def fits(self) -> bool:
        return bool(self.found) and all(
            {">=": _numbers(self.found) >= bound, "<": _numbers(self.found) < bound}[sign]
            for sign, text in re.findall(r"(>=|<)\s*([\d.]+)", self.wanted)
            for bound in [_numbers(text)]
        )


@dataclass(frozen=True)
class BackendReport:
    """`reason` says why it is not available. `layers`: {isolation layer: "" where it is on, else why it is off}."""

    name: str
    available: bool
    reason: str = ""
    unsafe: list[str] = field(default_factory=list)  # missing without which --allow-unsafe is needed
    layers: dict[str, str] = field(default_factory=dict)
    self_test: str = "not run"


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Say what this machine can judge and how candidates are contained: exit code 0, or 3 if nothing can be judged."""
    report = examine()
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        show(report)
    if not report["ready"]:
        raise typer.Exit(EXIT_INFRASTRUCTURE)


def examine() -> dict[str, Any]:
    """Everything that is shown, as JSON values. Starts each backend once."""
    device = cuda_device()
    backends = [backend_report("interpreter"), *([backend_report("cuda")] if device else [])]
    found = versions()
    return {
        "versions": [asdict(version) | {"fits": version.fits} for version in found],
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "cuda_device": device or None,
        "backends": [asdict(backend) for backend in backends],
        "ready": any(backend.available and not backend.unsafe for backend in backends),
    }


def versions() -> list[Version]:
    wanted = {"python": metadata.metadata(DISTRIBUTION)["Requires-Python"]}
    for requirement in metadata.requires(DISTRIBUTION) or []:
        name, rest = re.match(r"([\w.-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
        wanted.setdefault(name, rest)
    return [
        Version("python", platform.python_version(), wanted["python"]),
        *(Version(name, _installed(name), wanted.get(name, "")) for name in ("torch", "triton")),
    ]


def backend_report(name: str) -> BackendReport:
    """Start a backend, which tests itself, and end it again."""
    announce(f"starting backend {name}, which tests itself")
    try:
        backend = open_backend(name, allow_unsafe=True)
    except OracleError as error:
        return BackendReport(name, available=False, reason=str(error), self_test="failed")
    backend.close()
    assert isinstance(backend, WorkerBackend)
    return BackendReport(
        name,
        available=True,
        unsafe=missing_protection(backend.isolation, POLICIES[name]),
        layers=backend.layers,
        self_test="passed",
    )


def show(report: dict[str, Any]) -> None:
    console = Console(highlight=False)
    facts = Table(show_header=False, box=None)
    for version in report["versions"]:
        mark = "[green]ok[/]" if version["fits"] else f"[red]needs {escape(version['wanted'])}[/]"
        facts.add_row(version["name"], version["found"] or "not installed", mark)
    facts.add_row("cores", str(report["cores"]), "")
    facts.add_row("memory", f"{report['memory_gib']} GiB", "")
    facts.add_row("CUDA device", report["cuda_device"] or "none", "")
    console.print(facts)
    for backend in report["backends"]:
        state = "[green]available[/]" if backend["available"] else f"[red]not available[/]: {escape(backend['reason'])}"
        console.print(f"\nbackend [bold]{backend['name']}[/]: {state}; self-test {backend['self_test']}")
        layers = Table(show_header=False, box=None, padding=(0, 2))
        for layer, reason in backend["layers"].items():
            meaning = f"{reason}: {WITHOUT[layer]}" if reason and layer in WITHOUT else reason
            layers.add_row(layer, "[yellow]off[/]" if reason else "[green]on[/]", escape(meaning))
        console.print(layers)
        for missing in backend["unsafe"]:
            console.print(f"[red]{escape(missing)}: candidates run only with --allow-unsafe[/]")
    if not report["ready"]:
        console.print("\n[red]nothing can be judged safely on this machine[/]")


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    """(2, 13, 0) of "2.13.0+cpu"."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])
