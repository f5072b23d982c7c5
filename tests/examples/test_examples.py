"""The examples run: their jobs are real processes, and their answers follow from measurements."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from ports import free_ports
from slurm_bench import SlurmBench

EXAMPLES = Path(__file__).parents[2] / "examples"


def searched(
    name: str, folder: Path, trials: int | None, *, failures: bool = False, edits: Mapping[str, str] | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run an example in a copy of its folder, perhaps with fewer trials; returns what `run` and `trials` print."""
    work = folder / name
    shutil.copytree(EXAMPLES / name, work, ignore=shutil.ignore_patterns(".lynceus", "*.db*", "data.txt*"))
    if trials is not None:
        text = (work / "job.yaml").read_text()
        start = text.index("max_trials: ")
        text = text[:start] + f"max_trials: {trials}" + text[text.index(",", start) :]
        for old, new in (edits or {}).items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (work / "job.yaml").write_text(text)
    environment = {key: value for key, value in os.environ.items() if key != "LYNCEUS_STORAGE"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"

    def lynceus(*arguments: str) -> Any:
        command = [sys.executable, "-m", "lynceus.cli", *arguments, "-o", "json"]
        ended = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    found = lynceus("run", "job.yaml", "-y")
    rows = lynceus("trials", name)
    assert sum(row["charged_usd"] for row in rows) == pytest.approx(found["spent_usd"])
    assert failures or all(row["state"] != "FAIL" for row in rows), [row["detail"] for row in rows]
    return found, rows


def check_answer(found: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    """The answer is a configuration with a run that met every constraint; its cost is what its runs let expect."""
    feasible = [row for row in rows if row["keeps_constraints"]]
    if not feasible:
        assert found["best"] is None
        return
    best, cheapest = found["best"], min(row["cost_usd"] for row in feasible)
    assert best["params"] in [row["params"] for row in feasible]
    assert 0.9 * cheapest < best["cost_usd"] < 3 * cheapest
    low, high = best["cost_interval_usd"] or (best["cost_usd"], best["cost_usd"])
    assert 0.9 * low <= best["cost_usd"] <= 2 * high


@pytest.mark.parametrize("trials", [5, pytest.param(None, marks=pytest.mark.slow)])
def test_shell_pipeline(tmp_path: Path, trials: int | None) -> None:
    found, rows = searched("shell-pipeline", tmp_path, trials)
    check_answer(found, rows)
    finished = [row for row in rows if row["state"] == "COMPLETE"]
    assert finished
    assert all(row["metrics"]["bytes"] > 100_000 for row in finished)
    assert not list((tmp_path / "shell-pipeline").glob("result-*")) or len(finished) < len(rows)


@pytest.mark.parametrize("trials", [4, pytest.param(None, marks=pytest.mark.slow)])
def test_sklearn_accuracy(tmp_path: Path, trials: int | None) -> None:
    found, rows = searched("sklearn-accuracy", tmp_path, trials)
    check_answer(found, rows)
    for row in rows:
        if row["state"] == "COMPLETE":
            assert 0.5 < row["metrics"]["accuracy"] <= 1
            assert row["keeps_constraints"] == (row["metrics"]["accuracy"] >= 0.96 and row["runtime_s"] <= 30)


@pytest.mark.parametrize("trials", [4, pytest.param(None, marks=pytest.mark.slow)])
def test_cpu_cores(tmp_path: Path, trials: int | None) -> None:
    found, rows = searched("cpu-cores", tmp_path, trials)
    check_answer(found, rows)


def test_cores_are_really_limited(tmp_path: Path) -> None:
    """Two busy processes on a machine with one core share that core."""
    (tmp_path / "busy.py").write_text(
        "import multiprocessing, os, resource, time\n"
        "def spin(_):\n"
        "    until = time.monotonic() + 1.0\n"
        "    while time.monotonic() < until: pass\n"
        "with multiprocessing.Pool(2) as pool: pool.map(spin, range(2), chunksize=1)\n"
        "pool.join()\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print('cores:', len(os.sched_getaffinity(0)), 'seconds:', used.ru_utime + used.ru_stime)\n"
    )
    (tmp_path / "job.yaml").write_text(
        "name: busy\nrun: [python3, busy.py]\nspace: {cores: [1, 2]}\nprice: 1\ntrial: {timeout: none}\nresources: {cpus: cores}\n"
        "metrics: {cores: 'cores: (\\d+)', cpu_s: 'seconds: ([0-9.]+)'}\nbudget: {max_trials: 2}\npolicy: sweep\n"
    )
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for arguments in (["run", "job.yaml", "-y", "-o", "json"], ["trials", "-o", "json"]):
        command = [sys.executable, "-m", "lynceus.cli", *arguments]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    rows = {row["params"]["cores"]: row["metrics"] for row in json.loads(ended.stdout)}
    assert rows[1]["cores"] == 1
    assert rows[1]["cpu_s"] < 1.5, (
        "the processes wanted two seconds of CPU time, and one core gives little more than one"
    )
    if len(os.sched_getaffinity(0)) > 1:
        assert rows[2]["cores"] == 2


def spark_baseline_usd(folder: Path) -> float:
    """What a run of the baseline costs on the running cluster, measured in addition to the search."""
    job = yaml.safe_load((folder / "job.yaml").read_text())
    given = job["baseline"]
    words = [str(given[name]) for name in ("workers", "executors", "executor_cores", "executor_memory", "partitions")]
    options = zip(("--workers", "--executors", "--cores", "--memory", "--partitions"), words, strict=True)
    began = time.monotonic()
    command = [sys.executable, "sales.py", *itertools.chain.from_iterable(options)]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return float(job["derived"]["worker_usd"]["values"][given["workers"]]) * (time.monotonic() - began) / 3600


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pip install 'lynceus-opt[spark]'")
@pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs a JDK: apt-get install openjdk-17-jre-headless")
def test_spark_local_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real master and two unequal workers; executors run on the workers of the configuration."""
    monkeypatch.setenv("SPARK_DEMO_PORT", str(free_ports(1)[0]))
    folder = tmp_path / "spark-local-cluster"
    try:
        found, rows = searched("spark-local-cluster", tmp_path, None)
        check_answer(found, rows)
        on_time = [row for row in rows if row["state"] == "COMPLETE" and row["keeps_constraints"]]
        assert on_time, "the deadline is generous: runs meet it even on a busy machine"
        ran = {name: list((folder / ".cluster" / f"work-{name}").glob("app-*")) for name in ("large", "small")}
        asked = {row["params"]["workers"] for row in rows}
        assert len(rows) >= 3
        for name, applications in ran.items():
            assert bool(applications) == bool(asked & {name, "both"})
        for row in rows:
            if row["state"] == "COMPLETE":
                assert row["metrics"]["rows_per_s"] > 0
                (stdout,) = folder.glob(f".lynceus/*/{row['number']}/stdout")
                assert f"on {row['params']['executors']} executors" in stdout.read_text()
        assert found["best"]["cost_usd"] <= spark_baseline_usd(folder)
    finally:
        subprocess.run([sys.executable, "cluster.py", "stop"], cwd=folder, check=True)
    notes = (folder / ".cluster").glob("*.pid")
    assert not list(notes)


def check_serving(rows: list[dict[str, Any]], limit_ms: float) -> None:
    """Every finished trial measured its server: tokens were streamed, and the price of a million follows from them."""
    finished = [row for row in rows if row["state"] == "COMPLETE"]
    assert finished
    for row in finished:
        found = row["metrics"]
        assert found["requests"] >= 1
        assert 0 < found["p50_ttft"] <= found["p99_ttft"]
        assert found["usd_per_mtok"] == pytest.approx(row["price_usd_per_hour"] / 3600 / found["throughput"] * 1e6)
        assert row["keeps_constraints"] == (found["p99_ttft"] <= limit_ms)


@pytest.mark.parametrize("trials", [3, pytest.param(None, marks=pytest.mark.slow)])
def test_llm_serving(tmp_path: Path, trials: int | None) -> None:
    """A real transformer behind a streaming endpoint, under real load."""
    shorter = {"[1, 2] ": "[1] "}  # not less time: on a busy machine a request may take seconds
    found, rows = searched("llm-serving", tmp_path, trials, edits=shorter)
    check_serving(rows, 1500.0)
    feasible = [row for row in rows if row["keeps_constraints"]]
    assert (found["best"] is None) == (not feasible)
    if feasible:
        assert found["best"]["params"] in [row["params"] for row in feasible]
        cheapest = min(row["metrics"]["usd_per_mtok"] for row in feasible)
        assert 0.5 * cheapest < found["best"]["value"] < 2 * cheapest


@pytest.mark.parametrize("trials", [2, pytest.param(None, marks=pytest.mark.slow)])
def test_training_curves(tmp_path: Path, trials: int | None) -> None:
    """Real trainings with a learning curve each; those that were stopped had not reached the target."""
    _, rows = searched("training-curves", tmp_path, trials)
    assert rows
    for row in rows:
        if row["state"] == "COMPLETE":
            assert row["keeps_constraints"] == (row["metrics"]["accuracy"] >= 0.8 and row["runtime_s"] <= 40)
        elif "will be about" in row["detail"]:
            assert row["metrics"]["accuracy"] < 0.8


def test_cloud_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machines of the embedded catalog; every trial is charged at the price of the machines that it simulates."""
    monkeypatch.setenv("LYNCEUS_HOME", str(tmp_path / "home"))
    found, rows = searched("cloud-prices", tmp_path, 3, failures=True)
    check_answer(found, rows)
    for row in rows:
        stopping_s = row["charged_usd"] / row["price_usd_per_hour"] * 3600 - row["runtime_s"]
        if row["state"] == "COMPLETE":
            assert stopping_s == pytest.approx(0.0, abs=1e-6)
        else:  # a run that was stopped is charged until its last process was gone
            assert -1e-6 <= stopping_s < 60.0
        if row["state"] == "FAIL":
            assert (row["reason"], row["params"]["use_spot"]) == ("preempted", True)


def test_slurm(tmp_path: Path, slurm: SlurmBench) -> None:
    """On a real Slurm cluster of four nodes; a copy of the folder serves as the shared disk."""
    found, rows = searched("slurm", tmp_path, 3)
    check_answer(found, rows)
    for row in rows:
        if row["state"] == "COMPLETE":
            lines = next((tmp_path / "slurm" / ".lynceus").glob(f"*/{row['number']}/stdout")).read_text().splitlines()
            assert len(lines) == row["params"]["nodes"]
            assert all(f" on {row['params']['machine']}" in line for line in lines)
            assert sum(int(line.split(": ")[1].split()[0]) for line in lines) == 412849


def test_growing_input(tmp_path: Path) -> None:
    """The small input is searched, the large one is predicted, and then searched with what is left."""
    found, rows = searched("growing-input", tmp_path, 3)
    check_answer(found, rows)
    assert {row["input"]["size"] for row in rows} == {4e6}
    work = tmp_path / "growing-input"

    def lynceus(*arguments: str) -> Any:
        command = [sys.executable, "-m", "lynceus.cli", *arguments, "-o", "json"]
        environment = {key: value for key, value in os.environ.items() if key != "LYNCEUS_STORAGE"}
        ended = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, check=False)
        assert ended.returncode in (0, 3), ended.stderr
        return json.loads(ended.stdout)

    predicted = lynceus("best", "job.yaml", "--input", "16MB")
    low, high = predicted["runtime_interval_s"]
    assert low < predicted["runtime_s"] < high
    assert "no run has read more than 4 MB" in predicted["check_again"]
    text = (work / "job.yaml").read_text()
    text = text.replace('MEGABYTES: "4"', 'MEGABYTES: "16"').replace("size: 4 MB", "size: 16 MB")
    (work / "job.yaml").write_text(text)
    lynceus("resume", "growing-input", "--add-trials", "2")  # the stored job: still the small input
    lynceus("run", "job.yaml", "-y")
    lynceus("resume", "job.yaml", "--add-trials", "1")
    assert {row["input"]["size"] for row in lynceus("trials", "growing-input")} == {4e6, 16e6}
