"""The history of a study: earlier studies and files that its job names, read once when it begins and stored with it.

A study never fails because of its history: what cannot be read or compared is left out, and one sentence says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from lynceus.errors import InputError, LynceusError, did_you_mean
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import PreparedStudy
from lynceus.jobfile.sections.history import PastJobSection
from lynceus.jobfile.stored_study import job_and_problem
from lynceus.library.find import storage_url
from lynceus.models.past_match import match
from lynceus.policy.informed import can_learn, informed
from lynceus.policy.past_systems import reads_history
from lynceus.policy.policy import Policy
from lynceus.problem.history import PastJob
from lynceus.problem.job_input import SIZE, JobInput
from lynceus.problem.problem import Problem
from lynceus.problem.units import parse_duration
from lynceus.space.column import Cell
from lynceus.space.table_file import Table, read_table
from lynceus.storage.sql.address import parse_address
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage
from lynceus.trial.past_job import past_jobs

_TIMES = ("runtime_s", "runtime", "time_s", "time", "seconds", "duration")
_INPUT = "input_"
"""Columns of files that say what a run read begin so."""
_MOST_JOBS = 20
"""Earlier jobs that `auto` finds at most: the newest."""
_SIZE = re.compile(r"([-_.@ ]?(v?\d+[a-z]*|small|medium|large|huge|tiny|big|test|prod|daily|nightly))+$", re.IGNORECASE)
"""What distinguishes relatives of one job at the end of their names."""


def with_history(prepared: PreparedStudy, storage: Storage) -> tuple[PreparedStudy, tuple[str, ...]]:
    """The study with the history that its job names, and sentences about what it does not use of it."""
    wanted = prepared.job.spec.history
    if wanted is None or prepared.job.past is not None:
        return prepared, ()
    found: list[PastJob] = []
    notes: list[str] = []
    for section in wanted if wanted != "auto" else _relatives(prepared.job, storage):
        try:
            past = read_past_job(section, prepared.job, storage, prepared.problem.metrics)
            related = _related(prepared.job, section, past.family)
            found += [replace(one, related=related) for one in past.jobs]
            if not related:
                several = len(past.jobs) > 1
                notes.append(
                    f"history: {' and '.join(one.name for one in past.jobs)} {'are' if several else 'is'} of the family "
                    f"{(section.family or past.family)!r} and this job of {prepared.job.spec.family!r}; "
                    f"{'they do' if several else 'it does'} not count"
                )
        except (LynceusError, SQLAlchemyError, OSError, ValueError) as error:
            notes.append(f"history: {str(error).removeprefix('history: ').rstrip('.')}; it is not used")
    if wanted == "auto" and not found:
        notes.append(f"history: no earlier study of the family {family_of(prepared.job)!r} has runs to learn from")
    usable = [one for one in found if match(prepared.problem.space, one).used]
    notes += [f"history: {note}" for one in found for note in match(prepared.problem.space, one).notes]
    job = replace(prepared.job, past=tuple(usable))
    problem = replace(prepared.problem, history=tuple(usable))
    return replace(prepared, job=job, problem=problem, policy=_policy(prepared, problem, notes)), tuple(notes)


def notes_of(prepared: PreparedStudy, storage: str | None) -> list[str]:
    """Sentences about what may be unintended in a job, also about its history in the storage."""
    return [*prepared.notes, *_missing_history(prepared.job, storage)]


def _missing_history(job: Job, storage: str | None) -> list[str]:
    """Notes about studies of this storage and files that the job names as its history and that do not exist; where there is no storage yet,
    nothing is said of studies. A study that began has read its history."""
    wanted = job.spec.history
    if wanted is None or wanted == "auto" or job.past is not None:
        return []
    names: list[str] | None = None
    url = storage_url(storage, job)
    file = parse_address(url).file
    if file is None or Path(file).exists():
        with suppress(InputError), Storage(url, create=False) as opened:
            names = [record.name for record in opened.studies()]
    if names is not None and job.name in names:
        return []
    notes = []
    for section in wanted:
        if section.file is not None and not (job.folder / section.file).exists():
            notes.append(f"history: there is no file {str(section.file)!r}; it will not be used.")
        elif section.study is not None and section.storage is None and names is not None and section.study not in names:
            notes.append(
                f"history: there is no study {section.study!r} in the storage, so it will not be used.{did_you_mean(section.study, names)}"
            )
    return notes


def _policy(prepared: PreparedStudy, problem: Problem, notes: list[str]) -> Policy:
    """The policy that learns from the history, if the one of the job can."""
    if not problem.history:
        return prepared.policy
    if can_learn(prepared.policy, problem):
        return informed(prepared.policy)
    if reads_history(prepared.policy):
        return prepared.policy
    if prepared.policy.name != "lynceus":
        notes.append(f"history: policy {prepared.policy.name!r} does not learn from it")
    elif problem.goal.known is not None:
        notes.append(
            f"history: the objective {str(problem.objective)!r} is known before anything runs; nothing is learnt"
        )
    elif any(one.related for one in problem.history):
        needed = ", ".join(problem.goal.metrics)
        notes.append(
            f"history: no earlier job has three runs that report {needed} above 0, the objective; nothing is learnt"
        )
    return prepared.policy


def _related(job: Job, section: PastJobSection, declared: str | None) -> bool:
    """Whether a past job may count: not where both jobs declare a family, and not the same one."""
    own, other = job.spec.family, section.family or declared
    return own is None or other is None or own == other


@dataclass(frozen=True)
class ReadJob:
    """A past job, one for each input that its runs read, and the family that its study declares."""

    jobs: tuple[PastJob, ...]
    family: str | None = None


def read_past_job(section: PastJobSection, job: Job, storage: Storage, metrics: Sequence[str] = ()) -> ReadJob:
    """One earlier job, from a study or a file; `metrics` are those that a file's columns are searched for."""
    declared = None if section.input is None else JobInput.read(section.input)
    if section.file is not None:
        return ReadJob(past_jobs_of_file(job.file(section.file), metrics, declared))
    if section.storage is None and section.study == job.name:
        raise InputError(f"{job.name!r} is this study itself; name earlier ones")
    if section.storage is None:
        return past_job_of_study(storage, storage.load_study(str(section.study)), declared)
    with Storage(section.storage, create=False) as other:
        return past_job_of_study(other, other.load_study(str(section.study)), declared)


