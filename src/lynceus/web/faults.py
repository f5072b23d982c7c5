"""What goes wrong, as an answer: a status and one sentence (`application/problem+json`, RFC 9457). Never a traceback."""

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

from lynceus.errors import InfrastructureError, InputError, LynceusError, MissingExtraError
from lynceus.plain import finite

PROBLEM = "application/problem+json"
_log = logging.getLogger("lynceus.web")


class FaultError(LynceusError):
    """An answer that is no success."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = dict(headers or {})


def not_found(what: str) -> FaultError:
    """The thing is not there."""
    return FaultError(404, what)


def fault_answer(status: int, sentence: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A status and one sentence."""
    title = http.HTTPStatus(status).phrase
    # A sentence may quote what came, and not everything that comes is text that can be written: half a surrogate pair is not.
    detail = sentence.encode("utf-8", "replace").decode()
    return JSONResponse(
        {"title": title, "status": status, "detail": detail}, status, dict(headers or {}), media_type=PROBLEM
    )


def status_of(error: LynceusError) -> tuple[int, dict[str, str]]:
    """The status of an error of ours."""
    if isinstance(error, FaultError):
        return error.status, error.headers
    if isinstance(error, InfrastructureError):
        return 503, {"Retry-After": "2"}
    return (501 if isinstance(error, MissingExtraError) else 422), {}


def install(app: FastAPI, lost: Callable[[], Response]) -> None:
    """Let every error end as an answer; people in a browser who took a wrong turn get the page `lost`."""

    @app.exception_handler(LynceusError)
    async def ours(request: Request, error: LynceusError) -> JSONResponse:
        status, headers = status_of(error)
        if not isinstance(error, InputError | FaultError):
            _log.warning("%s %s: %s", request.method, request.url.path, error)
        return fault_answer(status, str(error), headers)

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> JSONResponse:
        return fault_answer(422, _first_mistake(error))

    @app.exception_handler(HTTPException)
    async def framework(request: Request, error: HTTPException) -> Response:
        if error.status_code == 404 and _by_a_person(request):
            return lost()
        sentences = {
            404: f"There is nothing at {request.url.path[:200]}.",
            405: f"{request.method} is not possible here.",
        }
        sentence = sentences.get(error.status_code, str(error.detail))
        return fault_answer(error.status_code, sentence, error.headers)

    @app.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
        return fault_answer(500, "Something went wrong that should not; the server's log tells what.")


def _by_a_person(request: Request) -> bool:
    """Whether a browser wants a page; scripts, pictures and the API are asked for by programs."""
    page = not request.url.path.startswith(("/api/", "/static/"))
    return page and request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")


def _first_mistake(error: RequestValidationError) -> str:
    """The first mistake in a request: where it stands and what is wrong."""
    first: Mapping[str, Any] = error.errors()[0]
    place = ".".join(str(step) for step in first.get("loc", ()))
    message = str(first.get("msg", "it cannot be read")).removeprefix("Value error, ")
    got = first.get("input")
    if isinstance(got, str | int | float | bool) and not (isinstance(got, float) and not math.isfinite(got)):
        return f"{place}: {message}; {str(finite(got))[:60]!r} came."
    return f"{place}: {message}."
