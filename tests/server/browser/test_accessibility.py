"""Accessibility of the pages (axe, keyboard, small screens, both themes) and signing in."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING, drawn, until
from pages import QUICK, Site

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
OpenPage = Callable[..., Page]

PAGES = {
    "studies": ("/", "tr[data-study]"),
    "study": ("/studies/nightly", "#next-config"),
    "running": ("/studies/running", "#next-config"),
    "empty": ("/studies/empty", "#next-config"),
    "trial": (f"/studies/running/trials/{QUICK - 1}", "#stdout"),
    "open trial": (f"/studies/running/trials/{QUICK + 1}", "#stdout"),
    "compare": ("/compare?a=nightly&b=hourly", "#params table"),
    "login": ("/login", "form"),
}
"""Path, and a selector that must exist before the page is checked."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_problem(open_page: OpenPage, name: str, scheme: str) -> None:
    path, ready = PAGES[name]
    page = open_page(path, height=4200, scheme=scheme)
    page.locator(ready).first.wait_for()
    drawn(page)
    found = Axe().run(page).response["violations"]
    serious = [
        f"{one['id']} ({one['impact']}): {one['help']}: {[node['target'] for node in one['nodes'][:4]]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


@pytest.mark.parametrize("name", PAGES)
def test_pages_fit_the_width_of_a_phone(open_page: OpenPage, name: str) -> None:
    path, ready = PAGES[name]
    page = open_page(path, width=390, height=844)
    page.locator(ready).first.wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_everything_is_reachable_by_keyboard_with_visible_focus(open_page: OpenPage) -> None:
    page = open_page("/studies/nightly", height=3000)
    page.locator("#next-config").wait_for()
    until(page, "() => document.querySelectorAll('.layers[tabindex]').length >= 3")
    # A chart that is redrawn in between is a new element without a number: try again.
    assert any(_numbered(page) <= _tabbed(page) for _ in range(3))


def _numbered(page: Page) -> set[str]:
    """Number every interactive element."""
    wanted = "a[href], button:not(:disabled), select, input:not(:disabled), summary, [tabindex='0']"
    return set(
        page.evaluate(
            """(wanted) => [...document.querySelectorAll(wanted)].filter((one) => one.checkVisibility())
                 .map((one, index) => { one.dataset.k = index; return String(index); })""",
            wanted,
        )
    )


def _tabbed(page: Page) -> set[str]:
    """The numbers of the elements that Tab reaches, each with a visible focus."""
    page.evaluate("() => document.activeElement.blur()")
    reached = set()
    for _ in range(page.locator("[data-k]").count() + 5):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """() => { const one = document.activeElement, style = getComputedStyle(one);
              const visible = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
              return [one.dataset.k ?? null, visible || one === document.body]; }"""
        )
        assert found[1], (
            f"focus is not visible on {page.evaluate('() => document.activeElement.outerHTML.slice(0, 120)')}"
        )
        reached.add(found[0])
    return reached


def test_arrow_keys_move_through_the_runs_of_a_chart(open_page: OpenPage) -> None:
    page = open_page("/studies/nightly")
    until(page, "() => document.querySelector('#best .layers') !== null")
    until(page, "() => performance.getEntriesByName('update').length > 0")  # the first event redraws every chart
    page.locator("#best .layers").focus()
    page.keyboard.press("ArrowRight")
    first = page.locator("#tip").inner_text()
    assert first.startswith("Trial ")
    page.keyboard.press("ArrowRight")
    assert page.locator("#tip").inner_text() != first
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Trial").first.wait_for()


def test_charts_have_a_table_for_screen_readers(open_page: OpenPage, site: Site) -> None:
    page = open_page("/studies/nightly", height=3000)
    until(page, "() => document.querySelector('#best svg desc') !== null")
    assert "stopped early" in str(page.locator("#best svg desc").text_content())
    page.locator("#best summary").click()
    rows = len(site.study("nightly").study.observations)
    until(page, f"() => document.querySelectorAll('#best details tbody tr').length === {rows}")


def test_the_theme_is_remembered(open_page: OpenPage) -> None:
    page = open_page("/studies/empty", scheme="light")
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Theme").select_option("Dark")
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    page.locator("main h1").wait_for()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark
    assert open_page("/", scheme="dark").evaluate("() => getComputedStyle(document.body).backgroundColor") == dark


def test_a_wrong_token_is_refused_and_sign_in_does_not_redirect_elsewhere(open_page: OpenPage, site: Site) -> None:
    page = open_page("/login?next=https://example.org/")
    page.get_by_label("token").fill("not-the-token-at-all")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("The token is wrong, or was revoked.").wait_for()
    assert [one for one in open_page.problems if "401" in one], "the server refused it"  # type: ignore[attr-defined]
    open_page.problems.clear()  # type: ignore[attr-defined]
    page.get_by_label("token").fill(str(site.server.token))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    assert page.url == site.url + "/"
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in").wait_for()


def test_an_unknown_study_is_reported_in_a_sentence(open_page: OpenPage) -> None:
    page = open_page("/studies/no-such-study")
    page.get_by_role("heading", name="This page cannot be shown").wait_for()
    assert "no-such-study" in page.locator("main").inner_text()
    open_page.problems[:] = [one for one in open_page.problems if "404" not in one]  # type: ignore[attr-defined]
