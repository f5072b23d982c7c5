"""A report in a real browser, opened from a file: it draws the study without a network and without errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, LATE, MISSING, PATIENCE_S, chromium, until
from lynceus.analysis.answer import answer
from lynceus.library.open_study import OpenStudy
from lynceus.library.study_context import study_context
from lynceus.problem.units import format_duration, format_money
from lynceus.reports.page import page, report_documents
from sample_studies import sample_study

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> OpenStudy:
    return sample_study(tmp_path_factory.mktemp("report"), "nightly", 14)


@pytest.fixture(scope="module")
def shown(one: OpenStudy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    file = tmp_path_factory.mktemp("page") / "nightly.html"
    documents = report_documents(study_context(one))
    documents["study"]["name"] = "<i>nightly</i><script>document.title = 'broken'</script>"
    file.write_text(page("nightly", documents), encoding="utf-8")
    problems: list[str] = []
    with chromium() as browser:
        opened = browser.new_page(viewport={"width": 1280, "height": 4000})
        opened.add_init_script(LATE)
        opened.set_default_timeout(1000 * PATIENCE_S)
        opened.on("console", lambda message: problems.append(message.text))
        opened.on("pageerror", lambda error: problems.append(str(error)))
        opened.on("request", lambda request: problems.append(request.url) if request.url != file.as_uri() else None)
        opened.goto(file.as_uri())
        yield opened
    assert problems == []


def test_every_card_is_drawn(shown: Page) -> None:
    until(
        shown,
        "() => document.querySelectorAll('#best svg[role=img], #scatter svg[role=img], #calibration svg[role=img]').length === 3",
    )
    assert shown.locator("#open").count() == 0, "a report shows no open trials"
    assert shown.locator("#trials tbody tr").count() == 14


def test_names_stay_text(shown: Page) -> None:
    assert "<i>nightly</i><script>" in shown.locator("h1").inner_text()
    assert shown.title() == "nightly"


def test_numbers_are_those_of_the_study(shown: Page, one: OpenStudy) -> None:
    assert shown.locator("#spent").inner_text() == format_money(one.study.spent_usd)
    answer = one.study.recommend()
    assert answer is not None
    assert shown.locator("#best-cost").inner_text() == format_money(answer.cost_usd)


def test_time_and_cost_names_the_recommendation(shown: Page, one: OpenStudy) -> None:
    found = answer(study_context(one))
    assert found is not None
    want = f"{format_money(found.cost_usd)} per run in {format_duration(found.runtime_s)}."
    assert shown.locator("#what-if").inner_text().startswith("Best known: ")
    assert shown.locator("#what-if").inner_text().endswith(want)


def test_the_deadline_slider_works_without_a_server(shown: Page) -> None:
    before = shown.locator("#what-if").inner_text()
    shown.locator("#deadline").evaluate("node => { node.value = 0; node.dispatchEvent(new Event('input')); }")
    assert shown.locator("#what-if").inner_text() != before
    shown.get_by_role("button", name="Reset").click()
    assert shown.locator("#what-if").inner_text() == before
