"""What every request passes before anything else sees it: the name it was sent to, its size, its token."""

from __future__ import annotations

import hmac
import math
import time
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lynceus.web.access import COOKIE, Access, Role, host_name
from lynceus.web.attempts import Attempts
from lynceus.web.faults import FaultError, fault_answer

MOST_BYTES = 2_000_000
"""Largest body of a request; a job file is far smaller."""
_MOST_SKIPPED = 8
"""So many times the largest body are read and thrown away before the connection is closed."""
API = "/api/v1"
_ALWAYS = frozenset({f"{API}/session", f"{API}/health", f"{API}/openapi.json"})
"""What needs no token: to sign in, to be told that the server lives, to read what it offers."""
_SAFE = ("GET", "HEAD", "OPTIONS")

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
"""Every answer has these."""


@dataclass(frozen=True)
class Visitor:
    """Who sent a request, as far as we know."""

    role: Role
    address: str
    cookie: str | None = None
    """The session by which the role was found; nothing: by a token, or without one."""


@dataclass
class Guard:
    """ASGI middleware."""

    app: ASGIApp
    access: Access
    attempts: Attempts = field(default_factory=Attempts)
    most_bytes: int = MOST_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the visitor noted in the request's state."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        outgoing = _with_headers(send, scope["path"])
        try:
            visitor = self._admit(scope)
        except FaultError as refused:
            await fault_answer(refused.status, str(refused), refused.headers)(scope, receive, outgoing)
            return
        scope.setdefault("state", {})["visitor"] = visitor
        await self._within_size(scope, receive, outgoing)

    def _admit(self, scope: Scope) -> Visitor:
        headers = Headers(scope=scope)
        name = host_name(headers.get("host", ""))
        if name not in self.access.hosts and "*" not in self.access.hosts:
            raise FaultError(
                421, f"This server does not answer as {name[:100]!r}; start it with --allowed-host for that name."
            )
        visitor = self._visitor(scope, headers)
        path, safe = scope["path"], scope["method"] in _SAFE
        if not safe:
            self._check_origin(scope, headers, visitor)
        if path in _ALWAYS or not path.startswith("/api"):
            return visitor
        if visitor.role is Role.NOBODY:
            raise FaultError(
                401, "A token is needed: send it as 'Authorization: Bearer …'.", {"WWW-Authenticate": "Bearer"}
            )
        if not safe and visitor.role is not Role.WRITE:
            raise FaultError(403, self._why_read_only())
        return visitor

    def _why_read_only(self) -> str:
        if self.access.write_token is None:
            return "This server only reads: start it with a write token (LYNCEUS_WRITE_TOKEN) to allow changes."
        return "This needs the write token: send it as 'Authorization: Bearer …', or sign in with it."

    def _visitor(self, scope: Scope, headers: Headers) -> Visitor:
        """Whose request it is: by token, by session, or anybody's."""
        now = time.time()
        address = scope["client"][0] if scope.get("client") else "unknown"
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return Visitor(self.check_token(token.strip(), address, now), address)
        cookie = _cookie(headers)
        role = None if cookie is None else self.access.session_role(cookie, now)
        if role is None:
            return Visitor(self.access.without_token, address)
        return Visitor(role, address, cookie)

    def check_token(self, token: str, address: str, now: float) -> Role:
        """The role of a token; failures are counted, and after some of them nothing is even looked at for a while."""
        if (wait_s := self.attempts.wait_s(address, now)) > 0:
            seconds = math.ceil(wait_s)
            raise FaultError(
                429, f"Too many wrong tokens came from your address; wait {seconds} s.", {"Retry-After": str(seconds)}
            )
        role = self.access.role_of(token)
        if role is None:
            self.attempts.failed(address, now)
            raise FaultError(401, "The token is wrong.", {"WWW-Authenticate": "Bearer"})
        if role is Role.WRITE:  # a reader who also guesses the write token gains nothing by reading in between
            self.attempts.succeeded(address)
        return role

    def _check_origin(self, scope: Scope, headers: Headers, visitor: Visitor) -> None:
        """A change by a browser comes from a page of ours, or not at all."""
        origin = headers.get("origin")
        if origin is not None and not _same_origin(origin, headers.get("host", "")):
            raise FaultError(
                403, f"The request comes from a page of {origin[:100]!r}, which may not change anything here."
            )
        if visitor.cookie is None or (scope["path"] == f"{API}/session" and scope["method"] == "POST"):
            return
        expected = self.access.csrf_token(visitor.cookie)
        given = headers.get("x-csrf-token", "")
        if origin is None or not hmac.compare_digest(given.encode(), expected.encode()):
            raise FaultError(403, "The header X-CSRF-Token is missing or wrong; reload the page and try again.")

    async def _within_size(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read no more of a body than is allowed."""
        announced = Headers(scope=scope).get("content-length", "0")
        sentence = f"The body is larger than {self.most_bytes:,} bytes."
        if not announced.isdigit():
            await fault_answer(400, "Content-Length is not a number.")(scope, receive, send)
            return
        if int(announced) > self.most_bytes:
            await self._skip(receive)
            await fault_answer(413, sentence, {"Connection": "close"})(scope, receive, send)
            return
        seen, more = 0, True

        async def counted() -> Message:
            nonlocal seen, more
            message = await receive()
            more = message.get("more_body", False)
            seen += len(message.get("body", b""))
            if seen > self.most_bytes:
                raise FaultError(413, sentence)
            return message

        async def unless_too_large(message: Message) -> None:
            # Whatever the application made of a body that it was not given whole, nobody is told.
            if seen <= self.most_bytes:
                await send(message)

        try:
            await self.app(scope, counted, unless_too_large)
        except FaultError:
            if seen <= self.most_bytes:
                raise
        if seen > self.most_bytes:
            if more:
                await self._skip(receive)
            await fault_answer(413, sentence, {"Connection": "close"})(scope, receive, send)

    async def _skip(self, receive: Receive) -> None:
        """Let a body that is too large pass by, as far as is reasonable: who still sends does not hear an answer."""
        skipped = 0
        while skipped < _MOST_SKIPPED * self.most_bytes:
            message = await receive()
            skipped += len(message.get("body", b""))
            if not message.get("more_body", False):
                return


def _cookie(headers: Headers) -> str | None:
    try:
        found: Any = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else str(found.value)


def _same_origin(origin: str, host: str) -> bool:
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _with_headers(send: Send, path: str) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            if path.startswith("/api"):
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sent
