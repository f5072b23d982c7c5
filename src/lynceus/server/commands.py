"""The commands of the API. Each function checks its arguments and returns a `Command`, which runs inside the study's lock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lynceus.analysis.documents.json import to_json
from lynceus.analysis.documents.study import worker_host
from lynceus.analysis.trial_rows import trial_row
from lynceus.library.open_study import OpenStudy
from lynceus.problem.units import parse_duration, parse_money
from lynceus.server.errors import HttpError, unknown_trial
from lynceus.server.guard import CLIENT
from lynceus.server.schemas import Tell
from lynceus.server.writer import Command, CommandResult
from lynceus.storage.sql.journal import SqlJournal
from lynceus.storage.sql.leases import LOST_AFTER_S
from lynceus.storage.sql.notes import add_note, latest_note
from lynceus.study.past_runs import PastRun
from lynceus.study.study import Study
from lynceus.trial.outcome import End, FailureReason, Outcome
from lynceus.trial.record import OpenRun, RequestedState
from lynceus.trial.trial import Trial, told_outcome

MAX_RUNTIME_S = 1e10
"""Three hundred years: a longer run is a mistake."""
MAX_USD = 1e12


def ask() -> Command:
    """Order the next trial, or say why there is none now."""

    def command(one: OpenStudy) -> CommandResult:
        study = one.study
        settle_silent(one, one.storage.clock.now())
        trial = study.ask()
        if trial is not None:
            return CommandResult({"trial": trial_document(trial), "reason": None, "wait": False})
        return CommandResult({"trial": None, "reason": study.reason, "wait": bool(study.pending)}, kept=False)

    return command


def trial_document(trial: Trial) -> dict[str, Any]:
    """A trial to run, as `ask` returns it."""
    document: dict[str, Any] = to_json(
        {
            "number": trial.number,
            "params": dict(trial.params),
            "timeout_s": trial.timeout,
            "why": trial.why,
            "price_usd_per_hour": trial.price_usd_per_hour,
            "max_charge_usd": trial.max_charge_usd,
        }
    )
    return document


def tell(number: int, result: Tell) -> Command:
    """Report the result of a trial. One beyond its timeout counts as stopped; the answer's `state` and `detail` say so."""
    seconds = None if result.runtime is None else parse_duration(result.runtime, "runtime")
    usd = None if result.charged is None else parse_money(result.charged, "charged")
    if seconds is not None and seconds > MAX_RUNTIME_S:
        raise HttpError(422, f"runtime: {seconds:g} s is too long; give the measured running time.")
    if usd is not None and usd > MAX_USD:
        raise HttpError(422, f"charged: ${usd:g} is too much; give what was charged.")

    def command(one: OpenStudy) -> CommandResult:
        study = one.study
        order = _open_run(study, number, "reported again").order
        outcome = told_outcome(
            study.problem,
            order,
            runtime=seconds,
            state=result.state,
            reason=result.reason,
            charged=usd,
            metrics=result.metrics,
            progress=result.progress,
            detail=result.detail,
        )
        row = trial_row(study.problem, study.runs.settle(order, outcome))
        return CommandResult({"trial": to_json(row), "spent_usd": study.spent_usd})

    return command


def heartbeat(number: int) -> Command:
    """Keep a trial alive; the answer says what the user wants of it by now."""

    def command(one: OpenStudy) -> CommandResult:
        run = _open_run(one.study, number, "kept alive")
        requested = one.study.runs.heartbeat([number])
        state = RequestedState.KILL if run.cancel_requested else requested
        return CommandResult({"requested_state": str(state)}, kept=False)

    return command


def stop(*, kill: bool, reason: str) -> Command:
    """Start no further trial."""

    def command(one: OpenStudy) -> CommandResult:
        one.study.stop(reason, kill=kill)
        return CommandResult({"open_trials": len(one.study.pending)})

    return command


