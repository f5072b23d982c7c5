"""Searches that are stopped, interrupted, killed and resumed: real processes, real signals."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from cli_jobs import JOB, SLOW, started
from local_runs import eventually

pytestmark = pytest.mark.usefixtures("here")


def test_a_study_that_is_over_is_not_stopped_again(lynceus) -> None:
    lynceus("run", "job.yaml", "-y")
    before = json.loads(lynceus("status", "toy", "-o", "json")[1])
    code, out, _ = lynceus("stop", "toy")
    assert (code, out.startswith("toy is over already: ")) == (0, True)
    after = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert [after[name] for name in ("state", "reason")] == [before[name] for name in ("state", "reason")]
    assert after["state"] == "FINISHED"


def test_ctrl_c_twice_ends_the_trial_and_leaves_130(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    assert any("stopping: open trials finish first" in line for line in process.stdout)
    assert process.poll() is None, "after the first one the open trial goes on"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "lynceus resume toy" in out
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [(row["state"], row["reason"]) for row in rows] == [("FAIL", "user")]
    assert rows[0]["charged_usd"] > 0
    facts = json.loads(lynceus("status", "toy", "-o", "json")[1])
    assert (facts["state"], facts["running"]) == ("INTERRUPTED", 0)
    assert "lynceus resume toy" in lynceus("status")[1]
    process = started(here, "resume", "toy")
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["state"] == "RUNNING"
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)  # counts as a second Ctrl-C; two equal signals could become one
    process.communicate(timeout=60)


def test_stop_from_another_process_leaves_nothing_behind(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y")
    _, out, _ = lynceus("status", "toy", "-o", "json")
    assert json.loads(out)["running"] == 1
    _, out, _ = lynceus("stop", "toy", "--kill")
    assert "no trial is open any more" in out
    process.communicate(timeout=40)
    assert process.returncode == 3, "it was stopped, and nothing feasible is known"
    assert json.loads(lynceus("gc", "toy", "-o", "json")[1])["leftovers"] == []
    _, out, _ = lynceus("gc", "toy", "--outputs", "--yes")
    assert "toy: directory " in out
    assert lynceus("gc", "toy", "--outputs")[1] == "toy: nothing is left over.\n"


def test_stop_ends_the_trials_of_a_dead_worker(here: Path, lynceus) -> None:
    process = started(here, "run", "job.yaml", "-y")
    process.kill()
    process.communicate()
    code, out, _ = lynceus("stop", "toy")
    assert (code, "1 open without a worker: end them with: lynceus gc toy --abandoned --yes" in out) == (0, True)
    code, out, _ = lynceus("stop", "toy", "--kill")
    assert (code, "1 open without a worker was ended" in out) == (0, True), out
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [(row["state"], row["reason"]) for row in rows] == [("FAIL", "user")]
    assert json.loads(lynceus("gc", "toy", "-o", "json")[1])["leftovers"] == []


def test_a_killed_search_is_resumed_and_no_trial_starts_twice(here: Path, lynceus) -> None:
    """kill -9 while a trial runs: the trial goes on, `resume` adopts it, and every trial is started and charged once."""
    slow = (
        JOB.split("run:")[0]
        + "run: [sh, -c, 'echo $LYNCEUS_TRIAL >> started; sleep 1; echo quality: 9']\n"
        + JOB[JOB.index("space:") :]
    )
    process = started(here, "run", "job.yaml", "-y", job=slow)
    process.kill()
    process.communicate()
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["running"] == 1
    code, out, _ = lynceus("resume", "toy", "--parallel", "5", "-o", "json")
    assert code == 0
    rows = json.loads(lynceus("trials", "toy", "-o", "json")[1])
    assert [(row["number"], row["state"]) for row in rows] == [(number, "COMPLETE") for number in range(6)]
    assert sorted((here / "started").read_text().split()) == [str(number) for number in range(6)]
    assert sum(row["charged_usd"] for row in rows) == pytest.approx(json.loads(out)["spent_usd"])
    assert json.loads(lynceus("gc", "toy", "-o", "json")[1])["leftovers"] == []


def test_a_detached_search_is_shown_and_stopped(here: Path, lynceus) -> None:
    (here / "job.yaml").write_text(SLOW)
    code, out, _ = lynceus("run", "job.yaml", "-y", "--detach")
    assert code == 0
    worker = int(out.split("process ")[1].split(",")[0])
    eventually(lambda: json.loads(lynceus("status", "toy", "-o", "json")[1])["running"] == 1)
    lynceus("stop", "toy", "--kill")
    os.waitpid(worker, 0)
    assert json.loads(lynceus("status", "toy", "-o", "json")[1])["running"] == 0
