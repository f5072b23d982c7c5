"""What trials left behind: jobs, processes and machines that should have ended, and directories that no trial needs."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass

from lynceus.errors import InfrastructureError, LynceusError
from lynceus.executors.interface import Outage, OwnedResource, ResourceKind, SupportsCleanup, WallClock
from lynceus.jobfile.executor import executor_of
from lynceus.library.open_study import OpenStudy
from lynceus.library.workers import has_worker
from lynceus.problem.units import format_duration
from lynceus.storage.sql.jobs import JobStore
from lynceus.storage.sql.journal import SqlJournal, abandoned_runs
from lynceus.study.run_loop import explore
from lynceus.trial.record import RequestedState

_ENDING_S = 60.0
"""So long after its grace period a trial has ended, whatever its supervisor does."""
_WORKERS_S = 15.0
"""So long after the grace period a worker that answers has ended its trials."""
_POLL_S = 0.2
_OUTAGE_S = 10.0
"""Nothing is ended while an executor has not answered for so long."""


@dataclass(frozen=True)
class Leftover:
    """A resource that no open trial needs."""

    study: str
    kind: str
    """`processes`, `directory`, `job`, `cluster` and so on."""
    where: str
    """What the executor calls it: process ids, a path, a job id."""
    why: str
    """Why it is not needed."""
    stranger: bool = False
    """Whether it belongs to a study that this storage does not hold; another storage may."""


@dataclass(frozen=True)
class Removable:
    """A leftover with the study whose executor can remove it."""

    leftover: Leftover
    resource: OwnedResource
    owner: OpenStudy


def find_leftovers(
    studies: list[OpenStudy], *, outputs: bool, strangers: bool
) -> tuple[list[Removable], dict[str, str]]:
    """Everything that no open trial needs, and the studies whose executor could not be asked, with the reason.

    `outputs` includes directories of settled trials, `strangers` includes what belongs to studies that their storages do not hold.
    """
    found: dict[tuple[str, str, str], Removable] = {}
    unreachable: dict[str, str] = {}
    # All studies of the storage, also those that were not named or cannot be opened: their trials may be running.
    storages = {id(one.storage): one.storage for one in studies}
    known = {_owner(record.name, record.identity) for storage in storages.values() for record in storage.studies()}
    # Runs in production are nobody's leftovers.
    known |= {_owner(head.name, head.identity) for storage in storages.values() for head in JobStore(storage).heads()}
    for one in studies:
        try:
            resources = _owned_resources(one)
        except LynceusError as error:
            unreachable[one.name] = str(error)
            continue
        for resource in resources:
            owner = _owner(resource.study, resource.identity)
            ours = owner == _owner(one.name, one.record.identity)
            if ours:
                why = _why_unneeded(one, resource, outputs=outputs)
            elif strangers and owner not in known:
                why = "of a study that this storage does not hold"
            else:
                continue
            if why:
                where = resource.detail or resource.name
                leftover = Leftover(resource.study, resource.kind, where, why, stranger=not ours)
                found.setdefault((resource.kind, resource.name, resource.study), Removable(leftover, resource, one))
    return list(found.values()), unreachable


def remove_leftovers(leftovers: list[Removable]) -> None:
    """Remove leftovers: first what runs, then directories. The executor of each study is opened once."""
    for name in dict.fromkeys(one.owner.name for one in leftovers):
        mine = [one for one in leftovers if one.owner.name == name]
        with executor_of(mine[0].owner.prepared, {}) as executor:
            if isinstance(executor, SupportsCleanup):
                for one in sorted(mine, key=lambda one: one.resource.kind is ResourceKind.DIRECTORY):
                    executor.remove(one.resource)


def abandoned_trials(one: OpenStudy) -> list[int]:
    """Numbers of the open trials of a study that no worker looks after, so that another one may take them over."""
    journal = one.study.journal
    return sorted(abandoned_runs(journal)) if isinstance(journal, SqlJournal) else []


def end_abandoned(one: OpenStudy, secrets: dict[str, str]) -> None:
    """Take over the open trials of a study, end them, and settle what they cost. `InfrastructureError` names those that do not end."""
    patience_s = one.prepared.job.spec.trial.grace + _ENDING_S
    until, away = time.monotonic() + patience_s, list[Outage | None]([None])

    def leave() -> bool:
        silent = away[0] is not None and time.time() - away[0].since_s > _OUTAGE_S
        return silent or time.monotonic() > until

    with executor_of(one.prepared, secrets) as executor:
        explore(
            one.study,
            executor,
            WallClock(),
            requested_state=lambda: RequestedState.KILL,
            outage=lambda found: away.__setitem__(0, found),
            leave=leave,
        )
    one.study.runs.release()
    if remaining := abandoned_trials(one):
        why = f"they have not ended within {format_duration(patience_s)}" if away[0] is None else away[0].detail
        raise InfrastructureError(
            f"study {one.name!r}: open trials could not be ended ({', '.join(map(str, remaining))}): {why}; they may still run and "
            f"be charged, so try again later: lynceus gc {one.name} --abandoned --yes."
        )


def wait_for_workers(one: OpenStudy, abandoned: Collection[int]) -> None:
    """Wait until workers that were asked to have ended their open trials, for a while: they may be on other machines, or not answer."""
    until = time.monotonic() + one.prepared.job.spec.trial.grace + _WORKERS_S
    while {order.number for order in one.study.pending} - set(abandoned) and time.monotonic() < until:
        time.sleep(_POLL_S)
        one.study.runs.refresh()


def study_resources(one: OpenStudy) -> list[Removable]:
    """Everything that executors hold for a study, whether a trial needs it or not."""
    mine = _owner(one.name, one.record.identity)
    return [
        Removable(
            Leftover(one.name, resource.kind, resource.detail or resource.name, "of a study that is deleted"),
            resource,
            one,
        )
        for resource in _owned_resources(one)
        if _owner(resource.study, resource.identity) == mine
    ]


def _owner(study: str, identity: str) -> tuple[str, str]:
    """What tells the study of a resource: its identity, which outlives its name; runs of the first version have only the name."""
    return ("", identity) if identity else (study, "")


def _owned_resources(one: OpenStudy) -> list[OwnedResource]:
    one.study.runs.refresh()
    with executor_of(one.prepared, {}) as executor:
        return executor.owned_resources() if isinstance(executor, SupportsCleanup) else []


def _why_unneeded(one: OpenStudy, resource: OwnedResource, *, outputs: bool) -> str:
    """Why a resource of this study is not needed any more; empty when it is."""
    number = resource.number
    if number is None:
        needed = bool(one.study.pending) or has_worker(one.storage, one.name)
        return "" if needed else "kept for the study, which has no open trial and no worker"
    if number in {order.number for order in one.study.pending}:
        return ""
    settled = number in {seen.order.number for seen in one.study.observations}
    if settled and resource.kind is ResourceKind.DIRECTORY and not outputs:
        return ""
    return f"of trial {number}, which {'has settled' if settled else 'is not part of the study'}"
