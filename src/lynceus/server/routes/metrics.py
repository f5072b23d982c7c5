"""`/metrics`: what Prometheus reads."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from lynceus.analysis.prometheus import CONTENT_TYPE, exposition
from lynceus.library.recurring.job_gauges import job_exposition
from lynceus.server.context import context_of

routes = APIRouter()


@routes.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Money, trials, deadline misses and decision times of every study, and the runs of every recurring job, in Prometheus's text format.

    Needs the read token.
    """
    context = context_of(request)
    text = exposition(context.metrics.read()) + job_exposition(context.job_metrics.read())
    return Response(text, media_type=CONTENT_TYPE)
