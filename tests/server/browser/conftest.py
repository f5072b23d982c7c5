"""A browser and a server with a running study, for all tests of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from browsers import LATE, PATIENCE_S, chromium
from pages import Site, running_site, sign_in


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("pages")) as here:
        yield here


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def open_page(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Opens pages; fails if there was a console error, a failed request, or a request to another machine."""
    problems: list[str] = []
    contexts = []

    def listen(page: Page) -> None:
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: (
                problems.append(f"console: {message.text}") if message.type in ("error", "warning") else None
            ),
        )
        page.on("request", lambda sent: problems.append(f"elsewhere: {sent.url}") if not _is_here(sent.url) else None)
        page.on("response", lambda got: problems.append(f"{got.status}: {got.url}") if got.status >= 400 else None)

    def _is_here(url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(site.url).netloc

    def opened(
        path: str, *, width: int = 1280, height: int = 900, scheme: str = "light", token: str | None = None
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        context.add_init_script(LATE)
        context.set_default_timeout(1000 * PATIENCE_S)
        page = context.new_page()
        listen(page)
        if token is not None:
            sign_in(page, site, token)
        page.goto(site.url + path)
        page.locator("main > *").first.wait_for()
        return page

    opened.problems = problems  # type: ignore[attr-defined]
    yield opened
    for context in contexts:
        context.close()
    assert problems == []
