"""Workers for tests that kill them. This process imports everything once and forks a worker for each line that it reads.

Input lines: a JSON object, see `work`. Output lines: `pid N` when a worker was forked, `exit N CODE` when it ended.
"""

import json
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import Any

from lynceus.errors import InfrastructureError
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import Executor, Request, SupportsClose, WallClock
from lynceus.executors.plugin import ExecutorContext
from lynceus.executors.registry import executor_plugin
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.objective import Constraint, Objective
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Categorical, Integer
from lynceus.space.table import Space
from lynceus.storage.sql.storage import Storage
from lynceus.study.run_loop import explore
from lynceus.study.stored import open_study
from lynceus.study.study import Study
from lynceus.trial.outcome import End, Outcome
from lynceus.trial.record import RequestedState

PRICE = 3600.0
"""Dollars per hour: one per second."""


def problem_of(task: dict[str, Any]) -> Problem:
    space = Space.build([Integer("n", 1, task["rows"] // 2), Categorical("mode", ("a", "b"))], price=PRICE)
    budget = Budget(usd=task["usd"], trials=task.get("trials"))
    # A deadline, and policies that use it as timeout: a run without a timeout would reserve the whole budget.
    return Problem(space, Objective.parse("minimize loss"), (Constraint.parse("runtime <= 8s"),), budget)


def study_of(task: dict[str, Any], storage: Storage | None = None) -> Study:
    """The study of a task, created if it does not exist."""
    models = task["policy"].startswith("lynceus")
    policy = preset(task["policy"], lookahead=0 if models else None, timeout="tg-first" if models else "capped")
    return open_study(
        storage or task["url"], task["name"], problem_of(task), policy, seed=task["seed"], load_if_exists=True
    )


def job_of(task: dict[str, Any]) -> JobCommand:
    """Notes that it ran, leaves a daemon behind, reports, and takes its time."""
    script = (
        'echo "$LYNCEUS_TRIAL" >> "$FOLDER/log"; (setsid sleep 1000 &); '
        f'echo "::lynceus {{\\"loss\\": $n, \\"progress\\": 1}}"; sleep {task["sleep_s"]}'
    )
    return JobCommand(script, workdir=Path(task["folder"]), env={"FOLDER": task["folder"]}, grace_s=0.1)


def executor_of(task: dict[str, Any], problem: Problem) -> Executor:
    """The local executor, or the one of `executor`, which is written as in a job file."""
    options = dict(task.get("executor", {"kind": "local"}))
    plugin = executor_plugin(options.pop("kind"))
    context = ExecutorContext(problem, job_of(task), Path(task["folder"]).resolve() / "runs")
    return plugin.make(context, plugin.options.model_validate(options))


class InstantExecutor:
    """Every run ends at once; the first one waits until every worker has started one."""

    def __init__(self, problem: Problem, folder: Path, count: int) -> None:
        self._problem = problem
        self._folder, self._count = folder, count
        self._runs: dict[str, Outcome] = {}

    def launch(self, request: Request) -> str:
        (self._folder / f"met-{os.getpid()}").touch()
        while len(list(self._folder.glob("met-*"))) < self._count:
            time.sleep(0.01)
        ticket = f"{request.study}/{request.number}"
        ran = min(1.0 + request.row % 7, request.timeout_s)
        price = float(self._problem.price[request.row])
        end = End.FINISHED if ran < request.timeout_s else End.TIMEOUT
        metrics = {"loss": float(request.row)} if end is End.FINISHED else {}
        self._runs[ticket] = Outcome(end, ran, ran * price, metrics)
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        return self._runs[ticket]

    def cancel(self, ticket: str) -> None:
        pass


def die_at(study: Study, executor: Executor, moment: str) -> None:
    """Kill this process at an exact moment: `before launch`, `after launch`, `in settle` and so on."""
    when, _, what = moment.partition(" ")
    owners = {"launch": executor, "launched": study.runs, "settle": study.runs}
    if when in ("before", "after"):
        name = {"settle": "settle_all"}.get(what, what)
        inner = getattr(owners[what], name)

        def dying(*arguments: Any) -> Any:
            if when == "after":
                inner(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owners[what], name, dying)
    elif when == "in":  # after the changes were written, before they are committed
        note = study.journal._note  # type: ignore[attr-defined]
        kind = {"order": "ordered", "launched": "launched", "settle": "settled"}[what]

        def last_note(*arguments: Any) -> None:
            note(*arguments)
            if arguments[0] == kind:
                os.kill(os.getpid(), signal.SIGKILL)

        study.journal._note = last_note  # type: ignore[attr-defined]


def work(task: dict[str, Any]) -> int:
    """Resume a study and run trials; with `drain`, only settle open trials; with `kill`, cancel them."""
    requested_state = (
        RequestedState.KILL if task.get("kill") else RequestedState.STOP if task.get("drain") else RequestedState.RUN
    )
    try:
        study = study_of(task)
        if task.get("instant"):
            folder, count = task["meet"]
            explore(study, InstantExecutor(study.problem, Path(folder), count), WallClock(), parallel=task["parallel"])
            return 0
        executor = executor_of(task, study.problem)
        try:
            die_at(study, executor, task.get("die", ""))
            explore(study, executor, WallClock(), parallel=task["parallel"], requested_state=lambda: requested_state)
        finally:
            if isinstance(executor, SupportsClose):
                executor.close()
    except InfrastructureError:
        return 4
    return 0


def main() -> None:
    children: set[int] = set()
    lines = os.fdopen(0, "rb", buffering=0)
    while True:
        if select.select([lines], [], [], 0.002 if children else None)[0]:
            line = lines.readline()
            if not line:
                return
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = work(json.loads(line))
                finally:
                    os._exit(code)
            children.add(child)
            print("pid", child, flush=True)
        for child in list(children):
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                children.remove(child)
                print("exit", child, os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    sys.exit(main())
