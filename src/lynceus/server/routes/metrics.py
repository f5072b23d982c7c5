"""`/metrics`: what Prometheus reads."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from lynceus.analysis.prometheus import CONTENT_TYPE, budget_exposition, exposition
from lynceus.library.recurring.job_gauges import job_exposition
from lynceus.server.context import context_of
from lynceus.storage.sql.budgets import BudgetStore

routes = APIRouter()


@routes.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Money, trials, deadline misses and decision times of every study, the runs of every recurring job, and shared budgets, in
    Prometheus's text format.
    """
    context = context_of(request)
    text = exposition(context.metrics.read()) + job_exposition(context.job_metrics.read())
    text += budget_exposition(BudgetStore(context.storage).all())
    return Response(text, media_type=CONTENT_TYPE)
