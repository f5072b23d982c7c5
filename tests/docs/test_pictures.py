"""Pictures never lie: each one that a page shows exists, a script makes it, and pictures of the terminal show commands that exist."""

from __future__ import annotations

import html
import importlib.util
import re
import shlex
from types import ModuleType

import pytest
import typer

from lynceus.cli.app import app
from readers import ROOT

IMAGES = ROOT / "docs" / "images"
PAGES = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
OTHER_MAKERS = {"demo.png": "lynceus demo --plot", "decision-growth.png": "python -m benchmarks.decision"}
"""Pictures of measurements, and the commands that make them."""


def terminal() -> ModuleType:
    spec = importlib.util.spec_from_file_location("terminal_pictures", ROOT / "docs" / "terminal.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


COMMANDS = terminal().PICTURES


def test_every_picture_of_a_page_exists_and_every_picture_is_shown() -> None:
    shown = set()
    for page in PAGES:
        for link in re.findall(r"[(\"]((?:docs/)?images/[^)\"]+)[)\"]", page.read_text(encoding="utf-8")):
            assert (page.parent / link).is_file(), f"{page.name}: {link}"
            shown.add((page.parent / link).name)
    assert {path.name for path in IMAGES.iterdir()} == shown


def test_a_script_makes_every_picture() -> None:
    pages = re.findall(r'"([a-z-]+)"', (ROOT / "docs" / "screenshots.py").read_text(encoding="utf-8"))
    made = {f"dashboard-{name}.png" for name in pages} | {f"{name}.svg" for name in COMMANDS} | set(OTHER_MAKERS)
    assert {path.name for path in IMAGES.iterdir()} <= made


@pytest.mark.parametrize("name", COMMANDS)
def test_the_picture_of_a_terminal_shows_the_commands_of_its_script(name: str) -> None:
    svg = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    text = html.unescape("".join(re.findall(r">([^<]*)<", svg))).replace("\xa0", " ")
    for command in COMMANDS[name]:
        assert f"$ {command}" in text
    assert "http" not in re.sub(r'xmlns="[^"]+"', "", svg).replace("http://www.w3.org", ""), "nothing is fetched"
    assert "/tmp/" not in text


def test_the_commands_of_pictures_exist() -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for command in (one for commands in COMMANDS.values() for one in commands):
        words = shlex.split(command)
        assert words[0] == "lynceus"
        assert words[1] in known or words[1] == "--help"


def test_the_list_of_commands_in_the_picture_of_the_help_is_complete() -> None:
    svg = (IMAGES / "terminal-help.svg").read_text(encoding="utf-8")
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert not [name for name, one in known.items() if not one.hidden and not re.search(rf">{name}(?:&#160;|<)", svg)]
