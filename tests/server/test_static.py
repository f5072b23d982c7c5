"""The static files of the pages: modules are preloaded, nothing is inline, and no text can become markup."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest

import lynceus
from lynceus.server.routes.pages import TITLES, page_html

STATIC = Path(lynceus.__file__).parent / "server" / "static"
SCRIPTS = sorted(STATIC.rglob("*.js"))
_FROM = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";$', re.MULTILINE)


def needed(path: str, seen: set[str]) -> set[str]:
    """A module and everything it imports."""
    if path not in seen:
        seen.add(path)
        for other in _FROM.findall((STATIC / path).read_text(encoding="utf-8")):
            needed(posixpath.normpath(posixpath.join(posixpath.dirname(path), other)), seen)
    return seen


@pytest.mark.parametrize("page", TITLES)
def test_a_page_preloads_its_modules(page: str) -> None:
    """Otherwise the browser would discover them one after another, each after a round trip to the server."""
    text = page_html(page)
    [entry] = re.findall(r'<script type="module" src="/static/([^"]+)"></script>', text)
    preloaded = re.findall(r'<link rel="modulepreload" href="/static/([^"]+)">', text)
    assert sorted(preloaded) == sorted(needed(entry, set()) - {entry})


@pytest.mark.parametrize("page", TITLES)
def test_a_page_has_no_inline_script_or_style(page: str) -> None:
    text = page_html(page)
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src=)", text)
    assert not re.search(r"(src|href)=\"(?!/static/|#main)", text), "everything comes from this server"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_texts_are_not_inserted_as_markup(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "createContextualFragment",
    ):
        assert word not in text
    addresses = set(re.findall(r"https?://[^\s\"'`]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, "only the SVG namespace"


def test_every_module_is_used() -> None:
    used: set[str] = set()
    for name in (*TITLES, "report"):
        needed(f"pages/{name}.js", used)
    assert used == {str(script.relative_to(STATIC)) for script in SCRIPTS}