def past_job_of_study(storage: Storage, record: StudyRecord, declared_input: JobInput | None = None) -> ReadJob:
    """The runs of a stored study; `declared_input` is what runs read that do not say it."""
    if record.damage is not None:
        raise InputError(f"study {record.name!r} is damaged")
    _, problem = job_and_problem(record)
    source = f"study {record.name} ({record.identity}) in {storage.shown_url}"
    declared = (record.document.get("job") or {}).get("family")
    jobs = past_jobs(record.name, problem, storage.journal(record.name).record.observations, source, declared_input)
    return ReadJob(jobs, None if declared is None else str(declared))


def past_jobs_of_file(
    path: Path, metrics: Sequence[str] = (), declared_input: JobInput | None = None
) -> tuple[PastJob, ...]:
    """The runs in a CSV or Parquet file: a column with the running time, and any others; those of `lynceus export` are understood.

    Columns such as `input_size` say what runs read; `declared_input` what those read that do not say it.
    """
    table = read_table(path)
    time = next((name for name in _TIMES if name in table), None)
    if time is None:
        raise InputError(f"{path} has no column with the running time; name it 'runtime'")
    states = table.get("state") or ["COMPLETE"] * len(table[time])
    kept = [
        place
        for place, state in enumerate(states)
        if state in (None, "COMPLETE", "TIMEOUT") and table[time][place] and not _is_nan(table[time][place])
    ]
    if not kept:
        raise InputError(f"{path} has no finished run")
    columns = {_own_name(name): tuple(_cell(table[name][place]) for place in kept) for name in _described(table, time)}
    seconds = tuple(_seconds(table[time][place], f"{path}: {time}") for place in kept)
    if wrong := [table[time][place] for place, each in zip(kept, seconds, strict=True) if not 0 < each < math.inf]:
        raise InputError(f"{path}: {time} of a run is {wrong[0]}, but a run takes more than 0 seconds")
    stopped = tuple(states[place] == "TIMEOUT" for place in kept)
    told = {name: column for name in metrics for column in (name, f"metrics_{name}") if column in table}
    values = {name: tuple(_number(table[column][place]) for place in kept) for name, column in told.items()}
    whole = PastJob(path.stem, columns, seconds, stopped, f"file {path.name}", values)
    return whole.by_input([_input(table, place, path) or declared_input for place in kept])


def _input(table: Table, place: int, path: Path) -> JobInput | None:
    """What the run in a row of a table read, by the columns `input_…` of an export, or by `input_size`; None where they are empty."""
    names = [name for name in table if name.startswith(_INPUT)] if _is_export(table) else [f"{_INPUT}{SIZE}"]
    cells = {name.removeprefix(_INPUT): _cell(table[name][place]) for name in names if name in table}
    given = {name: cell for name, cell in cells.items() if cell is not None}
    return JobInput.read(given, f"{path}: {_INPUT}{SIZE}") if given else None


def _is_export(table: Table) -> bool:
    """Whether `lynceus export` wrote it."""
    return any(name.startswith("params_") for name in table)


def _cell(cell: Any) -> Cell:
    """A value that every storage can keep: NaN and infinity are none, and what Parquet has besides numbers and texts is a text."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    return cell if cell is None or isinstance(cell, str | int | float) else str(cell)


def _number(cell: Cell) -> float | None:
    cell = _cell(cell)
    return float(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else None


def _described(table: Table, time: str) -> Iterator[str]:
    """The columns that may describe a configuration: of an export its parameters and price."""
    exported = _is_export(table)
    for name in table:
        if name != time and (not exported or name.startswith("params_") or name == "price_usd_per_hour"):
            yield name


def _own_name(column: str) -> str:
    return column.removeprefix("params_")


def _is_nan(cell: Cell) -> bool:
    """Whether a number is missing, as other programs write it."""
    return isinstance(cell, float) and math.isnan(cell)


def _seconds(cell: Cell, where: str) -> float:
    return float(cell) if isinstance(cell, int | float) else parse_duration(str(cell), where)


def family_of(job: Job) -> str:
    """The declared family of a job, else its name without the size, number or version at its end.

    >>> [family_of(Job.parse(f"{{name: {name}, run: 'true', space: {{n: [1]}}, budget: 1}}")) for name in ("etl-120gb", "etl_v2")]
    ['etl', 'etl']
    """
    return job.spec.family or _SIZE.sub("", job.name) or job.name


def _relatives(job: Job, storage: Storage) -> Sequence[PastJobSection]:
    """The newest other studies of the same family in this storage."""
    wanted, found = family_of(job), []
    for record in sorted(storage.studies(), key=lambda one: -one.created_s):
        if record.name != job.name and record.damage is None and _family(record) == wanted:
            found.append(PastJobSection(study=record.name))
    return found[:_MOST_JOBS]


def _family(record: StudyRecord) -> str:
    declared = (record.document.get("job") or {}).get("family")
    return str(declared) if declared else _SIZE.sub("", record.name) or record.name
