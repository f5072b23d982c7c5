"""Whole studies by the command line: on a SkyPilot of processes always, on the real one on its bench when slow tests run."""

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

from skypilot_bench import PYTHON, Bench
from small_sky_bench import SmallSky

EXAMPLE = Path(__file__).parents[3] / "examples" / "skypilot"


class Worker:
    """A folder with the example, and Lynceus in it."""

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


def test_the_example_finds_the_cheapest_machine_and_leaves_none_behind(tmp_path: Path) -> None:
    small = SmallSky(tmp_path / "small")
    work = Worker(tmp_path, {**os.environ, "SMALL_SKY": str(small.folder)}, small.python)
    work.change("job.yaml", ("max_trials: 6", "max_trials: 2"), ('"400000"', '"20000"'))
    found = work.run("run", "job.yaml", "-y")
    rows = work.trials("skypilot-primes")
    assert rows
    assert {row["state"] for row in rows} <= {"COMPLETE", "TIMEOUT"}
    assert sum(row["charged_usd"] for row in rows) == pytest.approx(found["spent_usd"])
    asked = {line.rsplit("-", 1)[0] for line in small.history()}
    assert len(asked) == len({row["params"]["instance_type"] for row in rows}), "one shape per kind of machine"
    assert work.run("gc")["leftovers"] == []
    assert small.clusters() == []
    assert small.processes() == []


def test_a_worker_that_is_killed_leaves_a_cluster_that_gc_ends_or_resume_uses(tmp_path: Path) -> None:
    small = SmallSky(tmp_path / "small")
    work = Worker(tmp_path, {**os.environ, "SMALL_SKY": str(small.folder)}, small.python)
    work.change("job.yaml", ("max_trials: 6", "max_trials: 2"), ('"400000"', '"20000"'))
    work.change("job.yaml", ("run: [", 'run: [sh, -c, "sleep 3; exec \\"$0\\" \\"$@\\"", '))
    killed = work.start("run", "job.yaml", "-y")
    until = time.monotonic() + 60
    while not small.processes() and time.monotonic() < until:
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert small.clusters()
    assert work.run("gc", "--yes")["leftovers"] == [], "the cluster is needed: its trial is open"
    work.run("resume", "skypilot-primes")
    rows = work.trials("skypilot-primes")
    assert rows[0]["state"] == "COMPLETE"
    assert {row["state"] for row in rows} <= {"COMPLETE", "TIMEOUT"}
    assert work.run("gc")["leftovers"] == []
    assert small.clusters() == []


@pytest.mark.slow
def test_a_study_on_the_real_thing_survives_a_crash_and_leaves_nothing(sky: Bench, tmp_path: Path) -> None:
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
    assert sky.slurm.jobs(), "the cluster lives on without us"
    assert secret.encode() not in _all_arguments()
    assert not _files_with(secret, sky.folder), "the secret lies about while the job runs"
    work.run("resume", "skypilot-primes-on-slurm")
    rows = work.trials("skypilot-primes-on-slurm")
    assert rows[0]["state"] == "COMPLETE"
    assert {row["state"] for row in rows} <= {"COMPLETE", "TIMEOUT"}
    assert all(row["charged_usd"] > 0 for row in rows)
    assert work.run("gc")["leftovers"] == []
    assert "lyn-" not in sky.sky("status")
    assert sky.slurm.jobs() == []
    assert not _files_with(secret, sky.folder), "SkyPilot or Slurm kept the secret"
    assert not _files_with(secret, work.folder)
    assert "it is ***" in next(work.folder.glob(".lynceus/*/0/stdout")).read_text()


@pytest.mark.slow
def test_a_cluster_that_nobody_looks_after_takes_itself_down(sky: Bench, tmp_path: Path) -> None:
    """The dead man's switch: Lynceus is killed and never comes back."""
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
        assert time.monotonic() < until, "nobody ends the cluster"
        time.sleep(5)
    rows = work.run("gc", "--yes", "--abandoned")
    assert rows["abandoned"] == {"skypilot-primes-on-slurm": [0]}
    assert not list(work.folder.glob(".lynceus/skypilot/*.json"))
