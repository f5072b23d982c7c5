"""Runs of a study on the fake SkyPilot, and waiting for their end."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from fake_skypilot_bench import FakeSkyPilot
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Request
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.skypilot.executor import SkyPilotExecutor
from lynceus.executors.skypilot.options import SkyPilotOptions
from lynceus.problem.billing import Billing
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical
from lynceus.space.table import Space
from lynceus.trial.outcome import Outcome

OPTIONS = {"resources": {"infra": "cloud/region", "cpus": 2}, "workdir": False}


def options(fake: FakeSkyPilot, **more: Any) -> SkyPilotOptions:
    return SkyPilotOptions.model_validate({"python": str(fake.python), **OPTIONS, **more})


class StudyRuns:
    """Runs of one study."""

    def __init__(self, fake: FakeSkyPilot, folder: Path, billing: Billing | None = None, **more: Any) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        space = Space.build([Categorical("machine", ("small", "large"))], price=3600.0)
        self.problem = Problem(space, budget=Budget(usd=1e6), billing=billing or Billing())
        self.job = JobCommand('echo "$machine" >> "$FOLDER/log"', workdir=folder, env={"FOLDER": str(folder)})
        self.options = options(fake, **more)
        self._open: list[SkyPilotExecutor] = []

    def executor(self, run: str | None = None, **secrets: str) -> SkyPilotExecutor:
        job = self.job if run is None else replace(self.job, run=run, secrets=secrets)
        made = SkyPilotExecutor(ExecutorContext(self.problem, job, self.folder / "runs"), self.options)
        self._open.append(made)
        return made

    def request(self, number: int, row: int = 0, timeout_s: float = 60.0, *, boots: bool = True) -> Request:
        return Request("nightly", number, row, {"machine": ("small", "large")[row]}, timeout_s, boots, "0a1b2c3d")

    def close(self) -> None:
        for one in self._open:
            one.leave()


def wait(executor: SkyPilotExecutor, ticket: str) -> Outcome:
    until = time.monotonic() + 60
    while (outcome := executor.collect(ticket)) is None:
        assert time.monotonic() < until, "the run does not end"
        time.sleep(0.01)
    return outcome


def run(executor: SkyPilotExecutor, request: Request) -> Outcome:
    return wait(executor, executor.launch(request))
