"""Text of jobs and storages is data on every exit of the command line: terminals, pipes, CSV, JSON and reports."""

from __future__ import annotations

import ast
import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

import lynceus.cli

JOB = r"""
name: toy
run: |
  printf 'job \033[2J\r50%%\233 \342\200\256end\n'
  printf '{"[/bold]": 1, "[link=http:x]": 2, "constructor": 3, "=HYPERLINK(1)": 4}\n' > "$LYNCEUS_RESULT"
space: {threads: [1], flag: ["=cmd|calc", "[/red]x"]}
price: 36.0
budget: {cost: 100 USD, max_trials: 2}
policy: sweep
trial: {timeout: none, grace: 100ms, max_duration: 1m}
"""


@pytest.fixture
def study(lynceus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LYNCEUS_STORAGE", raising=False)
    (tmp_path / "job.yaml").write_text(JOB)
    code, out, err = lynceus("run", "job.yaml", "-y")
    assert code == 0, out + err
    return tmp_path


def on_terminal(*arguments: str, **variables: str) -> bytes:
    """What a command prints on a terminal of its own."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "lynceus.cli", *arguments],
        stdin=slave, stdout=slave, stderr=subprocess.STDOUT, env=os.environ | {"TERM": "dumb"} | variables,
    ) as process:  # fmt: skip
        os.close(slave)
        seen = b""
        try:
            while piece := os.read(master, 65536):
                seen += piece
        except OSError:  # the terminal is gone with its last user
            pass
        assert process.wait() == 0, seen
    os.close(master)
    return seen


@pytest.mark.usefixtures("study")
def test_every_command_shows_hostile_names_as_they_are(lynceus) -> None:
    for command in (["trials", "toy"], ["status"], ["best"], ["explain"], ["whatif", "toy", "--deadline", "1m"]):
        code, out, err = lynceus(*command)
        assert (code, err) == (0, ""), command
        assert "\x1b" not in out
    _, out, _ = lynceus("trials", "toy")
    assert "[/red]x" in out
    assert "constructor" in out


@pytest.mark.usefixtures("study")
def test_output_of_a_job_steers_a_terminal_only_if_asked_to() -> None:
    shown = on_terminal("logs", "toy", "0")
    assert shown.decode() == "job \ufffd[2J\r\n50%\ufffd \ufffdend\r\n"
    assert b"\x1b[2J" in on_terminal("logs", "toy", "0", "--raw")
    piped = subprocess.run(
        [sys.executable, "-m", "lynceus.cli", "logs", "toy", "0"], capture_output=True, check=True
    ).stdout
    assert b"job \x1b[2J\r50%" in piped


@pytest.mark.usefixtures("study")
def test_tables_fit_any_terminal() -> None:
    assert on_terminal("trials", "toy", COLUMNS="1")


@pytest.mark.usefixtures("study")
def test_csv_has_no_formulas_and_keeps_its_numbers(lynceus) -> None:
    _, out, _ = lynceus("export", "toy", "--to", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["params_flag"] for row in rows} == {"'=cmd|calc", "[/red]x"}
    assert [float(row["charged_usd"]) > 0 for row in rows] == [True, True]
    assert not [cell for row in rows for cell in (*row, *row.values()) if cell[:1] in ("=", "+", "@", "\t", "\r")]


def test_an_exported_file_can_be_imported_again(lynceus, study: Path) -> None:
    lynceus("export", "toy", "--file", "trials.csv")
    (study / "job.yaml").write_text(JOB.replace("name: toy", "name: again"))
    code, out, err = lynceus("import", "job.yaml", "trials.csv")
    assert (code, "2 measurements were imported" in out) == (0, True), err


@pytest.mark.usefixtures("study")
def test_json_is_exact_in_any_encoding() -> None:
    command = [sys.executable, "-m", "lynceus.cli", "logs", "toy", "0", "-o", "json"]
    out = subprocess.run(
        command, capture_output=True, check=True, env=os.environ | {"PYTHONIOENCODING": "ascii"}
    ).stdout
    assert not {byte for byte in out if byte < 32 and byte != 10}
    assert json.loads(out)["stdout"].startswith("job \x1b[2J\r50%")


def test_commands_print_through_one_module_only() -> None:
    """So that no text from elsewhere reaches a terminal without being cleaned."""
    folder = Path(lynceus.cli.__file__).parent
    for path in folder.glob("*.py"):
        if path.name == "output.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = {
            f"{node.module}.{one.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for one in node.names
        }
        assert "rich.markup.escape" not in imported, path
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        assert not called & {"typer.echo", "print", "rich.print", "Console"}, path
