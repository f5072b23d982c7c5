"""Errors as HTTP responses: a status and one sentence (`application/problem+json`, RFC 9457). Never a traceback.

| status | error |
|---|---|
| 401, 403, 429 | no token, a wrong one, or one that does not allow it (`guard.py`) |
| 404 | unknown study, unknown trial, unknown job, unknown budget, unknown token, unknown path |
| 409 | the trial has ended, the name is taken, the job file no longer describes the study, the study is damaged,
|     | a run id was recorded with other values |
| 413 | the body is too large (`guard.py`) |
| 421 | the Host header names another server (`guard.py`) |
| 422 | any other `InputError`, or a request that does not match its schema |
| 501 | an optional package is missing |
| 503 | the storage cannot be reached, or there are too many listeners |
"""

from __future__ import annotations

import http
import logging
import math
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from lynceus.analysis.documents.json import to_json
from lynceus.errors import InfrastructureError, InputError, LynceusError, MissingExtraError, page_address
from lynceus.storage.access_token import Role
from lynceus.storage.serialization import DamagedRecordError
from lynceus.storage.sql.budgets import UnknownBudgetError
from lynceus.storage.sql.job_writer import OtherRunError
from lynceus.storage.sql.jobs import UnknownJobError
from lynceus.storage.sql.tokens import TokenExistsError, UnknownTokenError
from lynceus.trial.text import clean_line, clean_text

PROBLEM = "application/problem+json"
_log = logging.getLogger("lynceus.server")


class HttpError(LynceusError):
    """An error with an HTTP status of its own."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = dict(headers or {})


def unknown_study(name: str) -> HttpError:
    """The storage has no study of this name."""
    return HttpError(404, f"There is no study {name[:200]!r} here.")


def unknown_trial(study: str, number: int) -> HttpError:
    """The study has no trial with this number."""
    return HttpError(404, f"Study {study!r} has no trial {number}.")


def error_response(
    status: int, sentence: str, headers: Mapping[str, str] | None = None, see: str | None = None
) -> JSONResponse:
    """A status and one sentence, and where a page of docs/ says more, its address as `see`."""
    title = http.HTTPStatus(status).phrase
    # A sentence may quote the request, which may hold any character.
    document = {"title": title, "status": status, "detail": clean_text(sentence)}
    if see is not None:
        document["see"] = page_address(see)
    return JSONResponse(document, status, dict(headers or {}), media_type=PROBLEM)


def status_of(error: LynceusError) -> tuple[int, dict[str, str]]:
    """The status and the headers for an error of Lynceus."""
    if isinstance(error, HttpError):
        return error.status, error.headers
    if isinstance(error, DamagedRecordError | OtherRunError | TokenExistsError):
        return 409, {}
    if isinstance(error, UnknownJobError | UnknownBudgetError | UnknownTokenError):
        return 404, {}
    if isinstance(error, InfrastructureError):
        return 503, {"Retry-After": "2"}
    return (501 if isinstance(error, MissingExtraError) else 422), {}


def sentence_for(error: LynceusError, role: Role | None) -> str:
    """The sentence of an error, as a visitor may read it: messages about the storage name its machine and its user."""
    if isinstance(error, InfrastructureError) and role is None:
        return "The storage cannot be reached; try again later."
    return str(error)


def install(app: FastAPI, not_found_page: Callable[[], Response]) -> None:
    """Turn every error into a response; browsers that open an unknown address get a page."""

    @app.exception_handler(LynceusError)
    async def lynceus_error(request: Request, error: LynceusError) -> JSONResponse:
        status, headers = status_of(error)
        if not isinstance(error, InputError | HttpError | DamagedRecordError):
            _log.warning("%s: %s", _place(request), error)
        return error_response(status, sentence_for(error, request.state.visitor.role), headers, error.see)

    @app.exception_handler(ClientDisconnect)
    async def client_gone(request: Request, error: ClientDisconnect) -> JSONResponse:
        return error_response(400, "The client left before its request was complete.")  # nobody reads it

    @app.exception_handler(RequestValidationError)
    async def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
        return error_response(422, _first_mistake(error))

    @app.exception_handler(HTTPException)
    async def framework_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and _wants_page(request):
            return not_found_page()
        sentences = {
            404: f"There is nothing at {request.url.path[:200]}.",
            405: f"The method {request.method} is not allowed here.",
        }
        sentence = sentences.get(error.status_code, str(error.detail))
        return error_response(error.status_code, sentence, error.headers)

    @app.exception_handler(Exception)
    async def unexpected_error(request: Request, error: Exception) -> JSONResponse:
        _log.error("%s failed", _place(request), exc_info=error)
        return error_response(500, "The server had an unexpected error; its log has the details.")


def _place(request: Request) -> str:
    """Method and path of a request, in one line whatever the client sent."""
    return clean_line(f"{request.method} {request.url.path}", longest=200)


def _wants_page(request: Request) -> bool:
    """Whether a browser asks for a page, rather than a script, a picture or the API."""
    page = not request.url.path.startswith(("/api/", "/static/"))
    return page and request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


def _first_mistake(error: RequestValidationError) -> str:
    """The first mistake in a request: where it is and what is wrong."""
    first: Mapping[str, Any] = error.errors()[0]
    place = ".".join(str(step) for step in first.get("loc", ()))
    message = str(first.get("msg", "it cannot be read")).removeprefix("Value error, ")
    got = first.get("input")
    if "token" in first.get("loc", ()):
        return f"{place}: {message}."  # never quoted: it may be a right one with something more
    if isinstance(got, str | int | float | bool) and not (isinstance(got, float) and not math.isfinite(got)):
        return f"{place}: {message}; the request has {str(to_json(got))[:60]!r}."
    return f"{place}: {message}."
