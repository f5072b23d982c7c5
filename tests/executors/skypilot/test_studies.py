"""Studies through the command line, on a fake SkyPilot, and in slow tests on a real one."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fake_skypilot_bench import FakeSkyPilot
from skypilot_bench import PYTHON, Bench

EXAMPLE = Path(__file__).parents[3] / "examples" / "skypilot"


class Worker:
    """Runs Lynceus in a copy of the example."""

    def __init__(self, folder: Path, environment: dict[str, str], python: Path) -> None:
        self.folder = folder / "work"
        shutil.copytree(EXAMPLE, self.folder, ignore=shutil.ignore_patterns(".lynceus", "*.db*"))
        self.environment = {name: value for name, value in environment.items() if name != "LYNCEUS_STORAGE"}
        for path in self.folder.glob("*.yaml"):
            path.write_text(path.read_text().replace("kind: skypilot\n", f"kind: skypilot\n  python: {python}\n"))

    def change(self, name: str, *changes: tuple[str, str]) -> None:
        text = (self.folder / name).read_text()
        for old, new in changes:
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new)
        (self.folder / name).write_text(text)

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "lynceus.cli", *words]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, stdout=pipe, stderr=pipe, text=True)

    def run(self, *words: str) -> Any:
        process = self.start(*words, "-o", "json")
        out, err = process.communicate()
        assert process.returncode in (0, 3), f"{words} ended with {process.returncode}: {err}{out}"
        return json.loads(out)

    def trials(self, study: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.run("trials", study)
        return found


def _all_arguments() -> bytes:
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found += path.read_bytes()
    return found


def _files_with(secret: str, folder: Path) -> list[Path]:
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file() and secret.encode() in path.read_bytes():
                found.append(path)
    return found


def test_the_example_leaves_no_cluster(tmp_path: Path) -> None:
    fake = FakeSkyPilot(tmp_path / "fake")
    work = Worker(tmp_path, {**os.environ, "FAKE_SKYPILOT": str(fake.folder)}, fake.python)
    work.change("job.yaml", ("max_trials: 6", "max_trials: 2"), ('"400000"', '"20000"'))
    found = work.run("run", "job.yaml", "-y")
    rows = work.trials("skypilot-primes")
    assert rows
    assert {row["state"] for row in rows} <= {"COMPLETE", "TIMEOUT"}
    assert sum(row["charged_usd"] for row in rows) == pytest.approx(found["spent_usd"])
    shapes = {line.rsplit("-", 1)[0] for line in fake.launches()}
    assert len(shapes) == len({row["params"]["instance_type"] for row in rows}), "one shape per machine type"
    assert work.run("gc")["leftovers"] == []
    assert fake.clusters() == []
    assert fake.processes() == []


def test_resume_uses_the_cluster_of_a_killed_worker(tmp_path: Path) -> None:
    fake = FakeSkyPilot(tmp_path / "fake")
    work = Worker(tmp_path, {**os.environ, "FAKE_SKYPILOT": str(fake.folder)}, fake.python)
    work.change("job.yaml", ("max_trials: 6", "max_trials: 2"), ('"400000"', '"20000"'))
    work.change("job.yaml", ("run: [", 'run: [sh, -c, "sleep 3; exec \\"$0\\" \\"$@\\"", '))
    killed = work.start("run", "job.yaml", "-y")
    until = time.monotonic() + 60
    while not fake.processes() and time.monotonic() < until:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert fake.clusters()
    assert work.run("gc", "--yes")["leftovers"] == [], "the cluster is needed because its trial is open"
    work.run("resume", "skypilot-primes")
    rows = work.trials("skypilot-primes")
    assert rows[0]["state"] == "COMPLETE"
    assert {row["state"] for row in rows} <= {"COMPLETE", "TIMEOUT"}
    assert work.run("gc")["leftovers"] == []
    assert fake.clusters() == []


@pytest.mark.slow
def test_a_study_on_a_real_skypilot_survives_a_crash_and_leaves_no_cluster(sky: Bench, tmp_path: Path) -> None:
    secret = "tr0ub4dor-and-three"
    work = Worker(tmp_path, {**sky.environment, "API_TOKEN": secret}, PYTHON)
    script = 'run: [sh, -c, "echo it is $API_TOKEN; sleep 20; exec \\"$0\\" \\"$@\\"", '
    work.change("on-slurm.yaml", ("run: [", script), ("space:", 'secrets: {API_TOKEN: "env:API_TOKEN"}\nspace:'))
    killed = work.start("run", "on-slurm.yaml", "-y")
    until = time.monotonic() + 600
    while not list(work.folder.glob(".lynceus/*/0/sky.json")) and time.monotonic() < until:
        time.sleep(0.5)
    handle = next(iter(work.folder.glob(".lynceus/*/0/sky.json")))
    while json.loads(handle.read_text())["job"] is None and time.monotonic() < until:
        assert killed.poll() is None
        time.sleep(0.5)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert sky.slurm.jobs(), "the cluster continues without Lynceus"
    assert secret.encode() not in _all_arguments()
    assert not _files_with(secret, sky.folder), "the secret is in a file while the job runs"
    work.run("resume", "skypilot-primes-on-slurm")
    rows = work.trials("skypilot-primes-on-slurm")
    assert rows[0]["state"] == "COMPLETE"
    assert {row["state"] for row in rows} <= {"COMPLETE", "TIMEOUT"}
    assert all(row["charged_usd"] > 0 for row in rows)
    assert work.run("gc")["leftovers"] == []
    assert "lyn-" not in sky.sky("status")
    assert sky.slurm.jobs() == []
    assert not _files_with(secret, sky.folder), "SkyPilot or Slurm stored the secret"
    assert not _files_with(secret, work.folder)
    assert "it is ***" in next(work.folder.glob(".lynceus/*/0/stdout")).read_text()


@pytest.mark.slow
def test_an_abandoned_cluster_takes_itself_down(sky: Bench, tmp_path: Path) -> None:
    """The dead man's switch: Lynceus is killed and not started again."""
    work = Worker(tmp_path, sky.environment, PYTHON)
    work.change("on-slurm.yaml", ("keep_warm: 5m", "dead_man: 1m"), ('"400000"', '"1000"'))
    killed = work.start("run", "on-slurm.yaml", "-y")
    until = time.monotonic() + 900
    while not [one for one in work.folder.glob(".lynceus/*/0/sky.json") if json.loads(one.read_text())["job"]]:
        assert time.monotonic() < until
        assert killed.poll() is None
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert sky.slurm.jobs()
    while sky.slurm.jobs():
        assert time.monotonic() < until, "the cluster is still running"
        time.sleep(5)
    rows = work.run("gc", "--yes", "--abandoned")
    assert rows["abandoned"] == {"skypilot-primes-on-slurm": [0]}
    assert not list(work.folder.glob(".lynceus/skypilot/*.json"))
