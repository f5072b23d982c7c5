"""`lynceus exec`: run a recurring job once with its production configuration, and record the run."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from lynceus.cli import exit_codes
from lynceus.cli.arguments import StorageOption
from lynceus.cli.job_options import InputOption, JobArgument, RunIdOption, named_job, review_and_tell
from lynceus.cli.output import echo


def exec_(
    name: JobArgument,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[-- ARGUMENT…]", help="Appended to the job's run, if that is a list.")
    ] = None,
    input: InputOption = None,
    run_id: RunIdOption = None,
    storage: StorageOption = None,
) -> None:
    """Run a recurring job once with its production configuration, on the executor of its job file, and record the run.

    Its output is printed as it comes. Exit codes: 0 finished, 1 the job failed, 4 infrastructure, 130 interrupted. An interrupted command
    ends the job; one that is killed does not, and the next one records how it ended.
    """
    from lynceus.library.recurring.execution import Watcher, execute
    from lynceus.trial.outcome import End, FailureReason

    job = named_job(name, storage)
    with _interrupts() as stopped:
        watcher = Watcher(_print, lambda sentence: echo(sentence, err=True), lambda: bool(stopped))
        done = execute(job, input=input, run_id=run_id, extra=arguments or (), watcher=watcher)
    if done.recorded:
        review_and_tell(job)
    run = done.run
    if run.end is End.FINISHED:
        return
    echo(f"{name}: run {run.run_id} failed: {run.detail or run.reason}", err=True)
    codes = {FailureReason.USER: exit_codes.INTERRUPTED, FailureReason.INFRA: exit_codes.INFRASTRUCTURE}
    raise typer.Exit(1 if run.reason is None else codes.get(run.reason, 1))


def _print(stream: str, text: str) -> None:
    target = sys.stdout if stream == "stdout" else sys.stderr
    target.write(text)
    target.flush()


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals that asked this command to end: its job is ended, and the run recorded as stopped by the user."""
    got: list[int] = []
    before = {
        one: signal.signal(one, lambda number, frame: got.append(number)) for one in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield got
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
