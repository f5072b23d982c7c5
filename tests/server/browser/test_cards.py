"""Cards that charts of many stopped runs, phones and managers need: what is drawn, where marks lead, and what is written."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page

import lynceus
from browsers import CHROMIUM, MISSING, PATIENCE_S, drawn, scroll_to, until
from dashboards import WRITE, Dashboard, served
from lynceus.storage.sql.storage import Storage
from lynceus.trial.outcome import End
from pages import Site, sign_in
from sample_studies import sample_study

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
OpenPage = Callable[..., Page]


def test_state_time_and_cost_come_first_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/studies/nightly", width=390, height=844)
    scroll_to(page, "#trials-card", "#trials tbody a")
    columns = [name.rstrip(" ↑↓") for name in page.locator("#trials thead button").all_inner_texts()]
    assert columns[:6] == ["#", "state", "time", "cost of a run", "charged", "constraints"]
    ends = page.locator("#trials thead th").evaluate_all("all => all.map((one) => one.getBoundingClientRect().right)")
    assert max(ends[:4]) <= 390, "they are seen without scrolling"


def test_both_studies_are_seen_on_a_phone(open_page: OpenPage) -> None:
    page = open_page("/compare?a=nightly&b=hourly", width=390, height=844)
    page.locator("#params table").wait_for()
    for card in ("overview", "params"):
        ends = page.locator(f"#{card} th, #{card} td").evaluate_all(
            "all => all.map((one) => one.getBoundingClientRect().right)"
        )
        assert max(ends) <= 390
        assert "hourly" in page.locator(f"#{card} thead").inner_text()


def test_stopped_runs_are_bounds_and_do_not_hide_each_other(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/nightly", height=4500)
    drawn(page)
    until(page, "() => document.querySelector('#calibration svg[role=img]') !== null")
    stopped = [one for one in site.study("nightly").study.observations if one.outcome.end is End.TIMEOUT]
    assert len(stopped) > 5
    for card in ("scatter", "calibration"):
        places = page.locator(f"#{card} .layers .mark.stopped").evaluate_all(
            "all => all.map((one) => one.getAttribute('transform'))"
        )
        assert len(places) == len(set(places)) >= 5, "no mark lies on another"
    page.locator("#scatter summary").click()
    page.locator("#scatter details tbody tr").first.wait_for()
    rows = page.locator("#scatter details tbody tr").all_inner_texts()
    assert len([row for row in rows if re.search(r"> [\dhms. ]+\t> \$", row)]) == len(stopped), (
        "at least this long, at least this much"
    )


def test_every_kind_of_chart_links_to_its_trials(open_page: OpenPage) -> None:
    page = open_page("/studies/nightly", height=4500)
    until(page, "() => performance.getEntriesByName('update').length > 0")  # the first event redraws every chart
    for card in ("best", "scatter", "limits", "calibration", "contour", "timeline", "parallel"):
        until(page, "card => document.querySelector(`#${card} .layers[tabindex]`) !== null", card)
        page.locator(f"#{card} .layers").focus()
        page.keyboard.press("End")
        number = re.match(r"Trial (\d+)", page.locator("#tip").inner_text())
        assert number is not None, card
        assert page.locator(f"#{card} .chosen-mark a").get_attribute("href") == f"/studies/nightly/trials/{number[1]}"
    page.locator("#best summary").click()
    page.locator("#best details tbody a").first.wait_for()
    links = page.locator("#best details tbody a").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
    assert f"/studies/nightly/trials/{number[1]}" in links, "so do the tables for screen readers"
    page.locator("#parallel .layers").focus()
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Trial ").first.wait_for()


def test_metrics_against_limits_and_a_contour_of_two_parameters(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/nightly", height=4500)
    study = site.study("nightly").study
    page.locator("#limit").select_option("accuracy >= 0.9")
    told = [one.outcome.metrics["accuracy"] for one in study.observations if "accuracy" in one.outcome.metrics]
    want = f"{sum(value >= 0.9 for value in told)} of {len(told)} runs met accuracy >= 0.9."
    until(page, "want => document.getElementById('limits').innerText.includes(want)", want)
    assert page.locator("#limits .layers .mark").count() == len(told)
    until(page, "() => document.querySelectorAll('#contour .layers .cell').length > 4")
    page.locator("#contour-x").select_option("codec")
    until(page, "() => document.querySelector('#contour svg title').textContent.includes('codec')")
    before = page.locator("#contour-y").input_value()
    page.locator("#contour-y").select_option("codec")
    until(page, "() => document.getElementById('contour-y').value === 'codec'")
    until(page, "want => document.getElementById('contour-x').value === want", before)


def test_the_name_of_an_axis_stays_inside_a_low_chart(open_page: OpenPage) -> None:
    script = """async () => {
      const { chart } = await import('/static/lib/chart.js'), { scale } = await import('/static/lib/scale.js');
      const host = document.createElement('div');
      document.getElementById('main').prepend(host);
      const draw = (box) => ({ x: { at: scale(0, 1, box.left, box.right), label: 'x', text: String },
        y: { at: scale(0, 1, box.bottom, box.top), label: 'simultaneous', text: String },
        marks: [], title: 'low', description: 'low', table: () => ({ columns: [], rows: [] }) });
      chart(host, draw, { height: 90 })();
      while (host.querySelector('svg[role=img]') === null) await new Promise(requestAnimationFrame);
      const outer = host.querySelector('svg[role=img]').getBoundingClientRect();
      const inner = [...host.querySelectorAll('text.label')].map((one) => one.getBoundingClientRect());
      return inner.map((one) => one.top >= outer.top && one.bottom <= outer.bottom);
    }"""
    assert open_page("/").evaluate(script) == [True, True]


def test_trials_can_be_downloaded_as_csv(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/nightly")
    scroll_to(page, "#trials-card", "#trials tbody a")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Download CSV").click()
    assert waiting.value.suggested_filename == "nightly.csv"
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(encoding="utf-8"))))
    assert len(rows) == len(site.study("nightly").study.observations)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Dashboard]:
    """A server with a stopped study that may be changed."""
    with sample_study(tmp_path, "mine", 3).storage:
        pass
    with served(f"sqlite:///{tmp_path}/studies.db", tmp_path) as server:
        server.post("studies/mine/stop")
        yield server


@pytest.fixture
def page(browser: Browser, own: Dashboard) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844})
    context.set_default_timeout(1000 * PATIENCE_S)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    yield opened
    context.close()
    assert problems == []


def test_notes_rename_and_delete(page: Page, own: Dashboard, tmp_path: Path) -> None:
    page.goto(f"{own.url}/studies/mine")
    page.get_by_role("heading", name="mine").wait_for()
    assert page.get_by_role("button", name="Delete").count() == 0, "readers change nothing"
    sign_in(page, Site(own, tmp_path), WRITE)
    page.goto(f"{own.url}/studies/mine")
    markup = "<img src=x onerror=\"document.title='broken'\">\nsecond line"
    page.get_by_role("button", name="Add a note").click()
    page.get_by_label("Everybody who can read").fill(markup)
    serious = [one["id"] for one in Axe().run(page).response["violations"] if one["impact"] in ("serious", "critical")]
    assert serious == []
    page.get_by_role("button", name="Save").click()
    until(page, "want => document.getElementById('note').textContent === want", markup)
    assert own.get("studies/mine/note").json["text"] == markup

    own.post("studies/mine/note", {"text": "of somebody else"})
    until(page, "() => document.getElementById('note').textContent === 'of somebody else'")
    assert "broken" not in page.title()

    page.get_by_role("button", name="Rename").click()
    page.get_by_label("new name").fill("yours")
    page.get_by_role("dialog").get_by_role("button", name="Rename").click()
    page.wait_for_url("**/studies/yours")
    page.get_by_role("button", name="Delete").click()
    confirm = page.get_by_role("button", name="Delete for good")
    assert confirm.is_disabled()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0
    page.get_by_role("button", name="Delete").click()
    page.get_by_label("To confirm").fill("yours")
    confirm.click()
    page.get_by_text("There is no study in this storage yet").wait_for()
    with Storage(f"sqlite:///{tmp_path}/studies.db") as storage:
        assert storage.studies() == []


def test_a_study_that_somebody_else_deletes_says_so(page: Page, own: Dashboard) -> None:
    page.goto(f"{own.url}/studies/mine")
    page.get_by_role("heading", name="mine").wait_for()
    until(page, "() => performance.getEntriesByName('update').length > 0")
    own.request("DELETE", "studies/mine")
    page.get_by_text("Study mine was deleted or renamed.").wait_for()


def test_an_infeasible_study_says_which_limit_fails(browser: Browser, tmp_path: Path) -> None:
    sample_study(tmp_path, "late", 6, deadline="2m").storage.close()
    with served(f"sqlite:///{tmp_path}/studies.db", tmp_path) as server:
        page = browser.new_page(viewport={"width": 390, "height": 844})
        page.goto(f"{server.url}/studies/late")
        page.locator("#infeasible").wait_for()
        why = server.get("studies/late/insight").json["infeasible"]
        shown = page.locator("#answer").inner_text()
        assert why["summary"][1:] in shown
        assert why["advice"][1:] in shown
        assert "time <= 2m" in page.locator("#answer .limit h3").all_inner_texts()[0]
        page.close()


def test_a_configuration_short_of_its_confidence_is_not_called_the_best(browser: Browser, tmp_path: Path) -> None:
    space = lynceus.Space.build([lynceus.Ordinal("nodes", [1, 2, 4])], price="0.36 * nodes")
    storage = f"sqlite:///{tmp_path}/studies.db"
    study = lynceus.create_study(
        space=space, constraints=["runtime <= 20m @ 0.95"], study_name="unsure", storage=storage
    )
    study.add_trials([({"nodes": 2}, seconds, {}) for seconds in (1100, 1290, 1250, 1180, 1300)])
    with served(storage, tmp_path) as server:
        short = server.get("studies/unsure/best").json["shortfall"]
        page = browser.new_page()
        page.goto(f"{server.url}/studies/unsure")
        scroll_to(page, "#scatter", "#scatter svg[role=img]")
        until(page, "want => document.getElementById('what-if').textContent.includes(want)", short)
        asked = server.get("studies/unsure/what-if?deadline=20m").json["answers"][0]
        assert asked["shortfall"] == short
        until(page, "() => performance.getEntriesByType('resource').some((one) => one.name.includes('what-if'))")
        assert "Best known" not in page.locator("#what-if").inner_text()
        page.close()


def test_what_earlier_jobs_and_other_inputs_say_fits_on_a_phone(browser: Browser, tmp_path: Path) -> None:
    """The weights of earlier jobs, what they saved, and the predicted curve over the size of the input."""
    space = lynceus.Space.build([lynceus.Ordinal("nodes", [1, 2, 4, 8, 16])], price="0.36 * nodes")
    storage = f"sqlite:///{tmp_path}/studies.db"
    past: list[lynceus.Study] = []
    for name, size in (("sessions-50gb", 50), ("sessions-100gb", 100)):
        study = lynceus.create_study(
            space=space,
            constraints=["runtime <= 20m"],
            study_name=name,
            storage=storage,
            input=f"{size} GB",
            history=past,
        )
        study.add_trials([({"nodes": nodes}, 30 + 18 * size / nodes, {}) for nodes in (1, 2, 4, 8)])
        past.append(study)
    with served(storage, tmp_path) as server:
        for width in (1280, 390):
            page = browser.new_page(viewport={"width": width, "height": 844})
            page.goto(f"{server.url}/studies/sessions-100gb")
            page.get_by_role("heading", name="Earlier jobs").wait_for()
            assert "sessions-50gb" in page.locator("#why").inner_text()
            card = page.locator("#input-sizes")
            scroll_to(page, "#input-sizes", "#input-sizes svg[role=img]")
            found = server.get("studies/sessions-100gb/insight").json["over_input_size"]
            assert card.locator(".layers .mark").count() == len(found) > 5
            assert card.locator("path.line").count() >= 3, "the curve and both ends of its interval"
            card.get_by_text("Show as a table").click()
            assert found[0]["input_text"] in card.locator("tbody").inner_text()
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            page.close()
