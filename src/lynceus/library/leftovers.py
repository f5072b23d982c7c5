"""What trials left behind: jobs, processes and machines that should have ended, and directories that no trial needs."""

from __future__ import annotations

from dataclasses import dataclass

from lynceus.errors import LynceusError
from lynceus.executors.interface import OwnedResource, ResourceKind, SupportsCleanup, WallClock
from lynceus.jobfile.executor import executor_of
from lynceus.library.open_study import OpenStudy
from lynceus.library.workers import has_worker
from lynceus.study.run_loop import explore
from lynceus.trial.record import RequestedState


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

    `outputs` includes directories of settled trials, `strangers` includes what belongs to studies that are not in the list.
    """
    found: dict[tuple[str, str, str], Removable] = {}
    unreachable: dict[str, str] = {}
    known = {_identity(one) for one in studies}
    for one in studies:
        try:
            resources = _owned_resources(one)
        except LynceusError as error:
            unreachable[one.name] = str(error)
            continue
        for resource in resources:
            owner = (resource.study, resource.identity)
            ours = owner == _identity(one)
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
    """Numbers of the open trials of a study that has no worker."""
    one.study.runs.refresh()
    return [] if has_worker(one.storage, one.name) else sorted(order.number for order in one.study.pending)


def end_abandoned(one: OpenStudy, secrets: dict[str, str]) -> None:
    """Take over the open trials of a study, end them, and settle what they cost."""
    with executor_of(one.prepared, secrets) as executor:
        explore(one.study, executor, WallClock(), requested_state=lambda: RequestedState.KILL)
    one.study.runs.release()


def _identity(one: OpenStudy) -> tuple[str, str]:
    return one.study.name, one.study.record.identity


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
