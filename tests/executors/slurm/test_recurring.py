"""Recurring jobs on a real Slurm cluster: `lynceus exec` runs and records them, and what a killed command left is collected."""

import sys
from pathlib import Path

import pytest

from recurring_runs import adopted_job, check_collected_after_a_kill, check_recorded_once
from slurm_bench import SlurmBench

EXECUTOR = f'{{kind: slurm, nodes: "${{n}}", memory: 200 MB, python: {sys.executable}, poll: 0.2s}}'


def test_a_run_is_recorded_once(
    slurm: SlurmBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lynceus = adopted_job(tmp_path, EXECUTOR, monkeypatch, capsys)
    check_recorded_once(lynceus, tmp_path)


def test_a_run_whose_command_was_killed_goes_on_and_is_recorded(
    slurm: SlurmBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lynceus = adopted_job(tmp_path, EXECUTOR, monkeypatch, capsys)
    check_collected_after_a_kill(lynceus, tmp_path)
