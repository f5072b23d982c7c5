"""The files of the pages: what they load is there and is said beforehand, and no text can become markup."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import pytest

import lynceus

STATIC = Path(lynceus.__file__).parent / "web" / "static"
PAGES = sorted(STATIC.glob("*.html"))
SCRIPTS = sorted(STATIC.rglob("*.js"))
_FROM = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";$', re.MULTILINE)


def needed(path: str, seen: set[str]) -> set[str]:
    """A module and all that it imports."""
    if path not in seen:
        seen.add(path)
        for other in _FROM.findall((STATIC / path).read_text(encoding="utf-8")):
            needed(posixpath.normpath(posixpath.join(posixpath.dirname(path), other)), seen)
    return seen


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_beforehand_what_it_loads(page: Path) -> None:
    """Otherwise the browser would find modules one after another, each after a way to the server and back."""
    text = page.read_text(encoding="utf-8")
    [entry] = re.findall(r'<script type="module" src="/static/([^"]+)"></script>', text)
    told = re.findall(r'<link rel="modulepreload" href="/static/([^"]+)">', text)
    assert sorted(told) == sorted(needed(entry, set()) - {entry})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_holds_no_script_and_no_style_of_its_own(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*src=)", text)
    assert not re.search(r"(src|href)=\"(?!/static/|#main)", text), "everything comes from this server"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_texts_enter_a_page_as_texts(script: Path) -> None:
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
    assert addresses <= {"http://www.w3.org/2000/svg"}, "a namespace, not an address"


def test_every_module_is_used() -> None:
    used: set[str] = set()
    for name in ("studies", "study", "trial", "compare", "login", "lost", "report"):
        needed(f"pages/{name}.js", used)
    assert used == {str(script.relative_to(STATIC)) for script in SCRIPTS}
