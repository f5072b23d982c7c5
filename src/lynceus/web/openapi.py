"""The OpenAPI document: what FastAPI finds out by itself, the refusals that every operation shares, and how to bring a token."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from lynceus.web.faults import PROBLEM
from lynceus.web.shapes import Problem

DESCRIPTION = """\
Ask for configurations to run, tell how they went, and look at studies. Times are seconds and money is US dollars, unless a text says
otherwise (`45m`, `5 USD`). Numbers that are not known are `null`.

Reads need the read token where one is configured, changes need the write token: `Authorization: Bearer …`. Every change takes an
`Idempotency-Key`: a request that is repeated with its key, after a lost answer or to another server of the same storage, is done once.
Refusals are `application/problem+json` with one sentence in `detail`."""

_REFUSALS = {
    400: "the request cannot be read",
    401: "a token is needed, or it is wrong",
    403: "the token does not allow it",
    404: "there is no such study or trial",
    405: "this method is not possible here",
    409: "the study or trial is in another state",
    413: "the body is too large",
    421: "the server does not answer under this name",
    422: "something in the request is wrong; `detail` names it",
    429: "too many wrong tokens; wait as `Retry-After` says",
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
    for path in whole["paths"].values():
        for operation in path.values():
            for status, meaning in _REFUSALS.items():
                operation["responses"][str(status)] = {
                    "description": meaning,
                    "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
    return whole
