"""Routes that change studies: create, ask, tell, heartbeat, stop, resume, enqueue, add."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response
from starlette.concurrency import run_in_threadpool

from lynceus.errors import InputError
from lynceus.jobfile.prepared_study import PreparedStudy
from lynceus.library.history import with_history
from lynceus.policy.policy_file import describe
from lynceus.server import commands, schemas
from lynceus.server.command_runner import Run
from lynceus.server.context import Context, context_of, visitor_of
from lynceus.server.errors import HttpError
from lynceus.server.examples import example
from lynceus.server.guard import Visitor
from lynceus.server.job_upload import uploaded_job
from lynceus.server.schemas import IdempotencyKey, TrialNumber
from lynceus.storage.sql.idempotency import Once, request_digest
from lynceus.storage.sql.storage import fingerprint
from lynceus.study.past_runs import PastRun
from lynceus.trial.shared_budget import Payer

routes = APIRouter()

NoFields = Annotated[schemas.Empty | None, Body()]

_JOB = {
    "name": "nightly-sessions",
    "space": {"threads": [1, 2, 4], "level": {"int": [1, 9]}},
    "price": "0.05 * threads",
    "constraints": ["runtime <= 45m"],
    "budget": {"cost": "25 USD"},
}
_JOB_BODY = {
    "requestBody": {
        "required": True,
        "description": "the text of a job file, or its fields as JSON; `run` may be left out if clients ask and tell",
        "content": {
            "application/json": {"schema": {"type": "object"}, "example": _JOB},
            "application/yaml": {
                "schema": {"type": "string"},
                "example": (
                    "name: nightly-sessions\nrun: ./job.sh\nspace: {threads: [1, 2, 4], level: {int: [1, 9]}}\n"
                    "price: 0.05 * threads\nconstraints: ['runtime <= 45m']\nbudget: 25 USD\n"
                ),
            },
        },
    }
}


@routes.post(
    "/studies",
    operation_id="create",
    status_code=201,
    response_model=schemas.Created,
    responses=example("create", 201),
    openapi_extra=_JOB_BODY,
)
async def create(request: Request, response: Response, idempotency_key: IdempotencyKey = None) -> dict[str, Any]:
    """Create a study from a job file, or from its fields as JSON."""
    body = await request.body()
    kind = request.headers.get("content-type", "")
    context = context_of(request)

    def make() -> tuple[dict[str, Any], bool]:
        prepared = uploaded_job(body, kind, context.folder)
        once = (
            None if idempotency_key is None else Once(idempotency_key, request_digest("create", prepared.job.stored()))
        )
        return _created(context, prepared, once, visitor_of(request))

    created, repeated = await run_in_threadpool(make)
    context.events.check_now()
    if repeated:
        response.headers["Idempotency-Replayed"] = "true"
    return created


def _created(
    context: Context, prepared: PreparedStudy, once: Once | None, visitor: Visitor
) -> tuple[dict[str, Any], bool]:
    """The new study, and whether an earlier attempt of the same request has created it."""
    storage = context.storage
    if once is not None and (given := storage.given_answer(once)) is not None:
        return {"name": str(given["name"])}, True
    prepared, notes = with_history(prepared, storage)
    job = prepared.job
    try:
        storage.create_study(
            job.name,
            document=job.stored(),
            fingerprint=fingerprint(prepared.problem),
            policy=describe(prepared.policy),
            seed=job.spec.seed,
            once=once,
            payer=Payer(job.spec.project, job.spec.owner or visitor.token),
            by=visitor.author,
        )
    except InputError:
        # An attempt of the same request may have been faster; otherwise the name is taken.
        if once is not None and (given := storage.given_answer(once)) is not None:
            return {"name": str(given["name"])}, True
        raise HttpError(409, f"Study {job.name!r} exists already; choose another name.") from None
    return {"name": job.name, "note": "; ".join(notes) + "." if notes else None}, False


@routes.post("/studies/{name}/ask", operation_id="ask", response_model=schemas.Asked, responses=example("ask"))
async def ask(run: Run, body: NoFields = None) -> dict[str, Any]:
    """The next trial. Its maximum charge is reserved in the budget until its result is reported."""
    return await run(commands.ask())


@routes.post(
    "/studies/{name}/trials/{number}/tell",
    operation_id="tell",
    response_model=schemas.Settled,
    responses=example("tell"),
)
async def tell(run: Run, number: TrialNumber, body: schemas.Tell) -> dict[str, Any]:
    """Report the result of a trial."""
    return await run(commands.tell(number, body), body)


@routes.post(
    "/studies/{name}/trials/{number}/heartbeat",
    operation_id="heartbeat",
    response_model=schemas.Heartbeat,
    responses=example("heartbeat"),
)
async def heartbeat(run: Run, number: TrialNumber, body: NoFields = None) -> dict[str, Any]:
    """Keep a trial alive. The trial of a client that has sent heartbeats and stops for 15 minutes is settled as lost."""
    return await run(commands.heartbeat(number))


@routes.post("/studies/{name}/stop", operation_id="stop", responses=example("stop"))
async def stop(run: Run, body: Annotated[schemas.Stop | None, Body()] = None) -> dict[str, Any]:
    """Start no further trial; open trials finish, or end now with `kill`."""
    options = body or schemas.Stop()
    return await run(commands.stop(kill=options.kill, reason=options.reason), options)


@routes.post("/studies/{name}/resume", operation_id="resume", responses=example("resume"))
async def resume(run: Run, body: Annotated[schemas.Resume | None, Body()] = None) -> dict[str, Any]:
    """Go on after a stop, a pause or a spent budget, perhaps with more money or under other limits. It starts no worker;
    `lynceus resume` does."""
    options = body or schemas.Resume()
    return await run(commands.resume(options.add_budget, options.constraints, options.add_trials), options)


@routes.post("/studies/{name}/trials/{number}/stop", operation_id="stop_trial", responses=example("stop_trial"))
async def stop_trial(run: Run, number: TrialNumber, body: NoFields = None) -> dict[str, Any]:
    """Stop one trial: its worker notices within seconds, a client with its next heartbeat."""
    return await run(commands.stop_trial(number))


@routes.post("/studies/{name}/queue", operation_id="enqueue", responses=example("enqueue"))
async def enqueue(run: Run, body: schemas.Enqueue) -> dict[str, Any]:
    """Run this configuration next, before anything that the policy would choose."""
    return await run(commands.enqueue(body.params), body)


@routes.post("/studies/{name}/trials", operation_id="add_trials", responses=example("add_trials"))
async def add_trials(run: Run, body: schemas.Measurements) -> dict[str, Any]:
    """Add past runs, also stopped and failed ones: nothing is run, nothing is charged."""
    past = [PastRun(one.params, one.runtime, one.metrics, one.state, one.reason, one.detail) for one in body.trials]
    return await run(commands.add_trials(past, body.input), body)
