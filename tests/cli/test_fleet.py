"""`lynceus fleet` with real processes: one budget, a table of what each job got, and no run twice after kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lynceus.storage.sql.storage import Storage

pytestmark = pytest.mark.usefixtures("here")

JOB = """\
name: {name}
run: |
  echo "$threads" >> {name}.txt
  sleep "$(awk "BEGIN {{print {work} / $threads}}")"
space: {{threads: [1, 2, 4]}}
price: 3.6 * threads
constraints: ["runtime <= 30s"]
budget: {{cost: 10 USD, max_trials: 3}}
baseline: {{config: {{threads: 4}}, runtime: 1m}}
policy: sweep
trial: {{timeout: none, grace: 100ms, confirm_best: 0}}
"""


@pytest.fixture
def jobs(here: Path) -> list[str]:
    for name, work in (("first", 0.3), ("second", 0.6)):
        (here / f"{name}.yaml").write_text(JOB.format(name=name, work=work))
    return ["first.yaml", "second.yaml"]


def test_jobs_share_a_budget_and_a_report(lynceus, jobs: list[str]) -> None:
    code, out, _ = lynceus("fleet", *jobs, "--budget", "5 USD", "-y", "-o", "json")
    report = json.loads(out)
    assert code == 0
    assert [one["study"] for one in report["jobs"]] == ["first", "second"]
    assert [one["trials"] for one in report["jobs"]] == [3, 3]
    assert report["spent_usd"] == pytest.approx(sum(one["spent_usd"] for one in report["jobs"]))
    assert report["spent_usd"] <= 5.0
    assert all(one["future_saving_usd"] > 0 for one in report["jobs"])
    code, out, _ = lynceus("fleet", *jobs, "--budget", "5 USD", "-y")
    assert code == 0
    assert "of $5.00 spent" in out
    (why,) = [line for line in out.splitlines() if line.startswith("No trial was started. ")]
    stopped = [one["why_over"] for one in report["jobs"]]
    assert why == f"No trial was started. first: {stopped[0]}; second: {stopped[1]}."
    assert "3" in stopped[0], "all three trials"
    out = lynceus("fleet", jobs[0], "--budget", "5 USD", "-y", "--storage", "sqlite:///other.db")[1]
    assert "No trial was started" not in out


def test_the_budget_is_a_limit(lynceus, jobs: list[str]) -> None:
    code, out, _ = lynceus("fleet", *jobs, "--budget", "0.0004 USD", "-y", "-o", "json")
    report = json.loads(out)
    assert code in (0, 3)
    assert report["spent_usd"] <= 0.0004 * (1 + 1e-9)


def test_a_killed_fleet_goes_on_and_runs_nothing_twice(lynceus, here: Path, jobs: list[str]) -> None:
    (here / "second.yaml").write_text(JOB.format(name="second", work=4))
    command = [sys.executable, "-m", "lynceus.cli", "fleet", *jobs, "--budget", "5 USD", "-y"]
    process = subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not (here / "second.txt").exists():
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert lynceus("fleet", *jobs, "--budget", "5 USD", "-y")[0] == 0
    for name in ("first", "second"):
        assert sorted((here / f"{name}.txt").read_text().split()) == ["1", "2", "4"]
    with Storage("sqlite:///lynceus.db") as storage:
        assert [len(storage.trials(name)) for name in ("first", "second")] == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["first.yaml", "first.yaml", "--budget", "5 USD", "-y"], "another job file has the name 'first', too"),
        (["first.yaml", "--budget", "0", "-y"], "--budget: got 0 dollars"),
        (["first.yaml", "--budget", "5 EUR", "-y"], "Only US dollars"),
        (["first.yaml", "--budget", "5 USD"], "add -y to go ahead"),
        (["missing.yaml", "--budget", "5 USD", "-y"], "missing.yaml"),
    ],
)
def test_mistakes_are_one_sentence(lynceus, jobs: list[str], arguments: list[str], said: str) -> None:
    code, _, err = lynceus("fleet", *arguments)
    assert (code, said in err) == (2, True), err
    assert len([line for line in err.splitlines() if "for at most" not in line]) == 1
