"""The tables of published systems name every preset, and files and parts that exist."""

from __future__ import annotations

import re

from lynceus.policy.presets import all_presets
from readers import ROOT

PAGE = (ROOT / "docs" / "algorithms.md").read_text(encoding="utf-8")
SOURCES = ROOT / "src"
OWN = {"lynceus", "lynceus-2020+stop"}
"""The default has a page of its own; the second is a row's variant, named in its deviation."""


def rows_of(*columns: str) -> list[list[str]]:
    """The cells of all rows of the tables with these columns."""
    tables = re.findall(rf"^\| {re.escape(' | '.join(columns))} \|\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [line.strip("| ").split(" | ") for table in tables for line in table.splitlines()]


SYSTEMS = [
    *rows_of("system (preset)", "element", "file", "deviation"),
    *rows_of("preset", "element", "file", "deviation"),
]


def test_every_row_has_an_element_a_file_and_a_deviation() -> None:
    assert len(SYSTEMS) >= 25
    assert [row for row in SYSTEMS if len(row) != 4 or not all(cell.strip() for cell in row)] == []


def test_every_preset_of_a_published_system_has_a_row() -> None:
    named = {name for system, *_ in SYSTEMS for name in re.findall(r"`([^`]+)`", system)}
    assert set(all_presets()) - OWN - named == set()
    assert all(f"`{name}`" in PAGE for name in OWN)


def test_the_files_and_parts_of_the_tables_exist() -> None:
    defined = set(
        re.findall(r"^(?:class|def) (\w+)", "".join(path.read_text() for path in SOURCES.rglob("*.py")), re.MULTILINE)
    )
    named = [name for _, _, files, _ in SYSTEMS for name in re.findall(r"`([^`]+)`", files)]
    paths = [name for name in named if "/" in name]
    assert [path for path in paths if not any((SOURCES / top / path).exists() for top in ("", "lynceus"))] == []
    assert [name for name in named if name not in paths and name not in defined] == []
    assert len(paths) >= len(SYSTEMS) / 2
