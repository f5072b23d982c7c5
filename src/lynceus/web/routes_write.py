"""Changes: create, ask, tell, heartbeat, stop, resume, enqueue, add. All of them need the write token."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response
from starlette.concurrency import run_in_threadpool

from lynceus.errors import InputError
from lynceus.job.prepare import Prepared
from lynceus.ledger.answers import Once, request_digest
from lynceus.ledger.sql import fingerprint
from lynceus.policy.compose import describe
from lynceus.web import deeds, shapes
from lynceus.web.examples import answer
from lynceus.web.faults import FaultError
from lynceus.web.house import House, done, house_of
from lynceus.web.shapes import IdempotencyKey, StudyName, TrialNumber
from lynceus.web.submitted import submitted

routes = APIRouter()

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
        "description": "the text of a job file, or its fields as JSON; `run` may be left out when programs ask and tell",
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
    response_model=shapes.Created,
    responses=answer("create", 201),
    openapi_extra=_JOB_BODY,
)
async def create(request: Request, response: Response, idempotency_key: IdempotencyKey = None) -> dict[str, Any]:
    """Create a study from a job file or from JSON."""
    body = await request.body()
    kind = request.headers.get("content-type", "")
    house = house_of(request)

    def make() -> tuple[str, bool]:
        prepared = submitted(body, kind, house.folder)
        once = (
            None if idempotency_key is None else Once(idempotency_key, request_digest("create", prepared.job.stored()))
        )
        return _created(house, prepared, once)

    name, repeated = await run_in_threadpool(make)
    house.watch.hurry()
    if repeated:
        response.headers["Idempotency-Replayed"] = "true"
    return {"name": name}


def _created(house: House, prepared: Prepared, once: Once | None) -> tuple[str, bool]:
    """The name of the new study, and whether it was created by an earlier try of the same request."""
    storage, job = house.storage, prepared.job
    if once is not None and (given := storage.given_answer(once)) is not None:
        return str(given["name"]), True
    try:
        storage.create_study(
            job.name,
            document=job.stored(),
            fingerprint=fingerprint(prepared.problem),
            policy=describe(prepared.policy),
            seed=job.spec.seed,
            once=once,
        )
    except InputError:
        # Another try of this request may have been quicker; otherwise the name is taken.
        if once is not None and (given := storage.given_answer(once)) is not None:
            return str(given["name"]), True
        raise FaultError(409, f"Study {job.name!r} exists already; choose another name.") from None
    return job.name, False


@routes.post("/studies/{name}/ask", operation_id="ask", response_model=shapes.Asked, responses=answer("ask"))
async def ask(
    request: Request,
    response: Response,
    name: StudyName,
    body: Annotated[shapes.Empty | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """The next trial. Its money is set aside until it is told."""
    return await done(request, response, name, deeds.ask(), idempotency_key, None)


@routes.post(
    "/studies/{name}/trials/{number}/tell", operation_id="tell", response_model=shapes.Told, responses=answer("tell")
)
async def tell(
    request: Request,
    response: Response,
    name: StudyName,
    number: TrialNumber,
    body: shapes.Tell,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """How a trial went."""
    deed = deeds.tell(
        number,
        runtime=body.runtime,
        state=body.state,
        reason=body.reason,
        charged=body.charged,
        metrics=body.metrics,
        progress=body.progress,
        detail=body.detail,
    )
    return await done(request, response, name, deed, idempotency_key, body.model_dump(mode="json"))


@routes.post(
    "/studies/{name}/trials/{number}/heartbeat",
    operation_id="heartbeat",
    response_model=shapes.Beat,
    responses=answer("heartbeat"),
)
async def heartbeat(
    request: Request,
    response: Response,
    name: StudyName,
    number: TrialNumber,
    body: Annotated[shapes.Empty | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """A trial is looked after. A client that gave signs of life and is silent for 15 minutes is given up."""
    return await done(request, response, name, deeds.heartbeat(number), None, None)


@routes.post("/studies/{name}/stop", operation_id="stop", responses=answer("stop"))
async def stop(
    request: Request,
    response: Response,
    name: StudyName,
    body: Annotated[shapes.Stop | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Start no more trials; open ones come to their end, or are ended with `kill`."""
    wanted = body or shapes.Stop()
    deed = deeds.stop(kill=wanted.kill, reason=wanted.reason)
    return await done(request, response, name, deed, idempotency_key, wanted.model_dump(mode="json"))


@routes.post("/studies/{name}/resume", operation_id="resume", responses=answer("resume"))
async def resume(
    request: Request,
    response: Response,
    name: StudyName,
    body: Annotated[shapes.Resume | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Go on after a stop, a pause or a spent budget, perhaps with more money. Workers are started elsewhere: `lynceus resume`."""
    wanted = body or shapes.Resume()
    deed = deeds.resume(wanted.add_budget)
    return await done(request, response, name, deed, idempotency_key, wanted.model_dump(mode="json"))


@routes.post("/studies/{name}/trials/{number}/stop", operation_id="stop_trial", responses=answer("stop_trial"))
async def stop_trial(
    request: Request,
    response: Response,
    name: StudyName,
    number: TrialNumber,
    body: Annotated[shapes.Empty | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """End one trial: its worker notices within seconds; a client is told at its next heartbeat."""
    return await done(request, response, name, deeds.stop_trial(number), idempotency_key, None)


@routes.post("/studies/{name}/queue", operation_id="enqueue", responses=answer("enqueue"))
async def enqueue(
    request: Request,
    response: Response,
    name: StudyName,
    body: shapes.Wanted,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Run this configuration next, before anything that the policy would choose."""
    return await done(
        request, response, name, deeds.enqueue(body.params), idempotency_key, body.model_dump(mode="json")
    )


@routes.post("/studies/{name}/trials", operation_id="add_trials", responses=answer("add_trials"))
async def add_trials(
    request: Request,
    response: Response,
    name: StudyName,
    body: shapes.Measurements,
    idempotency_key: IdempotencyKey = None,
) -> dict[str, Any]:
    """Past measurements as free knowledge: nothing is run, nothing is charged."""
    past = [(one.params, one.runtime, one.metrics) for one in body.trials]
    return await done(request, response, name, deeds.add_trials(past), idempotency_key, body.model_dump(mode="json"))
