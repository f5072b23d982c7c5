"""Workers for the tests that kill them. A clean process imports everything once and forks a worker for each line it reads.

Line in: a JSON object, see `work`. Lines out: `pid N` when a worker was forked, `exit N CODE` when it ended.
"""

import json
import os
import select
import signal
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from lynceus.durable import open_study
from lynceus.engine import explore
from lynceus.errors import InfrastructureError
from lynceus.executor import Executor, WallClock
from lynceus.executor.command import LocalJob
from lynceus.executor.executor import Request
from lynceus.executor.plugin import Setting
from lynceus.history import End, Outcome
from lynceus.ledger import Wish
from lynceus.plugins import executor_plugin
from lynceus.policy import preset
from lynceus.problem import Budget, Goal, Limit, Problem
from lynceus.space import Categorical, Integer, Space
from lynceus.study import Study

PRICE = 3600.0
"""Dollars per hour: one per second."""


def problem_of(asked: dict[str, Any]) -> Problem:
    space = Space.build([Integer("n", 1, asked["rows"] // 2), Categorical("mode", ("a", "b"))], price=PRICE)
    budget = Budget(usd=asked["usd"], trials=asked.get("trials"))
    # A deadline, and policies that cap every run by it: a run without a cap would reserve all the money there is.
    return Problem(space, Goal.parse("minimize loss"), (Limit.parse("runtime <= 8s"),), budget)


def study_of(asked: dict[str, Any]) -> Study:
    models = asked["policy"].startswith("lynceus")
    policy = preset(asked["policy"], lookahead=0 if models else None, timeout="tg-first" if models else "capped")
    return open_study(asked["url"], asked["name"], problem_of(asked), policy, seed=asked["seed"], load_if_exists=True)


def job_of(asked: dict[str, Any]) -> LocalJob:
    """Writes down that it was there, leaves a daemon, reports, takes its time."""
    script = (
        'echo "$LYNCEUS_TRIAL" >> "$FOLDER/deeds"; (setsid sleep 1000 &); '
        f'echo "::lynceus {{\\"loss\\": $n, \\"progress\\": 1}}"; sleep {asked["sleep_s"]}'
    )
    return LocalJob(script, workdir=Path(asked["folder"]), env={"FOLDER": asked["folder"]}, grace_s=0.1)


def executor_of(asked: dict[str, Any], problem: Problem) -> Executor:
    """Local, or what `executor` says as a job file would."""
    options = dict(asked.get("executor", {"kind": "local"}))
    plugin = executor_plugin(options.pop("kind"))
    setting = Setting(problem, job_of(asked), Path(asked["folder"]).resolve() / "runs")
    return plugin.make(setting, plugin.options.model_validate(options))


class Instant:
    """Every run takes a moment of pretended time and ends at once; the first one waits until every worker has begun one."""

    def __init__(self, problem: Problem, folder: Path, count: int) -> None:
        self._problem = problem
        self._folder, self._count = folder, count
        self._runs: dict[str, Outcome] = {}

    def launch(self, request: Request) -> str:
        (self._folder / f"met-{os.getpid()}").touch()
        while len(list(self._folder.glob("met-*"))) < self._count:
            time.sleep(0.01)
        ticket = f"{request.study}/{request.number}"
        ran = min(1.0 + request.row % 7, request.cap_s)
        price = float(self._problem.price[request.row])
        end = End.FINISHED if ran < request.cap_s else End.CAPPED
        metrics = {"loss": float(request.row)} if end is End.FINISHED else {}
        self._runs[ticket] = Outcome(end, ran, ran * price, metrics)
        return ticket

    def collect(self, ticket: str) -> Outcome | None:
        return self._runs[ticket]

    def cancel(self, ticket: str) -> None:
        pass


def make_mortal(study: Study, executor: Executor, moment: str) -> None:
    """Let this process be killed at an exact moment: `before launch`, `after launch`, `in settle` and so on."""
    when, _, what = moment.partition(" ")
    owners = {"launch": executor, "launched": study, "settle": study}
    if when in ("before", "after"):
        inner = getattr(owners[what], what)

        def mortal(*arguments: Any) -> Any:
            if when == "after":
                inner(*arguments)
            os.kill(os.getpid(), signal.SIGKILL)

        setattr(owners[what], what, mortal)
    elif when == "in":  # after the changes were written, before they are committed
        note = study._ledger._note  # type: ignore[attr-defined]
        kind = {"order": "ordered", "launched": "launched", "settle": "settled"}[what]

        def last_note(*arguments: Any) -> None:
            note(*arguments)
            if arguments[0] == kind:
                os.kill(os.getpid(), signal.SIGKILL)

        study._ledger._note = last_note  # type: ignore[attr-defined]


def work(asked: dict[str, Any]) -> int:
    """Resume a study and run trials; `drain`: only settle what is open; `kill`: end it."""
    wish = Wish.KILL if asked.get("kill") else Wish.STOP if asked.get("drain") else Wish.RUN
    try:
        study = study_of(asked)
        if asked.get("instant"):
            folder, count = asked["meet"]
            explore(study, Instant(study.problem, Path(folder), count), WallClock(), parallel=asked["parallel"])
            return 0
        executor = executor_of(asked, study.problem)
        with closing(executor):  # type: ignore[type-var]
            make_mortal(study, executor, asked.get("die", ""))
            explore(study, executor, WallClock(), parallel=asked["parallel"], wish=lambda: wish)
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
