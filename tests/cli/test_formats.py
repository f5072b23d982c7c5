"""What commands print: formats, precision, tables in pipes, help."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
import typer

import lynceus as library
from lynceus.cli.app import app

PRECISE = 0.12345678901234568
LONG = "v" * 120


@pytest.fixture
def study(here: Path) -> library.Study:
    """A study that a program made: long values, a precise metric."""
    space = library.Space.build([library.Categorical("word", [LONG, "short"])], price="0.1")
    made = library.create_study(
        space=space, constraints=["runtime <= 1h"], storage="sqlite:///lynceus.db", study_name="py", policy="sweep"
    )
    made.add_trial({"word": "short"}, runtime=120.0, metrics={"score": PRECISE, "bytes": 4312345.0})
    trial = made.ask()
    made.tell(trial, runtime=100.0, metrics={"score": PRECISE, "bytes": 4312346.0})
    return made


@pytest.mark.usefixtures("study")
def test_machine_formats_have_every_digit_and_the_times(lynceus) -> None:
    rows = json.loads(lynceus("trials", "py", "-o", "json")[1])
    exported = json.loads(lynceus("export", "py", "-o", "json")[1])
    table = list(csv.DictReader(io.StringIO(lynceus("export", "py")[1])))
    assert rows == exported
    assert [row["metrics"]["score"] for row in rows] == [PRECISE, PRECISE]
    assert [float(row["metrics_score"]) for row in table] == [PRECISE, PRECISE]
    assert (rows[0]["started"], rows[0]["ended"]) == (None, None), "nobody knows when an imported run was made"
    began, ended = (datetime.fromisoformat(rows[1][name]) for name in ("started", "ended"))
    assert (table[1]["started"], table[1]["ended"]) == (rows[1]["started"], rows[1]["ended"])
    assert began.utcoffset() is not None
    assert 0 <= (ended - began).total_seconds() < 600
    assert abs(datetime.now(tz=began.tzinfo) - ended).total_seconds() < 600


@pytest.mark.usefixtures("study")
def test_tables_in_pipes_are_neither_padded_nor_cut(lynceus) -> None:
    out = lynceus("trials", "py")[1]
    assert f"word={LONG}" in out, "not broken into lines"
    assert not set("│┃━┏") & set(out)
    assert all(line == line.rstrip() for line in out.splitlines())
    assert len(out.splitlines()) == 3
    assert "0.123457" in out
    assert "4312345" in out
    for words in (["status"], ["explain", "py"], ["policies"], ["whatif", "py", "--deadline", "2m"], ["best", "py"]):
        code, out, _ = lynceus(*words)
        assert code == 0
        assert all(line == line.rstrip() for line in out.splitlines()), words


@pytest.mark.usefixtures("study")
def test_export_into_a_file_writes_nothing_else(here: Path) -> None:
    import pyarrow.parquet

    for form in ("csv", "parquet"):
        command = f"{sys.executable} -m lynceus.cli export py --to {form} > out.{form}"
        done = subprocess.run(command, shell=True, cwd=here, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
    assert len((here / "out.csv").read_text().splitlines()) == 3
    assert pyarrow.parquet.read_table(here / "out.parquet").num_rows == 2


@pytest.mark.usefixtures("study")
def test_o_is_the_format_and_file_the_file(here: Path, lynceus) -> None:
    code, _, err = lynceus("report", "py", "-o", "r.html")
    assert (code, "--file r.html" in err, err.count("\n")) == (2, True, 1)
    code, _, err = lynceus("export", "py", "-o", "t.csv")
    assert (code, "--file t.csv" in err, err.count("\n")) == (2, True, 1)
    code, out, _ = lynceus("report", "py", "--file", "r.html", "-o", "json")
    assert json.loads(out) == {"study": "py", "file": "r.html"}
    assert lynceus("export", "py", "--to", "csv", "--file", "t.csv")[:2] == (0, "")
    assert (here / "r.html").exists()
    assert (here / "t.csv").exists()


def test_h_is_help_everywhere(lynceus) -> None:
    command = typer.main.get_command(app)
    for name, one in command.commands.items():  # type: ignore[attr-defined]
        words = [[name], *([name, inner] for inner in getattr(one, "commands", {}))]
        for each in words:
            code, out, _ = lynceus(*each, "-h")
            assert (code, f"Usage: lynceus {' '.join(each)}" in out) == (0, True)
    assert lynceus("-h") == lynceus("--help")


def test_every_option_o_is_a_format() -> None:
    command = typer.main.get_command(app)
    for name, one in command.commands.items():  # type: ignore[attr-defined]
        for inner in [one, *getattr(one, "commands", {}).values()]:
            for option in inner.params:
                assert ("-o" in option.opts) == ("--output" in option.opts), name
                assert "-o" not in option.opts or "file" not in (option.help or "").lower(), name


@pytest.mark.usefixtures("study")
def test_resume_of_a_study_of_a_program_says_how(lynceus) -> None:
    before = lynceus("trials", "py", "-o", "json")[1]
    for words in (["resume", "py"], ["resume", "py", "--add-budget", "5 USD"], ["resume", "py", "--reprice"]):
        code, _, err = lynceus(*words)
        assert (code, err.count("\n")) == (2, 1)
        assert "create_study(…, study_name='py', storage=…, load_if_exists=True)" in err
    assert lynceus("trials", "py", "-o", "json")[1] == before
    assert json.loads(lynceus("status", "py", "-o", "json")[1])["running"] == 0


def test_imported_measurements_do_not_use_up_the_trials(here: Path, lynceus) -> None:
    job = (here / "job.yaml").read_text()
    (here / "job.yaml").write_text(job.replace("max_trials: 6", "max_trials: 2"))
    (here / "past.csv").write_text("threads,level,runtime,quality\n1,1,1.0,9\n2,1,1.0,9\n4,1,1.0,9\n")
    assert lynceus("import", "job.yaml", "past.csv")[0] == 0
    code, _, _ = lynceus("run", "job.yaml", "-y")
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert code == 0
    assert [row["why"] == "imported" for row in rows] == [True, True, True, False, False]
    assert "2 trials" in json.loads(lynceus("status", "toy", "-o", "json")[1])["reason"]
    (here / "again.csv").write_text(lynceus("export", "toy")[1])
    assert "known before" in lynceus("import", "toy", "again.csv")[1], "an export with its new columns can be imported"
