"""Notifications about recurring jobs: each is sent once, and says what happened."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from lynceus.jobfile.sections.notify import KINDS
from lynceus.library.recurring.recurring_job import RecurringJob
from lynceus.library.recurring.steering import Review
from lynceus.notify.events import Event
from lynceus.notify.job_notifier import job_events, notify_job
from lynceus.notify.notifier import Notifier
from lynceus.recurring.action import Action, ActionKind, Effect
from lynceus.recurring.watch import Finding, watch
from sample_jobs import sample_job


class Receiver:
    """Keeps what it gets."""

    name = "receiver"

    def __init__(self) -> None:
        self.got: list[Event] = []

    def send(self, event: Event) -> None:
        self.got.append(event)


@pytest.fixture
def job(tmp_path: Path) -> RecurringJob:
    return sample_job(tmp_path, runs=20)


def reviewed(job: RecurringJob, action: Action, done: tuple[Action, ...] = ()) -> Review:
    return replace(job.review(), action=action, done=done)


def test_changes_and_suggestions_are_sent_once(job: RecurringJob) -> None:
    effect = Effect(runtime_s=700.0, cost_usd=0.4, cost_before_usd=0.5)
    suggestion = Action(ActionKind.SUGGEST, "prices changed", {"nodes": 2}, effect=effect)
    returned = Action(ActionKind.RETURN, "run 7 of version 3 was late <@all>", {"nodes": 4}, 1)
    receiver = Receiver()
    for _ in range(2):  # two schedulers
        notify_job(job.store, reviewed(job, suggestion, (returned,)), Notifier([receiver]))
    change, said = receiver.got
    assert (change.kind, change.title) == ("change", "nightly was changed: return")
    assert "<@all>" not in change.text, "nothing in it calls people"
    assert (said.kind, said.facts["job"], said.facts["params"]) == ("suggestion", "nightly", {"nodes": 2})
    assert said.text == "Prices changed.\nConfiguration: nodes=2.\nExpected to save $0.10 a run."
    assert {change.kind, said.kind} <= set(KINDS)


def test_a_change_that_costs_more_is_called_so(job: RecurringJob) -> None:
    effect = Effect(runtime_s=700.0, cost_usd=0.5, cost_before_usd=0.4)
    review = reviewed(job, Action(ActionKind.SUGGEST, "it would be late", {"nodes": 2}, effect=effect))
    [said] = job_events(review, replace(watch(review.job.record), findings=()))
    assert said.text == "It would be late.\nConfiguration: nodes=2.\nExpected to cost $0.10 more a run."


def test_findings_are_sent_by_kind(job: RecurringJob) -> None:
    review = reviewed(job, Action(ActionKind.KEEP, "fine"))
    late = Finding("late", "late 3 1800", 3, "a", "b", 0.4, "The next run will miss the deadline.")
    drift = Finding("step", "step a", 3, "a", "b", 1.2, "Runs take 20 % longer.")
    seen = replace(watch(review.job.record), findings=(late, drift))
    found = {event.kind: event for event in job_events(review, seen)}
    assert (found["late"].text, found["drift"].text) == (
        "The next run will miss the deadline.",
        "Runs take 20 % longer.",
    )
    assert found["drift"].facts["finding"]["factor"] == 1.2


def test_only_the_wanted_kinds_are_sent(job: RecurringJob) -> None:
    receiver = Receiver()
    search = Action(ActionKind.RETUNE, "the model no longer holds")
    notify_job(job.store, reviewed(job, search), Notifier([receiver], ["late"]))
    assert receiver.got == []
    notify_job(job.store, reviewed(job, search), Notifier([receiver]))
    assert receiver.got[0].title == "nightly: search again with: lynceus retune nightly"
