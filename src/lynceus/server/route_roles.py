"""The role that every route needs, in one table. What is not in it is refused to all but admins."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from re import Pattern

from starlette.routing import compile_path

from lynceus.storage.access_token import Role

API = "/api/v1"
METRICS = "/metrics"
READ_METHODS = ("GET", "HEAD", "OPTIONS")

ROUTES: Mapping[Role | None, tuple[str, ...]] = {
    None: (  # everybody: pages without data, signing in, the health check, the description of the API
        "GET /",
        "GET /studies/{name}",
        "GET /studies/{name}/trials/{number}",
        "GET /jobs",
        "GET /jobs/{name}",
        "GET /compare",
        "GET /login",
        "GET /static/{path:path}",
        "GET /api/v1/openapi.json",
        "GET /api/v1/health",
        "GET /api/v1/session",
        "POST /api/v1/session",
        "DELETE /api/v1/session",
    ),
    Role.VIEWER: (
        "GET /metrics",
        "GET /api/v1/studies",
        "GET /api/v1/studies/{name}",
        "GET /api/v1/studies/{name}/view",
        "GET /api/v1/studies/{name}/trials",
        "GET /api/v1/studies/{name}/trials/{number}",
        "GET /api/v1/studies/{name}/insight",
        "GET /api/v1/studies/{name}/best",
        "GET /api/v1/studies/{name}/explain",
        "GET /api/v1/studies/{name}/importance",
        "GET /api/v1/studies/{name}/contour",
        "GET /api/v1/studies/{name}/note",
        "GET /api/v1/studies/{name}/what-if",
        "GET /api/v1/studies/{name}/export",
        "GET /api/v1/studies/{name}/events",
        "GET /api/v1/compare",
        "GET /api/v1/events",
        "GET /api/v1/jobs",
        "GET /api/v1/jobs/{name}",
        "GET /api/v1/jobs/{name}/config",
        "GET /api/v1/budgets",
    ),
    Role.RUNNER: (
        "POST /api/v1/studies",
        "POST /api/v1/studies/{name}/ask",
        "POST /api/v1/studies/{name}/trials/{number}/tell",
        "POST /api/v1/studies/{name}/trials/{number}/heartbeat",
        "POST /api/v1/studies/{name}/trials/{number}/stop",
        "POST /api/v1/studies/{name}/trials",
        "POST /api/v1/studies/{name}/queue",
        "POST /api/v1/studies/{name}/stop",
        "POST /api/v1/studies/{name}/resume",
        "POST /api/v1/studies/{name}/note",
        "POST /api/v1/studies/{name}/rename",
        "POST /api/v1/jobs/{name}/start",
        "POST /api/v1/jobs/{name}/runs",
        "POST /api/v1/jobs/{name}/adopt",
        "POST /api/v1/jobs/{name}/rollback",
    ),
    Role.ADMIN: (
        "DELETE /api/v1/studies/{name}",
        "POST /api/v1/jobs/{name}/settings",  # among them what a job may spend
        "PUT /api/v1/budgets/{account:path}",
        "DELETE /api/v1/budgets/{account:path}",
        "GET /api/v1/tokens",
        "POST /api/v1/tokens",
        "DELETE /api/v1/tokens/{name}",
    ),
}
"""Routes by the role that they need; None: no token is needed."""


def needed_role(method: str, path: str) -> Role | None:
    """The role that a request needs; None: no token is needed.

    >>> needed_role("GET", "/api/v1/studies/nightly"), needed_role("DELETE", "/api/v1/studies/nightly")
    (<Role.VIEWER: 'viewer'>, <Role.ADMIN: 'admin'>)
    """
    reads = method in READ_METHODS
    for pattern, role in _patterns("GET" if reads else method):
        if pattern.fullmatch(path):
            return role
    if not reads:
        return Role.ADMIN
    return Role.VIEWER if path.startswith("/api") else None  # there is nothing, as the answer will say


@functools.cache
def _patterns(method: str) -> list[tuple[Pattern[str], Role | None]]:
    found = []
    for role, routes in ROUTES.items():
        for route in routes:
            one, path = route.split(" ")
            if one == method:
                found.append((compile_path(path)[0], role))
    return found
