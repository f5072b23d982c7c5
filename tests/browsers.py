"""A real browser for tests: Debian's Chromium, driven by Playwright."""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "there is no Chromium here: make system installs it (apt-get install chromium)"
PATIENCE_S = 60.0
"""How long a test waits for something that must happen: a busy machine may be slow."""

LATE = """(() => {
  const gathered = (wait, act) => {
    let all = [];
    const report = () => { const now = all; all = []; act(now); };
    return (some) => { all.push(...some); if (all.length === some.length) setTimeout(report, wait); };
  };
  const frame = window.requestAnimationFrame.bind(window), ask = window.fetch.bind(window), Observer = window.IntersectionObserver;
  window.requestAnimationFrame = (draw) => setTimeout(() => frame(draw), 120);
  window.IntersectionObserver = class extends Observer { constructor(seen, options) { super(gathered(400, seen), options); } };
  window.fetch = async (...given) => { await new Promise((go) => setTimeout(go, 120)); return ask(...given); };
})()"""
"""A script for every page of a test: as on a busy machine, all comes late, and changes of visibility come several at once.

A test that does not wait until the page is drawn then fails every time, instead of one time in a hundred.
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one module: while it is open, nothing else in this process can run an event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=2000 * PATIENCE_S)
        yield browser
        browser.close()


def drawn(page: Page) -> None:
    """Wait until every visible chart is drawn or says that there is nothing to draw."""
    until(
        page,
        """() => [...document.querySelectorAll('.plot')].every(
            (one) => one.firstChild !== null || !one.checkVisibility() || one.getBoundingClientRect().top > innerHeight)""",
    )


def scroll_to(page: Page, element: str, content: str) -> None:
    """Scroll to an element, again and again until its content is there: cards above it may still grow."""
    until(
        page,
        "([element, content]) => { document.querySelector(element)?.scrollIntoView(); return document.querySelector(content) !== null; }",
        [element, content],
    )


def until(page: Page, expression: str, argument: Any = None, patience_s: float = PATIENCE_S) -> None:
    """Wait until a function of the page returns true. Playwright's own wait evaluates strings, which the pages forbid (CSP)."""
    deadline = time.monotonic() + patience_s
    while not page.evaluate(expression, argument):
        if time.monotonic() > deadline:
            raise AssertionError(f"not true after {patience_s:g} s: {expression} ({argument!r})")
        page.wait_for_timeout(20)
