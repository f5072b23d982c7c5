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
"""How long a test waits for something that must happen; a busy machine is slow, never wrong."""

LATE = """(() => {
  const late = (wait, act) => (...given) => { setTimeout(() => act(...given), wait); };
  const frame = window.requestAnimationFrame.bind(window), ask = window.fetch.bind(window), Observer = window.IntersectionObserver;
  window.requestAnimationFrame = (draw) => setTimeout(() => frame(draw), 120);
  window.IntersectionObserver = class extends Observer { constructor(seen, options) { super(late(120, seen), options); } };
  window.fetch = async (...given) => { await new Promise((go) => setTimeout(go, 120)); return ask(...given); };
})()"""
"""A script for every page of a test: frames, sightings and answers come late, as on a busy machine.

A test that looks before the page had time to draw then fails every time, here, and not one time in a hundred elsewhere.
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for the tests of one module, and no longer: while it is open, nothing else here may run an event loop."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=2000 * PATIENCE_S)
        yield browser
        browser.close()


def drawn(page: Page) -> None:
    """Wait until every chart in sight is drawn (or says that there is nothing to draw)."""
    until(
        page,
        """() => [...document.querySelectorAll('.plot')].every(
            (one) => one.firstChild !== null || !one.checkVisibility() || one.getBoundingClientRect().top > innerHeight)""",
    )


def until(page: Page, expression: str, argument: Any = None, patience_s: float = PATIENCE_S) -> None:
    """Wait until a function of the page gives true. Playwright's own way evaluates texts, which the pages' policy forbids."""
    deadline = time.monotonic() + patience_s
    while not page.evaluate(expression, argument):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {patience_s:g} s this is still not so: {expression} ({argument!r})")
        page.wait_for_timeout(20)
