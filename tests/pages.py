"""A place to look at pages: a storage with several studies, one of which really runs, and a server that shows it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from dashboards import WRITE, Dashboard, dashboard
from local_runs import eventually
from lynceus.cli.opened import Opened, open_study
from lynceus.job import Job
from lynceus.ledger.sql import Storage
from made_up import made_up

EVIL = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
"""What a person might put into any text; it must stay one."""
QUICK, SLOW = 6, 2
"""Trials of the running study that end at once, and those that would run for an hour: longer than any test looks."""
JOB = """\
version: 1
name: running
run: |
  printf '%s\\n' "working on $step with $LYNCEUS_PARAM_WORD"
  printf '%s\\n' "{evil}" >&2
  for part in 1 2 3 4; do
    printf '{{"progress": 0.%s, "<b>rate</b>": %s}}\\n' "$part" "$part" >> "$LYNCEUS_RESULT"
    sleep "0.$((9 - step))"
  done
  if [ "$step" -gt {quick} ]; then sleep 3400; fi
space:
  step: [1, 2, 3, 4, 5, 6, 7, 8]
  word: [{word}]
price: 3.6 * step
constraints: ["runtime <= 58m"]
budget: {{cost: 500 USD}}
policy: sweep
trial: {{parallel: 2, timeout: none, max_duration: 58m, grace: 1s}}
baseline: {{step: 6, word: {word}}}
"""


@dataclass(frozen=True)
class Place:
    """A storage with studies, and the server that shows it."""

    server: Dashboard
    folder: Path

    @property
    def storage(self) -> str:
        return f"sqlite:///{self.folder}/studies.db"

    @property
    def url(self) -> str:
        return self.server.url

    def study(self, name: str) -> Opened:
        """A study as the storage has it now."""
        return open_study(name, self.storage)


@contextmanager
def running_place(folder: Path) -> Iterator[Place]:
    """Two studies of a made-up job, one with an evil name, one that is empty, and one that really runs."""
    made_up(folder, "nightly", 18).storage.close()
    made_up(folder, "hourly", 12, seed=3).storage.close()
    made_up(folder, "empty", 0).storage.close()
    _evil_study(folder)
    file = folder / "running.yaml"
    quoted = "'" + EVIL.replace("'", "''") + "'"
    file.write_text(JOB.format(evil=EVIL.replace('"', '\\"'), quick=QUICK, word=quoted), encoding="utf-8")
    storage = f"sqlite:///{folder}/studies.db"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LYNCEUS_")}
    with dashboard(storage, folder) as server:
        worker = subprocess.Popen(
            [sys.executable, "-m", "lynceus.cli", "run", str(file), "--yes", "--storage", storage],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        here = Place(server, folder)
        try:
            eventually(lambda: _has(here, QUICK, SLOW))
            yield here
        finally:
            with contextlib.suppress(Exception):
                here.study("running").study.stop(kill=True)
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
    assert not server.broken, "".join(server.said)


def _evil_study(folder: Path) -> None:
    """A study whose name is markup: job files refuse such names, programs may give them."""
    job = Job.read(str(folder / "empty.yaml"))
    with Storage(f"sqlite:///{folder}/studies.db") as storage:
        plain = storage.load_study("empty")
        storage.create_study(
            EVIL.replace("/", "|"), document=job.stored(), fingerprint=plain.fingerprint, policy=plain.policy
        )


def _has(here: Place, settled: int, running: int) -> bool:
    with Storage(here.storage) as storage:
        if "running" not in [record.name for record in storage.studies()]:
            return False
        totals = storage.totals("running")
        started = sum(trial.launched_s is not None for trial in storage.trials("running"))
        return (totals.settled, totals.running, started) == (settled, running, settled + running)


def sign_in(page: Page, place: Place, token: str = WRITE) -> None:
    """Through the form, as a person does."""
    page.goto(place.url + "/login")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Studies", exact=True).wait_for()
