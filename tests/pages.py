"""A site for tests of pages: a storage with several studies, one of which is running, and a server."""

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
from lynceus.jobfile.job import Job
from lynceus.library.open_study import OpenStudy, open_named
from lynceus.storage.sql.storage import Storage
from sample_studies import sample_study

MARKUP = "<img src=x onerror=\"document.title='broken'\"><script>document.title='broken'</script>"
"""Markup that may appear in any text; pages must show it as text."""
QUICK, SLOW = 6, 2
"""Trials of the running study that end at once, and trials that run for an hour, longer than any test."""
JOB = """\
version: 1
name: running
run: |
  printf '%s\\n' "working on $step with $LYNCEUS_PARAM_WORD"
  printf '%s\\n' "{markup}" >&2
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
class Site:
    """A storage with studies, and its server."""

    server: Dashboard
    folder: Path

    @property
    def storage(self) -> str:
        return f"sqlite:///{self.folder}/studies.db"

    @property
    def url(self) -> str:
        return self.server.url

    def study(self, name: str) -> OpenStudy:
        """A study as the storage has it now."""
        return open_named(name, self.storage)


@contextmanager
def running_site(folder: Path) -> Iterator[Site]:
    """Two studies of the sample job, one with markup in its name, one without trials, and one that is running."""
    sample_study(folder, "nightly", 18).storage.close()
    sample_study(folder, "hourly", 12, seed=3).storage.close()
    sample_study(folder, "empty", 0).storage.close()
    _markup_study(folder)
    file = folder / "running.yaml"
    quoted = "'" + MARKUP.replace("'", "''") + "'"
    file.write_text(JOB.format(markup=MARKUP.replace('"', '\\"'), quick=QUICK, word=quoted), encoding="utf-8")
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
        site = Site(server, folder)
        try:
            eventually(lambda: _has(site, QUICK, SLOW))
            yield site
        finally:
            with contextlib.suppress(Exception):
                site.study("running").study.stop(kill=True)
            try:
                worker.wait(30)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
    assert not server.broken, "".join(server.stderr)


def _markup_study(folder: Path) -> None:
    """A study with markup as its name: programs may choose it, job files may not."""
    job = Job.read(str(folder / "empty.yaml"))
    with Storage(f"sqlite:///{folder}/studies.db") as storage:
        empty = storage.load_study("empty")
        storage.create_study(
            MARKUP.replace("/", "|"), document=job.stored(), fingerprint=empty.fingerprint, policy=empty.policy
        )


def _has(site: Site, settled: int, running: int) -> bool:
    with Storage(site.storage) as storage:
        if "running" not in [record.name for record in storage.studies()]:
            return False
        totals = storage.totals("running")
        started = sum(trial.launched_s is not None for trial in storage.trials("running"))
        return (totals.settled, totals.running, started) == (settled, running, settled + running)


def sign_in(page: Page, site: Site, token: str = WRITE) -> None:
    """Sign in with the form."""
    page.goto(site.url + "/login")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Studies", exact=True).wait_for()
