"""What can be done to a study through the API; each function makes a deed that runs inside the study's lock."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from lynceus.cli.opened import Opened
from lynceus.history import End, Outcome, Reason
from lynceus.insight.records import trial_records
from lynceus.ledger import OpenRun, Wish
from lynceus.ledger.sql_ledger import LOST_AFTER_S
from lynceus.plain import finite
from lynceus.study import Study
from lynceus.trial import Trial
from lynceus.units import parse_duration, parse_money
from lynceus.web.clerk import Deed, Result
from lynceus.web.faults import FaultError, not_found

CLIENT = "client"
"""How the name of a worker begins that asks through the API: not a process of this machine whose death could be seen."""
LONGEST_S = 1e10
"""Three hundred years: a longer run is a mistake."""
MOST_USD = 1e12


def worker_name(address: str) -> str:
    """Whoever asks from an address.

    >>> worker_name("10.0.0.7")
    'client 10.0.0.7'
    """
    return f"{CLIENT} {address}"


def ask() -> Deed:
    """The next trial, or why there is none now."""

    def deed(one: Opened) -> Result:
        study = one.study
        give_up_silent(one, time.time())
        trial = study.ask()
        if trial is not None:
            return Result({"trial": trial_document(trial), "reason": None, "wait": False})
        return Result({"trial": None, "reason": study.reason, "wait": bool(study.pending)}, kept=False)

    return deed


def trial_document(trial: Trial) -> dict[str, Any]:
    """A trial that is to be run."""
    document: dict[str, Any] = finite(
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


def tell(
    number: int,
    *,
    runtime: float | str | None,
    state: str,
    reason: str | None,
    charged: float | str | None,
    metrics: Mapping[str, float],
    progress: Sequence[tuple[float, float]],
    detail: str,
) -> Deed:
    """How a trial went."""
    seconds = None if runtime is None else parse_duration(runtime, "runtime")
    usd = None if charged is None else parse_money(charged, "charged")
    if seconds is not None and seconds > LONGEST_S:
        raise FaultError(422, f"runtime: {seconds:g} s are longer than anybody waits; give the measured running time.")
    if usd is not None and usd > MOST_USD:
        raise FaultError(422, f"charged: ${usd:g} are more than any run costs; give what was charged.")

    def deed(one: Opened) -> Result:
        study = one.study
        _open_run(study, number, "told")
        study.tell(
            number,
            runtime=seconds,
            state=state,
            reason=reason,
            charged=usd,
            metrics=metrics,
            progress=progress,
            detail=detail,
        )
        (record,) = trial_records(study.problem, (study.history[-1],))
        return Result({"trial": finite(record), "spent_usd": study.spent_usd})

    return deed


def heartbeat(number: int) -> Deed:
    """This trial is looked after; the answer says what a person wants by now."""

    def deed(one: Opened) -> Result:
        run = _open_run(one.study, number, "kept alive")
        wish = one.study.heartbeat([number])
        return Result({"wish": str(Wish.KILL if run.unwanted else wish)}, kept=False)

    return deed


def stop(*, kill: bool, reason: str) -> Deed:
    """Start no more trials."""

    def deed(one: Opened) -> Result:
        one.study.stop(reason, kill=kill)
        return Result({"open_trials": len(one.study.pending)})

    return deed


def resume(add_budget: float | str) -> Deed:
    """Go on, perhaps with more money."""
    usd = parse_money(add_budget, "add_budget")
    if usd > MOST_USD:
        raise FaultError(422, f"add_budget: ${usd:g} are more than any search costs.")

    def deed(one: Opened) -> Result:
        one.study.resume(usd)
        return Result({"budget_usd": finite(one.study.budget_usd)})

    return deed


def stop_trial(number: int) -> Deed:
    """End one trial."""

    def deed(one: Opened) -> Result:
        run = _open_run(one.study, number, "stopped")
        one.study.stop_trial(number)
        return Result({"number": number, "worker": _who(run)})

    return deed


def enqueue(params: Mapping[str, object]) -> Deed:
    """Run this configuration next."""

    def deed(one: Opened) -> Result:
        one.study.enqueue_trial(params)
        return Result({"queue": [one.study.problem.space.point(row) for row in one.study.ledger.queue]})

    return deed


def add_trials(past: Sequence[tuple[Mapping[str, object], float | str, Mapping[str, float]]]) -> Deed:
    """Past measurements as free knowledge."""
    for _, runtime, _ in past:
        if parse_duration(runtime, "runtime") > LONGEST_S:
            raise FaultError(422, f"runtime: {runtime!r} is longer than anybody waits; give the measured running time.")

    def deed(one: Opened) -> Result:
        one.study.add_trials(past)
        return Result({"added": len(past), "trials": len(one.study.history)})

    return deed


def give_up_silent(one: Opened, now: float) -> None:
    """Trials of clients that gave signs of life and stopped doing so: settled as lost, so that their money is free again.

    A client that never gave one is waited for: not everybody can. A trial with a ticket belongs to a worker's executor.
    """
    study = one.study
    for run in study.open_runs:
        suspect = run.ticket is None and (run.worker or "").startswith(CLIENT) and now - run.ordered_s > LOST_AFTER_S
        if not suspect:
            continue
        (record,) = one.storage.trials(study.name, run.order.number)
        if record.heartbeat_s is None or now - record.heartbeat_s <= LOST_AFTER_S:
            continue
        seconds = min(max(record.heartbeat_s - record.ordered_s, 0.0), run.order.cap_s)
        price = float(study.problem.price[run.order.row])
        usd = min(study.problem.tariff.charge(seconds, price, boots=run.order.boots), run.order.reserved_usd)
        detail = "its client fell silent; charged up to its last sign of life"
        study.settle(run.order, Outcome(End.FAILED, seconds, usd, reason=Reason.INFRA, detail=detail))


def _open_run(study: Study, number: int, done: str) -> OpenRun:
    """An open trial by its number."""
    for run in study.open_runs:
        if run.order.number == number:
            return run
    if any(seen.order.number == number for seen in study.history):
        raise FaultError(409, f"Trial {number} has ended already, it cannot be {done}; a trial is told once.")
    raise not_found(f"Study {study.name!r} has no trial {number}.")


def _who(run: OpenRun) -> str | None:
    return None if run.worker is None else run.worker.split("/")[0]
