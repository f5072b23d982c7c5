"""The examples of other tools run with the real tools; that of Kubernetes with a fake API server and real objects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kubernetes_bench import fake_kubernetes
from otlp_collector import collector, span_names

EXAMPLES = Path(__file__).parents[2] / "examples"


def ran(example: str, *arguments: str, folder: Path) -> str:
    """What an example prints."""
    command = [sys.executable, str(EXAMPLES / example), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def trials_of(example: str, folder: Path, **replaced: str) -> list[dict[str, Any]]:
    """The trials of a job file of the examples, run in a folder of its own with some texts replaced."""
    text = (EXAMPLES / example).read_text(encoding="utf-8")
    for old, new in replaced.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "job.yaml").write_text(text)
    environment = {key: value for key, value in os.environ.items() if key != "LYNCEUS_STORAGE"}
    environment |= {"WANDB_MODE": "offline", "WANDB_DIR": str(folder)}

    def lynceus(*words: str) -> Any:
        command = [sys.executable, "-m", "lynceus.cli", *words, "-o", "json"]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "trials are not logged" not in done.stderr
        return json.loads(done.stdout)

    lynceus("run", "job.yaml", "-y")
    trials: list[dict[str, Any]] = lynceus("trials")
    return trials


def test_optuna(tmp_path: Path) -> None:
    assert "best: {'trees':" in ran("optuna/tune.py", folder=tmp_path)


@pytest.mark.slow
def test_ray_tune_on_a_local_cluster(tmp_path: Path) -> None:
    assert "trials: 8, best: {'trees':" in ran("ray-tune/tune_forest.py", folder=tmp_path)


def test_opentelemetry(tmp_path: Path) -> None:
    with collector() as (endpoint, received):
        trials = trials_of("tracking/opentelemetry.yaml", tmp_path, **{"http://localhost:4318/v1/traces": endpoint})
    assert len(trials) == 5
    assert sum(name.startswith("tracked-in-opentelemetry trial") for name in span_names(received)) == 5


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed; make test-all installs it")
    trials = trials_of("tracking/mlflow.yaml", tmp_path)
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path}/mlflow.db")
    runs = client.search_runs([client.get_experiment_by_name("tracked-in-mlflow").experiment_id])
    assert sorted(run.data.params["level"] for run in runs) == sorted(str(one["params"]["level"]) for one in trials)


@pytest.mark.slow
def test_weights_and_biases(tmp_path: Path) -> None:
    pytest.importorskip("wandb", reason="Weights & Biases is not installed; make test-all installs it")
    trials = trials_of("tracking/wandb.yaml", tmp_path)
    assert len(list((tmp_path / "wandb").glob("offline-run-*"))) == len(trials) == 5


@pytest.mark.skipif(shutil.which("factor") is None, reason="the example counts primes with factor")
def test_kubernetes(tmp_path: Path) -> None:
    with fake_kubernetes(tmp_path) as cluster:
        trials = trials_of("kubernetes/job.yaml", tmp_path, **{"/lynceus": str(tmp_path)})
        assert not cluster.refusals
    assert len(trials) == 4
    assert {one["metrics"]["primes"] for one in trials if one["state"] == "COMPLETE"} == {2262.0}
