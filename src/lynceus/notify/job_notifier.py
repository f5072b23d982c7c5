"""Notifications about recurring jobs: what was changed, what drifts, what may be late, what is suggested. Each is sent once."""

from __future__ import annotations

from typing import Any

from lynceus.analysis.documents.json import to_json
from lynceus.jobfile.job import Job
from lynceus.library.recurring.steering import Review
from lynceus.notify.events import Event, quiet
from lynceus.notify.notifier import Notifier, notifier_of
from lynceus.recurring.action import Action, ActionKind, saving_text
from lynceus.recurring.watch import Finding, Watch, watch
from lynceus.storage.sql.jobs import JobStore
from lynceus.trial.text import clean_line

_KINDS = {"late": "late", "failures": "late"}
"""The kind of event that a finding is; any other finding is a drift."""


def job_events(review: Review, seen: Watch) -> list[Event]:
    """All events of a job so far, sent or not."""
    record = review.job.record
    found = [_finding_event(record.name, one) for one in seen.findings]
    for action in review.done:
        key = f"{action.kind} {action.version} after {len(record.runs)} runs"
        found.append(_event(record.name, "change", key, f"{record.name} was changed: {action.kind}", action))
    action = review.action
    if action.kind in (ActionKind.SUGGEST, ActionKind.RETUNE):
        key = f"suggestion {record.current} {sorted((action.params or {}).items(), key=str)}"
        title = f"{record.name}: there is something to change"
        if action.kind is ActionKind.RETUNE:
            title = f"{record.name}: search again with: lynceus retune {record.name}"
        found.append(_event(record.name, "suggestion", key, title, action))
    return found


def notify_job(store: JobStore, review: Review, notifier: Notifier | None = None) -> None:
    """Send what is new about a job to the receivers that its job file names, and wait a while for them."""
    document = review.job.stored.document
    if notifier is None and "job" not in document:
        return
    sending = notifier_of(Job.from_stored(document)) if notifier is None else notifier
    name = review.job.record.name

    def announced(key: str) -> bool:
        with store.changing(name) as job:
            return job.announced(f"sent {key}")

    def events() -> list[Event]:
        problem = review.job.problem
        return job_events(review, watch(review.job.record, deadline_s=problem.deadline_s))

    sending.send_new(name, events, announced)
    sending.close()


def _finding_event(job: str, finding: Finding) -> Event:
    kind = _KINDS.get(finding.kind, "drift")
    title = {"late": f"{job}: the deadline is in danger", "drift": f"{job}: its runs have changed"}[kind]
    return _made(job, kind, finding.key, title, [finding.text], {"finding": finding.record()})


def _event(job: str, kind: str, key: str, title: str, action: Action) -> Event:
    effect, lines = action.effect.record(), [f"{action.reason[:1].upper()}{action.reason[1:]}."]
    if action.params is not None:
        values = ", ".join(f"{name}={value}" for name, value in action.params.items())
        lines.append(f"Configuration: {values}.")
    if effect["saving_usd"] is not None:
        lines.append(f"Expected to {saving_text(effect['saving_usd'])}.")
    return _made(
        job, kind, key, title, lines, {"action": str(action.kind), "params": action.params, "expected": effect}
    )


def _made(job: str, kind: str, key: str, title: str, lines: list[str], facts: dict[str, Any]) -> Event:
    title, lines = quiet(clean_line(title)), [quiet(clean_line(line)) for line in lines]
    text = "\n".join([title, *lines])
    all_facts = {"job": job, "event": kind, "title": title, "text": text, **facts}
    return Event(kind, key, title, "\n".join(lines), to_json(all_facts))
