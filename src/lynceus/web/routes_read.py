"""Looking: studies, trials, the best one, why, what if, files."""

from __future__ import annotations

import csv
import io
import json
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response

from lynceus.cli.opened import Opened
from lynceus.errors import InputError
from lynceus.insight import calibration, deadline_limits, finished_points, importance, pareto_front, repriced
from lynceus.insight import whatif as ask_whatif
from lynceus.insight.records import flat_records, trial_records
from lynceus.ledger.sql import StudyRecord
from lynceus.plain import Document, finite
from lynceus.problem import Problem
from lynceus.units import format_duration, parse_duration
from lynceus.view import compare_view, insight_view, study_line, subject_of, trial_output, trial_view
from lynceus.view.insight import answer as recommendation
from lynceus.web.examples import answer
from lynceus.web.faults import not_found
from lynceus.web.house import House, house_of, look, slowly
from lynceus.web.listing import Filter, listed_trials
from lynceus.web.shapes import StudyName, TrialNumber

routes = APIRouter()

MOST_CASES = 50
"""Deadlines and prices in one question."""
_Where = Annotated[
    str | None,
    Query(max_length=500, description="an expression over parameters: `threads > 2`", examples=["threads > 2"]),
]


def lines(house: House) -> list[Document]:
    """Every study in a line; what has not changed is not computed again."""

    def line(record: StudyRecord) -> Document:
        known = house.latest.get((record.identity, "line"), record.sequence, lambda: study_line(house.storage, record))
        return known | {"worker_seen_s": record.seen_s}

    return [line(record) for record in house.storage.studies()]


@routes.get("/studies", operation_id="studies", responses=answer("studies"))
def studies(request: Request) -> Document:
    """Every study, oldest first: state, money, trials, the best so far."""
    return {"studies": lines(house_of(request))}


@routes.get("/studies/{name}", operation_id="study", responses=answer("study"))
def study(request: Request, name: StudyName) -> Document:
    """How a study stands, and the job file it was made from."""
    one = look(request, name)
    known = house_of(request).remembered(one, "study", lambda: _study(one))
    return known | {"worker_seen_s": one.record.seen_s}


def _study(one: Opened) -> Document:
    subject, problem = subject_of(one), one.study.problem
    state, reason = subject.standing()
    facts: Document = finite(
        {
            "name": one.name,
            "identity": one.record.identity,
            "sequence": one.record.sequence,
            "state": state,
            "reason": reason,
            "objective": str(problem.goal),
            "limits": [str(limit) for limit in problem.limits],
            "policy": one.study.policy.name,
            "seed": one.study.seed,
            "spent_usd": one.study.spent_usd,
            "reserved_usd": one.study.reserved_usd,
            "budget_usd": one.study.budget_usd,
            "configurations": len(problem.space),
            "trials": len(one.study.history),
            "open": [order.number for order in one.study.pending],
            "parameters": {parameter.name: list(parameter.values) for parameter in problem.space.parameters},
            **_best(one),
            "created_s": one.record.created_s,
            "job": one.record.document.get("job"),
        }
    )
    return facts


def _best(one: Opened) -> Document:
    try:
        found = one.study.best_trial
    except InputError:
        return {"best_value": None, "best_params": None, "best_trial": None}
    return {"best_value": one.study.best_value, "best_params": dict(found.params), "best_trial": found.number}


@routes.get("/studies/{name}/trials", operation_id="trials", responses=answer("trials"))
def trials(
    request: Request,
    name: StudyName,
    state: Annotated[Literal["RUNNING", "COMPLETE", "TIMEOUT", "FAIL"] | None, Query()] = None,
    where: _Where = None,
    feasible: Annotated[bool, Query(description="only runs that kept every limit")] = False,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    order: Annotated[Literal["number", "-number"], Query(description="-number: newest first")] = "number",
) -> Document:
    """Trials by page and filter."""
    wanted = Filter(state, where, feasible, offset, limit, order == "-number")
    return listed_trials(look(request, name).study, wanted)


@routes.get("/studies/{name}/trials/{number}", operation_id="trial", responses=answer("trial"))
def trial(request: Request, name: StudyName, number: TrialNumber) -> Document:
    """One trial: plan, outcome, what the model was told, progress, output."""
    return trial_document(request, name, number)


def trial_document(request: Request, name: str, number: int) -> Document:
    """One trial with everything that is known of it."""
    one = look(request, name)
    records = house_of(request).storage.trials(name, number)
    if not records:
        raise not_found(f"Study {name!r} has no trial {number}.")
    return trial_view(subject_of(one), records[0], trial_output(one, number))


@routes.get("/studies/{name}/best", operation_id="best", responses=answer("best"))
async def best(
    request: Request,
    name: StudyName,
    deadline: Annotated[str | None, Query(max_length=30, examples=["30m"])] = None,
) -> Document:
    """The best run that kept every limit, and the recommendation with its command line, its cost and how sure it is."""

    def compute() -> Document:
        one = look(request, name)
        if deadline is not None:
            return _best_under(one, parse_duration(deadline, "deadline"))
        return house_of(request).remembered(one, "best", lambda: _advice(one))

    return await slowly(request, compute)


