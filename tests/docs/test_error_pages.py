"""Messages name pages of the documentation that exist, and name them once, at the end."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path

import pytest

import lynceus
from links import anchors
from lynceus.errors import InputError, LynceusError, explained_in, page_address
from lynceus.jobfile.field_pages import PAGES
from lynceus.jobfile.sections.job_file import JobFile
from readers import ROOT

SOURCES = ROOT / "src" / "lynceus"


def named_pages() -> set[str]:
    """Every page that an error may name: by field, by class, and by the part of the program that raised it."""
    found = {"job-file.md", *PAGES.values()}
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["see"]:
                values = [one.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)]
                found |= {one for one in values if isinstance(one, str) and ".md" in one}
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "explained_in":
                found |= {one.value for one in node.args if isinstance(one, ast.Constant)}
    return found


@pytest.mark.parametrize("page", sorted(named_pages()))
def test_a_page_that_errors_name_exists_with_its_section(page: str) -> None:
    name, _, section = page.partition("#")
    assert (ROOT / "docs" / name).is_file()
    assert not section or section in anchors(ROOT / "docs" / name)


def test_every_field_of_the_job_file_has_a_page() -> None:
    assert {field.alias or name for name, field in JobFile.model_fields.items()} - {"version"} == set(PAGES)


def test_classes_name_pages_that_the_walk_has_seen() -> None:
    """The guard itself: classes that name a page in another way would not be checked."""
    for found in pkgutil.walk_packages(lynceus.__path__, "lynceus."):
        here = found.name.startswith(("lynceus.executors.", "lynceus.storage."))
        if here and "migrations" not in found.name and "skypilot.sdk" not in found.name:
            importlib.import_module(found.name)
    kinds, classes = [LynceusError], set()
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        classes |= {kind.see} - {None}
    assert len(classes) >= 5
    assert classes <= named_pages()


def test_the_page_of_the_innermost_part_counts() -> None:
    with pytest.raises(InputError) as raised, explained_in("replay.md"), explained_in("prices.md"):
        raise InputError("odd.")
    assert (str(raised.value), raised.value.see) == ("odd.", "prices.md")


def test_the_address_of_a_site_makes_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_DOCS", "https://docs.example.org/lynceus/1.0.0/")
    assert page_address("api.md#limits") == "https://docs.example.org/lynceus/1.0.0/api.html#limits"
    monkeypatch.delenv("LYNCEUS_DOCS")
    assert Path(ROOT, page_address("api.md")).is_file()
