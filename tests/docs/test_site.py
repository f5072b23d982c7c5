"""The documentation site without Sphinx: its sources, the pages that are written from the code, and the search for broken links."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer

import lynceus
from browsers import CHROMIUM, MISSING, chromium
from links import anchors
from lynceus.cli.app import app
from lynceus.server.app import create_app
from lynceus.version import __version__
from readers import ROOT

SITE = ROOT / "docs" / "site"
PYTHON = ROOT / ".venv-docs" / "bin" / "python"


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SITE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def build() -> ModuleType:
    before = list(sys.path)
    try:
        return loaded("build")
    finally:
        sys.path[:] = before


@pytest.fixture(scope="module")
def staged(build: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that Sphinx reads."""
    folder: Path = tmp_path_factory.mktemp("site") / "source"
    build.stage(folder)
    return folder


def test_links_of_the_site_stay_on_the_site(staged: Path) -> None:
    """Files of the repository that are no pages became plain names, and all other links lead to a page and its heading."""
    lost = []
    for page in staged.rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, heading = link.partition("#")
            target = page.parent / path if path else page
            if not target.is_file() or (heading and target.suffix == ".md" and heading not in anchors(target)):
                lost.append(f"{page.relative_to(staged)}: {link}")
    assert not lost


def test_every_page_of_the_table_of_contents_is_there(staged: Path) -> None:
    listed = re.findall(r"^([\w/-]+)$", (staged / "index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) > 40
    assert [one for one in listed if not any((staged / f"{one}{end}").is_file() for end in (".md", ".ipynb"))] == []


def test_the_reference_has_all_that_the_code_has(staged: Path) -> None:
    text = {
        name: (staged / "reference" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("cli", "python-api", "http-api")
    }
    command = typer.main.get_command(app)
    options = {option for one in command.commands.values() for param in one.params for option in param.opts}  # type: ignore[attr-defined]
    assert [one for one in command.commands if f"\n## lynceus {one}\n" not in text["cli"]] == []  # type: ignore[attr-defined]
    assert [one for one in options if one.startswith("--") and one != "--help" and f"`{one}`" not in text["cli"]] == []
    assert [one for one in lynceus.__all__ if f"\n## {one}\n" not in text["python-api"]] == []
    paths = create_app("sqlite://").openapi()["paths"]
    headings = [f"\n## {verb.upper()} {path}\n" for path, verbs in paths.items() for verb in verbs]
    assert [one for one in headings if one not in text["http-api"]] == []


def test_links_that_lead_nowhere_are_found(build: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "good.html").write_text('<h1 id="top">x</h1><a href="https://example.org">x</a><a href="#top">x</a>')
    assert build.broken(tmp_path) == []
    (tmp_path / "bad.html").write_text(
        '<a href="good.html#end">x</a><img src="none.png"><a href="good.html?q=1#top">x</a>'
    )
    assert build.broken(tmp_path) == ["bad.html: good.html#end", "bad.html: none.png"]


def test_a_link_to_a_missing_file_ends_the_build(build: ModuleType) -> None:
    with pytest.raises(SystemExit, match=r"docs/guide\.md: the link gone\.md leads nowhere\."):
        build.relinked("[gone](gone.md)", Path("docs/guide.md"), Path("guide.md"))


@pytest.mark.skipif(CHROMIUM is None, reason=MISSING)
def test_search_shows_titles_before_headings_before_text_and_then_names() -> None:
    """Results as Sphinx makes them: page, what is shown, place, description, score, file, kind; it sorts by score, then by name."""
    results = [
        ["algorithms", "Algorithms", "", None, 5, "algorithms.md", "text"],
        ["policy", "Policies", "", None, 15, "policy.md", "text"],  # a heading of it has the word
        ["zeal", "The budgets of teams", "", None, 15, "zeal.md", "text"],
        ["budgets", "Budget", "", None, 15, "budgets.md", "title"],
        ["abacus", "Abacus > Budget and time", "#b", None, 6, "abacus.md", "title"],
        ["zoo", "Zoo > Budget", "#b", None, 15, "zoo.md", "title"],
        ["part", "Partly", "", None, 2, "part.md", "text"],
    ]
    script = (SITE / "static" / "scorer.js").read_text(encoding="utf-8")
    with chromium() as browser:
        page = browser.new_page()
        fits = page.evaluate(
            f"(results) => {{ {script}; return results.map((one) => fitOf(one, 'Budget')); }}", results
        )
        page.close()
    shown = [one[1] for _, one in sorted(zip(fits, results, strict=True), key=lambda pair: (-pair[0], pair[1][1]))]
    assert shown == [
        "Budget",
        "The budgets of teams",
        "Zoo > Budget",
        "Policies",
        "Abacus > Budget and time",
        "Algorithms",
        "Partly",
    ]


@pytest.mark.slow
def test_the_site_is_built(tmp_path: Path) -> None:
    """Beside an older version, which it leaves alone."""
    if not PYTHON.exists():
        pytest.skip("Sphinx is not installed here: make docs")
    (tmp_path / "0.9.0").mkdir()
    (tmp_path / "0.9.0" / "index.html").touch()
    subprocess.run([PYTHON, SITE / "build.py", tmp_path], check=True)
    assert (tmp_path / "versions.json").read_text() == f'["{__version__}", "0.9.0"]'
    assert f"url={__version__}/index.html" in (tmp_path / "index.html").read_text()
    assert (tmp_path / __version__ / "searchindex.js").stat().st_size > 100_000
    assert "fitOf" in (tmp_path / __version__ / "_static" / "language_data.js").read_text()
