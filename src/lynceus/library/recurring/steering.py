"""What happens to a recurring job when a run begins and when runs have ended: the decider is asked, and its answer carried out.

The decision is made outside any lock. It is written only if nobody has changed the job since; otherwise it is made again.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lynceus.analysis.documents.json import to_json
from lynceus.library.recurring.job_record import KnownJob, known_job
from lynceus.library.recurring.run_config import RunConfig
from lynceus.recurring.action import Action, ActionKind
from lynceus.recurring.next_action import next_action
from lynceus.recurring.record import Change, ProductionRun, Version
from lynceus.recurring.settings import Mode
from lynceus.storage.sql.budgets import budget_refusal
from lynceus.storage.sql.job_writer import JobChangedError, JobWriter
from lynceus.storage.sql.jobs import JobStore

BY = "lynceus"
"""Who makes the changes that nobody ordered."""
_ATTEMPTS = 5
"""Decisions in a row: each may lead to another one, or be overtaken by another scheduler."""
_PRODUCTION = (ActionKind.ADOPT, ActionKind.RETURN, ActionKind.REPRICE)
_log = logging.getLogger("lynceus.recurring")


@dataclass(frozen=True)
class Review:
    """A job after its runs were looked at."""

    job: KnownJob
    action: Action
    """What is to be done next."""
    done: tuple[Action, ...] = ()
    """What was changed just now."""


def begin_run(store: JobStore, name: str, run_id: str, size: float | None = None) -> RunConfig:
    """What a run that starts now is to have: the adopted version, or in mode `apply` perhaps a canary."""
    head = store.head(name)
    settings = head.settings
    if settings.mode is not Mode.APPLY or settings.held:
        return _production(name, head.version, run_id)
    for _ in range(_ATTEMPTS):
        job = known_job(store, name)
        try:
            found = _begin(store, job, run_id, size)
        except JobChangedError:
            continue
        if found is not None:
            return found
    return _production(name, store.head(name).version, run_id)


def record_runs(store: JobStore, name: str, runs: Sequence[ProductionRun]) -> list[bool]:
    """Record runs, all or none; says of each whether it is new."""
    with store.changing(name) as job:
        return [job.add_run(run) for run in runs]


def review(store: JobStore, name: str) -> Review:
    """Look at the runs so far: return from what went wrong, adopt what proved itself, note what is suggested."""
    done: list[Action] = []
    for _ in range(_ATTEMPTS):
        _end_lost_canary(store, name)
        job = known_job(store, name)
        action = next_action(job.problem, job.record, job.now_s)
        try:
            if action.kind in _PRODUCTION:
                _change_production(store, job, action)
                done.append(action)
                continue
            if action.kind is ActionKind.SUGGEST:
                _note_once(store, job, action)
        except JobChangedError:
            continue
        return Review(job, action, tuple(done))
    job = known_job(store, name)
    return Review(job, next_action(job.problem, job.record, job.now_s), tuple(done))


def _begin(store: JobStore, job: KnownJob, run_id: str, size: float | None) -> RunConfig | None:
    """The configuration of a run; None when the job was changed first, so that the decision must be made again."""
    name, record = job.record.name, job.record
    open_canary = record.open_canary
    if open_canary is not None and open_canary.run_id == run_id:
        return _canary(name, record.version(open_canary.version), run_id)  # its scheduler asks again
    if open_canary is not None and _end_lost_canary(store, name):
        return None
    if any(run.run_id == run_id for run in record.runs):
        return replace(_production(name, job.stored.head.version, run_id), reason="the run was recorded already")
    action = _decide(job, size)
    if action.kind in _PRODUCTION:
        _change_production(store, job, action)
        return None
    if action.kind is not ActionKind.CANARY or action.params is None:
        return replace(_production(name, job.stored.head.version, run_id), reason=action.reason)
    facts = {"timeout_s": action.timeout_s, "instead_usd": action.instead_usd, "run": run_id}
    version = replace(_version(action, "canary"), evidence=to_json({**action.evidence, **facts}))
    with store.changing(name, job.sequence) as writer:
        for budget in writer.shared_budgets():
            if action.reserved_usd > budget.left_usd:
                refused = f"a canary is refused: {budget_refusal(budget, action.reserved_usd)}"
                return replace(_production(name, job.stored.head.version, run_id), reason=refused)
        made = writer.add_version(version)
        writer.reserve_canary(made.number, run_id, action.reserved_usd, timeout_s=action.timeout_s)
        writer.note(_change(action, made.number))
    return _canary(name, made, run_id)


def _decide(job: KnownJob, size: float | None) -> Action:
    """What to do before a run. Whatever goes wrong in a model, the run starts with the adopted version."""
    try:
        return next_action(job.problem, job.record, job.now_s, size)
    except Exception:  # a nightly job must not depend on what only makes it cheaper
        _log.exception("%s: no decision could be made", job.record.name)
        return Action(ActionKind.KEEP, "no decision could be made; see the log")


def _production(name: str, version: Version, run_id: str | None) -> RunConfig:
    return RunConfig(name, version.number, version.params, run_id)


def _canary(name: str, version: Version, run_id: str) -> RunConfig:
    timeout_s, instead = version.evidence.get("timeout_s"), version.evidence.get("instead_usd")
    return RunConfig(
        name,
        version.number,
        version.params,
        run_id,
        canary=True,
        timeout_s=math.inf if timeout_s is None else float(timeout_s),
        instead_usd=None if instead is None else float(instead),
        reason=version.reason,
    )


def _change_production(store: JobStore, job: KnownJob, action: Action) -> None:
    with store.changing(job.record.name, job.sequence) as writer:
        number = writer.current if action.version is None else action.version
        if action.kind is ActionKind.REPRICE:
            number = writer.add_version(_version(action, "reprice")).number
        if action.kind is ActionKind.RETURN and number == writer.current:
            writer.note(_change(action, number))  # a canary is given up; what is in production stays
        else:
            writer.set_current(number, _change(action, number))


def _note_once(store: JobStore, job: KnownJob, action: Action) -> None:
    """Write a suggestion down when it is new."""
    about = json.dumps(to_json(action.params), sort_keys=True)
    with store.changing(job.record.name, job.sequence) as writer:
        if writer.announced(f"{action.kind} {job.record.current} {about}"):
            writer.note(_change(action, None))


def _end_lost_canary(store: JobStore, name: str) -> bool:
    """Give up a canary whose scheduler has been silent for too long; its run counts should it still be recorded."""
    with store.changing(name) as writer:
        canary = writer.canary
        if canary is None or writer.canary_lives:
            return False
        _lost(writer, canary.version, canary.run_id)
        return True


def _lost(writer: JobWriter, version: int, run_id: str) -> None:
    writer.end_canary()
    reason = f"nothing was heard of run {run_id}, which tried version {version}"
    writer.note(Change(0.0, "lost", version, by=BY, reason=reason))


def _version(action: Action, source: str) -> Version:
    params = action.params or {}
    expected = to_json(action.effect.record())
    return Version(0, params, 0.0, BY, action.reason, source, to_json(action.evidence), expected, action.basis)


def _change(action: Action, number: int | None) -> Change:
    evidence = {**action.evidence, **({} if action.params is None else {"params": dict(action.params)})}
    if action.budget_usd:
        evidence["budget_usd"] = action.budget_usd
    return Change(
        0.0,
        str(action.kind),
        number,
        by=BY,
        reason=action.reason,
        evidence=to_json(evidence),
        expected=to_json(action.effect.record()),
    )
