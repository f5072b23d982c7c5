"""Options that Python programs declare, read without running them."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynceus.jobfile.python_programs import Option, programs_in

ARGPARSE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("data")
parser.add_argument("more", nargs="?")
parser.add_argument("-c", "--chunk-mb", type=int, default=8)
parser.add_argument("--rate", type=float, default=0.5, dest="ratio")
parser.add_argument("--codec", choices=["zstd", "lz4"], required=True)
parser.add_argument("--verbose", action="store_true")
parser.add_argument(*computed, help="not a constant")
"""
CLICK = """
from click import argument, command, option, Choice, IntRange
@command()
@argument("data")
@option("--chunk-mb", "-c", default=8)
@option("--rate", "ratio", default=0.5, type=float)
@option("--codec", type=Choice(["zstd", "lz4"]), required=True)
@option("--verbose/--quiet")
def main(data, chunk_mb, rate, codec, verbose): ...
"""
TYPER = """
from typing import Annotated, Literal
import typer
app = typer.Typer()
@app.command()
def main(
    data: str,
    chunk_mb: Annotated[int, typer.Option("--chunk-mb", "-c")] = 8,
    rate: float = typer.Option(0.5),
    codec: Annotated[Literal["zstd", "lz4"], typer.Option()] = ...,
    verbose: bool = False,
): ...
def helper(other: int = 3): ...
"""
DATA = Option("", "data", is_required=True)
CHUNK = Option("--chunk-mb", "chunk_mb", "int", 8)
CODEC = Option("--codec", "codec", choices=("zstd", "lz4"), is_required=True)
FLAG = Option("--verbose", "verbose", "flag")


def options(folder: Path, text: str) -> list[Option]:
    (folder / "anything.py").write_text(text)
    (program,) = programs_in(folder)
    return list(program.options)


def test_options_of_argparse(tmp_path: Path) -> None:
    rate = Option("--rate", "ratio", "float", 0.5)
    assert options(tmp_path, ARGPARSE) == [DATA, Option("", "more"), CHUNK, rate, CODEC, FLAG]


def test_options_of_click(tmp_path: Path) -> None:
    assert options(tmp_path, CLICK) == [DATA, CHUNK, Option("--rate", "rate", "float", 0.5), CODEC, FLAG]


def test_options_of_typer(tmp_path: Path) -> None:
    assert options(tmp_path, TYPER) == [DATA, CHUNK, Option("--rate", "rate", "float", 0.5), CODEC, FLAG]


def test_a_function_that_typer_runs(tmp_path: Path) -> None:
    text = "import typer\ndef work(n: int, *, level: int = 3): ...\ntyper.run(work)\n"
    assert options(tmp_path, text) == [Option("", "n", "int", is_required=True), Option("--level", "level", "int", 3)]


@pytest.mark.parametrize("name", ["tests/a.py", ".hidden/a.py", "venv/lib/a.py", "a/b/c/d.py"])
def test_files_that_are_not_the_project(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(ARGPARSE)
    assert list(programs_in(tmp_path)) == []


@pytest.mark.parametrize("text", ["def (:", "\0", "x = " + "(" * 5000])
def test_files_that_are_not_python_are_passed_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text(ARGPARSE)
    assert [program.path for program in programs_in(tmp_path)] == ["b.py"]
