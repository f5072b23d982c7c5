"""`lynceus run`: the search itself."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lynceus.cli.output import Output, OutputOption, StorageOption, console, print_json
from lynceus.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from lynceus.cli.opened import Opened
    from lynceus.executor import Executor
    from lynceus.history import Observation
    from lynceus.ledger import Wish
    from lynceus.notify import Courier
    from lynceus.study import Study

EXIT_NOTHING_FEASIBLE, EXIT_INFRASTRUCTURE, EXIT_INTERRUPTED = 3, 4, 130


def run(
    file: Annotated[Path, typer.Argument(help="A job file.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
    policy: Annotated[str | None, typer.Option(help="Another policy than the job file names.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Trials at the same time.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Another seed than the job file names.")] = None,
    detach: Annotated[
        bool, typer.Option("--detach", help="Search in the background; see 'lynceus status' and 'stop'.")
    ] = False,
    storage: StorageOption = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Run the job in different configurations until the best one is found. Shows the plan and asks before it spends.

    Exit codes: 0 found, 2 bad input, 3 nothing keeps the limits, 4 infrastructure, 130 interrupted.
    """
    from lynceus.cli.jobs import plan_shown
    from lynceus.cli.named import storage_url
    from lynceus.cli.opened import create_or_open
    from lynceus.cli.repricing import tell_price_news
    from lynceus.insight import forecast
    from lynceus.job import Job
    from lynceus.job.prepare import checked_objective, prepare
    from lynceus.job.secrets import secrets_of
    from lynceus.notify import courier_of
    from lynceus.units import format_money

    job = Job.read(file)
    prepared = prepare(job, policy)
    checked_objective(job)
    secrets_of(job)
    courier_of(job)
    width = parallel or prepared.parallel
    if output is Output.TABLE:
        console().print(plan_shown(prepared, forecast(prepared.problem, prepared.policy, parallel=width), width))
    if not yes:
        _ask(output)
    one = create_or_open(str(file), storage, policy=policy, seed=seed)
    if one.study.history or one.study.pending:
        _no_silent_change(one, policy, seed)
        tell_price_news(one)
        typer.echo(
            f"{one.name}: continuing with {len(one.study.history)} trials, {format_money(one.study.spent_usd)} spent.",
            err=True,
        )
    if detach:
        from lynceus.cli.detached import start_worker

        start_worker(one, storage_url(storage, job), width)
        return
    work(one, width, output)


def _ask(output: Output) -> None:
    if not sys.stdin.isatty() or output is Output.JSON:
        raise InputError("run: nobody is there to be asked before money is spent; add -y to go ahead.")
    if not typer.confirm("Go ahead?", default=False):
        raise typer.Exit(0)


def _no_silent_change(one: Opened, policy: str | None, seed: int | None) -> None:
    if (policy is not None and policy != one.study.policy.name) or (seed is not None and seed != one.study.seed):
        raise InputError(
            f"study {one.name!r} began with policy {one.study.policy.name} and seed {one.study.seed}; these stay for its whole life. "
            "Leave --policy and --seed out, or give the job another name."
        )


def work(one: Opened, parallel: int, output: Output) -> None:
    """Be a worker of a study until it ends, then print the answer and leave with its exit code."""
    from rich.console import Console

    from lynceus.job.execution import executor_of, run_setup
    from lynceus.job.secrets import secrets_of
    from lynceus.ledger import Wish
    from lynceus.notify import courier_of

    out = Console(stderr=True, highlight=False) if output is Output.JSON else console()
    job = one.prepared.job
    secrets, courier = secrets_of(job), courier_of(job)
    run_setup(job, one.study, secrets)
    with interrupts() as wanted, executor_of(one.prepared, secrets) as executor:
        _explore(one, executor, parallel, wanted, out, courier)
        interrupted = wanted() is not Wish.RUN
    if interrupted:
        one.study.release()  # so that others see that nobody works on it
    one.study.refresh()
    courier.look(one.study)
    courier.close()
    raise typer.Exit(_conclude(one, interrupted, output))