def resume(add_budget: float | str, constraints: Sequence[str] = (), add_trials: int = 0) -> Command:
    """Resume a study, perhaps with more money or trials, or under other constraints."""
    usd = parse_money(add_budget, "add_budget")
    if usd > MAX_USD:
        raise HttpError(422, f"add_budget: ${usd:g} is too much; give at most ${MAX_USD:g}.")

    def command(one: OpenStudy) -> CommandResult:
        one.study.resume(usd, add_trials=add_trials, constraints=list(constraints))
        limits = [str(constraint) for constraint in one.study.problem.constraints]
        return CommandResult({"budget_usd": to_json(one.study.budget_usd), "constraints": limits})

    return command


def stop_trial(number: int) -> Command:
    """Stop one trial."""

    def command(one: OpenStudy) -> CommandResult:
        run = _open_run(one.study, number, "stopped")
        one.study.stop_trial(number)
        return CommandResult({"number": number, "worker": worker_host(run.worker)})

    return command


def enqueue(params: Mapping[str, object]) -> Command:
    """Run this configuration next."""

    def command(one: OpenStudy) -> CommandResult:
        one.study.enqueue_trial(params)
        return CommandResult({"queue": [one.study.problem.space.point(row) for row in one.study.record.queue]})

    return command


def add_trials(past: Sequence[PastRun], input: Mapping[str, object] | str | None = None) -> Command:
    """Add past runs; `input` is what they read, if not the present input of the study."""
    for run in past:
        if run.runtime is not None and parse_duration(run.runtime, "runtime") > MAX_RUNTIME_S:
            raise HttpError(422, f"runtime: {run.runtime!r} is too long; give the measured running time.")

    def command(one: OpenStudy) -> CommandResult:
        one.study.add_trials(past, input=input)
        return CommandResult({"added": len(past), "trials": len(one.study.observations)})

    return command


def write_note(text: str, replaces: int | None) -> Command:
    """Replace the note on a study; refused when somebody else has written one since the version `replaces`."""

    def command(one: OpenStudy) -> CommandResult:
        journal = one.study.journal
        if not isinstance(journal, SqlJournal):
            raise TypeError(f"study {one.name!r} is not stored in a database")
        with journal.exclusive() as connection:
            known = latest_note(connection, journal.study_id)
            if replaces is not None and replaces != known.version:
                raise HttpError(
                    409, "Somebody else has changed the note in the meantime; read it, then write yours again."
                )
            now = one.storage.clock.now(connection)
            add_note(connection, journal.study_id, text, now_s=now, worker=journal.worker)
            return CommandResult(to_json(latest_note(connection, journal.study_id)))

    return command


def settle_silent(one: OpenStudy, now: float) -> None:
    """Settle trials of clients that sent heartbeats and have stopped, which frees the money reserved for them.

    A trial without any heartbeat stays open: not every client sends them. A trial with a ticket belongs to a worker's executor.
    """
    study = one.study
    for run in study.record.open_runs:
        of_client = run.ticket is None and (run.worker or "").startswith(CLIENT)
        if not of_client or now - run.ordered_s <= LOST_AFTER_S:
            continue
        (record,) = one.storage.trials(study.name, run.order.number)
        if record.heartbeat_s is None or now - record.heartbeat_s <= LOST_AFTER_S:
            continue
        seconds = min(max(record.heartbeat_s - record.ordered_s, 0.0), run.order.timeout_s)
        price = float(study.problem.price[run.order.row])
        usd = min(study.problem.billing.charge(seconds, price, boots=run.order.boots), run.order.reserved_usd)
        detail = "its client stopped sending heartbeats; charged up to the last one"
        study.runs.settle(run.order, Outcome(End.FAILED, seconds, usd, reason=FailureReason.INFRA, detail=detail))


def _open_run(study: Study, number: int, action: str) -> OpenRun:
    """An open trial by its number; `action` says what cannot be done with one that has ended."""
    for run in study.record.open_runs:
        if run.order.number == number:
            return run
    if any(seen.order.number == number for seen in study.observations):
        raise HttpError(409, f"Trial {number} has ended already, so it cannot be {action}.")
    raise unknown_trial(study.name, number)
