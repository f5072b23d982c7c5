"""The pages of recurring jobs in a real browser: they show what the storage has, on a phone, too, and without serious problems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

from browsers import CHROMIUM, MISSING, drawn
from dashboards import Dashboard, served
from sample_jobs import sample_job

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


@pytest.fixture(scope="module")
def jobs_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    folder: Path = tmp_path_factory.mktemp("job-page")
    sample_job(folder).store.storage.close()
    with served(f"sqlite:///{folder}/s.db", folder) as running:
        yield running


def opened(browser: Browser, site: Dashboard, path: str, ready: str, width: int, problems: list[str]) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 4200})
    page.on("pageerror", lambda error: problems.append(f"error: {error}"))
    page.on("response", lambda got: problems.append(f"{got.status}: {got.url}") if got.status >= 400 else None)
    page.goto(site.url + path)
    page.locator(ready).first.wait_for()
    drawn(page)
    return page


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(("path", "ready"), [("/jobs", "tr[data-job]"), ("/jobs/nightly", "#audit li")])
def test_pages_of_jobs_have_no_problem(
    browser: Browser, jobs_site: Dashboard, path: str, ready: str, width: int
) -> None:
    problems: list[str] = []
    page = opened(browser, jobs_site, path, ready, width, problems)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = Axe().run(page).response["violations"]
    assert [one["help"] for one in found if one["impact"] in ("serious", "critical")] == []
    assert problems == []
    page.close()


def test_the_page_of_a_job_shows_its_life(browser: Browser, jobs_site: Dashboard) -> None:
    problems: list[str] = []
    page = opened(browser, jobs_site, "/jobs/nightly", "#audit li", 1280, problems)
    document = jobs_site.get("jobs/nightly").json
    assert page.locator("#runs").inner_text() == "90"
    assert "3, since" in page.locator("#version").inner_text()
    assert document["next"]["reason"] in page.locator("#next").inner_text()
    for card in ("time", "cost-card", "unit", "over-time"):
        assert page.locator(f"#{card} .mark").count() >= 88, card
    assert page.locator("#time .line.deadline").count() > 0
    assert page.locator("#time .mark.infeasible").count() >= 1, "the canary has a mark of its own"
    audit = page.locator("#audit").inner_text()
    for text in (
        "adopted version 3",
        "twice the input by summer",
        "by bo",
        "returned version 1",
        "tried version 2",
        "expected:",
    ):
        assert text in audit, text
    assert "44 runs" in page.locator("[data-version='3']").inner_text(), "what it brought"
    assert problems == []
    page.close()
