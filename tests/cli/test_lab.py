"""`lynceus lab` from the command line."""

import re
import subprocess
import sys

import pytest

from lab_cases import write_experiment


@pytest.fixture
def experiment(tmp_path):
    return write_experiment(tmp_path)


def lynceus(*words, cwd):
    return subprocess.run([sys.executable, "-m", "lynceus.cli", *words], capture_output=True, text=True, cwd=cwd)


def test_run_resume_and_report(experiment, tmp_path):
    first = lynceus("lab", "run", str(experiment), "--seeds", "1", cwd=tmp_path)
    assert (first.returncode, first.stdout) == (0, "3 cells: 0 had been run, 3 were run now, 0 crashed.\n")
    assert "3 of 3 cells, about 0s left" in first.stderr
    again = lynceus("lab", "run", str(experiment), "--seeds", "2", "-p", "plain", "--workers", "2", cwd=tmp_path)
    assert again.stdout == "2 cells: 1 had been run, 1 were run now, 0 crashed.\n"
    told = lynceus("lab", "report", str(experiment), "--no-svg", cwd=tmp_path)
    assert told.stdout == "1 summaries in docs/results, the page is docs/results.md.\n"
    assert re.search(
        r"\| Caps save money .* \| 1.2× \| [0-9.]+ \| 1 \| ", (tmp_path / "docs" / "results.md").read_text()
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "lab: no experiment was named; 'lynceus lab list' shows them, or give --quick or --all."),
        (["run", "obool"], "lab: there is no experiment 'obool'; did you mean 'obol'?"),
        (
            ["run", "obol", "-p", "depht 2"],
            "--policy: no experiment that was named has a policy 'depht 2'; did you mean 'depth 2'?",
        ),
        (["run", "obol", "--seeds", "0"], "--seeds: 0 came; give at least 1."),
        (["run", "obol", "--engine", "spark"], "engine: 'spark' came; choose local, ray, or ray://HOST:PORT."),
        (["verify"], "lab: no experiment was named; 'lynceus lab list' shows them, or give --all."),
        (["run", "nowhere.yaml"], "nowhere.yaml: there is no such file; give the path of a YAML file."),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(words, message, tmp_path):
    done = lynceus("lab", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"lynceus: {message}\n")


def test_few_seeds_of_an_experiment_that_is_not_in_the_quick_set(experiment, tmp_path):
    done = lynceus("lab", "run", str(experiment), "--quick", cwd=tmp_path)
    assert done.stdout == "6 cells: 0 had been run, 6 were run now, 0 crashed.\n"


def test_the_page_may_lie_in_a_folder_that_is_not_there_yet(experiment, tmp_path):
    lynceus("lab", "run", str(experiment), "--seeds", "1", "-p", "plain", cwd=tmp_path)
    words = ("lab", "report", str(experiment), "--no-svg", "--out", "far/results")
    told = lynceus(*words, "--page", "far/away/page.md", cwd=tmp_path)
    assert (tmp_path / "far" / "away").is_dir(), told.stderr
    refused = lynceus(*words, "--page", f"{experiment}/page.md", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "--page: " in refused.stderr


def test_a_wrong_folder_of_tables_is_named(experiment, tmp_path, monkeypatch):
    monkeypatch.setenv("LYNCEUS_DATA", "nowhere")
    done = lynceus("lab", "run", "icdcs20-fig4", cwd=tmp_path)
    message = f"lynceus: LYNCEUS_DATA: {tmp_path}/nowhere is not a folder; set it to the folder of the tables.\n"
    assert (done.returncode, done.stderr) == (2, message)
