"""The examples of other tools run with the real tools."""

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(example: str, *arguments: str, folder: Path) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_optuna(tmp_path: Path) -> None:
    assert "best: {'trees':" in ran("optuna/tune.py", folder=tmp_path)
