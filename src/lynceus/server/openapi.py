"""The OpenAPI document: what FastAPI generates, with the errors that all operations share and the token scheme."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lynceus.server.errors import PROBLEM
from lynceus.server.route_roles import needed_role
from lynceus.server.schemas import Problem

DESCRIPTION = """\
Ask for configurations to run, report their results, and read studies. Times are in seconds and money is in US dollars, unless a text
gives a unit (`45m`, `5 USD`). Unknown numbers are `null`.

Every operation needs a role (`x-role`): `viewer` reads, `runner` creates studies, orders runs and records results, `admin` does everything.
A named token has one of them, the read token is a viewer, the write token an admin: `Authorization: Bearer …`. Where reading needs no
token, requests without one are viewers. Every change accepts an
`Idempotency-Key`: a request that is repeated with the same key, after a lost response or to another server of the same storage, takes
effect once. Errors are `application/problem+json` with one sentence in `detail`."""

_ERRORS = {
    400: "the request is malformed",
    401: "the token is missing, wrong, revoked or has expired",
    403: "the token has not the role that is needed",
    404: "there is no such study, trial, job, budget or token",
    405: "the method is not allowed here",
    409: "the study or trial is in another state",
    413: "the body is too large",
    421: "the server does not answer to this host name",
    422: "the request is invalid; `detail` says why",
    429: "too many wrong tokens; wait for the seconds in `Retry-After`",
    503: "the storage cannot be reached; try again",
}


def document(app: FastAPI, version: str) -> dict[str, Any]:
    """The whole document, made once."""
    whole = get_openapi(title="Lynceus", version=version, description=DESCRIPTION, routes=app.routes)
    parts = whole.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        parts.pop(unused, None)
    parts["Problem"] = Problem.model_json_schema()
    whole["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    whole["security"] = [{"token": []}]
    for address, path in whole["paths"].items():
        for method, operation in path.items():
            operation["x-role"] = needed_role(method.upper(), address)
            for status, meaning in _ERRORS.items():
                operation["responses"][str(status)] = {
                    "description": meaning,
                    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
    return whole
