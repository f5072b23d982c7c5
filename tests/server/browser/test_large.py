"""A study with thousands of trials: canvases, pages, and updates with new trials only."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING, until
from lynceus.storage.sql.storage import Storage
from pages import Site
from sample_studies import large_study

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
TRIALS = 2600
"""More than the charts draw as SVG."""


@pytest.fixture
def large(site: Site) -> Iterator[str]:
    large_study(site.folder, "large", TRIALS).storage.close()
    yield "large"
    with Storage(site.storage) as storage:
        storage.delete_study("large")


def test_thousands_of_trials(
    site: Site, large: str, open_page: Callable[..., Page]
) -> None:  # pages close before the study is deleted
    page = open_page(f"/studies/{large}", height=4000)
    until(page, "() => document.querySelectorAll('#best canvas, #scatter canvas').length === 2")
    drawn = """(id) => {
      const canvas = document.querySelector(`#${id} canvas`);
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return data.some((one) => one > 0);
    }"""
    until(page, drawn, "best")
    until(page, drawn, "scatter")
    assert page.locator("#best .layers .mark").count() == 0, "no element per run"
    until(page, "() => document.getElementById('page').textContent === 'page 1 of 104'")
    page.get_by_role("button", name="Next").click()
    assert page.locator("#trials tbody tr").count() == 25

    sizes: list[int] = []
    page.on("response", lambda got: sizes.append(len(got.body())) if "view?since" in got.url else None)
    asked = site.server.post(f"studies/{large}/ask", {}, {"Idempotency-Key": "large-ask"}).json
    number = asked["trial"]["number"]
    until(page, "n => document.querySelector(`#open li[data-trial='${n}']`) !== null", number)
    site.server.post(
        f"studies/{large}/trials/{number}/tell",
        {"runtime": 600.0, "metrics": {"accuracy": 0.9}},
        {"Idempotency-Key": "large-tell"},
    )
    until(page, "want => document.getElementById('trials-count').textContent === want", f"{TRIALS + 1:,}")
    assert sizes
    assert max(sizes) < 20_000, "an update is small"
    study = site.study(large).study
    assert page.locator("#spent").inner_text() == f"${study.spent_usd:,.0f}"
