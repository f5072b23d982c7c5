"""A small job and an experiment on it, written to files."""

from pathlib import Path

import pytest

from lab_cases import write_experiment, write_job


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return write_job(tmp_path)


@pytest.fixture
def experiment_file(tmp_path: Path) -> Path:
    return write_experiment(tmp_path)
