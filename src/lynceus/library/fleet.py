"""A fleet of job files: their studies in one storage under one budget, and what each of them got and saved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lynceus.analysis.answer import Answer, answer
from lynceus.errors import InputError
from lynceus.executors.interface import WallClock
from lynceus.jobfile.checks import check_startable
from lynceus.jobfile.executor import executor_of
from lynceus.jobfile.prepared_study import PreparedStudy, prepare_file
from lynceus.jobfile.secrets import secrets_of
from lynceus.jobfile.setup_command import run_setup
from lynceus.library.find import storage_url
from lynceus.library.history import family_of
from lynceus.library.open_study import OpenStudy, create_or_open
from lynceus.library.study_context import study_context
from lynceus.study.fleet import Fleet, FleetJob


@dataclass(frozen=True, kw_only=True)
class FleetResult:
    """What one job of a fleet got and saved."""

    study: str
    trials: int
    spent_usd: float
    state: str
    """As in `lynceus status`: RUNNING while its search could go on with more money."""
    why_over: str
    """Why it runs nothing more, as a clause; empty after an interruption."""
    best: Answer | None
    """None while no configuration is known to meet the constraints."""
    future_uses: float
    future_saving_usd: float | None
    """Dollars that all future uses save against the baseline, before the cost of the search; None without a baseline."""


@dataclass(frozen=True, kw_only=True)
class FleetReport:
    """`lynceus fleet`: the jobs in the order of their files."""

    budget_usd: float
    spent_usd: float
    jobs: list[FleetResult]


def prepare_fleet(files: Sequence[Path]) -> list[PreparedStudy]:
    """The jobs of a fleet; an error names what does not fit."""
    if not files:
        raise InputError("fleet: no job file was given; name some, such as jobs/*.yaml.")
    found = [prepare_file(file) for file in files]
    for one, file in zip(found, files, strict=True):
        check_startable(one.job)
        if sum(other.job.name == one.job.name for other in found) > 1:
            raise InputError(
                f"fleet: {file}: another job file has the name {one.job.name!r}, too; names tell studies apart."
            )
    urls = {storage_url(None, one.job) for one in found}
    if len(urls) > 1:
        raise InputError(f"fleet: the job files name {len(urls)} storages; give one with --storage.")
    return found


@contextmanager
def open_fleet(
    prepared: Sequence[PreparedStudy], storage: str | None, budget_usd: float, notes: list[str]
) -> Iterator[tuple[Fleet, list[OpenStudy]]]:
    """The fleet with its executors. Studies that exist are continued; what to tell the user is added to `notes`."""
    with ExitStack() as stack:
        jobs, members = [], []
        for one in prepared:
            member = create_or_open(one, storage)
            secrets = secrets_of(member.prepared.job)
            run_setup(member.prepared.job, member.study, secrets, notes.append)
            notes += [] if member.note is None else [member.note]
            executor = stack.enter_context(executor_of(member.prepared, secrets))
            jobs.append(FleetJob(member.study, executor, family_of(member.prepared.job)))
            members.append(member)
        yield Fleet(jobs, budget_usd, WallClock()), members


def fleet_report(fleet: Fleet, members: Sequence[OpenStudy], budget_usd: float) -> FleetReport:
    """What every job got and saved."""
    found = []
    for place, (job, member) in enumerate(zip(fleet.jobs, members, strict=True)):
        context = study_context(member)
        best = answer(context)
        known = best is not None and best.baseline is not None and best.future_saving_usd == best.future_saving_usd
        found.append(
            FleetResult(
                study=member.name,
                trials=len(job.study.observations),
                spent_usd=job.study.spent_usd,
                state=context.state()[0],
                why_over=fleet.why_over(place),
                best=best,
                future_uses=job.uses,
                future_saving_usd=best.future_saving_usd if known and best is not None else None,
            )
        )
    return FleetReport(budget_usd=budget_usd, spent_usd=fleet.spent_usd, jobs=found)
