"""The overhead of a live study besides the runs themselves: per trial, and with 10,000 trials in the storage.

    python -m benchmarks.live [--url sqlite:////tmp/bench.db]

The policy is the fastest one, and its decision is measured separately; the rest is asking, storing, starting and settling.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from benchmarks.problems import decide
from lynceus.executors.command import JobCommand
from lynceus.executors.interface import WallClock
from lynceus.executors.local import LocalExecutor
from lynceus.policy.policy import Policy
from lynceus.policy.presets import preset
from lynceus.problem.budget import Budget
from lynceus.problem.problem import Problem
from lynceus.space.parameter import Integer
from lynceus.space.table import Space
from lynceus.storage.sql.storage import Storage
from lynceus.study.run_loop import explore
from lynceus.study.stored import continued, open_study
from lynceus.study.study import Study
from lynceus.trial.trial import Trial

TRIALS, MANY = 60, 10_000


def problem_of(rows: int) -> Problem:
    return Problem(Space.build([Integer("n", 1, rows)], price=0.36), budget=Budget(usd=1e9))


def per_trial(url: str, folder: Path) -> list[tuple[str, float]]:
    """Milliseconds of each step of a trial, and of a whole trial of a job that does nothing."""
    problem = problem_of(4 * TRIALS)
    policy = preset("sweep")
    spent: dict[str, list[float]] = {}

    def timed(name: str, function: Callable[..., object], owner: object) -> None:
        def wrapped(*arguments: object) -> object:
            began = time.perf_counter()
            try:
                return function(*arguments)
            finally:
                spent.setdefault(name, []).append(1000 * (time.perf_counter() - began))

        setattr(owner, name, wrapped)

    with Storage(url) as storage:
        study = open_study(storage, "overhead", problem, policy)
        job = JobCommand(("/bin/true",), workdir=folder)
        with closing(LocalExecutor(problem, job, folder / "runs")) as executor:
            for name, owner in (
                ("order", study.runs),
                ("launch", executor),
                ("launched", study.runs),
                ("settle", study.runs),
            ):
                timed(name, getattr(owner, name), owner)
            ends: list[float] = []
            began_cpu = time.process_time()
            explore(
                study,
                executor,
                WallClock(),
                settled=lambda seen: (ends.append(time.perf_counter()), len(ends) == TRIALS and study.stop())[0],
            )
        worker_ms = 1000 * (time.process_time() - began_cpu) / TRIALS
        decision = [1000 * decided(problem, policy, study)]
        whole = [1000 * (later - earlier) for earlier, later in pairwise(ends)]
        job_ms = [1000 * seen.outcome.seconds for seen in study.observations]
    rows = [(f"{name} (median)", statistics.median(values)) for name, values in spent.items()]
    rows += [
        ("of which the decision", statistics.median(decision)),
        ("the job itself, fork to exit", statistics.median(job_ms)),
    ]
    rows.append(("CPU of the worker, independent of the load", worker_ms))
    rows.append(("whole trial, end to end", statistics.median(whole)))
    return [
        *rows,
        (
            "whole trial without job and decision",
            statistics.median(whole) - statistics.median(decision) - statistics.median(job_ms),
        ),
    ]


def decided(problem: Problem, policy: Policy, study: Study) -> float:
    began = time.perf_counter()
    decide(problem, policy, study.observations, seed=0)
    return time.perf_counter() - began


def with_many(url: str) -> list[tuple[str, float]]:
    """Milliseconds to open, show and ask a study with 10,000 trials."""
    problem = problem_of(2 * MANY)
    rows: list[tuple[str, float]] = []

    def row(name: str, function: Callable[[], object]) -> object:
        began = time.perf_counter()
        result = function()
        rows.append((name, 1000 * (time.perf_counter() - began)))
        return result

    with Storage(url) as storage:
        study = open_study(storage, "many", problem, preset("sweep"))
        row("import all trials", lambda: study.add_trials(({"n": n}, 10.0 + n % 100, {}) for n in range(1, MANY + 1)))
    with Storage(url) as storage:
        row("status: the list of studies", storage.studies)
        again = row("open: read all trials", lambda: continued(storage, "many", problem, preset("sweep")))
        assert isinstance(again, Study)
        trial = row("first ask", again.ask)
        assert isinstance(trial, Trial)
        row("tell", lambda: again.tell(trial, runtime=5.0))
        row("second ask", again.ask)
        row("refresh without changes", again.runs.refresh)
        row("status: spent, reserved, best", lambda: (again.spent_usd, again.reserved_usd, again.best_value))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", help="a storage to measure; a new SQLite file by default")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = arguments.url or f"sqlite:///{folder}/bench.db"
        print(f"storage: {url.split(':')[0]}\n\n{TRIALS} trials of a job that does nothing" + " " * 10 + "ms")
        for name, value in per_trial(url, Path(folder)):
            print(f"  {name:<46}{value:8.1f}")
        print(f"\na study with {MANY:,} trials" + " " * 22 + "ms")
        for name, value in with_many(url):
            print(f"  {name:<46}{value:8.1f}")


if __name__ == "__main__":
    main()