def _explore(
    one: Opened, executor: Executor, parallel: int, wanted: Interrupts, out: Console, courier: Courier
) -> None:
    from contextlib import nullcontext

    from lynceus.cli.board import Board, Lines, live
    from lynceus.engine import explore
    from lynceus.executor import WallClock

    # Time goes on where the last worker left it: pauses do not count.
    board = Board(one.study, began_s=time.time() - one.record.active_s)
    lines = Lines(one.study, out)
    watched = out.is_terminal
    board.update()

    def tick() -> None:
        board.note = wanted.note
        board.update()

    def settled(seen: Observation) -> None:
        if not watched:
            lines.settled(seen)
        courier.look(one.study)

    with live(board, out) if watched else nullcontext():
        explore(
            one.study,
            executor,
            WallClock(),
            parallel=parallel,
            ordered=None if watched else lines.ordered,
            settled=settled,
            wish=wanted,
            tick=tick if watched else None,
        )


class Interrupts:
    """What Ctrl-C asks for: once, let open trials end and start no more; twice, end them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> Wish:
        """The wish by now."""
        from lynceus.ledger import Wish

        return (Wish.RUN, Wish.STOP, Wish.KILL)[min(self.count, 2)]

    @property
    def note(self) -> str:
        """One line for the person at the keyboard."""
        return (
            "Ctrl-C stops after the open trials; nothing is lost",
            "stopping: open trials come to their end; Ctrl-C again ends them now",
            "ending open trials …",
        )[min(self.count, 2)]

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Count a signal."""
        self.count += 1
        if self.count <= 2:
            sys.stderr.write(f"\nlynceus: {self.note}\n")


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Signals as wishes, for a while. SIGTERM is what Ctrl-C is, for services."""
    wanted = Interrupts()
    before = {number: signal.signal(number, wanted.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield wanted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(one: Opened, interrupted: bool, output: Output) -> int:
    from lynceus.cli.answers import print_verdict, verdict_facts
    from lynceus.insight import verdict
    from lynceus.policy import Because

    study = one.study
    found = verdict(
        study.problem, study.policy, one.known, all_runs=study.history, baseline=one.baseline, seed=study.seed
    )
    stopped, failed = study.stopped, _all_failed(study)
    reason = "interrupted" if interrupted else ("" if stopped is None else stopped.reason)
    paused = stopped is not None and stopped.because is Because.PAUSED
    if output is Output.JSON:
        print_json(
            {
                "study": one.name,
                "reason": reason,
                "spent_usd": study.spent_usd,
                "best": None if found is None else verdict_facts(one, found),
                "failed": failed,
            }
        )
    else:
        out = console()
        done = "the search pays no more: " if stopped is not None and stopped.because is Because.CONVERGED else ""
        out.print(f"\n{one.name}: {'' if interrupted else done}{reason}.", markup=False)
        if found is not None:
            print_verdict(out, one, study.problem, found)
        else:
            out.print(failed or "No configuration is known to keep every limit.", markup=False)
        if interrupted or paused or (stopped is not None and stopped.because is Because.USER):
            out.print(f"Continue with: lynceus resume {one.name}", markup=False)
        elif failed is not None:
            out.print(
                f"See: lynceus trials {one.name}, lynceus logs {one.name} {_last(study)}", markup=False, style="dim"
            )
        else:
            out.print(
                f"More: lynceus report {one.name}, explain, whatif --deadline …, export --to skypilot",
                markup=False,
                style="dim",
            )
    if interrupted:
        return EXIT_INTERRUPTED
    if paused or (failed is not None and found is None):
        return EXIT_INFRASTRUCTURE
    return 0 if found is not None else EXIT_NOTHING_FEASIBLE


def _all_failed(study: Study) -> str | None:
    """What to say when no run can be judged by the limits, because the job itself never came to its end."""
    from lynceus.history import End, Reason

    history = study.history
    if not history or any(seen.outcome.end is not End.FAILED or seen.outcome.reason is Reason.USER for seen in history):
        return None
    count = "the only trial" if len(history) == 1 else f"all {len(history)} trials"
    return f"No configuration is known: {count} failed; the last: {history[-1].outcome.detail or history[-1].outcome.reason}."


def _last(study: Study) -> int:
    return study.history[-1].order.number
