"""`lynceus gc` finds leftovers of every executor by their identity, removes them, and spares what is needed."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from local_runs import eventually, processes_below
from lynceus.jobfile.prepared_study import prepare_file
from lynceus.library.open_study import create_or_open
from slurm_bench import SlurmBench

JOB = """\
name: NAME
run: 'touch begun-$LYNCEUS_TRIAL; echo $$ >> pids; sleep SLEEP'
space: {n: [1, 2, 3]}
price: 36.0
budget: {cost: 100, max_trials: 3}
constraints: ["runtime <= 1h"]
policy: sweep
trial: {grace: 100ms}
executor: EXECUTOR
storage: sqlite:///lynceus.db
"""
SLURM = f"{{kind: slurm, python: {sys.executable}, poll: 0.2s}}"

Lynceus = Callable[[str], tuple[int, str, str]]


@pytest.fixture
def lynceus(lynceus: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lynceus:
    """Run a command that is given as one text."""
    monkeypatch.chdir(tmp_path)
    return lambda words: lynceus(*words.split())


def write(folder: Path, name: str, executor: str, sleep: str = "1000") -> None:
    text = JOB.replace("NAME", name).replace("SLEEP", sleep).replace("EXECUTOR", executor)
    (folder / f"{name}.yaml").write_text(text)


def crash(folder: Path, name: str) -> None:
    """A worker that is killed while its first trial runs."""
    command = [sys.executable, "-m", "lynceus.cli", "run", f"{name}.yaml", "-y"]
    worker = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    eventually((folder / "begun-0").exists)
    eventually(lambda: tickets(folder))
    worker.kill()
    worker.wait()


def tickets(folder: Path) -> list[str]:
    """Trials whose start is in the storage."""
    with contextlib.closing(sqlite3.connect(folder / "lynceus.db")) as base:
        return [ticket for (ticket,) in base.execute("select ticket from trials where ticket is not null")]


@pytest.mark.parametrize("executor", ["local", "slurm"])
def test_abandoned_trials_are_named_and_ended(
    request: pytest.FixtureRequest, lynceus: Lynceus, tmp_path: Path, executor: str
) -> None:
    if executor == "slurm":
        request.getfixturevalue("slurm")
    write(tmp_path, "left", SLURM if executor == "slurm" else "local")
    crash(tmp_path, "left")
    assert processes_below(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "lynceus.db")) as base:
        base.execute("update studies set seen_s = seen_s - 1000")  # as if the crash had been a while ago
        base.commit()
    _, out, _ = lynceus("gc")
    assert (
        out
        == "left: open trials without a worker: 0 (continue with 'lynceus resume left', or end them with --abandoned --yes)\n"
    )
    assert processes_below(tmp_path), "without --yes nothing changes, and open trials are needed"
    lynceus("gc --yes")
    assert processes_below(tmp_path)
    code, out, _ = lynceus("gc --abandoned --yes")
    # A cluster may take a moment to notice that the job has ended, and then its job is listed, too.
    assert (code, out.splitlines()[0]) == (0, "left: open trials without a worker: 0 (ended)")
    assert processes_below(tmp_path) == set()
    (row,) = json.loads(lynceus("trials left -o json")[1])
    (target,) = [json.loads(path.read_text()) for path in (tmp_path / ".lynceus").glob("*/0/outcome.json")]
    assert (row["state"], row["reason"]) == ("FAIL", "user"), row
    assert row["charged_usd"] == pytest.approx(0.01 * (target["seconds"] + target.get("stopping_s", 0.0)))
    eventually(lambda: lynceus("gc")[1] == "left: nothing is left over.\n")


def test_jobs_of_settled_and_unknown_trials_are_cancelled(slurm: SlurmBench, lynceus: Lynceus, tmp_path: Path) -> None:
    """A job in the queue whose trial has settled: a second submission by a launcher that seemed dead."""
    write(tmp_path, "left", SLURM, sleep="0.1")
    assert lynceus("run left.yaml -y")[0] == 0
    eventually(lambda: slurm.jobs() == [])  # the cluster needs a moment to notice that the last job has ended
    marks = {
        path.parent.name: json.loads(path.read_text()) for path in (tmp_path / ".lynceus").glob("*/*/request.json")
    }
    first = marks["0"]
    comments = {
        "settled": f"lynceus/left/{first['identity']}/0/{first['run']}",
        "unknown": f"lynceus/left/{first['identity']}/99/abc",
        "stranger": "lynceus/left/0123/0/abc",
        "other": "somebody else's",
    }
    jobs = {}
    for name, text in comments.items():
        words = ["sbatch", "--parsable", f"--comment={text}", "--output=/dev/null", "--wrap=sleep 1000"]
        jobs[name] = subprocess.run(words, env=os.environ, capture_output=True, text=True, check=True).stdout.strip()
    try:
        found = json.loads(lynceus("gc -o json")[1])["leftovers"]
        assert {left["why"] for left in found} == {
            "of trial 0, which has settled",
            "of trial 99, which is not part of the study",
        }
        assert {left["where"].split(",")[0] for left in found} == {
            f"Slurm job {jobs[one]}" for one in ("settled", "unknown")
        }
        strange = json.loads(lynceus("gc --strangers -o json")[1])["leftovers"]
        assert [left["where"].split(",")[0] for left in strange if left["stranger"]] == [
            f"Slurm job {jobs['stranger']}"
        ]
        lynceus("gc --yes")
        eventually(lambda: {line.split()[0] for line in slurm.jobs()} == {jobs["stranger"], jobs["other"]})
        lynceus("gc --yes --strangers")
        eventually(lambda: {line.split()[0] for line in slurm.jobs()} == {jobs["other"]})
    finally:
        slurm.command("scancel", *jobs.values(), check=False)
        eventually(lambda: slurm.jobs() == [])


def test_an_unreachable_executor_does_not_hide_the_others(
    lynceus: Lynceus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a", "local", sleep="0.01")
    write(tmp_path, "b", "slurm")
    assert lynceus("run a.yaml -y")[0] == 0
    create_or_open(prepare_file("b.yaml"), None)
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = lynceus("gc --outputs --storage sqlite:///lynceus.db")
    assert code == 4
    assert out.count("directory") == 3
    assert "b: cannot tell what is left: executor: 'sbatch' is not installed here" in err


def test_all_studies_of_a_storage(lynceus: Lynceus, tmp_path: Path) -> None:
    write(tmp_path, "a", "local", sleep="0.01")
    write(tmp_path, "b", "local", sleep="0.01")
    assert lynceus("run a.yaml -y")[0] == 0
    assert lynceus("run b.yaml -y")[0] == 0
    assert lynceus("gc --storage sqlite:///lynceus.db")[1] == "all studies: nothing is left over.\n"
    _, out, _ = lynceus("gc --outputs --yes --storage sqlite:///lynceus.db")
    assert out.count("directory") == 6
    assert [path for path in (tmp_path / ".lynceus").glob("*/*") if path.name.isdigit()] == []


def test_other_studies_of_the_storage_are_no_strangers(lynceus: Lynceus, tmp_path: Path) -> None:
    """Neither one that was not named, nor one that cannot be read."""
    for name in ("a", "b"):
        write(tmp_path, name, "local", sleep="0.01")
        assert lynceus(f"run {name}.yaml -y")[0] == 0
    directories = {path.parent for path in (tmp_path / ".lynceus").glob("b-*/*/request.json")}
    assert len(directories) == 3
    code, out, _ = lynceus("gc a --strangers --yes")
    assert (code, out) == (0, "a: nothing is left over.\n")
    with contextlib.closing(sqlite3.connect(tmp_path / "lynceus.db")) as base:
        base.execute("update studies set document = '[]' where name = 'b'")
        base.commit()
    code, out, err = lynceus("gc --strangers --yes --storage sqlite:///lynceus.db")
    assert (code, out) == (4, "")
    assert "lynceus: b: cannot tell what is left: " in err
    assert all(path.is_dir() for path in directories)
    assert "DAMAGED" in lynceus("status")[1]
