"""What `lynceus run` and `lynceus resume` share: be a worker of a study until it ends, then print the answer."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING

import typer

from lynceus.analysis.answer import Answer, answer
from lynceus.cli import exit_codes
from lynceus.cli.best import print_answer
from lynceus.cli.live_board import Board, EventLines, live
from lynceus.cli.output import Output, console, print_json
from lynceus.executors.interface import Executor, WallClock
from lynceus.jobfile.executor import executor_of
from lynceus.jobfile.secrets import secrets_of
from lynceus.jobfile.setup_command import run_setup
from lynceus.library.open_study import OpenStudy
from lynceus.library.study_context import study_context
from lynceus.notify.notifier import Notifier, notifier_of
from lynceus.study.run_loop import explore
from lynceus.study.study import Study
from lynceus.trial.outcome import End, FailureReason, Observation
from lynceus.trial.record import RequestedState
from lynceus.trial.stop import StopReason

if TYPE_CHECKING:
    from rich.console import Console


def work(one: OpenStudy, parallel: int, output: Output) -> None:
    """Run trials until the study ends, print the answer, and exit with its code."""
    job, out = one.prepared.job, console(stderr=output is Output.JSON)
    secrets, notifier = secrets_of(job), notifier_of(job)
    run_setup(job, one.study, secrets)
    with interrupts() as requested, executor_of(one.prepared, secrets) as executor:
        _run_trials(one, executor, parallel, requested, out, notifier)
        interrupted = requested() is not RequestedState.RUN
    if interrupted:
        one.study.runs.release()  # so that others see that no worker runs the study
    one.study.runs.refresh()
    notifier.notify(one.study)
    notifier.close()
    found = answer(study_context(one))
    if output is Output.JSON:
        _print_end_json(one, found, interrupted)
    else:
        _print_end(one, found, interrupted)
    raise typer.Exit(_exit_code(one.study, found, interrupted))


def _run_trials(
    one: OpenStudy, executor: Executor, parallel: int, requested: Interrupts, out: Console, notifier: Notifier
) -> None:
    # Time continues where the last worker stopped: pauses do not count.
    board = Board(one.study, began_s=time.time() - one.record.active_s)
    lines = EventLines(one.study, out)
    watched = out.is_terminal
    board.update()

    def tick() -> None:
        board.note = requested.note
        board.update()

    def settled(seen: Observation) -> None:
        if not watched:
            lines.settled(seen)
        notifier.notify(one.study)

    with live(board, out) if watched else nullcontext():
        explore(
            one.study,
            executor,
            WallClock(),
            parallel=parallel,
            ordered=None if watched else lines.ordered,
            settled=settled,
            requested_state=requested,
            tick=tick if watched else None,
        )


class Interrupts:
    """What Ctrl-C requests: the first one starts no more trials, the second one ends open trials."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> RequestedState:
        """What the user wants by now."""
        return (RequestedState.RUN, RequestedState.STOP, RequestedState.KILL)[min(self.count, 2)]

    @property
    def note(self) -> str:
        """One line for the user."""
        return (
            "Ctrl-C stops after the open trials; nothing is lost",
            "stopping: open trials finish first; Ctrl-C again ends them now",
            "ending open trials …",
        )[min(self.count, 2)]

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Count a signal."""
        self.count += 1
        if self.count <= 2:
            sys.stderr.write(f"\nlynceus: {self.note}\n")


@contextmanager
def interrupts() -> Iterator[Interrupts]:
    """Count Ctrl-C, and SIGTERM like it, instead of being ended by it."""
    requested = Interrupts()
    before = {number: signal.signal(number, requested.handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield requested
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit_code(study: Study, found: Answer | None, interrupted: bool) -> int:
    if interrupted:
        return exit_codes.INTERRUPTED
    paused = study.stopped is not None and study.stopped.kind is StopReason.PAUSED
    if paused or (found is None and _all_failed(study) is not None):
        return exit_codes.INFRASTRUCTURE
    return 0 if found is not None else exit_codes.INFEASIBLE


def _print_end_json(one: OpenStudy, found: Answer | None, interrupted: bool) -> None:
    study = one.study
    facts = {
        "study": one.name,
        "reason": "interrupted" if interrupted else study.reason or "",
        "spent_usd": study.spent_usd,
        "best": found,
        "failed": _all_failed(study),
    }
    print_json(facts)


def _print_end(one: OpenStudy, found: Answer | None, interrupted: bool) -> None:
    study, out = one.study, console()
    kind, failed = None if study.stopped is None else study.stopped.kind, _all_failed(study)
    converged = "no further trial is worth its cost: " if kind is StopReason.CONVERGED else ""
    reason = "interrupted" if interrupted else f"{converged}{study.reason or ''}"
    out.print(f"\n{one.name}: {reason}.", markup=False)
    if found is not None:
        print_answer(out, study.problem, found)
    else:
        out.print(failed or "No configuration is known to meet every constraint.", markup=False)
    if interrupted or kind in (StopReason.PAUSED, StopReason.USER):
        out.print(f"Continue with: lynceus resume {one.name}", markup=False)
    elif failed is not None:
        last = study.observations[-1].order.number
        out.print(f"See: lynceus trials {one.name}, lynceus logs {one.name} {last}", markup=False, style="dim")
    else:
        more = f"More: lynceus report {one.name}, explain, whatif --deadline …, export --to skypilot"
        out.print(more, markup=False, style="dim")


def _all_failed(study: Study) -> str | None:
    """A sentence when every trial failed by itself, so that the constraints are not to blame."""
    observations = study.observations
    if not observations or any(
        seen.outcome.end is not End.FAILED or seen.outcome.reason is FailureReason.USER for seen in observations
    ):
        return None
    count = "the only trial" if len(observations) == 1 else f"all {len(observations)} trials"
    last = observations[-1].outcome
    return f"No configuration is known: {count} failed; the last: {last.detail or last.reason}."
