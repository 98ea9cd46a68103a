"""Headless Chromium for the page: Debian's `chromium` or any Chrome on the PATH; without one these tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright import sync_api

from agentloop import report

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)

Open = Callable[..., Any]


@pytest.fixture(scope="package")  # playwright keeps an event loop running meanwhile, which other tests cannot have
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on the PATH: apt-get install chromium")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Open]:
    """Opens a run's page; at the end no page may have logged an error or asked for anything but its own file."""
    troubles: list[str] = []
    contexts = []

    def opener(folder: Path, fragment: str = "", ready: bool = True, **options: Any) -> Any:
        context = chromium.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        url = (folder / "report.html").resolve().as_uri()
        page.on("console", lambda message: message.type in ("error", "warning") and troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: request.url.split("#")[0] == url or troubles.append(f"asked {request.url}"))
        page.goto(url + fragment)
        if ready:
            page.wait_for_selector("body[data-ready]")
        return page

    yield opener
    for context in contexts:
        context.close()
    assert troubles == []


def written(folder: Path) -> Path:
    report.write(folder)
    return folder
