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
    assert (first.returncode, first.stdout) == (0, "3 cells: 0 were there already, 3 were run now, 0 crashed.\n")
    assert "3 of 3 cells, about 0s left" in first.stderr
    again = lynceus("lab", "run", str(experiment), "--seeds", "2", "-p", "plain", "--workers", "2", cwd=tmp_path)
    assert again.stdout == "2 cells: 1 were there already, 1 were run now, 0 crashed.\n"
    reported = lynceus("lab", "report", str(experiment), "--no-svg", cwd=tmp_path)
    pages = tmp_path / ".lynceus" / "results"
    assert reported.stdout == (
        "1 summaries written to results, 1 pages to .lynceus/results; all claims are in .lynceus/results/results.md.\n"
    )
    assert re.search(r"Timeouts save money \| 1.2× \| [0-9.]+ \| 1 \| ", (pages / "results.md").read_text())
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["experiment.csv", "experiment.json"]
    assert {"experiment.md", "experiment-1.png"} <= {path.name for path in pages.iterdir()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "lab: no experiment was named; 'lynceus lab list' shows them, or give --quick or --all."),
        (["run", "obool"], "lab: there is no experiment 'obool'; did you mean 'obol'?"),
        (
            ["run", "obol", "-p", "depht 2"],
            "--policy: none of the experiments has a policy 'depht 2'; did you mean 'depth 2'?",
        ),
        (["run", "obol", "--seeds", "0"], "--seeds: got 0; give at least 1."),
        (["run", "obol", "--engine", "spark"], "engine: got 'spark'; choose local, ray, or ray://HOST:PORT."),
        (["verify"], "lab: no experiment was named; 'lynceus lab list' shows them, or give --all."),
        (["run", "nowhere.yaml"], "nowhere.yaml: there is no such file; give the path of a YAML file."),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(words, message, tmp_path):
    done = lynceus("lab", *words, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"lynceus: {message}\n")


def test_quick_runs_few_seeds_of_an_experiment_outside_the_quick_set(experiment, tmp_path):
    done = lynceus("lab", "run", str(experiment), "--quick", cwd=tmp_path)
    assert done.stdout == "6 cells: 0 were there already, 6 were run now, 0 crashed.\n"


def test_folders_of_pages_are_created(experiment, tmp_path):
    lynceus("lab", "run", str(experiment), "--seeds", "1", "-p", "plain", cwd=tmp_path)
    words = ("lab", "report", str(experiment), "--no-svg", "--out", "far/results")
    reported = lynceus(*words, "--page", "far/away/page.md", cwd=tmp_path)
    assert (tmp_path / "far" / "away" / "page.md").is_file(), reported.stderr
    refused = lynceus(*words, "--page", f"{experiment}/page.md", cwd=tmp_path)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "--page: " in refused.stderr


def test_a_missing_data_folder_is_named(experiment, tmp_path, monkeypatch):
    monkeypatch.setenv("LYNCEUS_DATA", "nowhere")
    done = lynceus("lab", "run", "icdcs20-fig4", cwd=tmp_path)
    message = f"lynceus: LYNCEUS_DATA: {tmp_path}/nowhere is not a folder; set it to the folder of the tables.\n"
    assert (done.returncode, done.stderr) == (2, message)
