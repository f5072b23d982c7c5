"""Metrics, parameters and details whose names are those of JavaScript, HTML, spreadsheets and terminals: every page shows them as text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from browsers import CHROMIUM, MISSING, PATIENCE_S, drawn, scroll_to, until
from dashboards import JOB, Dashboard, served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
MARKUP = "<img src=x onerror=\"document.title='broken'\">"
METRICS = [
    "constructor", "__proto__", "toString", "hasOwnProperty", "[/bold]", MARKUP, "x" * 100, "q\"u'o`te", "שלום", "#", "=HYPERLINK(1)",
]  # fmt: skip
SPACE = {"constructor": [1, 2, 4, 8], "__proto__": ["a", "b"], "hasOwnProperty": [MARKUP, "y"]}
DETAIL = f"<script>document.title='broken'</script> {MARKUP} \x1b[2J\u202e " + "long " * 60


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A server with such a study, a damaged one, and one without trials."""
    folder: Path = tmp_path_factory.mktemp("odd")
    with served(f"sqlite:///{folder}/s.db", folder) as server:
        job = {"space": SPACE, "price": "36.0 * constructor", "trial": {"timeout": "none"}, "policy": "sweep"}
        for name, changes in (("odd", job), ("fine", {}), ("damaged", {})):
            assert server.post("studies", JOB | {"name": name} | changes).status == 201
        for number in range(6):
            server.post("studies/odd/ask")
            body = {"runtime": 20 + number, "metrics": dict.fromkeys(METRICS, number + 0.5), "detail": DETAIL}
            body |= {"state": "FAIL"} if number == 3 else {}
            told = server.post(f"studies/odd/trials/{number}/tell", body)
            assert told.status == 200, told.body
        server.post("studies/odd/ask")
        with sqlite3.connect(folder / "s.db") as connection:
            connection.execute("UPDATE studies SET document = '{' WHERE name = 'damaged'")
        connection.close()
        yield server


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page on a phone; fails if a script had an error."""
    context = browser.new_context(viewport={"width": 390, "height": 900})
    context.set_default_timeout(1000 * PATIENCE_S)
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(str(error)))
    yield opened
    context.close()
    assert problems == []


def check(page: Page) -> None:
    """Nothing was taken for markup, and nothing is wider than the screen."""
    assert "broken" not in page.title()
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_page_of_a_study(page: Page, odd: Dashboard) -> None:
    page.goto(f"{odd.url}/studies/odd")
    until(page, "() => document.getElementById('best-cost') !== null")
    drawn(page)
    scroll_to(page, "#trials-card", "#trials tbody a")
    until(page, "() => document.querySelectorAll('#trials tbody tr').length === 6")
    columns = page.locator("#trials thead button").all_inner_texts()
    for name in (*METRICS, *SPACE):
        assert name in [column.rstrip(" ↑↓") for column in columns], name
    cells = page.locator("#trials tr[data-trial='2'] td").all_inner_texts()
    assert cells.count("2.5") == len(METRICS)
    page.get_by_text("Filter by parameter").click()
    page.locator("select[data-parameter='__proto__']").select_option("1")
    until(page, "() => document.getElementById('found').textContent.includes(' of 6')")
    page.locator("#best .layers").focus()
    page.keyboard.press("ArrowRight")
    tip = page.locator("#tip").inner_text()
    assert "__proto__ 0.5" in tip
    assert "constructor=1" in tip
    check(page)


def test_other_pages(page: Page, odd: Dashboard) -> None:
    page.goto(f"{odd.url}/studies/odd/trials/3")
    page.locator("#metrics td").first.wait_for()
    shown = page.locator("#metrics td").all_inner_texts()
    assert [name for name in METRICS if name not in shown] == []
    assert MARKUP in page.locator("#detail").inner_text()
    check(page)
    page.goto(f"{odd.url}/compare?a=odd&b=fine")
    page.locator("#params td").first.wait_for()
    check(page)
    page.goto(odd.url)
    page.locator("tr[data-study='odd']").wait_for()
    line = page.locator("tr[data-study='damaged']")
    assert line.locator(".badge").get_attribute("data-state") == "DAMAGED"
    assert "is damaged" in line.inner_text()
    assert "running" in page.locator("tr[data-study='fine']").inner_text()
    check(page)


@pytest.mark.parametrize(
    "path", ["/studies/damaged", "/studies/%E0%A4%A", "/studies/odd/trials/%E0%A4%A", "/login?next=//["]
)
def test_pages_that_cannot_be_shown_say_so(page: Page, odd: Dashboard, path: str) -> None:
    page.goto(odd.url + path)
    page.locator("main h1").wait_for()
    assert page.locator("main h1").inner_text() in ("This page cannot be shown", "Sign in")
    check(page)
