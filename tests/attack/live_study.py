"""A study of hostile jobs with real worker processes, and everything that may happen to them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from pathlib import Path

from attack.commands import Commands
from attack.hostile_jobs import job_processes, job_script, supervisors, until
from attack.ledger import Ledger, read_ledger
from lynceus.library.open_study import JobEdits, OpenStudy, open_named

NAME = "attacked"
BUDGET_USD = 30.0
CAP_S = 1.5
PRICE_USD_PER_S = 1.0

JOB = f"""\
name: {NAME}
run: ["{sys.executable}", -I, -S, job.py]
space: {{n: {{int: [1, 40]}}, mode: [a, b]}}
price: {3600 * PRICE_USD_PER_S}
objective: minimize loss
constraints: ["runtime <= {CAP_S}s"]
metrics: {{extra: '(a+)+$'}}
budget: {BUDGET_USD} USD
policy: POLICY
seed: SEED
trial: {{timeout: capped, grace: 100ms, max_failures: 1000, retries: {{infra: 1, job: 0}}}}
executor: {{kind: local, run_directory: runs}}
"""


class LiveStudy:
    """One study in a folder of its own. `url` is how tests reach the storage, `workers_url` how workers do."""

    def __init__(self, folder: Path, commands: Commands, url: str, workers_url: str | None = None) -> None:
        self.folder, self.commands, self.url = folder, commands, url
        self.workers_url = workers_url or url
        self.log = folder.parent / f"{folder.name}-executions"
        """Outside the run directories, and outside a disk that fills up."""
        self.outputs = folder.parent / f"{folder.name}-outputs"
        self.workers: dict[int, Path] = {}
        """Worker processes, with what they print."""
        self.stopped: set[int] = set()
        """Processes that stand still by SIGSTOP."""
        self._started = 0

    def create(self, deeds: list[str], policy: str, seed: int) -> None:
        self.outputs.mkdir()
        (self.folder / "job.py").write_text(job_script(deeds, self.log))
        (self.folder / "job.yaml").write_text(JOB.replace("POLICY", policy).replace("SEED", str(seed)))

    @property
    def runs(self) -> Path:
        return self.folder / "runs"

    def start(self, *arguments: str, clock_s: float = 0.0) -> int:
        """A `lynceus` process on this study."""
        self._started += 1
        output = self.outputs / str(self._started)
        pid = self.commands.start(
            *arguments, "--storage", self.workers_url, folder=self.folder, output=output, clock_s=clock_s
        )
        self.workers[pid] = output
        return pid

    def command(self, *arguments: str) -> tuple[int | None, str]:
        """The exit code of a command (None if it hangs) and what it printed."""
        pid = self.start(*arguments)
        code = self.commands.wait(pid)
        return code, self.workers.pop(pid).read_text(errors="replace")

    def living(self) -> list[int]:
        return [pid for pid in self.workers if not self.commands.ended(pid)]

    def send(self, pid: int, which: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, which)
        if which is signal.SIGSTOP:
            self.stopped.add(pid)
        else:
            self.stopped.discard(pid)

    def supervisors(self) -> list[int]:
        return sorted(supervisors(self.runs))

    def go_on(self) -> None:
        """Wake every process that stands still."""
        for pid in list(self.stopped):
            self.send(pid, signal.SIGCONT)

    def ledger(self) -> Ledger | None:
        return read_ledger(self.url, NAME)

    def opened(self) -> OpenStudy:
        return open_named(NAME, self.url, JobEdits.IGNORE)

    def run_directories(self) -> list[Path]:
        return sorted(self.runs.glob("*/*")) if self.runs.is_dir() else []

    def remove_run(self, place: int) -> None:
        if found := self.run_directories():
            shutil.rmtree(found[place % len(found)], ignore_errors=True)

    def end(self) -> None:
        """Leave no process behind, whatever happened."""
        self.go_on()
        for pid in [*self.living(), *supervisors(self.runs), *job_processes(self.runs)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert until(lambda: not self.living(), 30), "a worker survived SIGKILL"
        assert until(lambda: not self._kill_jobs(), 30), "a job survived SIGKILL"

    def _kill_jobs(self) -> bool:
        left = job_processes(self.runs)
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return bool(left)
