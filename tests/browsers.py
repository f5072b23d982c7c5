"""A real browser for tests: Debian's Chromium, driven by Playwright."""

import shutil
import time
from typing import Any

from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MISSING = "there is no Chromium here: make system installs it (apt-get install chromium)"
PATIENCE_S = 60.0
"""How long a test waits for something that must happen; a busy machine is slow, never wrong."""


def until(page: Page, expression: str, argument: Any = None, patience_s: float = PATIENCE_S) -> None:
    """Wait until a function of the page gives true. Playwright's own way evaluates texts, which the pages' policy forbids."""
    deadline = time.monotonic() + patience_s
    while not page.evaluate(expression, argument):
        if time.monotonic() > deadline:
            raise AssertionError(f"after {patience_s:g} s this is still not so: {expression} ({argument!r})")
        page.wait_for_timeout(20)
