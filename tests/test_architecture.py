"""The house keeps its shape: imports go down or stay, rooms of the first floor do not know each other, files fit in a head."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "lynceus"
FILES = sorted(PACKAGE.rglob("*.py"))

GROUND_ORDER = [
    "errors",
    "units",
    "randomness",
    "distribution",
    "space",
    "fraction",
    "restarts",
    "problem",
    "history",
    "situation",
    "parts",
]
"""On the ground floor each may know those before it."""
GROUND = set(GROUND_ORDER)
FIRST = {"surrogate", "acquisition", "choose", "timeout", "stopping"}
FLOORS = {
    **dict.fromkeys(GROUND, 0),
    **dict.fromkeys(FIRST, 1),
    "policy": 2,
    "conduct": 2,
    "document": 2,
    "estimate": 3,
    "supervisor": 3,
    "ledger": 3,
    "executor": 3,
    "trial": 3,
    "study": 3,
    "notebook": 3,
    "durable": 3,
    "engine": 4,
}
ROOF = 5
"""Every other room shows or measures: command line, web, replay, demo, lab, documents of jobs, conformance checks."""

MOST_LINES = 600


def room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(path: Path, text: str | None = None) -> list[str]:
    """Dotted names of project modules that a file (or a text in its place) imports, wherever in the file."""
    text = path.read_text(encoding="utf-8") if text is None else text
    package = ("lynceus", *path.relative_to(PACKAGE).parts[:-1])
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found += [f"{module}.{alias.name}" for alias in node.names] if module == "lynceus" else [module]
    return [name for name in found if name == "lynceus" or name.startswith("lynceus.")]


def rooms_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(path) if "." in name}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_or_stay(path: Path) -> None:
    here = room(path)
    if here == "__init__":
        return
    floor = FLOORS.get(here, ROOF)
    higher = {other for other in rooms_imported(path) if FLOORS.get(other, ROOF) > floor}
    assert not higher, f"{path.relative_to(PACKAGE)} is on floor {floor} and imports {sorted(higher)} from above"


@pytest.mark.parametrize(
    "path", [path for path in FILES if room(path) in FIRST], ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_rooms_of_the_first_floor_do_not_know_each_other(path: Path) -> None:
    neighbours = rooms_imported(path) & FIRST - {room(path)}
    assert not neighbours, (
        f"{path.relative_to(PACKAGE)} imports {sorted(neighbours)}; it must receive them as arguments"
    )


@pytest.mark.parametrize(
    "path", [path for path in FILES if room(path) in GROUND], ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_the_ground_floor_is_a_staircase(path: Path) -> None:
    place = GROUND_ORDER.index(room(path))
    later = rooms_imported(path) & set(GROUND_ORDER[place + 1 :])
    assert not later, f"{path.relative_to(PACKAGE)} imports {sorted(later)}, which stand on it"


def test_the_kernel_knows_nothing_of_the_project() -> None:
    kernel = PACKAGE / "surrogate" / "_kernel"
    for path in kernel.rglob("*.py"):
        foreign = [name for name in imports(path) if not name.startswith("lynceus.surrogate._kernel")]
        assert not foreign, f"{path.relative_to(PACKAGE)} imports {foreign}"


def test_importing_the_package_touches_no_heavy_package() -> None:
    heavy = ["pandas", "sklearn", "matplotlib", "pyarrow", "sqlalchemy", "scipy.stats", "scipy.optimize", "fastapi"]
    script = f"import lynceus, sys; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_fits_in_a_head(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= MOST_LINES, f"{path.relative_to(PACKAGE)} has {lines} lines; split it below {MOST_LINES}"


def test_the_walk_sees_imports_of_every_spelling() -> None:
    """The guard itself: an import that it overlooked would make every other test here worthless."""
    text = (
        "import lynceus.engine\nfrom lynceus import study\nfrom .. import policy\nfrom ..ledger import memory\n"
        "def f():\n    from lynceus.choose.designs import Amount\n"
    )
    found = imports(PACKAGE / "space" / "cells.py", text)
    assert found == ["lynceus.engine", "lynceus.study", "lynceus.policy", "lynceus.ledger", "lynceus.choose.designs"]
