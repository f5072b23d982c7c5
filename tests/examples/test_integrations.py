"""The examples of other tools run with the real tools."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(example: str, *arguments: str, folder: Path) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_optuna(tmp_path: Path) -> None:
    assert "best: {'trees':" in ran("optuna/tune.py", folder=tmp_path)


@pytest.mark.slow
def test_ray_tune_on_a_local_cluster(tmp_path: Path) -> None:
    assert "trials: 8, best: {'trees':" in ran("ray-tune/tune_forest.py", folder=tmp_path)
