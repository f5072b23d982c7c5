"""What `lynceus run` and `lynceus resume` share: be a worker of a study until it ends, then print the answer."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

import typer

from lynceus.analysis.answer import Answer, answer
from lynceus.analysis.infeasibility import Infeasibility, infeasibility
from lynceus.cli import exit_codes
from lynceus.cli.arguments import print_note
from lynceus.cli.best import print_answer
from lynceus.cli.interrupts import Interrupts, interrupts
from lynceus.cli.live_board import Screen
from lynceus.cli.output import Output, console, counted, echo, print_json
from lynceus.cli.worker_metrics import served_metrics
from lynceus.errors import InfrastructureError
from lynceus.executors.interface import Executor, Outage, WallClock
from lynceus.integrations.tracking import Trackers, trackers_of
from lynceus.jobfile.executor import executor_of
from lynceus.jobfile.secrets import secrets_of
from lynceus.jobfile.setup_command import run_setup
from lynceus.library.open_study import OpenStudy
from lynceus.library.outages import note_outage
from lynceus.library.study_context import study_context
from lynceus.notify.notifier import Notifier, notifier_of
from lynceus.study.run_loop import StorageOutage, explore
from lynceus.study.study import Study
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, FailureReason, Observation
from lynceus.trial.record import RequestedState
from lynceus.trial.stop import StopReason

_MORE = {StopReason.TRIALS: "--add-trials 20", StopReason.BUDGET: "--add-budget '5 USD'"}
"""What continues a search that used its budget up."""
_LEAVING_S = 3.0
"""How long a worker that cannot go on waits for its trackers."""


def work(one: OpenStudy, parallel: int, output: Output, metrics: str | None = None) -> None:
    """Run trials until the study ends, print the answer, and exit with its code."""
    job, out = one.prepared.job, console(stderr=output is Output.JSON)
    secrets, notifier, trackers = secrets_of(job), notifier_of(job), trackers_of(job.spec.tracking)
    run_setup(job, one.study, secrets, print_note)
    # Time continues where the last worker stopped: pauses do not count.
    screen = Screen(one.study, out, began_s=time.time() - one.record.active_s)
    with interrupts(one.name, screen.stalled) as requested:
        try:
            with executor_of(one.prepared, secrets) as executor, served_metrics(one.study, metrics):
                _run_trials(one, executor, parallel, requested, screen, Followers(notifier, trackers))
            if requested.leaves():
                _leave(one, output)
        except BaseException:  # trials that have just ended are logged all the same
            trackers.close(_LEAVING_S)
            raise
        interrupted = requested() is not RequestedState.RUN
    if interrupted:
        one.study.runs.release()  # so that others see that no worker runs the study
    one.study.runs.refresh()
    notifier.notify(one.study)
    notifier.close()
    trackers.close()
    context = study_context(one)
    found = answer(context)
    why = infeasibility(context) if found is None else None
    if output is Output.JSON:
        _print_end_json(one, found, why, interrupted)
    else:
        _print_end(one, found, why, interrupted)
    raise typer.Exit(_exit_code(one.study, found, interrupted))


@dataclass(frozen=True)
class Followers:
    """Who is told of trials outside this machine."""

    notifier: Notifier
    trackers: Trackers


def _run_trials(
    one: OpenStudy, executor: Executor, parallel: int, requested: Interrupts, screen: Screen, followers: Followers
) -> None:
    decided_s = one.study.deciding_s

    def ordered(order: Order) -> None:
        nonlocal decided_s
        screen.ordered(order)
        followers.trackers.ordered(one.study, order, time.time(), one.study.deciding_s - decided_s)
        decided_s = one.study.deciding_s

    def settled(seen: Observation) -> None:
        screen.settled(seen)
        followers.notifier.notify(one.study)
        followers.trackers.settled(one.study, seen, time.time())

    def outage(found: Outage | None) -> None:
        requested.outage(found)
        screen.outage(found)
        if not isinstance(found, StorageOutage):
            with contextlib.suppress(InfrastructureError):  # others then learn it later, or not
                note_outage(one, found)

    note_outage(one, None)
    with screen:
        explore(
            one.study,
            executor,
            WallClock(),
            parallel=parallel,
            ordered=ordered,
            settled=settled,
            requested_state=requested,
            tick=lambda: screen.tick(requested.note),
            outage=outage,
            leave=requested.leaves,
        )


def _leave(one: OpenStudy, output: Output) -> None:
    """End at once: neither storage nor executor need answer."""
    count = len(one.study.pending)
    left = f"left with {counted(count, 'open trial')}, which {'goes' if count == 1 else 'go'} on" if count else "left"
    if output is Output.JSON:
        facts = {
            "study": one.name,
            "reason": left,
            "spent_usd": one.study.spent_usd,
            "best": None,
            "failed": None,
            "infeasible": None,
        }
        print_json(facts)
    else:
        echo(f"\n{one.name}: {left}.\nContinue with: lynceus resume {one.name}")
    raise typer.Exit(exit_codes.INTERRUPTED)


def _exit_code(study: Study, found: Answer | None, interrupted: bool) -> int:
    if interrupted:
        return exit_codes.INTERRUPTED
    kind = None if study.stopped is None else study.stopped.kind
    if kind is StopReason.SHARED_BUDGET:
        return exit_codes.SHARED_BUDGET
    if kind is StopReason.PAUSED or (found is None and _all_failed(study) is not None):
        return exit_codes.INFRASTRUCTURE
    return 0 if found is not None and found.reaches_confidence else exit_codes.INFEASIBLE


def _print_end_json(one: OpenStudy, found: Answer | None, why: Infeasibility | None, interrupted: bool) -> None:
    study = one.study
    facts = {
        "study": one.name,
        "reason": "interrupted" if interrupted else study.reason or "",
        "spent_usd": study.spent_usd,
        "best": found,
        "failed": _all_failed(study),
        "infeasible": why,
    }
    print_json(facts)


def _print_end(one: OpenStudy, found: Answer | None, why: Infeasibility | None, interrupted: bool) -> None:
    study, out = one.study, console()
    kind, failed = None if study.stopped is None else study.stopped.kind, _all_failed(study)
    converged = "no further trial is worth its cost: " if kind is StopReason.CONVERGED else ""
    reason = "interrupted" if interrupted else f"{converged}{study.reason or ''}"
    out.print(f"\n{one.name}: {reason}.", markup=False)
    if found is not None:
        print_answer(out, study.problem, found, scratch=one.prepared.job.spec.trial.scratch)
    elif study.record.started:
        out.print(failed or "No configuration is known to meet every constraint.", markup=False)
        if failed is None and why is not None:
            out.print(f"Why: {why.summary}.\nWhat to do: {why.advice}.", markup=False, soft_wrap=True)
    elif kind is not StopReason.SHARED_BUDGET:
        return  # there is neither anything to show nor to continue
    if failed is not None or kind is StopReason.PAUSED:
        last = max(seen.order.number for seen in study.observations if seen.outcome.end is End.FAILED)
        out.print(f"See: lynceus trials {one.name}, lynceus logs {one.name} {last}", markup=False, style="dim")
    if failed is not None and (kind is StopReason.EXHAUSTED or kind in _MORE):
        more = f"{one.name} {_MORE.get(kind, '')}".strip()
        out.print(f"When the job is mended, continue with: lynceus resume {more}", markup=False)
    if interrupted or kind is StopReason.USER or (kind is not None and kind.pauses):
        out.print(f"Continue with: lynceus resume {one.name}", markup=False)
    elif failed is None:
        if kind in _MORE:
            out.print(f"Go on with: lynceus resume {one.name} {_MORE[kind]}", markup=False)
        out.print(f"More: lynceus report {one.name}, explain, whatif --deadline …", markup=False, style="dim")
        if found is not None and found.reaches_confidence:
            out.print(f"In production: lynceus adopt NAME --from {one.name}, export", markup=False, style="dim")


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
