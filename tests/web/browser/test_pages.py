"""Every page on a study that is really running: what it shows is what the storage holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING, drawn, until
from lynceus.history import Reason
from lynceus.units import format_duration, format_money
from lynceus.view import insight_view, subject_of, whatif_view
from pages import EVIL, QUICK, SLOW, Place

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
Look = Callable[..., Page]


def words(params: dict[str, object]) -> str:
    return " ".join(f"{name}={value}" for name, value in params.items())


def text(page: Page, selector: str) -> str:
    return page.locator(selector).inner_text()


def test_all_studies_with_state_money_best_and_saving(look: Look, place: Place) -> None:
    page = look("/")
    for name in ("nightly", "hourly", "running"):
        one = place.study(name)
        row = page.locator(f"tr[data-study='{name}']")
        assert f"{format_money(one.study.spent_usd)} of {format_money(one.study.budget_usd)}" in row.inner_text()
        assert format_money(one.study.best_value) in row.inner_text()
        saving = insight_view(subject_of(one))["verdict"]["saving"]
        assert row.locator(".saving").inner_text().split("\n")[0] == f"{round(saving * 100)} %"
    assert page.locator("tr[data-study='running'] .badge").get_attribute("data-state") == "RUNNING"
    assert f"{QUICK} + {SLOW} open" in text(page, "tr[data-study='running']")
    page.get_by_role("link", name="nightly").click()
    page.get_by_role("heading", name=re.compile("nightly")).wait_for()


def test_a_running_study(look: Look, place: Place) -> None:
    page = look("/studies/running", height=4000)
    one = place.study("running")
    study = one.study
    until(page, "() => document.getElementById('best-cost') !== null")
    assert text(page, "#spent") == format_money(study.spent_usd)
    assert text(page, "#budget") == f"spent of {format_money(study.budget_usd)}"
    assert text(page, "#reserved") == format_money(study.reserved_usd)
    assert text(page, "#trials-count") == str(QUICK)
    assert text(page, "#best-cost") == format_money(study.best_value)
    facts = insight_view(subject_of(one))["verdict"]
    assert text(page, "#command") == facts["command"]
    assert text(page, "#saving") == f"{round(facts['saving'] * 100)} %"
    assert text(page, "#best-time") == format_duration(facts["runtime_s"])
    drawn(page)
    marks = page.locator("#best .layers .mark")
    assert marks.count() == QUICK, "one mark per settled trial"
    assert page.locator("#scatter .layers .line.deadline").count() == 1
    assert page.locator("#trials tbody tr").count() == QUICK
    for seen in study.history:
        row = text(page, f"#trials tr[data-trial='{seen.order.number}']")
        assert format_duration(seen.outcome.seconds) in row
        assert format_money(seen.outcome.charged_usd) in row


def test_open_trials_count_down(look: Look, place: Place) -> None:
    page = look("/studies/running")
    runs = place.study("running").study.open_runs
    assert len(runs) == SLOW
    for run in runs:
        line = page.locator(f"#open li[data-trial='{run.order.number}']")
        assert "at most " + format_money(run.order.reserved_usd) in line.inner_text()
        left = line.locator(".left")
        first = left.inner_text()
        assert re.fullmatch(r"in \d+m\d\ds", first)
        selector = f"#open li[data-trial='{run.order.number}'] .left"
        until(page, "([selector, old]) => document.querySelector(selector).textContent !== old", [selector, first])
        assert _seconds(left.inner_text()) < _seconds(first), "it never goes up"
    assert page.locator("[data-stop]").count() == 0, "who may only read sees no button"


def _seconds(shown: str) -> int:
    found = re.fullmatch(r"in (\d+)m(\d\d)s", shown)
    assert found is not None
    return 60 * int(found[1]) + int(found[2])


def test_the_deadline_slider_asks_another_question(look: Look, place: Place) -> None:
    page = look("/studies/nightly")
    subject = subject_of(place.study("nightly"))
    before = text(page, "#what-if")
    set_by = whatif_view(subject, 2700.0)["measured"]
    assert (
        f"{words(set_by['params'])}, {format_money(set_by['cost_usd'])} a run in {format_duration(set_by['seconds'])}"
        in before
    )
    slider = page.get_by_label("What if the deadline were")
    slider.focus()
    for _ in range(40):
        slider.press("PageDown")
        if text(page, "#what-if") != before:
            break
    assert text(page, "#what-if") != before
    chosen = page.evaluate("() => document.querySelector('#deadline').getAttribute('aria-valuetext')")
    assert chosen == text(page, "#deadline-text")
    page.get_by_role("button", name="As set").click()
    assert text(page, "#what-if") == before
    assert text(page, "#deadline-text") == "45m"


def test_the_page_of_a_trial(look: Look, place: Place) -> None:
    number = QUICK - 1
    page = look(f"/studies/running/trials/{number}", height=2000)
    [record] = place.study("running").storage.trials("running", number)
    assert record.outcome is not None
    assert record.told is not None
    assert text(page, "#runtime") == format_duration(record.outcome.seconds)
    assert text(page, "#charged") == format_money(record.outcome.charged_usd)
    assert text(page, "#told") == format_duration(record.told.seconds)
    assert text(page, "#why") == record.order.plan.why
    assert f"working on {record.params['step']} with {EVIL}" in text(page, "#stdout")
    assert EVIL in text(page, "#stderr")
    assert "<b>rate</b>" in text(page, "#metrics")
    until(page, "() => document.querySelector('#progress .line.best') !== null")
    assert page.locator("#progress desc").text_content().startswith(f"{len(record.outcome.trace)} reports")  # type: ignore[union-attr]
    page.get_by_role("link", name="previous").click()
    page.get_by_role("heading", name=f"Trial {number - 1}").wait_for()


def test_two_studies_side_by_side(look: Look, place: Place) -> None:
    page = look("/compare?a=nightly&b=hourly")
    page.locator("#stand table").wait_for()
    for column, name in enumerate(("nightly", "hourly"), 2):
        study = place.study(name).study
        cells = page.locator(f"#stand tbody tr td:nth-child({column})").all_inner_texts()
        assert format_money(study.spent_usd) in cells
        assert format_money(study.best_value) in cells
    until(page, "() => document.querySelectorAll('#curve svg .line').length > 1")
    page.get_by_label("second").select_option("running")
    page.wait_for_url("**/compare?a=nightly&b=running")
    page.locator("#params table").wait_for()
    assert "no such parameter" in text(page, "#params")


def test_markup_in_any_text_stays_text(look: Look, place: Place) -> None:
    evil = EVIL.replace("/", "|")
    for path in (f"/studies/{quote(evil)}", f"/compare?a={quote(evil)}&b=running", "/studies/running", "/"):
        page = look(path, height=3000)
        until(page, "want => document.body.innerText.includes(want)", evil if path != "/studies/running" else EVIL)
        page.wait_for_timeout(300)
        assert page.title() != "broken"
        assert page.locator("img").count() == 0


def test_a_study_without_a_trial(look: Look) -> None:
    page = look("/studies/empty", height=3000)
    until(page, "() => document.getElementById('answer').innerText.includes('Nothing has been tried yet.')")
    drawn(page)
    assert "No trial has settled yet" in text(page, "#best")
    assert page.get_by_label("What if the deadline were").is_disabled()
    assert text(page, "#trials-count") == "0"


def test_filters_sorting_and_pages_of_the_table(look: Look, place: Place) -> None:
    page = look("/studies/nightly", height=5000)
    history = place.study("nightly").study.history
    rows = page.locator("#trials tbody tr")
    until(page, "want => document.querySelectorAll('#trials tbody tr').length === want", len(history))
    page.get_by_label("state").select_option("stopped early")
    assert rows.count() == sum(seen.outcome.end == "capped" for seen in history)
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_label("find").fill("codec=zstd oom")
    space = place.study("nightly").study.problem.space
    wanted = [
        seen for seen in history if seen.outcome.reason is Reason.OOM and space.point(seen.row)["codec"] == "zstd"
    ]
    assert rows.count() == max(1, len(wanted))
    page.get_by_role("button", name="Clear filters").click()
    page.get_by_text("Filter by parameter").click()
    page.locator("select[data-parameter='memory']").select_option("12g")
    assert rows.count() == sum(space.point(seen.row)["memory"] == "12g" for seen in history)
    page.get_by_role("button", name="Clear filters").click()
    page.locator("#trials").get_by_role("button", name="charged").click()
    numbers = [
        int(number)
        for number in page.locator("#trials tbody tr").evaluate_all("rows => rows.map((row) => row.dataset.trial)")
    ]
    charged = {seen.order.number: seen.outcome.charged_usd for seen in history}
    assert [charged[number] for number in numbers] == sorted(charged.values())
