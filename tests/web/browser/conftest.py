"""A Chromium, one server and one study that really runs, for all tests of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page

from browsers import LATE, PATIENCE_S, chromium
from pages import Place, running_place, sign_in


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with running_place(tmp_path_factory.mktemp("pages")) as here:
        yield here


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def look(browser: Browser, place: Place) -> Iterator[Callable[..., Page]]:
    """Opens pages; at the end no console error, no failed request and no request to another machine may have happened."""
    trouble: list[str] = []
    contexts = []

    def listen(page: Page) -> None:
        page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
        page.on(
            "console",
            lambda said: trouble.append(f"console: {said.text}") if said.type in ("error", "warning") else None,
        )
        page.on("request", lambda sent: trouble.append(f"elsewhere: {sent.url}") if not _is_here(sent.url) else None)
        page.on("response", lambda got: trouble.append(f"{got.status}: {got.url}") if got.status >= 400 else None)

    def _is_here(url: str) -> bool:
        return urlsplit(url).netloc == urlsplit(place.url).netloc

    def open_page(
        path: str, *, width: int = 1280, height: int = 900, scheme: str = "light", token: str | None = None
    ) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        context.add_init_script(LATE)
        context.set_default_timeout(1000 * PATIENCE_S)
        page = context.new_page()
        listen(page)
        if token is not None:
            sign_in(page, place, token)
        page.goto(place.url + path)
        page.locator("main > *").first.wait_for()
        return page

    open_page.trouble = trouble  # type: ignore[attr-defined]
    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []
