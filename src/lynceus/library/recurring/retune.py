"""Search again for a recurring job, as a study of its own that knows everything: earlier studies, production runs, sizes and prices.

Its trials tell the decider of the job about other configurations, so that what it finds is tried and adopted by the same rules.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lynceus.analysis.answer import answer
from lynceus.analysis.documents.json import to_json
from lynceus.errors import InputError, LynceusError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import PreparedStudy, prepare
from lynceus.library.history import past_job_of_study
from lynceus.library.open_study import OpenStudy, open_record
from lynceus.library.recurring.job_record import KnownJob, known_job
from lynceus.library.study_context import study_context
from lynceus.models.past_match import match
from lynceus.policy.informed import can_learn, informed
from lynceus.policy.policy_file import describe
from lynceus.problem.history import PastJob
from lynceus.problem.units import format_duration, format_money
from lynceus.recurring.alternatives import adoption_basis
from lynceus.recurring.canary_rules import allowance_left
from lynceus.recurring.forecast import row_of
from lynceus.recurring.next_action import proves_itself
from lynceus.recurring.record import Change, ProductionRun, Version
from lynceus.recurring.settings import Mode
from lynceus.recurring.watch import last_size
from lynceus.storage.sql.jobs import JobStore
from lynceus.storage.sql.storage import StudyExistsError, fingerprint
from lynceus.trial.outcome import End

_NAME = "{job}-retune-{number}"


def start_retune(
    store: JobStore, name: str, *, budget_usd: float | None = None, by: str = "", reason: str = ""
) -> OpenStudy:
    """A study that searches again for a job; the one that was begun and is not over, if there is one.

    `budget_usd` is the most that it may spend, by default what is left of the month's allowance; it counts against it.
    """
    job = known_job(store, name)
    began = [study for study in job.stored.studies if study.startswith(f"{name}-retune-")]
    if began:
        last = next((one for one in store.storage.studies() if one.name == began[-1]), None)
        if last is not None and last.stopped is None:
            return open_record(store.storage, last)
    usd = allowance_left(job.record, job.now_s) if budget_usd is None else budget_usd
    if usd <= 0:
        raise InputError(
            f"retune: nothing is left of this month's allowance of job {name!r}; say what the search may spend with --budget, or raise "
            f"the allowance with: lynceus mode {name} --allowance …."
        )
    prepared = _prepared(job, _NAME.format(job=name, number=len(began) + 1), usd, store)
    try:
        record = store.storage.create_study(
            prepared.job.name,
            document=prepared.job.stored(),
            fingerprint=fingerprint(prepared.problem),
            policy=describe(prepared.policy),
            seed=prepared.job.spec.seed,
            payer=job.stored.payer,
            by=by or None,
        )
    except StudyExistsError:  # begun by a command that was killed right then
        record = store.storage.load_study(prepared.job.name)
    why = reason or f"a search for at most {format_money(usd)}"
    with store.changing(name) as writer:
        writer.set_document(job.stored.document, [*dict.fromkeys([*job.stored.studies, record.name])])
        evidence = {"study": record.name, "budget_usd": usd}
        # All of its money counts until it is known what it spent.
        writer.note(Change(0.0, "retune", by=by, reason=why, evidence=evidence, cost_usd=usd))
    return open_record(store.storage, record)


def finish_retune(store: JobStore, name: str, study: str) -> bool:
    """The search is over: what it did not spend of its budget is free again, and in mode `apply` its answer is adopted, on probation,
    if it would be as a canary. One whose saving may be noise is left to the decider, which knows its trials from now on.

    False if that was written before.
    """
    record = store.storage.load_study(study)
    if record.stopped is None:
        return False
    job = known_job(store, name)
    spent = store.storage.totals(study).spent_usd
    reserved = sum(one.cost_usd for one in job.record.changes if one.evidence.get("study") == study)
    reason = f"the search is over: {record.stopped.reason}"
    change = Change(0.0, "retune", by="lynceus", reason=reason, evidence={"study": study, "spent_usd": spent})
    change = replace(change, cost_usd=spent - reserved)
    found = _answer(store, job, study)
    with store.changing(name) as writer:
        if not writer.announced(f"retune {study} {record.settled}"):
            return False
        if found is None or writer.settings.held or writer.settings.mode is not Mode.APPLY:
            writer.note(change)  # the decider knows its trials now, and suggests what they tell
        else:
            made = writer.add_version(replace(found, by="lynceus", reason=reason))
            writer.set_current(made.number, replace(change, expected=found.expected))
    return True


def _answer(store: JobStore, job: KnownJob, study: str) -> Version | None:
    """The answer of a study as a version; None if it has none, if that is in production already, or not surely better."""
    found = answer(study_context(open_record(store.storage, store.storage.load_study(study))))
    if found is None or not found.reaches_confidence:
        return None
    row = row_of(job.problem, found.params)
    if row is None or (job.record.adopted is not None and dict(job.record.adopted.params) == dict(found.params)):
        return None
    if not proves_itself(job.problem, job.record, row, job.now_s):
        return None
    expected = to_json({"runtime_s": found.runtime_s, "cost_usd": found.cost_usd, "saving": found.saving})
    basis = adoption_basis(job.problem, job.record, row, last_size(job.record))
    params = job.problem.space.point(row)
    return Version(0, params, 0.0, source="retune", evidence={"study": study}, expected=expected, basis=basis)


def _prepared(job: KnownJob, study: str, usd: float, store: JobStore) -> PreparedStudy:
    document = job.stored.document
    if "job" not in document or not Job.from_stored(document).has_command:
        raise InputError(
            f"retune: job {job.record.name!r} has no command that Lynceus could run; search with your own program, then adopt its study "
            f"with: lynceus adopt {job.record.name} --from STUDY."
        )
    values: dict[str, Any] = {**document["job"], "name": study, "budget": {"cost": f"{usd:.6f} USD"}}
    adopted = job.record.adopted
    if adopted is not None:
        values["baseline"] = {"config": dict(adopted.params)}
    deadline_s = job.record.settings.deadline_s
    if deadline_s < job.problem.deadline_s:
        values["constraints"] = [*values.get("constraints", []), f"runtime <= {format_duration(deadline_s)}"]
    for name in ("history", "storage"):
        values.pop(name, None)
    size = last_size(job.record)
    if size is not None:
        values["input"] = {"size": size}
    found = Job.from_stored({**document, "job": values, "history": []})
    past = tuple(one for one in _past(job, store) if match(job.problem.space, one).used)
    prepared = prepare(replace(found, past=past))
    if past and can_learn(prepared.policy, prepared.problem):
        prepared = replace(prepared, policy=informed(prepared.policy))
    return prepared


def _past(job: KnownJob, store: JobStore) -> list[PastJob]:
    """The earlier studies of a job, and its production runs."""
    found: list[PastJob] = []
    for study in job.stored.studies:
        try:
            found += past_job_of_study(store.storage, store.storage.load_study(study)).jobs
        except LynceusError:
            continue  # it was deleted, or has no run
    runs = [run for run in job.record.runs if run.end is not End.FAILED and run.seconds > 0]
    if runs:
        found.append(_of_runs(job, runs))
    return found


def _of_runs(job: KnownJob, runs: list[ProductionRun]) -> PastJob:
    points = [job.record.version(run.version).params for run in runs]
    names = [one.name for one in job.problem.space.parameters]
    columns = {name: tuple(point.get(name) for point in points) for name in names}
    seconds = tuple(run.seconds for run in runs)
    stopped = tuple(run.end is End.TIMEOUT for run in runs)
    return PastJob(f"{job.record.name} in production", columns, seconds, stopped, f"job {job.record.name}")
