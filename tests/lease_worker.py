"""One step of a worker in a process of its own, for tests of leases; it prints JSON.

    lease_worker.py URL order                print the runs that were taken over and our name, order and launch trial 1, wait for input
    lease_worker.py URL adopt                print the numbers of the runs that were taken over
    lease_worker.py URL explore LOG          run trials that end at once; waits between the first order and its launch

Options: `--clock=SECONDS` shifts this process's clock; `--lease=SECONDS` shortens the lease.
"""

import json
import os
import sys
import time
from pathlib import Path

from journal_cases import order
from lynceus.executors.interface import Request, WallClock
from lynceus.policy.presets import preset
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.storage.sql.storage import Storage
from lynceus.study.run_loop import explore
from lynceus.study.stored import open_study
from lynceus.study.study import Study
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Outcome


class LoggingExecutor:
    """Runs end at once; a log keeps which were started."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def launch(self, request: Request) -> str:
        with self._log.open("a") as log:
            log.write(f"{request.number} {os.getpid()}\n")
        return f"{os.getpid()}/{request.number}"

    def collect(self, ticket: str) -> Outcome | None:
        return Outcome(End.FINISHED, 1.0, 0.01)

    def cancel(self, ticket: str) -> None:
        pass


def study_of(storage: Storage) -> Study:
    problem = Problem(Space.build([Integer("n", 1, 3)], price=36.0))
    return open_study(storage, "nightly", problem, preset("sweep"), load_if_exists=True)


def wait_once(_: Order) -> None:
    """Between the first order and its launch: tell the test, which stops this process beyond its lease."""
    ordered, go_on = Path(os.environ["ORDERED"]), Path(os.environ["GO_ON"])
    ordered.touch()
    while not go_on.exists():
        time.sleep(0.01)


def main(url: str, action: str, *more: str) -> None:
    options = dict(one[2:].split("=") for one in more if one.startswith("--"))
    if shift := float(options.get("clock", 0)):
        real = time.time
        time.time = lambda: real() + shift  # as if somebody had set the clock of this host
    with Storage(url, lease_s=float(options.get("lease", 900))) as storage:
        if action == "explore":
            explore(study_of(storage), LoggingExecutor(Path(more[0])), WallClock(), ordered=wait_once)
            return
        journal = storage.journal("nightly")
        if action == "adopt":
            print(json.dumps([run.order.number for run in journal.adopt()]), flush=True)
            return
        adopted = [run.order.number for run in journal.adopt()]
        journal.ordered(order(1), {})
        journal.launched(1, "there")
        print(json.dumps([adopted, journal.worker]), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main(*sys.argv[1:])
