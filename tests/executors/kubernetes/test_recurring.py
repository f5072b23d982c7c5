"""Recurring jobs on the fake Kubernetes: `lynceus exec` runs and records them, and what a killed command left is collected."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kubernetes_bench import FakeKubernetes, fake_kubernetes
from recurring_runs import adopted_job, check_collected_after_a_kill, check_recorded_once


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKubernetes]:
    with fake_kubernetes(tmp_path_factory.mktemp("kubernetes")) as running:
        yield running
        assert not running.refusals, running.refusals


def executor(folder: Path) -> str:
    volumes = f"volumes: [{{path: {folder}, claim: runs}}]"
    return f"{{kind: kubernetes, image: 'registry/job:1', {volumes}, python: {sys.executable}, poll: 0.1s}}"


def test_a_run_is_recorded_once(
    cluster: FakeKubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lynceus = adopted_job(tmp_path, executor(tmp_path), monkeypatch, capsys)
    check_recorded_once(lynceus, tmp_path)


def test_a_run_whose_command_was_killed_goes_on_and_is_recorded(
    cluster: FakeKubernetes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lynceus = adopted_job(tmp_path, executor(tmp_path), monkeypatch, capsys)
    check_collected_after_a_kill(lynceus, tmp_path)
