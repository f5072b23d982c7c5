"""The operators for Airflow, in a real Airflow in an environment of its own (`make airflow`)."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lynceus
from ports import free_ports
from readers import ROOT

AIRFLOW = ROOT / ".venv-airflow" / "bin"
EXAMPLE = ROOT / "examples" / "airflow"
DAY = "2026-11-01"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (AIRFLOW / "airflow").exists(), reason="Airflow is not installed here: make airflow"),
]


class Bench:
    """An Airflow with the example's DAG, and a storage with its job in production."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder}/lynceus.db"
        shutil.copytree(EXAMPLE, folder / "dags")
        self.environment = os.environ | {
            "PATH": f"{AIRFLOW}{os.pathsep}{os.environ['PATH']}",
            "AIRFLOW_HOME": str(folder / "airflow"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "LYNCEUS_STORAGE": self.url,
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self.run("airflow", "db", "migrate")
        self.run(
            "lynceus", "adopt", "nightly-report", "--from", str(folder / "dags" / "job.yaml"), "--param", "chunks=2"
        )

    def run(self, *command: str) -> str:
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def test_dag(self, mode: str) -> list[str]:
        return ["airflow", "dags", "test", "nightly_report", DAY, "--conf", json.dumps({"mode": mode, "size": "2MB"})]

    @property
    def runs(self) -> tuple[object, ...]:
        return lynceus.load_job("nightly-report", storage=self.url).runs


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_airflow_knows_the_provider(bench: Bench) -> None:
    assert "lynceus-opt" in bench.run("airflow", "providers", "list")


def test_a_dag_runs_the_job_with_its_adopted_configuration(bench: Bench) -> None:
    bench.run(*bench.test_dag("fast"))
    (run,) = bench.runs
    assert (run.version, run.size, run.end.name) == (1, 2e6, "FINISHED")
    assert run.run_id.startswith("nightly_report/run/")


@contextlib.contextmanager
def scheduler(bench: Bench) -> Iterator[int]:
    """A whole Airflow: scheduler, workers, API server; the leader of its session."""
    (port,) = free_ports(1)
    bench.environment |= {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "2",
    }
    with (
        (bench.folder / "log").open("w") as log,
        subprocess.Popen(
            ["airflow", "standalone"],
            cwd=bench.folder,
            env=bench.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield process.pid
        finally:
            for pid in session(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def session(leader: int) -> dict[int, str]:
    """The processes of a session, with their titles."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.getsid(int(entry)) == leader:
                found[int(entry)] = Path(f"/proc/{entry}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    return found


def until(happened: Callable[[], bool], seconds: float = 240.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.5)


def test_a_killed_worker_loses_nothing_and_nothing_runs_twice(bench: Bench) -> None:
    marks = bench.folder / "marks"
    (bench.folder / "dags" / "count.sh").write_text(f'echo "$LYNCEUS_RUN_ID" >> "{marks}"\nsleep 15\n')
    with scheduler(bench) as leader:
        until(lambda: "nightly_report" in bench.run("airflow", "dags", "list"))
        bench.run("airflow", "dags", "unpause", "nightly_report")
        bench.run("airflow", "dags", "trigger", "nightly_report", "--run-id", "first")
        name = "nightly_report/run/first"
        until(lambda: marks.exists() and name in marks.read_text())
        killed = [
            pid
            for pid, title in session(leader).items()
            if title.startswith("airflow worker -- ") and "LocalExecutor" not in title
        ]
        assert killed
        for pid in killed:
            os.kill(pid, signal.SIGKILL)
        until(lambda: name in {run.run_id for run in bench.runs})
    (run,) = [run for run in bench.runs if run.run_id == name]
    assert (run.end.name, marks.read_text().count(name)) == ("FINISHED", 1)
    assert run.seconds >= 15
