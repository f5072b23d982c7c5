"""`/metrics`: what Prometheus reads."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from lynceus.analysis.prometheus import CONTENT_TYPE, exposition
from lynceus.server.context import context_of

routes = APIRouter()


@routes.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """Money, trials, deadline misses and decision times of every study, in Prometheus's text format. Needs the read token."""
    return Response(exposition(context_of(request).metrics.read()), media_type=CONTENT_TYPE)
