"""Checks of outages: a controller that hangs, refuses, answers garbage or vanishes never blocks Lynceus and changes no charge."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

from lynceus.errors import InfrastructureError
from lynceus.executors.interface import (
    Executor,
    Outage,
    ResourceKind,
    SupportsCleanup,
    SupportsClose,
    SupportsOutage,
)
from lynceus.problem.billing import Billing
from lynceus.testing.executor_harness import ExecutorHarness
from lynceus.trial.outcome import End, FailureReason, Outcome

Fault = Callable[[], AbstractContextManager[object]]
"""Breaks the controller for as long as its block lasts, and mends it at the end."""
OutageCheck = Callable[[ExecutorHarness, Fault], None]
_CALL_S = 12.0
"""The longest that a call may take, on a busy machine."""
_NAMED_S = 20.0
"""How soon an outage must be named, on a busy machine."""
_STOPPING_S = 10.0
"""How long a run may take to stop, on a busy machine."""
_CLEAN_UP_S = 40.0
"""Listing resources may have to connect first."""
_ONCE = 'echo "$LYNCEUS_TRIAL" >> "$FOLDER/log"; echo \'::lynceus {"loss": 1}\''
_WAITS = 'echo $$ >> "$FOLDER/pids"; touch "$FOLDER/ready"; while [ ! -e "$FOLDER/go" ]; do sleep 0.05; done; ' + _ONCE


def outage_checks() -> Mapping[str, OutageCheck]:
    """All checks by name, for executors that depend on a controller; each needs a harness with its own folder, and a fault.

    >>> "a run that is launched during an outage runs once, later" in outage_checks()
    True
    """
    return {
        "a run that is launched during an outage runs once, later": _launched,
        "a run that is launched and cancelled during an outage never runs": _cancelled_before_it_started,
        "a run that ends during an outage is settled as it ended": _ends,
        "a run that is cancelled during an outage is settled later": _cancelled,
    }


def _launched(harness: ExecutorHarness, fault: Fault) -> None:
    problem, began = harness.problem(Billing(boot_s=3.0)), time.monotonic()
    with harness.executor(harness.job(_ONCE), problem) as executor:
        with fault():
            with _at_most(_CALL_S, "launch"):
                ticket = executor.launch(harness.request())
            _wait_for_outage(executor, ticket)
            assert not harness.lines(), "the job ran although nothing could start it"
        outcome = harness.wait(executor, ticket)
        assert outcome.end is End.FINISHED, outcome
        _check_charge(harness, outcome, problem.billing.charge(outcome.seconds, 1.0, boots=True), began)
        _check_after(harness, executor, ticket, outcome)
    assert harness.lines() == ["0"], f"the job ran {len(harness.lines())} times"


def _cancelled_before_it_started(harness: ExecutorHarness, fault: Fault) -> None:
    began = time.monotonic()
    with harness.executor(harness.job(_ONCE)) as executor:
        with fault():
            with _at_most(_CALL_S, "launch"):
                ticket = executor.launch(harness.request())
            _wait_for_outage(executor, ticket)
            with _at_most(_CALL_S, "cancel"):
                executor.cancel(ticket)
            with _at_most(_CALL_S, "collect"):
                executor.collect(ticket)
        outcome = harness.wait(executor, ticket)
        assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER), outcome
        _check_charge(harness, outcome, 0.0, began)
        _check_after(harness, executor, ticket, outcome)
    assert not harness.lines(), "a run ran that was cancelled before it started"


def _ends(harness: ExecutorHarness, fault: Fault) -> None:
    with harness.executor(harness.job(_WAITS)) as executor:
        began = time.monotonic()
        ticket = executor.launch(harness.request())
        harness.wait_for_file(executor, ticket, "ready")
        with fault():
            _wait_for_outage(executor, ticket)
            ended = time.monotonic()
            (harness.folder / "go").touch()
            harness.wait_until(harness.lines, "the end of the job")
            with _at_most(_CALL_S, "collect"):
                executor.collect(ticket)
            time.sleep(1.0)  # of an outage that is no running time
        outcome = harness.wait(executor, ticket)
        assert (outcome.end, dict(outcome.metrics)) == (End.FINISHED, {"loss": 1.0}), outcome
        assert outcome.seconds <= ended - began + 5.0, f"{outcome.seconds} s are more than the job ran"
        _check_charge(harness, outcome, outcome.seconds, began)
        _check_after(harness, executor, ticket, outcome)
    assert harness.lines() == ["0"], f"the job ran {len(harness.lines())} times"


def _cancelled(harness: ExecutorHarness, fault: Fault) -> None:
    job, began = harness.job(_WAITS), time.monotonic()
    with harness.executor(job) as executor:
        ticket = executor.launch(harness.request())
        harness.wait_for_file(executor, ticket, "ready")
    with fault():
        with _at_most(_CALL_S, "making an executor"):
            executor = harness.make(harness.problem(), job, harness.folder / "runs")
        _wait_for_outage(executor, ticket)
        with _at_most(_CALL_S, "cancel"):
            executor.cancel(ticket)
        if isinstance(executor, SupportsCleanup):
            with _at_most(_CLEAN_UP_S, "owned_resources"), contextlib.suppress(InfrastructureError):
                executor.owned_resources()
        if isinstance(executor, SupportsClose):
            with _at_most(_CALL_S, "close"):
                executor.close()
    with harness.executor(job) as executor:
        executor.cancel(ticket)
        outcome = harness.wait(executor, ticket)
        assert (outcome.end, outcome.reason) == (End.FAILED, FailureReason.USER), outcome
        # The seconds until it had stopped are charged, too.
        most_usd = outcome.seconds + (time.monotonic() - began if harness.rents_machines else _STOPPING_S)
        assert outcome.seconds <= outcome.charged_usd <= most_usd, f"{outcome.charged_usd} USD for {outcome.seconds} s"
        harness.check_all_ended()
        _check_after(harness, executor, ticket, outcome)
    assert not harness.lines()


def _wait_for_outage(executor: Executor, ticket: str) -> Outage:
    """Collect until the executor names the outage; all calls are short, and none says that the run has ended."""
    assert isinstance(executor, SupportsOutage), "an executor with a controller names its outages (SupportsOutage)"
    began_s, until = time.time(), time.monotonic() + _NAMED_S
    while True:
        with _at_most(_CALL_S, "collect"):
            ended = executor.collect(ticket)
        assert ended is None, f"the run was settled because of an outage: {ended}"
        with _at_most(1.0, "outage"):
            outage = executor.outage()
        if outage is not None:
            break
        assert time.monotonic() < until, f"no outage is named after {_NAMED_S:g} s"
        time.sleep(0.05)
    assert outage.detail, "the outage has no detail"
    assert outage.detail.isprintable(), f"{outage.detail!r} cannot be shown as it is"
    assert began_s - _NAMED_S <= outage.since_s <= time.time(), f"{outage} does not begin when it began"
    return outage


def _check_charge(harness: ExecutorHarness, outcome: Outcome, expected_usd: float, began: float) -> None:
    """All configurations of a harness cost a dollar per second; rented machines may be charged from `began` on."""
    most_usd = expected_usd + (time.monotonic() - began if harness.rents_machines else 0.0)
    assert expected_usd - 1e-6 <= outcome.charged_usd <= most_usd + 1e-6, (
        f"the charge is {outcome.charged_usd} USD, expected {expected_usd} USD"
    )


def _check_after(harness: ExecutorHarness, executor: Executor, ticket: str, outcome: Outcome) -> None:
    """The outcome stays, nothing is left, and the outage is over."""
    assert isinstance(executor, SupportsOutage)
    assert executor.collect(ticket) == outcome, "the outcome has changed"
    if isinstance(executor, SupportsCleanup):
        harness.wait_until(lambda: not _left(harness, executor), "the end of everything that the run used")
    harness.wait_until(lambda: executor.outage() is None, "the end of the outage")


def _left(harness: ExecutorHarness, executor: SupportsCleanup) -> list[object]:
    try:
        found = executor.owned_resources()
    except InfrastructureError as error:
        return [error]
    return [
        one
        for one in found
        if one.identity == harness.identity and one.kind is not ResourceKind.DIRECTORY and one.number is not None
    ]


@contextlib.contextmanager
def _at_most(seconds: float, what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    passed = time.monotonic() - began
    assert passed < seconds, f"{what} took {passed:.1f} s during an outage, more than {seconds:g} s"
