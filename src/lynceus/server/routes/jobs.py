"""Routes of recurring jobs: what schedulers read and report, what users change."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import APIRouter, Request

from lynceus.analysis.documents.json import Document, to_json
from lynceus.library.recurring.adopt import adopt as adopt_configuration
from lynceus.library.recurring.job_documents import job_page, jobs_document
from lynceus.library.recurring.recurring_job import RecurringJob
from lynceus.notify.job_notifier import notify_job
from lynceus.problem.units import parse_duration, parse_money
from lynceus.recurring.action import Action
from lynceus.server import job_schemas
from lynceus.server.context import Context, context_of, run_slow, visitor_of
from lynceus.server.examples import example
from lynceus.server.job_schemas import JobName
from lynceus.storage.sql.jobs import JobStore

routes = APIRouter()
_log = logging.getLogger("lynceus.server")


def _job(request: Request, name: str) -> RecurringJob:
    return RecurringJob(name, context_of(request).storage)


def _by(request: Request, body: job_schemas.Authored) -> str:
    """Who the client says it is; with a named token, the token too: others cannot make changes in its name."""
    visitor = visitor_of(request)
    if not body.by:
        return visitor.author
    return body.by if visitor.token is None else f"{body.by} (token {visitor.token})"


@routes.get("/jobs", operation_id="jobs", responses=example("jobs"))
async def jobs(request: Request) -> Document:
    """All recurring jobs: version, mode, last run, what was saved."""
    store = JobStore(context_of(request).storage)
    return await run_slow(request, lambda: jobs_document(store))


@routes.get("/jobs/{name}", operation_id="job", responses=example("job"))
async def job(request: Request, name: JobName) -> Document:
    """A recurring job as its page shows it: versions, runs beside what was expected, findings, the next step, the audit."""
    context = context_of(request)
    store = JobStore(context.storage)
    return await run_slow(request, lambda: _page(context, store, name))


def _page(context: Context, store: JobStore, name: str) -> Document:
    head = store.head(name)
    minute = int(
        context.storage.clock.now() // 60
    )  # hours at which nothing is tried begin and end without a change of the job
    version = head.sequence * 10_000_000_000 + minute
    return context.documents.get((head.identity, "job"), version, lambda: job_page(store, name))


@routes.get(
    "/jobs/{name}/config",
    operation_id="job_config",
    response_model=job_schemas.RunConfig,
    responses=example("job_config"),
)
async def config(request: Request, name: JobName) -> Document:
    """The configuration in production."""
    return await run_slow(request, lambda: to_json(_job(request, name).config()))


@routes.post(
    "/jobs/{name}/start",
    operation_id="start_run",
    response_model=job_schemas.RunConfig,
    responses=example("start_run"),
)
async def start(request: Request, name: JobName, body: job_schemas.StartRun) -> Document:
    """What a run that starts now is to have: the version in production or, in mode `apply`, perhaps a canary."""
    return await run_slow(request, lambda: to_json(_job(request, name).config(run_id=body.run_id, input=body.input)))


@routes.post(
    "/jobs/{name}/runs", operation_id="record_run", response_model=job_schemas.Recorded, responses=example("record_run")
)
async def record(request: Request, name: JobName, body: job_schemas.RecordRun) -> dict[str, Any]:
    """Report a run that has ended. A run id is recorded once: a repeated report changes nothing."""

    def change() -> dict[str, Any]:
        one = _job(request, name)
        told = body.model_dump(exclude={"run_id"})
        new = one.record(told.pop("runtime"), run_id=body.run_id, **told)
        changes = [{"kind": str(action.kind), "reason": action.reason} for action in _reviewed(one)]
        return {"new": new, "version": one.store.head(name).version.number, "changes": changes}

    return await run_slow(request, change)


def _reviewed(one: RecurringJob) -> tuple[Action, ...]:
    """What was changed because of the runs so far. They are recorded, so a model that fails here is no error of the request."""
    try:
        found = one.review()
        notify_job(one.store, found)
    except Exception:
        _log.exception("%s: the run is recorded, but the job could not be looked at", one.name)
        return ()
    return found.done


@routes.post("/jobs/{name}/adopt", operation_id="adopt", responses=example("adopt"))
async def adopt(request: Request, name: JobName, body: job_schemas.Adopt) -> Document:
    """Make a study's answer, or a configuration, the production configuration; a job of a new name is made.

    What is in production already is not adopted again: a repeated request answers the version that the first one made.
    """

    def change() -> Document:
        store = JobStore(context_of(request).storage)
        by = _by(request, body)
        head = adopt_configuration(
            store, name, source=body.study, params=body.params, by=by, reason=body.reason, files=False
        )
        return {"job": name, "version": head.version.number, "params": dict(head.version.params)}

    return await run_slow(request, change)


@routes.post("/jobs/{name}/rollback", operation_id="rollback", responses=example("rollback"))
async def rollback(request: Request, name: JobName, body: job_schemas.Rollback) -> Document:
    """Put an earlier version into production again."""

    def change() -> Document:
        one = _job(request, name)
        if one.config().version != body.to:
            one.rollback(body.to, by=_by(request, body), reason=body.reason)
        found = one.config()
        return {"job": name, "version": found.version, "params": dict(found.params)}

    return await run_slow(request, change)


@routes.post("/jobs/{name}/settings", operation_id="job_settings", responses=example("job_settings"))
async def settings(request: Request, name: JobName, body: job_schemas.ChangeSettings) -> Document:
    """Change what Lynceus may do with a job: mode, deadline, allowance, times at which nothing is tried, the kill switch."""

    def change() -> Document:
        changes: dict[str, Any] = {
            field: value
            for field, value in body.model_dump(exclude={"by", "reason", "deadline", "allowance"}).items()
            if value is not None
        }
        if "exclude" in changes:
            changes["exclude"] = tuple(changes["exclude"])
        if body.deadline is not None:
            changes["deadline_s"] = parse_duration(body.deadline, "deadline")
        if body.allowance is not None:
            changes["allowance_usd"] = parse_money(body.allowance, "allowance")
        found: Document = to_json(_job(request, name).set(by=_by(request, body), reason=body.reason, **changes))
        return found

    return await run_slow(request, change)
