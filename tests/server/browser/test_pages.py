"""Every page on a running study: what it shows is compared with the storage."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING, drawn, until
from lynceus.analysis.answer import Answer, answer
from lynceus.analysis.whatif import deadline_case, whatifs
from lynceus.library.open_study import OpenStudy
from lynceus.library.study_context import study_context
from lynceus.problem.units import format_duration, format_money
from lynceus.trial.outcome import End, FailureReason
from pages import MARKUP, QUICK, SLOW, Site

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
OpenPage = Callable[..., Page]


def params_text(params: Mapping[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def answer_of(one: OpenStudy) -> Answer:
    found = answer(study_context(one))
    assert found is not None
    return found


def text(page: Page, selector: str) -> str:
    return page.locator(selector).inner_text()


def test_the_list_of_studies(open_page: OpenPage, site: Site) -> None:
    page = open_page("/")
    for name in ("nightly", "hourly", "running"):
        one = site.study(name)
        row = page.locator(f"tr[data-study='{name}']")
        assert f"{format_money(one.study.spent_usd)} of {format_money(one.study.budget_usd)}" in row.inner_text()
        assert format_money(one.study.best_value) in row.inner_text()
        found = answer_of(one)
        shares = [found.saving] if found.saving_interval is None else found.saving_interval
        saved = " to ".join(f"{round(share * 100)} %" for share in shares)
        assert row.locator(".saving").inner_text().split("\n")[0] == saved
    assert page.locator("tr[data-study='running'] .badge").get_attribute("data-state") == "RUNNING"
    assert f"{QUICK} + {SLOW} open" in text(page, "tr[data-study='running']")
    page.get_by_role("link", name="nightly").click()
    page.get_by_role("heading", name=re.compile("nightly")).wait_for()


def test_a_running_study(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/running", height=4000)
    one = site.study("running")
    study = one.study
    until(page, "() => document.getElementById('best-cost') !== null")
    assert text(page, "#spent") == format_money(study.spent_usd)
    assert text(page, "#budget") == f"of {format_money(study.budget_usd)} spent"
    assert text(page, "#reserved") == format_money(study.reserved_usd)
    assert text(page, "#trials-count") == str(QUICK)
    found = answer_of(one)
    assert text(page, "#best-cost") == format_money(found.cost_usd)
    assert text(page, "#command") == found.command
    assert text(page, "#saving") == f"{round(found.saving * 100)} %"
    assert text(page, "#best-time") == format_duration(found.runtime_s)
    drawn(page)
    marks = page.locator("#best .layers .mark")
    assert marks.count() == QUICK, "one mark per settled trial"
    assert page.locator("#scatter .layers .line.deadline").count() == 1
    assert page.locator("#trials tbody tr").count() == QUICK
    for seen in study.observations:
        row = text(page, f"#trials tr[data-trial='{seen.order.number}']")
        assert format_duration(seen.outcome.seconds) in row
        assert format_money(seen.outcome.charged_usd) in row


def test_open_trials_count_down(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/running")
    runs = site.study("running").study.record.open_runs
    assert len(runs) == SLOW
    for run in runs:
        line = page.locator(f"#open li[data-trial='{run.order.number}']")
        assert "costs at most " + format_money(run.order.reserved_usd) in line.inner_text()
        left = line.locator(".left")
        first = left.inner_text()
        assert re.fullmatch(r"in \d+m\d\ds", first)
        selector = f"#open li[data-trial='{run.order.number}'] .left"
        until(page, "([selector, old]) => document.querySelector(selector).textContent !== old", [selector, first])
        assert _seconds(left.inner_text()) < _seconds(first), "it counts down"
    assert page.locator("[data-stop]").count() == 0, "readers see no stop button"


def _seconds(shown: str) -> int:
    found = re.fullmatch(r"in (\d+)m(\d\d)s", shown)
    assert found is not None
    return 60 * int(found[1]) + int(found[2])


def test_the_deadline_slider_changes_the_answer(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/nightly")
    subject = study_context(site.study("nightly"))
    best = whatifs(subject, [deadline_case(subject.study.problem, 2700.0)]).answers[0].measured
    assert best is not None
    shown = f"{params_text(best.params)}, {format_money(best.cost_usd)} per run in {format_duration(best.runtime_s)}"
    until(page, "want => document.getElementById('what-if').textContent.includes(want)", shown)
    before = text(page, "#what-if")
    slider = page.get_by_label("What if the deadline were")
    slider.focus()
    for _ in range(40):
        slider.press("PageDown")
        if text(page, "#what-if") != before:
            break
    assert text(page, "#what-if") != before
    chosen = page.evaluate("() => document.querySelector('#deadline').getAttribute('aria-valuetext')")
    assert chosen == text(page, "#deadline-text")
    page.get_by_role("button", name="Reset").click()
    until(page, "want => document.getElementById('what-if').textContent === want", before)
    assert text(page, "#deadline-text") == "45m"


def test_the_page_of_a_trial(open_page: OpenPage, site: Site) -> None:
    number = QUICK - 1
    page = open_page(f"/studies/running/trials/{number}", height=2000)
    [record] = site.study("running").storage.trials("running", number)
    assert record.outcome is not None
    assert record.target is not None
    assert text(page, "#runtime") == format_duration(record.outcome.seconds)
    assert text(page, "#charged") == format_money(record.outcome.charged_usd)
    assert text(page, "#target") == format_duration(record.target.seconds)
    assert text(page, "#why") == record.order.plan.why
    assert f"working on {record.params['step']} with {MARKUP}" in text(page, "#stdout")
    assert MARKUP in text(page, "#stderr")
    assert "<b>rate</b>" in text(page, "#metrics")
    until(page, "() => document.querySelector('#progress .line.best') !== null")
    assert page.locator("#progress desc").text_content().startswith(f"{len(record.outcome.trace)} reports")  # type: ignore[union-attr]
    page.get_by_role("link", name="previous").click()
    page.get_by_role("heading", name=f"Trial {number - 1}").wait_for()


def test_two_studies_side_by_side(open_page: OpenPage, site: Site) -> None:
    page = open_page("/compare?a=nightly&b=hourly")
    page.locator("#overview table").wait_for()
    for column, name in enumerate(("nightly", "hourly"), 2):
        study = site.study(name).study
        cells = page.locator(f"#overview tbody tr td:nth-child({column})").all_inner_texts()
        assert format_money(study.spent_usd) in cells
        assert format_money(study.best_value) in cells
    until(page, "() => document.querySelectorAll('#curve svg .line').length > 1")
    page.get_by_label("second").select_option("running")
    page.wait_for_url("**/compare?a=nightly&b=running")
    page.locator("#params table").wait_for()
    assert "no such parameter" in text(page, "#params")


def test_markup_in_any_text_stays_text(open_page: OpenPage, site: Site) -> None:
    name = MARKUP.replace("/", "|")
    for path in (f"/studies/{quote(name)}", f"/compare?a={quote(name)}&b=running", "/studies/running", "/"):
        page = open_page(path, height=3000)
        until(page, "want => document.body.innerText.includes(want)", name if path != "/studies/running" else MARKUP)
        page.wait_for_timeout(300)
        assert page.title() != "broken"
        assert page.locator("img").count() == 0


def test_a_study_without_a_trial(open_page: OpenPage) -> None:
    page = open_page("/studies/empty", height=3000)
    until(page, "() => document.getElementById('answer').innerText.includes('No trial has ended yet.')")
    drawn(page)
    shown = page.locator(".card:visible h2").all_inner_texts()
    assert shown == ["Recommendation", "Money", "Next trial", "Trials"], "cards without anything to show are not there"
    until(page, "() => document.getElementById('trials').innerText.includes('No trial has settled yet')")
    assert text(page, "#trials-count") == "0"


def test_filters_sorting_and_pages_of_the_table(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/nightly", height=5000)
    observations = site.study("nightly").study.observations
    rows = page.locator("#trials tbody tr")
    until(page, "want => document.querySelectorAll('#trials tbody tr').length === want", len(observations))
    page.get_by_label("state").select_option("stopped early")
    assert rows.count() == sum(seen.outcome.end is End.TIMEOUT for seen in observations)
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("find").fill("codec=zstd oom")
    space = site.study("nightly").study.problem.space
    wanted = [
        seen
        for seen in observations
        if seen.outcome.reason is FailureReason.OOM and space.point(seen.row)["codec"] == "zstd"
    ]
    assert rows.count() == max(1, len(wanted))
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_text("Filter by parameter").click()
    page.locator("select[data-parameter='memory']").select_option("12g")
    assert rows.count() == sum(space.point(seen.row)["memory"] == "12g" for seen in observations)
    page.get_by_role("button", name="Clear filters").click()
    page.locator("#trials").get_by_role("button", name="charged").click()
    numbers = [
        int(number)
        for number in page.locator("#trials tbody tr").evaluate_all("rows => rows.map((row) => row.dataset.trial)")
    ]
    charged = {seen.order.number: seen.outcome.charged_usd for seen in observations}
    assert [charged[number] for number in numbers] == sorted(charged.values())
