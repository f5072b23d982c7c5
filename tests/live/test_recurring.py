"""A real job under a scheduler, whose input grows while it runs: adopted, watched, searched again, rolled back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

JOB = """\
name: tuning
run: [python, work.py, '${threads}']
space: {threads: [1, 2, 4]}
price: 1 + 0.1 * threads
constraints: ["runtime <= 3s"]
budget: {cost: 1 USD, max_trials: 4}
trial: {grace: 100ms}
"""
WORK = """\
import os, sys, time
time.sleep(0.05 + os.path.getsize("events.log") / 4e5 / int(sys.argv[1]))
"""
SCHEDULER = """\
import os, sys
from lynceus.library.recurring.execution import execute
from lynceus.library.recurring.recurring_job import RecurringJob
job = RecurringJob("nightly", sys.argv[1])
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    done = execute(job, run_id=f"tick-{number}", input=os.path.getsize("events.log"))
    job.review()
    with open("events.log", "ab") as events:  # meanwhile, elsewhere
        events.write(b"x" * int(sys.argv[4]))
"""
MB = 100_000


class Host:
    """A folder with the job, and commands in it as cron starts them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.url = folder, f"sqlite:///{folder}/lynceus.db"
        programs = str(Path(sys.executable).parent)
        self.environment = {
            **os.environ,
            "LYNCEUS_HOME": str(folder / "home"),
            "LYNCEUS_STORAGE": self.url,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        }
        (folder / "job.yaml").write_text(JOB)
        (folder / "work.py").write_text(WORK)
        (folder / "scheduler.py").write_text(SCHEDULER)
        (folder / "events.log").write_bytes(b"x" * MB)

    def run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def lynceus(self, *words: str) -> str:
        return self.run(sys.executable, "-m", "lynceus.cli", *words)

    def schedule(self, first: int, last: int, grows_by: int) -> None:
        self.run(sys.executable, "scheduler.py", self.url, str(first), str(last), str(grows_by))

    def job(self) -> Any:
        return json.loads(self.lynceus("job", "nightly", "-o", "json"))


def test_a_job_whose_input_grows_is_kept_on_time(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.lynceus(
        "adopt", "nightly", "--from", "job.yaml", "--param", "threads=1", "--by", "ana", "--reason", "small input"
    )
    host.lynceus("mode", "nightly", "suggest", "--allowance", "$1")
    # Eleven ticks: the input grows elevenfold, from 0.3 s of work to 3 s of it, and so past the deadline.
    host.schedule(0, 12, MB)
    watched = host.job()
    sizes = [run["size"] for run in watched["runs"]]
    assert sizes == [MB * (number + 1) for number in range(12)], "every run with the input that it had"
    assert [run["version"] for run in watched["runs"]] == [1] * 12
    assert watched["totals"]["late"] >= 1
    assert "late" in [finding["kind"] for finding in watched["watch"]["findings"]]
    assert watched["watch"]["expected_s"] > 1.5 * watched["runs"][3]["runtime_s"], "by the size of the next input"

    host.lynceus("mode", "nightly", "apply")
    host.lynceus("retune", "nightly", "--budget", "$0.5", "--yes")
    searched = host.job()
    assert searched["version"]["source"] == "retune"
    assert searched["version"]["params"]["threads"] > 1
    host.schedule(12, 15, 0)
    kept = host.job()
    assert [run["version"] for run in kept["runs"][12:]] == [2, 2, 2]
    assert all(run["state"] == "COMPLETE" for run in kept["runs"])
    assert max(run["runtime_s"] for run in kept["runs"][12:]) < min(run["runtime_s"] for run in kept["runs"][10:12])
    brought = next(one["brought"] for one in kept["changes"] if one["kind"] == "retune" and one["version"] == 2)
    assert (brought["runs"], brought["saving"] > 0) == (3, True), "per unit of input"

    host.lynceus("rollback", "nightly", "--by", "ana", "--reason", "the input is small again")
    (tmp_path / "events.log").write_bytes(b"x" * MB)
    host.schedule(15, 16, 0)
    ended = host.job()
    assert (ended["version"]["number"], ended["runs"][-1]["version"]) == (1, 1)
    kinds = [one["kind"] for one in ended["changes"] if one["kind"] != "suggest"]
    assert kinds == ["adopt", "settings", "settings", "retune", "retune", "rollback"]
    assert all(one["by"] for one in ended["changes"])
