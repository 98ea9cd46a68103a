"""The page as a reader uses it: clicks, filters, keys, links, light and dark, a phone, hostile text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from agentloop.scoring import load_attempts
from oracle.verdict import FAIL
from tests.browser.conftest import Open, written
from tests.browser.folders import write_run

PHONE = {"viewport": {"width": 375, "height": 740}, "has_touch": True, "is_mobile": True, "device_scale_factor": 2}
PLANTED = (
    "</script><script>window.planted = 1</script><img src=x onerror='window.planted = 2'><b>bold</b> ${1} {{ 7*7 }}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, three arms."""
    return written(write_run(tmp_path_factory.mktemp("runs") / "many", 300))


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One simulated author, one arm."""
    run = tmp_path_factory.mktemp("runs") / "simple"
    return written(write_run(run, 60, models=("offline",), arms=("minimized",), author="offline"))


def rows(page: Any) -> list[list[str]]:
    return page.locator("#list tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(c => c.innerText.trim()))"
    )


def failing(folder: Path) -> Any:
    """A first answer that failed and was followed by another."""
    attempts = {attempt.attempt_id: attempt for attempt in load_attempts(folder)}
    return next(a for a in attempts.values() if a.round == 0 and a.status == FAIL and f"{a.episode_id}:1" in attempts)


def test_every_number_of_a_two_by_two_opens_that_many_episodes(simple: Path, open_page: Open) -> None:
    summary = json.loads((simple / "summary.json").read_text())
    figures = summary["models"]["offline · zero_shot"]["disagreement"]["gpuemu"]["stated"]
    page = open_page(simple)
    card = page.locator(".set-stated .card", has=page.get_by_text("gpuemu", exact=False)).first
    card.locator("td.illusion a").click()
    expect(page.locator("#list tbody tr")).to_have_count(figures["illusions"])
    assert "cell=pf" in page.url
    assert all("gpuemu" not in row[0] for row in rows(page))
    page.get_by_role("button", name="gpuemu pass, oracle fail").click()
    expect(page.locator("#list tbody tr")).to_have_count(len({a.episode_id for a in load_attempts(simple)}))


def test_tier_sets_are_chosen_by_a_click(simple: Path, open_page: Open) -> None:
    page = open_page(simple)
    assert page.locator(".set-stated .card").first.is_visible()
    page.get_by_label("core base, shapes, dtypes").check()
    assert page.locator(".set-core .card").first.is_visible()
    assert not page.locator(".set-stated .card").first.is_visible()


def test_filters_and_sorting_live_in_the_address(folder: Path, open_page: Open) -> None:
    page = open_page(folder, "#/episodes?kind=compile_error")
    total = page.locator("#list tbody tr").count()
    assert total > 0
    page.get_by_label("feedback").select_option("minimized")
    page.get_by_label("search").fill("model-b ops")
    found = rows(page)
    assert found
    assert all("model-b" in row[1] and row[2] == "minimized" for row in found)
    page.get_by_label("search").fill("")
    page.locator("#list thead").get_by_role("button", name="outcome").click()
    page.locator("#list thead").get_by_role("button", name="outcome").click()
    before = rows(page)
    order = ["solved at first", "repaired", "not solved", "broken again", "unjudged"]
    outcomes = [next(order.index(cell) for cell in row if cell in order) for row in before]
    assert outcomes == sorted(outcomes, reverse=True)
    assert page.locator("#list th[aria-sort=descending]").inner_text().startswith("outcome")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert rows(page) == before
    page.get_by_role("button", name="clear").click()
    expect(page.locator("#list tbody tr")).to_have_count(100)  # a page of rows; the rest on demand
    page.get_by_role("button", name="show more").click()
    expect(page.locator("#list tbody tr").nth(100)).to_be_attached()


def test_an_episode_shows_all_that_is_known_of_it(folder: Path, open_page: Open) -> None:
    attempt = failing(folder)
    assert attempt.score.counterexample is not None
    page = open_page(folder, f"#/episode/{quote(attempt.episode_id, safe='')}")
    first = page.locator("#round-0")
    text = first.inner_text()
    assert attempt.score.failure["kind"] in text
    assert attempt.score.failure["message"] in text
    assert attempt.score.counterexample["diagnosis"] in text
    assert attempt.score.counterexample["token"] in text
    assert f"candidates/{attempt.candidate_id}.py" in text
    values = first.locator("table.values tbody tr")
    assert values.count() == 64
    assert "worst" in (values.nth(3).get_attribute("class") or "")
    shown = values.nth(3).locator("td").all_inner_texts()
    example = attempt.score.counterexample
    assert shown == ["[0, 3]", str(example["got"][0]["values"][3]), str(example["expected"][0]["values"][3])]
    source = (folder / "candidates" / f"{attempt.candidate_id}.py").read_text()
    lines = first.locator("pre.source .l").all_text_contents()
    assert "\n".join(lines).rstrip() == source.rstrip()
    assert first.locator(".t-keyword", has_text="def").count() >= 2
    assert first.locator(".l.blamed").count() == 1
    for fold, said in (
        ("Prompt", "Triton"),
        ("Answer", "```python"),
        ("Verdicts", "kernelbench"),
        ("Record", "derived"),
    ):
        first.locator("summary", has_text=fold).first.click()
        assert said in first.inner_text()
    later = page.locator("#round-1")
    assert later.locator("pre.diff .added").count()
    assert later.locator("pre.diff .removed").count()


def test_keys_alone_are_enough(folder: Path, open_page: Open) -> None:
    page = open_page(folder)
    page.keyboard.press("/")
    page.keyboard.type("softmax minimized")
    assert page.evaluate("document.activeElement.type") == "search"
    found = rows(page)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#round-0")
    second = page.url
    assert page.locator("#episode h1").inner_text().startswith(found[1][0])
    shown = page.locator("#episode h1").inner_text()
    page.keyboard.press("j")
    expect(page.locator("#episode h1")).not_to_have_text(shown)
    page.keyboard.press("k")
    expect(page.locator("#episode h1")).to_have_text(shown)
    assert page.url == second
    page.keyboard.press("Escape")
    page.wait_for_selector("#overview:not([hidden])")
    assert rows(page) == found
    assert page.evaluate("document.activeElement.getAttribute('href')") == second[second.index("#") :]


def test_any_row_and_any_round_has_an_address(folder: Path, open_page: Open) -> None:
    attempt = failing(folder)
    page = open_page(folder, f"#/episode/{quote(attempt.episode_id, safe='')}/1")
    page.wait_for_selector("#round-1")
    assert page.locator("#round-1").evaluate("e => e.getBoundingClientRect().top < innerHeight / 2")
    addresses = page.locator("#overview a.here").evaluate_all("links => links.map(a => a.getAttribute('href'))")
    assert len(addresses) > 40
    assert len(set(addresses)) == len(addresses)
    for kind in ("#2x2-", "#tier-", "#repair-", "#kind-", "#task-"):
        address = next(a for a in addresses if a.startswith(kind))
        page.evaluate("address => { location.hash = address; }", address)
        page.wait_for_selector("#overview:not([hidden])")
        target = page.locator(f'[id="{address[1:]}"]')
        assert target.evaluate("e => e.matches(':target') && e.getBoundingClientRect().height > 0")
    page.evaluate("location.hash = '#2x2-model-a-zero_shot-geak-full'")
    page.wait_for_selector("#overview:not([hidden])")
    expect(page.locator(".set-full .card").first).to_be_visible()


def test_static_tables_sort(folder: Path, open_page: Open) -> None:
    page = open_page(folder)
    table = page.locator("#failures table").first
    table.get_by_role("button", name="answers").click()
    counts = [int(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()]
    assert counts == sorted(counts)
    table.get_by_role("button", name="answers").click()
    assert [int(text) for text in table.locator("tbody td:nth-child(2)").all_inner_texts()] == counts[::-1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(folder: Path, open_page: Open, scheme: str) -> None:
    attempt = failing(folder)
    page = open_page(folder, color_scheme=scheme, **PHONE)
    width = PHONE["viewport"]["width"]  # type: ignore[index]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("link", name="Episodes").click()
    page.locator("#list tbody tr").first.tap()
    page.wait_for_selector("#round-0")
    page.evaluate("id => { location.hash = '#/episode/' + encodeURIComponent(id); }", attempt.episode_id)
    page.wait_for_selector("#round-1")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(map(int, background.removeprefix("rgb(").rstrip(")").split(","))) > 3 * 128
    assert light == (scheme == "light")


def test_text_of_others_stays_text(tmp_path: Path, open_page: Open) -> None:
    model = "m<script>window.planted=3</script>"
    run = written(write_run(tmp_path / "hostile", 12, models=(model,), arms=("minimized",), text=PLANTED))
    page = open_page(run)
    assert model in page.locator("#top").inner_text()
    attempt = failing(run)
    page.evaluate("id => { location.hash = '#/episode/' + encodeURIComponent(id); }", attempt.episode_id)
    page.wait_for_selector("#round-0")
    page.locator("#episode summary").evaluate_all("all => all.forEach(s => { s.parentElement.open = true; })")
    assert (
        page.locator("#round-0").inner_text().count(PLANTED) >= 5
    )  # message, detail, pattern, source, answer, reasons
    assert page.locator("#episode img, #episode script, #overview img, #overview script").count() == 0
    assert page.evaluate("window.planted") is None
    policy = page.locator("meta[http-equiv=Content-Security-Policy]").get_attribute("content")
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_simulation_says_so_wherever_its_figures_stand(simple: Path, folder: Path, open_page: Open) -> None:
    page = open_page(simple)
    for section in ("top", "disagreement", "repair", "failures", "tasks", "ability", "episodes"):
        assert page.locator(f"#{section} .label", has_text="simulation").count(), section
    page.locator("#list tbody a").first.click()
    page.wait_for_selector("#round-0")
    assert page.locator("#episode .label", has_text="simulation").is_visible()
    assert page.locator("header .banner", has_text="SIMULATION").is_visible()
    assert open_page(folder).get_by_text("simulation").count() == 0


def test_a_phone_shows_the_whole_of_what_is_said_of_a_simulation(simple: Path, open_page: Open) -> None:
    banner = open_page(simple, **PHONE).locator("header .banner")
    assert banner.evaluate("b => b.scrollWidth <= b.clientWidth && b.scrollHeight <= b.clientHeight")
    assert banner.bounding_box()["width"] <= 375


def test_the_figures_need_no_script(simple: Path, open_page: Open) -> None:
    page = open_page(simple, ready=False, java_script_enabled=False)
    assert "first answers are right" in page.locator("#headline-0").inner_text()
    assert page.locator(".set-stated .two").first.is_visible()
    assert "agentloop show" in page.locator("#episodes").inner_text()


def test_commands_are_copied(simple: Path, open_page: Open) -> None:
    page = open_page(simple, permissions=["clipboard-read", "clipboard-write"])
    page.locator("#repeat .command button").first.click()
    page.get_by_role("button", name="copied").wait_for()
    assert page.evaluate("navigator.clipboard.readText()").startswith("agentloop run --model offline")


def test_conditions_are_ranked_and_compared_in_pairs(folder: Path, open_page: Open) -> None:
    families = json.loads((folder / "summary.json").read_text())["comparison"]
    page = open_page(folder, "#comparison")
    section = page.locator("#comparison")
    assert section.locator("h2").count() == len(families) > 1
    for place, family in enumerate(families):
        ranked, pairs = section.locator("table").nth(2 * place), section.locator("table").nth(2 * place + 1)
        names = ranked.locator("tbody th .who").all_inner_texts()
        assert names == [row["name"] for row in family["ranking"]]
        rows = pairs.locator("tbody tr")
        assert rows.count() == len(family["pairs"])
        for row, pair in zip(rows.all(), family["pairs"], strict=True):
            text = row.inner_text()
            assert f"{pair['a']} over {pair['b']}" in text
            assert f"{100 * pair['difference']['value']:+.0f} [" in text
            assert f"{pair['p_holm']:.3g}" in text
            assert ("is ahead" in text) == bool(pair["ahead"])
