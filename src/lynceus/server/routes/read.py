"""Routes that read studies. Each returns a document of `lynceus.analysis`, the same as `lynceus … -o json` prints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from lynceus.analysis.answer import answer
from lynceus.analysis.at_input import answer_at_input, target_input
from lynceus.analysis.contour import contour
from lynceus.analysis.documents.comparison import comparison_document
from lynceus.analysis.documents.insight import explanation_document, insight_document
from lynceus.analysis.documents.json import Document, to_json
from lynceus.analysis.documents.study import study_document
from lynceus.analysis.documents.trial import trial_document
from lynceus.analysis.study_context import StudyContext
from lynceus.analysis.trial_filter import select_trials
from lynceus.analysis.trial_rows import trial_rows, trials_csv
from lynceus.analysis.whatif import constraint_cases, deadline_case, price_case, unchanged, whatifs, with_deadline
from lynceus.errors import InputError
from lynceus.library.studies import budget_uses, studies_document, study_line
from lynceus.library.trial_output import trial_output
from lynceus.problem.units import parse_duration
from lynceus.server.context import Context, context_of, run_slow, snapshot
from lynceus.server.errors import unknown_trial
from lynceus.server.examples import example
from lynceus.server.schemas import Note, StoredText, StudyName, TrialNumber
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.notes import read_note
from lynceus.storage.sql.rows import StudyRecord
from lynceus.study.changed_limits import checked_constraints, new_limits

routes = APIRouter()

MAX_CASES = 50
"""Deadlines in one what-if request."""
MAX_DEADLINE_S = 1e10
_FirstStudy = Annotated[StoredText, Query(min_length=1, max_length=200, examples=["nightly-sessions"])]
_SecondStudy = Annotated[StoredText, Query(min_length=1, max_length=200, examples=["nightly-sessions-2"])]
_Axis = Annotated[StoredText | None, Query(max_length=200, description="a parameter", examples=["threads"])]
_Where = Annotated[
    str | None,
    Query(max_length=500, description="an expression over parameters: `threads > 2`", examples=["threads > 2"]),
]


@routes.get("/studies", operation_id="studies", responses=example("studies"))
def studies(request: Request) -> Document:
    """All studies, newest first: state, money, trials, best so far."""
    context = context_of(request)
    return studies_document(context.storage, lambda record: _line(context, record))


def _line(context: Context, record: StudyRecord) -> Document:
    """The overview of a study without the budgets that it shares, computed once per change of the study."""
    if record.damage is not None:
        return study_line(context.storage, record)
    key = (record.identity, "line")
    known = context.documents.get(key, record.sequence, lambda: study_line(context.storage, record))
    return known | {"worker_seen_s": record.seen_s}


@routes.get("/studies/{name}", operation_id="study", responses=example("study"))
def study(request: Request, name: StudyName) -> Document:
    """The state of a study, its parameters, and the job file it was created from."""
    one, context = snapshot(request, name), context_of(request)
    return _line(context, one.record) | {
        **budget_uses(one.record, BudgetStore(context.storage).of(one.record.payer)),
        "identity": one.record.identity,
        "sequence": one.record.sequence,
        "open": [order.number for order in one.study.pending],
        "parameters": {parameter.name: list(parameter.values) for parameter in one.study.problem.space.parameters},
        "job": _without_address(one.record.document.get("job")),
    }


def _without_address(job: object) -> object:
    """A job without the address of its storage: it may hold a password, and readers of the API have no use for it."""
    return {name: value for name, value in job.items() if name != "storage"} if isinstance(job, dict) else job


@routes.get("/studies/{name}/view", operation_id="study_view", responses=example("study_view"))
def study_view(
    request: Request,
    name: StudyName,
    since: Annotated[int, Query(ge=0, le=10_000_000, description="settled trials that the page already has")] = 0,
) -> Document:
    """A study as its page shows it; with `since`, only new trials."""
    return study_document(snapshot(request, name).context(), since)


@routes.get("/studies/{name}/trials", operation_id="trials", responses=example("trials"))
def trials(
    request: Request,
    name: StudyName,
    state: Annotated[Literal["RUNNING", "COMPLETE", "TIMEOUT", "FAIL"] | None, Query()] = None,
    where: _Where = None,
    feasible: Annotated[bool, Query(description="only trials that met every constraint")] = False,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    order: Annotated[Literal["number", "-number"], Query(description="-number: newest first")] = "number",
) -> Document:
    """Trials by filter, in pages."""
    study = snapshot(request, name).study
    found = select_trials(study, state=state, where=where, feasible=feasible)[:: -1 if order == "-number" else 1]
    page = found[offset : offset + limit]
    end = offset + len(page)
    rows = to_json(trial_rows(study.problem, page))
    return {"total": len(found), "trials": rows, "next_offset": end if end < len(found) else None}


@routes.get("/studies/{name}/trials/{number}", operation_id="trial", responses=example("trial"))
def trial(request: Request, name: StudyName, number: TrialNumber) -> Document:
    """One trial: plan, outcome, what the model learned, progress, output."""
    one = snapshot(request, name)
    records = context_of(request).storage.trials(name, number)
    if not records:
        raise unknown_trial(name, number)
    return trial_document(one.context(), records[0], trial_output(one, number))


@routes.get("/studies/{name}/insight", operation_id="insight", responses=example("insight"))
async def insight(request: Request, name: StudyName) -> Document:
    """What models say about a study, as its page shows it: the recommendation and the explanation."""
    return await _cached(request, name, "insight", insight_document)


@routes.get("/studies/{name}/best", operation_id="best", responses=example("best"))
async def best(
    request: Request,
    name: StudyName,
    deadline: Annotated[
        str | None, Query(max_length=30, description="answer for this deadline", examples=["30m"])
    ] = None,
    input: Annotated[
        str | None,
        Query(max_length=300, description="predict the answer for this input, run or not", examples=["240GB"]),
    ] = None,
) -> Document | None:
    """The recommended configuration with its command line, its cost and its saving; null if none meets the constraints."""
    if input is not None:
        return await _cached(
            request, name, f"best at {deadline} {input!r}", lambda context: _best_at(context, input, deadline)
        )
    if deadline is None:
        return await _cached(request, name, "best", lambda context: to_json(answer(context)))
    seconds = _deadline_s(deadline)
    return await _cached(
        request,
        name,
        f"best {seconds}",
        lambda context: to_json(answer(context, with_deadline(context.study.problem, seconds))),
    )


@routes.get("/studies/{name}/explain", operation_id="explain", responses=example("explain"))
async def explain(request: Request, name: StudyName) -> Document:
    """The next trial and why: expected improvement, cost, probability of being feasible; parameter importance; calibration."""
    return await _cached(request, name, "explain", explanation_document)


@routes.get("/studies/{name}/importance", operation_id="importance", responses=example("importance"))
async def importance(request: Request, name: StudyName) -> Document:
    """Parameter importance: the share of the predicted variation that each parameter explains by itself."""
    return {"importance": (await explain(request, name))["importance"]}


@routes.get("/studies/{name}/contour", operation_id="contour", responses=example("contour"))
async def contour_over(
    request: Request,
    name: StudyName,
    x: _Axis = None,
    y: _Axis = None,
) -> Document:
    """The best predicted objective for each pair of values of two parameters; by default the two most important ones."""
    return await _cached(request, name, f"contour {x!r} {y!r}", lambda context: to_json(contour(context, x, y)))


@routes.get("/studies/{name}/note", operation_id="note", response_model=Note, responses=example("note"))
def note(request: Request, name: StudyName) -> Document:
    """What users have written about a study."""
    context = context_of(request)
    context.studies.record(name)
    document: Document = to_json(read_note(context.storage, name))
    return document


@routes.get("/studies/{name}/what-if", operation_id="what_if", responses=example("what_if"))
async def what_if(
    request: Request,
    name: StudyName,
    deadline: Annotated[
        str | None, Query(max_length=300, description="durations, separated by commas", examples=["30m,45m"])
    ] = None,
    constraint: Annotated[
        list[Annotated[StoredText, Query(max_length=300)]] | None,
        Query(max_length=MAX_CASES, description="other limits, as in a job file", examples=[["bytes <= 4.3MB"]]),
    ] = None,
    price: Annotated[
        str | None,
        Query(
            max_length=300,
            description="dollars per hour as an expression; `price` is the current price",
            examples=["price * 2"],
        ),
    ] = None,
    input: Annotated[
        list[Annotated[StoredText, Query(max_length=300)]] | None,
        Query(max_length=MAX_CASES, description="other inputs, run or not", examples=[["240GB"]]),
    ] = None,
) -> Document:
    """The answer for other limits or prices, from runs that are already paid for."""
    texts = [part.strip() for part in (deadline or "").split(",") if part.strip()]
    deadlines = [_deadline_s(text) for text in texts[:MAX_CASES]]

    def compute(context: StudyContext) -> Document:
        problem = context.study.problem
        cases = [unchanged(problem), *(deadline_case(problem, seconds) for seconds in deadlines)]
        limits = checked_constraints(constraint or [], "constraint", context.study.problem.units)
        for one in limits:
            new_limits(context.study, [one])
        cases += constraint_cases(problem, limits)
        cases += [] if price is None else [price_case(problem, price)]
        inputs = [target_input(context.study, text) for text in input or ()]
        document: Document = to_json(whatifs(context, cases, inputs))
        return document

    return await _cached(request, name, f"what-if {deadlines} {constraint} {price} {input}", compute)


@routes.get(
    "/studies/{name}/export",
    operation_id="export",
    response_class=Response,
    responses={
        200: {
            "description": "all trials",
            "content": {
                "text/csv": {"schema": {"type": "string"}, "example": "number,state,params_threads\n0,COMPLETE,4\n"},
                "application/json": {"schema": {"type": "array", "items": {"type": "object"}}},
            },
        }
    },
)
def export(request: Request, name: StudyName, format: Annotated[Literal["csv", "json"], Query()] = "csv") -> Response:
    """All trials as a file."""
    study = snapshot(request, name).study
    if format == "json":
        rows = to_json(trial_rows(study.problem, select_trials(study)))
        data = json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace")
    else:
        data = trials_csv(study)
    kind = "application/json" if format == "json" else "text/csv; charset=utf-8"
    file = f"attachment; filename*=UTF-8''{quote(f'{name}.{format}', safe='')}"
    return Response(data, media_type=kind, headers={"Content-Disposition": file})


@routes.get("/compare", operation_id="compare", responses=example("compare"))
async def compare(request: Request, a: _FirstStudy, b: _SecondStudy) -> Document:
    """Two studies side by side."""

    def compute() -> Document:
        left, right = snapshot(request, a), snapshot(request, b)
        key = ("compare", left.record.identity, right.record.identity)
        version = left.record.sequence + right.record.sequence  # both only grow, so their sum orders the versions
        return context_of(request).documents.get(
            key, version, lambda: comparison_document(left.context(), right.context())
        )

    return await run_slow(request, compute)


async def _cached(request: Request, name: str, kind: str, make: Callable[[StudyContext], Document]) -> Document:
    """A document that models take a while to compute, computed once per change of the study."""

    def compute() -> Document:
        one = snapshot(request, name)
        return context_of(request).cached(one, kind, lambda: make(one.context()))

    return await run_slow(request, compute)


def _best_at(context: StudyContext, text: str, deadline: str | None) -> Document:
    """The answer for an input, perhaps under another deadline."""
    problem = context.study.problem
    if deadline is not None:
        problem = with_deadline(problem, _deadline_s(deadline))
    document: Document = to_json(answer_at_input(context, target_input(context.study, text), problem))
    return document


def _deadline_s(text: str) -> float:
    seconds = parse_duration(text, "deadline")
    if not 0 < seconds <= MAX_DEADLINE_S:
        raise InputError(f"deadline is {seconds:g} s; give a duration above 0, such as 45m.")
    return seconds
