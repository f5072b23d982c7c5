"""Who may do what in the pages, and that they can be used by everybody: axe, keyboard, small screens, both colours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from browsers import CHROMIUM, MISSING, drawn, until
from pages import QUICK, Place

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
Look = Callable[..., Page]

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
"""Path, and what must be there before the page is judged."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(look: Look, name: str, scheme: str) -> None:
    path, ready = PAGES[name]
    page = look(path, height=4200, scheme=scheme)
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
def test_a_phone_shows_everything_without_scrolling_sideways(look: Look, name: str) -> None:
    path, ready = PAGES[name]
    page = look(path, width=390, height=844)
    page.locator(ready).first.wait_for()
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_everything_is_reached_by_keyboard_and_seen(look: Look) -> None:
    page = look("/studies/nightly", height=3000)
    page.locator("#next-config").wait_for()
    until(page, "() => document.querySelectorAll('.layers[tabindex]').length >= 3")
    # A chart that is drawn anew meanwhile is another element, without its number: then once more.
    assert any(_numbered(page) <= _tabbed(page) for _ in range(3))


def _numbered(page: Page) -> set[str]:
    """Give a number to everything that a person can act on."""
    wanted = "a[href], button:not(:disabled), select, input:not(:disabled), summary, [tabindex='0']"
    return set(
        page.evaluate(
            """(wanted) => [...document.querySelectorAll(wanted)].filter((one) => one.checkVisibility())
                 .map((one, place) => { one.dataset.k = place; return String(place); })""",
            wanted,
        )
    )


def _tabbed(page: Page) -> set[str]:
    """The numbers of what the tabulator reaches, each seen to have the focus."""
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


def test_runs_of_a_chart_are_walked_with_arrows(look: Look) -> None:
    page = look("/studies/nightly")
    until(page, "() => document.querySelector('#best .layers') !== null")
    until(page, "() => performance.getEntriesByName('update').length > 0")  # the first news draws every chart once more
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


def test_charts_have_a_table_for_those_who_do_not_see_them(look: Look, place: Place) -> None:
    page = look("/studies/nightly", height=3000)
    until(page, "() => document.querySelector('#best svg desc') !== null")
    assert "stopped early" in str(page.locator("#best svg desc").text_content())
    page.locator("#best summary").click()
    rows = len(place.study("nightly").study.history)
    until(page, f"() => document.querySelectorAll('#best details tbody tr').length === {rows}")


def test_colours_are_chosen_and_kept(look: Look) -> None:
    page = look("/studies/empty", scheme="light")
    light = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Colours").select_option("Dark")
    dark = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    page.locator("main h1").wait_for()
    assert page.evaluate("() => getComputedStyle(document.body).backgroundColor") == dark
    assert look("/", scheme="dark").evaluate("() => getComputedStyle(document.body).backgroundColor") == dark


def test_a_wrong_token_is_refused_and_nothing_leads_elsewhere(look: Look, place: Place) -> None:
    page = look("/login?next=https://example.org/")
    page.get_by_label("token").fill("not-the-token-at-all")
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("This token is not known here.").wait_for()
    assert [said for said in look.trouble if "401" in said], "the server refused it"  # type: ignore[attr-defined]
    look.trouble.clear()  # type: ignore[attr-defined]
    page.get_by_label("token").fill(str(place.server.token))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").wait_for()
    assert page.url == place.url + "/"
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign in").wait_for()


def test_a_study_that_does_not_exist_is_said_in_a_sentence(look: Look) -> None:
    page = look("/studies/no-such-study")
    page.get_by_role("heading", name="This cannot be shown").wait_for()
    assert "no-such-study" in page.locator("main").inner_text()
    look.trouble[:] = [said for said in look.trouble if "404" not in said]  # type: ignore[attr-defined]
