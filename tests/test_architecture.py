"""The architecture holds: packages are ordered, imports go down the list only, files and classes stay small."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
PACKAGE = SOURCES / "lynceus"
LABORATORY = SOURCES / "lynceus_lab"
FILES = sorted([*PACKAGE.rglob("*.py"), *LABORATORY.rglob("*.py")])

LAYERS = [
    "version",
    "errors",
    "space",
    "problem",
    "trial",
    "models",
    "acquisition",
    "policy",
    "recurring",
    "storage",
    "executors",
    "study",
    "prices",
    "jobfile",
    "analysis",
    "library",
    "visualization",
    "integrations",
    "notify",
    "reports",
    "client",
    "server",
    "replay",
    "demo",
    "cli",
    "testing",
]
"""A package imports itself and packages before it: at the top of a file, in functions, and for type checkers alike."""

MOST_LINES = 400
MOST_METHODS = 15
MOST_ARGUMENTS = 8
MOST_FUNCTION_LINES = 50


def name_of(path: Path) -> str:
    return str(path.relative_to(SOURCES))


def package_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else path.stem


def imports(path: Path, text: str | None = None) -> list[str]:
    """Dotted names of project modules that a file (or a text in its place) imports, wherever in the file."""
    text = path.read_text(encoding="utf-8") if text is None else text
    package = path.relative_to(SOURCES).parts[:-1]
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found += [f"{module}.{alias.name}" for alias in node.names] if module == "lynceus" else [module]
    return [name for name in found if name.split(".")[0] in ("lynceus", "lynceus_lab")]


def packages_imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imports(path) if name.startswith("lynceus.")}


def product(files: list[Path]) -> list[Path]:
    return [path for path in files if PACKAGE in path.parents and path != PACKAGE / "__init__.py"]


def test_every_package_has_its_place() -> None:
    entries = {path.stem for path in PACKAGE.iterdir() if path.name not in ("__init__.py", "__pycache__", "py.typed")}
    assert entries == set(LAYERS)


@pytest.mark.parametrize("path", product(FILES), ids=name_of)
def test_imports_go_down_the_list(path: Path) -> None:
    place = LAYERS.index(package_of(path))
    higher = packages_imported(path) - set(LAYERS[: place + 1])
    assert not higher, f"{name_of(path)} imports {sorted(higher)} from above"


@pytest.mark.parametrize("path", product(FILES), ids=name_of)
def test_the_product_does_not_know_the_laboratory(path: Path) -> None:
    assert not [name for name in imports(path) if name.startswith("lynceus_lab")]


def test_the_kernel_knows_nothing_of_the_project() -> None:
    for path in (PACKAGE / "models" / "_kernel").rglob("*.py"):
        foreign = [name for name in imports(path) if not name.startswith("lynceus.models._kernel")]
        assert not foreign, f"{name_of(path)} imports {foreign}"


HEAVY = (
    "fastapi",
    "matplotlib",
    "pandas",
    "pyarrow",
    "scipy.optimize",
    "scipy.stats",
    "sklearn",
    "sqlalchemy",
    "uvicorn",
)
HELP = "import sys; sys.argv = ['lynceus', '--help']; from lynceus.cli.app import main; main()"
CREATE = "import lynceus as l; l.create_study(space=l.Space.build([l.Integer('n', 1, 8)], price='n'), budget='$1')"


@pytest.mark.parametrize(
    ("script", "further"),
    [
        ("import lynceus", ("numpy", "rich", "typer", "pydantic", "yaml")),
        ("import lynceus; lynceus.report(progress=1.0)", ("numpy", "rich", "typer", "pydantic", "yaml", "sqlite3")),
        (HELP, ("numpy", "pydantic", "yaml", "sqlite3", "ssl", "asyncio", "lynceus_lab.experiments")),
        (CREATE, ("rich", "typer", "pydantic", "yaml", "alembic", "asyncio")),
    ],
    ids=["import", "report", "help", "create_study"],
)
def test_what_starts_often_loads_little(script: str, further: tuple[str, ...]) -> None:
    """Seconds depend on the machine; what is imported does not."""
    told = f"import atexit, sys; atexit.register(lambda: print([n for n in {HEAVY + further!r} if n in sys.modules], file=sys.stderr))"
    done = subprocess.run([sys.executable, "-c", f"{told}\n{script}"], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_no_module_shadows_a_public_name() -> None:
    """After every submodule was imported, each public name is still what it was."""
    script = """
import importlib, pkgutil, lynceus
before = {name: getattr(lynceus, name) for name in lynceus.__all__}
for found in pkgutil.walk_packages(lynceus.__path__, "lynceus."):
    # Some modules run only in other environments: migrations in alembic's, SkyPilot's and Airflow's in theirs.
    if not any(part in found.name for part in ("__main__", "migrations", "skypilot.sdk", "airflow.operators")):
        importlib.import_module(found.name)
print([name for name in lynceus.__all__ if getattr(lynceus, name) is not before[name]])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_files_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES, f"{name_of(path)} is longer than {MOST_LINES} lines; split it"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "migrations" not in path.parts:
            lines = (node.end_lineno or 0) - node.lineno + 1
            assert lines <= MOST_FUNCTION_LINES, f"{name_of(path)}: {node.name} has {lines} lines; split it"


def classes(path: Path) -> Iterator[tuple[ast.ClassDef, list[ast.FunctionDef | ast.AsyncFunctionDef]]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef):
            yield node, [one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_classes_are_narrow(path: Path) -> None:
    for node, methods in classes(path):
        public = {one.name for one in methods if not one.name.startswith("_")}
        assert len(public) <= MOST_METHODS, f"{name_of(path)}: {node.name} has {len(public)} public methods"
        for one in methods:
            arguments = [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs][1:]
            assert one.name != "__init__" or len(arguments) <= MOST_ARGUMENTS, f"{name_of(path)}: {node.name}.__init__"


def test_the_page_names_files_that_exist() -> None:
    page = (SOURCES.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = {path for path in re.findall(r"`([a-z_]+/[a-z_/.0-9]*)`", page) if not path.startswith("docs/")}
    roots = (PACKAGE, SOURCES, SOURCES.parent)
    assert len(named) > 30
    assert not [path for path in sorted(named) if not any((root / path).exists() for root in roots)]
    picture = page.split("```")[1]
    rows = [re.match(r" ([a-z]+(?: · [a-z]+)*)(?:\s|$)", line) for line in picture.splitlines()]
    assert {name for row in rows if row for name in row[1].split(" · ")} == set(LAYERS)


def test_the_walk_sees_imports_of_every_spelling() -> None:
    """The guard itself: an import that it overlooked would make every other test here worthless."""
    text = (
        "import lynceus.engine\nfrom lynceus import study\nfrom .. import policy\nfrom ..ledger import memory\n"
        "def f():\n    from lynceus.choose.designs import Amount\n"
    )
    found = imports(PACKAGE / "space" / "cells.py", text)
    assert found == ["lynceus.engine", "lynceus.study", "lynceus.policy", "lynceus.ledger", "lynceus.choose.designs"]
