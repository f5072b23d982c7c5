"""Make a configuration the production configuration of a recurring job: the answer of a study, or one that the user gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lynceus.analysis.answer import answer
from lynceus.analysis.documents.json import to_json
from lynceus.errors import InfrastructureError, InputError, did_you_mean
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.library.find import is_job_file
from lynceus.library.measurements import parsed_value
from lynceus.library.open_study import open_record
from lynceus.library.recurring.completed_params import Known, completed_row
from lynceus.library.recurring.job_problem import document_size, todays_problem
from lynceus.library.recurring.job_record import study_runs
from lynceus.library.study_context import study_context
from lynceus.problem.problem import Problem
from lynceus.recurring.alternatives import adoption_basis
from lynceus.recurring.record import Basis, Change, JobRecord, Version
from lynceus.recurring.settings import Settings
from lynceus.recurring.watch import last_size
from lynceus.space.parameter import Parameter
from lynceus.storage.sql.address import without_credentials
from lynceus.storage.sql.idempotency import request_digest
from lynceus.storage.sql.job_writer import JobChangedError
from lynceus.storage.sql.jobs import JobExistsError, JobHead, JobStore, StoredJob
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage
from lynceus.trial.outcome import End

Params = Mapping[str, Any] | Sequence[str]
"""Values by name, or texts `name=value`."""
_ATTEMPTS = 5
"""How often an adoption is tried that other changes of the job overtake."""


@dataclass(frozen=True)
class _Candidate:
    """A configuration that is to be adopted, with what is known of it."""

    document: Mapping[str, Any]
    studies: tuple[str, ...]
    params: Mapping[str, Any]
    reason: str
    evidence: Mapping[str, Any]
    expected: Mapping[str, Any]


def adopt(
    store: JobStore,
    name: str,
    *,
    source: str | None = None,
    params: Params | None = None,
    by: str = "",
    reason: str = "",
    settings: Settings | None = None,
    files: bool = True,
) -> JobHead:
    """Make a configuration the one that production runs have from now on; a job of a new name is made.

    `source` is a study or a job file; without it, the job itself if it exists, else the study of that name. `params` is the
    configuration; without it, the answer of the study. Parameters that it leaves out keep the values that they have in production, or,
    where a study is named, those of its answer. What is in production already, by the same author for the same reason, stays
    the version that it is, so a call whose answer was lost can be repeated. Without `files`, every source is the name of a study:
    clients of a server must not read its files.
    """
    for _ in range(_ATTEMPTS):
        try:
            return _adopt(store, name, source, params, by, reason, settings, files)
        except (JobExistsError, JobChangedError):
            continue  # another process was first
    raise InfrastructureError(f"adopt: job {name!r} is changed by others all the time; try again.")


def _adopt(
    store: JobStore,
    name: str,
    source: str | None,
    params: Params | None,
    by: str,
    reason: str,
    settings: Settings | None,
    files: bool,
) -> JobHead:
    former = store.load(name) if name in store.names() else None
    if source is None and former is not None and params is not None:
        found = _given(name, former.document, former.studies, params, _params_of(former), ["lynceus", "adopt", name])
    else:
        found = _candidate(store.storage, name, source, params, files, former)
    size = document_size(found.document)
    trials = [run for study in found.studies for run in study_runs(store.storage, study)]
    problem = todays_problem(found.document)
    if former is not None:
        size = last_size(former.record) or size
    basis = _basis(problem, JobRecord(name, trials=tuple(trials)), problem.space.row(dict(found.params)), size)
    version = Version(1, found.params, 0.0, by, reason or found.reason, "adopt", found.evidence, found.expected, basis)
    if former is None:
        return store.create(name, found.document, version, settings=settings, studies=found.studies)
    if _in_production(former, found, version, settings):
        return former.head
    studies = [*dict.fromkeys([*former.studies, *found.studies])]
    with store.changing(name, former.head.sequence) as job:
        made = job.add_version(version)
        job.set_document(found.document, studies)
        change = Change(
            0.0, "adopt", made.number, by=by, reason=version.reason, evidence=found.evidence, expected=found.expected
        )
        job.set_current(made.number, change)
        if settings is not None:
            job.set_settings(settings, "settings", by, version.reason)
    return store.head(name)


def _in_production(former: StoredJob, found: _Candidate, version: Version, settings: Settings | None) -> bool:
    """Whether the same was adopted just before: a caller who got no answer asks again, and makes no second version."""
    present = replace(former.head.version, number=version.number, at_s=version.at_s)
    return (
        present == version
        and request_digest(former.document) == request_digest(without_credentials(dict(found.document)))
        and set(found.studies) <= set(former.studies)
        and settings in (None, former.head.settings)
    )


def _basis(problem: Problem, record: JobRecord, row: int, size: float | None) -> Basis:
    """What is known now: if nothing was ever tried, the price of this configuration alone."""
    if any(run.end is not End.FAILED for run in record.trials):
        return adoption_basis(problem, record, row, size)
    return Basis(size, {row: float(problem.price[row]) * 3600})


def _params_of(former: StoredJob | None) -> Known:
    """The configuration in production."""
    return lambda: None if former is None else former.head.version.params


def _candidate(
    storage: Storage, name: str, named: str | None, params: Params | None, files: bool, former: StoredJob | None
) -> _Candidate:
    source = name if named is None else named
    command = ["lynceus", "adopt", name] if named is None else ["lynceus", "adopt", name, "--from", named]
    records = {record.name: record for record in storage.studies()}
    if files and is_job_file(source):
        job = Job.read(source)
        if params is not None:
            return _given(source, prepare(job).job.stored(), (), params, _params_of(former), command)
        if job.name not in records:
            raise InputError(
                f"adopt: the study {job.name!r} of {source} is not in {storage.shown_url}; run it first, or give the configuration "
                "with --param."
            )
        return _answer(storage, records[job.name])
    if source not in records:
        names = ", ".join(list(records)[:20]) or "none"
        raise InputError(
            f"adopt: there is no study {source!r} in {storage.shown_url} (known are: {names}); "
            f"name a study{' or a job file with --from' if files else ''}.{did_you_mean(source, records)}"
        )
    record = records[source]
    if params is not None:
        document, known = _present(record, None), _answer_params(storage, record)
        return _given(f"study {source!r}", document, (source,), params, known, command)
    return _answer(storage, record)


def _answer_params(storage: Storage, record: StudyRecord) -> Known:
    """The answer of a study, where it has one that meets the constraints."""

    def known() -> Mapping[str, Any] | None:
        found = answer(study_context(open_record(storage, record)))
        return found.params if found is not None and found.reaches_confidence else None

    return known


def _answer(storage: Storage, record: StudyRecord) -> _Candidate:
    one = open_record(storage, record)
    found = answer(study_context(one))
    if found is None or not found.reaches_confidence:
        why = "" if found is None or found.shortfall is None else f" ({found.shortfall})"
        raise InputError(
            f"adopt: study {record.name!r} knows no configuration that meets its constraints{why}; let it run more trials, or give a "
            "configuration with --param."
        )
    expected = {"runtime_s": found.runtime_s, "cost_usd": found.cost_usd, "saving": found.saving}
    evidence = {"study": record.name, "trials": found.trials, "spent_usd": found.spent_usd, "basis": found.cost_basis}
    document = _present(record, one.study.problem)
    return _Candidate(
        document,
        (record.name,),
        found.params,
        f"the answer of study {record.name}",
        to_json(evidence),
        to_json(expected),
    )


def _given(
    where: str,
    document: Mapping[str, Any],
    studies: tuple[str, ...],
    params: Params,
    known: Known,
    command: Sequence[str],
) -> _Candidate:
    space = todays_problem(document).space
    try:
        row = completed_row(space, parsed_params(params, space.parameters), known, command)
    except InputError as error:
        raise InputError(f"adopt: {where}: {error}") from None
    return _Candidate(document, studies, space.point(row), "given by the user", {}, {})


def _present(record: StudyRecord, problem: Problem | None) -> dict[str, Any]:
    """The document of a study with the constraints that it has by now."""
    document = dict(record.document)
    if "job" not in document and "problem" not in document:
        raise InputError(f"adopt: the problem of study {record.name!r} is not stored, so a job cannot be made of it.")
    if record.limit_changes and "job" in document:
        limits = record.limit_changes[-1].after if problem is None else problem.constraints
        document["job"] = {**document["job"], "constraints": [str(one) for one in limits]}
    return document


def parsed_params(given: Params, parameters: Sequence[Parameter]) -> dict[str, Any]:
    """A configuration, from values by name or from texts `name=value`.

    >>> from lynceus import Categorical, Integer
    >>> parsed_params(["nodes=4", "spot=true"], [Integer("nodes", 1, 8), Categorical("spot", [True, False])])
    {'nodes': 4, 'spot': True}
    """
    if isinstance(given, Mapping):
        return dict(given)
    known, found = {one.name: one for one in parameters}, dict[str, Any]()
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or name not in known:
            raise InputError(
                f"--param is {text[:60]!r}, but NAME=VALUE with one of the parameters {', '.join(known)} is needed."
            )
        found[name] = parsed_value(known[name], value)
    return found
