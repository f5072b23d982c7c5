"""The examples for Prefect and Dagster in the real tools, each in an environment of its own (`make prefect`, `make dagster`)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

import lynceus
from lynceus.recurring.record import ProductionRun
from readers import ROOT

EXAMPLES = ROOT / "examples"
DAY = "2026-11-01"

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Bench:
    """A folder with the job in production, and a scheduler whose environment runs it."""

    folder: Path
    tool: str

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/lynceus.db"

    @property
    def environment(self) -> dict[str, str]:
        binaries = ROOT / f".venv-{self.tool}" / "bin"
        return os.environ | {
            "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
            "LYNCEUS_STORAGE": self.url,
            "LYNCEUS_HOME": str(self.folder / "state"),
            "PREFECT_HOME": str(self.folder / "prefect"),
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "180",  # a busy machine starts its server slowly
            "DAGSTER_HOME": str(self.folder / "dagster"),
            "DAGSTER_DISABLE_TELEMETRY": "yes",
        }

    @property
    def command(self) -> list[str]:
        """The command of the example for one day."""
        file = str(EXAMPLES / self.tool / "nightly_report.py")
        if self.tool == "prefect":
            return ["python", file, DAY]
        return ["dagster", "asset", "materialize", "--select", "nightly_report", "--partition", DAY, "-f", file]

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600, check=False
        )

    @property
    def runs(self) -> tuple[ProductionRun, ...]:
        return lynceus.load_job("nightly-report", storage=self.url).runs


@pytest.fixture(params=["prefect", "dagster"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    tool = request.param
    if not (ROOT / f".venv-{tool}" / ".installed").exists():
        pytest.skip(f"{tool} is not installed here: make {tool}")
    one = Bench(tmp_path, tool)
    for name in ("job.yaml", "count.sh"):
        shutil.copy(EXAMPLES / "airflow" / name, tmp_path)
    (tmp_path / "dagster").mkdir()
    done = one.run("lynceus", "adopt", "nightly-report", "--from", "job.yaml", "--param", "chunks=2")
    assert done.returncode == 0, done.stderr
    return one


def test_it_runs_the_job_with_its_adopted_configuration_once_a_day(bench: Bench) -> None:
    for _ in range(2):
        done = bench.run(*bench.command)
        assert done.returncode == 0, done.stdout + done.stderr
    (run,) = bench.runs
    assert (run.version, run.size, run.end.name) == (1, 2e6, "FINISHED")
    assert run.run_id == f"{bench.tool}/nightly-report/{DAY}"


def test_a_failed_run_is_tried_again_as_a_new_run(bench: Bench) -> None:
    (bench.folder / "count.sh").write_text("if mkdir tried; then echo once more >&2; exit 3; fi\n")
    done = bench.run(*bench.command)
    assert done.returncode == 0, done.stdout + done.stderr
    name = f"{bench.tool}/nightly-report/{DAY}"
    assert [(run.run_id, run.end.name) for run in bench.runs] == [(name, "FAILED"), (f"{name}-2", "FINISHED")]


def test_a_killed_try_loses_nothing_and_the_next_one_waits_for_its_run(bench: Bench) -> None:
    marks = bench.folder / "marks"
    (bench.folder / "count.sh").write_text(f'echo "$LYNCEUS_RUN_ID" >> "{marks}"\nsleep 12\n')
    with subprocess.Popen(
        bench.command,
        cwd=bench.folder,
        env=bench.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as first:
        end = time.monotonic() + 120
        while not marks.exists():
            assert time.monotonic() < end
            assert first.poll() is None
            time.sleep(0.1)
        os.killpg(first.pid, signal.SIGKILL)
    done = bench.run(*bench.command)
    assert done.returncode == 0, done.stdout + done.stderr
    (run,) = bench.runs
    assert (run.end.name, len(marks.read_text().split())) == ("FINISHED", 1)
    assert run.seconds >= 12
