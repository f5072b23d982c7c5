"""Recurring jobs on a real Ray cluster: `lynceus exec` runs and records them, and what a killed command left is collected."""

from pathlib import Path

import pytest

from ray_bench import Bench
from recurring_runs import adopted_job, check_collected_after_a_kill, check_recorded_once


def executor(cluster: Bench, folder: Path) -> str:
    return f'{{kind: ray, address: "{cluster.address}", num_cpus: "${{n}}", node_folder: {folder}/node}}'


def test_a_run_is_recorded_once(
    cluster: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lynceus = adopted_job(tmp_path, executor(cluster, tmp_path), monkeypatch, capsys)
    check_recorded_once(lynceus, tmp_path)


def test_a_run_whose_command_was_killed_goes_on_and_is_recorded(
    cluster: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lynceus = adopted_job(tmp_path, executor(cluster, tmp_path), monkeypatch, capsys)
    check_collected_after_a_kill(lynceus, tmp_path)
