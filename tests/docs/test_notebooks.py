"""The notebooks of the gallery run, and have the outputs that they have when they run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from readers import ROOT

FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> NotebookNode:
    spec = importlib.util.spec_from_file_location("execute_notebooks", FOLDER / "execute.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.executed(path)


def outputs(notebook: NotebookNode) -> list[list[str]]:
    """What each cell shows: its text, or that it is a picture. Durations, which differ, are left out."""
    found = []
    for cell in notebook.cells:
        shown = []
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            shown.append("picture" if "image/png" in data else str(output.get("text") or data.get("text/plain")))
        found.append([re.sub(r" +", " ", text) for text in shown])
    return found


def test_there_are_four_and_the_site_shows_them() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 4
    assert all(f"\nnotebooks/{path.stem}\n" in index for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_saved_with_its_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    text = path.read_text(encoding="utf-8")
    assert "picture" in {one for shown in outputs(notebook) for one in shown}
    assert not re.search(r"/(work|root|home|tmp)/|site-packages", text), "paths of a machine"


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_shows_when_it_runs(path: Path) -> None:
    assert outputs(executed(path)) == outputs(nbformat.read(path, as_version=4))