def _advice(one: Opened) -> Document:
    found = _best(one)
    facts: Document = finite(
        {
            "value": found["best_value"],
            "params": found["best_params"],
            "trial": found["best_trial"],
            "recommendation": recommendation(subject_of(one)),
        }
    )
    return facts


def _best_under(one: Opened, seconds: float) -> Document:
    problem = deadline_limits(one.study.problem, _positive(seconds, "deadline"))
    found = ask_whatif(problem, one.study.policy, one.known, label="", seed=one.study.seed).measured
    facts: Document = finite(
        {
            "value": None if found is None else found.value,
            "params": None if found is None else dict(found.params),
            "trial": None,
            "recommendation": found,
        }
    )
    return facts


def _positive(seconds: float, field: str) -> float:
    if not 0 < seconds <= 1e10:
        raise InputError(f"{field} is {seconds:g} s, but a time above 0 is needed, such as 45m.")
    return seconds


@routes.get("/studies/{name}/explain", operation_id="explain", responses=answer("explain"))
async def explain(request: Request, name: StudyName) -> Document:
    """Why the next suggestion: expected gain, cost, chance to be feasible; which parameters matter; predicted against seen."""

    def compute() -> Document:
        one = look(request, name)
        return house_of(request).remembered(one, "explain", lambda: _explained(one))

    return await slowly(request, compute)


def _explained(one: Opened) -> Document:
    insight = insight_view(subject_of(one))
    seen = calibration(one.study.problem, one.study.history)
    facts: Document = finite(
        {
            "next": insight["next"],
            "candidates": insight["candidates"],
            "importance": insight["importance"],
            "calibration": {
                "coverage": seen.coverage,
                "typical_factor": seen.typical_factor,
                "predictions": seen.predictions,
            },
            "ranks": insight["ranks"],
        }
    )
    return facts


@routes.get("/studies/{name}/importance", operation_id="importance", responses=answer("importance"))
async def important(request: Request, name: StudyName) -> Document:
    """Which parameters matter: the share of the believed variation that each explains by itself."""

    def compute() -> Document:
        one = look(request, name)
        study = one.study

        def found() -> Document:
            return {"importance": finite(importance(study.problem, study.policy, one.known, seed=study.seed))}

        return house_of(request).remembered(one, "importance", found)

    return await slowly(request, compute)


@routes.get("/studies/{name}/what-if", operation_id="what_if", responses=answer("what_if"))
async def what_if(
    request: Request,
    name: StudyName,
    deadline: Annotated[
        str | None, Query(max_length=300, description="times with commas between them", examples=["30m,45m"])
    ] = None,
    price: Annotated[
        str | None,
        Query(
            max_length=300, description="dollars per hour as an expression; `price` is today's", examples=["price * 2"]
        ),
    ] = None,
) -> Document:
    """The answer under other deadlines or prices, from runs that are already paid for."""

    def compute() -> Document:
        one = look(request, name)
        return house_of(request).remembered(one, "what-if", lambda: _answers(one, deadline, price), deadline, price)

    return await slowly(request, compute)


def _answers(one: Opened, deadline: str | None, price: str | None) -> Document:
    study, known = one.study, one.known
    cases: list[tuple[str, Problem]] = [("as it is", study.problem)]
    texts = [part.strip() for part in (deadline or "").split(",") if part.strip()]
    for text in texts[:MOST_CASES]:
        seconds = _positive(parse_duration(text, "deadline"), "deadline")
        cases.append((f"runtime <= {format_duration(seconds)}", deadline_limits(study.problem, seconds)))
    if price is not None:
        cases.append((f"price {price}", repriced(study.problem, price)))
    base = study.problem
    front = pareto_front(finished_points(base.with_limits(base.metric_limits), known))
    facts: Document = finite(
        {
            "answers": [
                ask_whatif(problem, study.policy, known, label=label, seed=study.seed) for label, problem in cases
            ],
            "front": [point for point in front if point.keeps_limits],
        }
    )
    return facts


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
    study = look(request, name).study
    if format == "json":
        rows = finite(trial_records(study.problem, study.history, study.pending))
        data = json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace")
    else:
        data = _csv(flat_records(study.problem, study.history, study.pending))
    kind = "application/json" if format == "json" else "text/csv; charset=utf-8"
    file = f"attachment; filename*=UTF-8''{quote(f'{name}.{format}', safe='')}"
    return Response(data, media_type=kind, headers={"Content-Disposition": file})


def _csv(rows: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["number"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "replace")


@routes.get("/compare", operation_id="compare", responses=answer("compare"))
async def compare(
    request: Request,
    a: Annotated[str, Query(min_length=1, max_length=200, examples=["nightly-sessions"])],
    b: Annotated[str, Query(min_length=1, max_length=200, examples=["nightly-sessions-2"])],
) -> Document:
    """Two studies side by side."""
    return await slowly(request, lambda: compared(request, a, b))


def compared(request: Request, a: str, b: str) -> Document:
    """Two studies side by side, computed once for the state in which they are."""
    left, right = look(request, a), look(request, b)
    key = ("compare", left.record.identity, right.record.identity)
    version = left.record.sequence + right.record.sequence  # both only grow, so that their sum tells which is newer
    return house_of(request).latest.get(key, version, lambda: compare_view(subject_of(left), subject_of(right)))
