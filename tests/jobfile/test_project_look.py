"""What is proposed for Python programs with options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lynceus.jobfile.init_template import job_template
from lynceus.jobfile.project_look import Proposal, look

LIBRARIES = {
    "argparse": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--chunk-mb', type=int, default=8)\n"
        "p.add_argument('--codec', choices=['zstd', 'lz4'])\np.add_argument('--seed', type=int, default=7)\np.parse_args()\n"
    ),
    "click": (
        "import click\n@click.command()\n@click.option('--chunk-mb', default=8)\n"
        "@click.option('--codec', type=click.Choice(['zstd', 'lz4']))\n"
        "@click.option('--seed', default=7)\ndef go(chunk_mb, codec, seed): ...\ngo()\n"
    ),
    "typer": (
        "import typer\nfrom typing import Literal\ndef go(chunk_mb: int = 8, codec: Literal['zstd', 'lz4'] = 'lz4', seed: int = 7): ...\n"
        "typer.run(go)\n"
    ),
}


def proposed(folder: Path, **files: str) -> Proposal:
    for name, text in files.items():
        (folder / name).write_text(text)
    found = look(folder)
    assert found is not None
    return found


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["job.py", "main.py", "run.py", "train.py", "pack_the_logs.py"])
def test_options_become_parameters_whatever_the_file_is_called(tmp_path: Path, library: str, name: str) -> None:
    found = proposed(tmp_path, **{name: LIBRARIES[library]})
    assert found.answers.command == f"python3 {name} --chunk-mb ${{chunk_mb}} --codec ${{codec}}"
    assert found.answers.parameters == {"chunk_mb": "4, 8, 16, 32", "codec": "zstd, lz4"}
    assert name in found.found


def test_what_only_the_user_knows_is_named(tmp_path: Path) -> None:
    text = LIBRARIES["argparse"].replace(
        "p.parse", "p.add_argument('data')\np.add_argument('--out', required=True)\np.parse"
    )
    found = proposed(tmp_path, **{"job.py": text})
    assert found.answers.command == "python3 job.py DATA --out OUT --chunk-mb ${chunk_mb} --codec ${codec}"
    assert found.to_replace == ("DATA", "OUT")


def test_the_likeliest_program_is_chosen(tmp_path: Path) -> None:
    text = LIBRARIES["argparse"]
    guarded = text.replace("p.parse_args()", "if __name__ == '__main__':\n    p.parse_args()")
    assert "python3 main.py" in proposed(tmp_path, **{"clean.py": text, "main.py": text}).answers.command
    assert "python3 clean.py" in proposed(tmp_path, **{"clean.py": guarded}).answers.command


def test_a_target_that_is_the_job_comes_before_a_program_and_any_other_after_it(tmp_path: Path) -> None:
    assert proposed(tmp_path, Makefile="all:\n\techo\n").answers.command.startswith("make all")
    assert proposed(tmp_path, **{"job.py": LIBRARIES["click"]}).answers.command.startswith("python3 job.py")
    assert proposed(tmp_path, Makefile="all:\n\techo\nrun:\n\techo\n").answers.command.startswith("make run")


def test_the_first_target_that_is_no_chore_is_better_than_nothing(tmp_path: Path) -> None:
    text = ".PHONY: clean\nclean:\n\trm x\ninstall-tools:\n\tpip\ndata.csv:\n\ttouch $@\nreport: data.csv\n\tsort $<\n"
    assert proposed(tmp_path, Makefile=text).answers.command == "make report --jobs ${jobs}"
    (tmp_path / "Makefile").write_text("test:\n\tpytest\n")
    assert look(tmp_path) is None


def test_known_names_come_first_and_four_are_enough(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "threads"]
    text = "".join(f"p.add_argument('--{name}', type=int, default=2)\n" for name in names)
    found = proposed(tmp_path, **{"job.py": f"import argparse\np = argparse.ArgumentParser()\n{text}"})
    assert list(found.answers.parameters) == ["a", "b", "c", "threads"]
    assert found.answers.price == "0.10 + 0.05 * threads"


def test_a_training_without_options_reads_its_environment(tmp_path: Path) -> None:
    found = proposed(tmp_path, **{"fit.py": "import torch\n"})
    assert (found.answers.command, list(found.answers.parameters)) == ("python3 fit.py", ["batch_size"])
    assert "LYNCEUS_PARAM_BATCH_SIZE" in found.found


def test_programs_without_options_to_tune_are_not_recognized(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=3)\n"
    )
    (tmp_path / "lib.py").write_text("x = 1\n")
    assert look(tmp_path) is None


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ("import gzip\np.add_argument('--level', type=int, default=6)", "1, 4, 6, 9"),
        ("import zstandard\np.add_argument('--level', type=int, default=12)", "1, 7, 12, 19"),
        ("import gzip\np.add_argument('--compression-level', type=int)", "1, 4, 6, 9"),
        ("p.add_argument('--level', type=int, default=12, choices=range(1, 23))", "1, 8, 12, 22"),
        ("p.add_argument('--level', type=int, default=1, choices=range(1, 4))", "1, 2, 3"),
        ("import gzip, zstandard\np.add_argument('--level', type=int, default=12)", "12"),
        ("p.add_argument('--level', type=int, default=12)", "12"),
        ("p.add_argument('--chunks', type=int, default=8, choices=range(1, 17))", "4, 8, 16"),
    ],
)
def test_levels_stay_within_their_scale(tmp_path: Path, declared: str, values: str) -> None:
    text = f"import argparse\np = argparse.ArgumentParser()\n{declared}\np.parse_args()\n"
    answers = proposed(tmp_path, **{"job.py": text}).answers
    assert list(answers.parameters.values()) == [values]
    assert answers.to_edit == (("level",) if values == "12" else ())
    assert ("edit this: add the other values" in job_template(answers)) == (values == "12")
    assert "edit this" not in job_template(replace(answers, parameters=dict.fromkeys(answers.parameters, "1, 2")))


@pytest.mark.parametrize(
    "text",
    [
        "import click\n@click.command()\n@click.option('--level', type=click.IntRange(1, max=19), default=3)\ndef go(level): ...\ngo()\n",
        "import typer\ndef go(level: int = typer.Option(3, min=1, max=19)): ...\ntyper.run(go)\n",
    ],
)
def test_limits_that_a_program_declares_are_kept(tmp_path: Path, text: str) -> None:
    assert proposed(tmp_path, **{"job.py": text}).answers.parameters == {"level": "1, 3, 13, 19"}
