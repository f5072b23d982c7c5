"""Middleware that checks every request first: size of head and body, Host header, token or session, origin."""

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

from lynceus.errors import LynceusError
from lynceus.server.access import COOKIE, Access, host_name
from lynceus.server.errors import HttpError, error_response, sentence_for, status_of
from lynceus.server.login_limits import LoginLimits
from lynceus.server.named_tokens import NamedTokens
from lynceus.server.proxies import TrustedProxies, network_of
from lynceus.server.route_roles import API, METRICS, READ_METHODS, needed_role
from lynceus.server.sessions import SignedOut
from lynceus.storage.access_token import PREFIX, Role, StoredToken

MAX_BODY_BYTES = 2_000_000
"""Largest body of a request; a job file is far smaller."""
MAX_HEAD_BYTES = 16_000
"""Largest path, query and headers of a request together. The protocol's own limit counts only what arrives in pieces."""
_MAX_DISCARDED = 8
"""Largest bodies that are read and discarded before the connection is closed."""
CLIENT = "client"
"""Prefix of the worker names of API clients: they are no processes of this machine, so only heartbeats show that they live."""

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
"""Headers of every response."""


@dataclass(frozen=True)
class Visitor:
    """The sender of a request, as far as it is known."""

    role: Role | None
    """None: it may only do what needs no token."""
    address: str
    cookie: str | None = None
    """The session cookie that gave the role; None: a token did, or the request has neither."""
    token: str | None = None
    """The name of the token that gave the role; None: it was the read or the write token, or there is none."""

    @property
    def author(self) -> str:
        """Who it is: as the worker of its trials, and for the audit.

        >>> Visitor(Role.VIEWER, "10.0.0.7").author, Visitor(Role.VIEWER, "10.0.0.7", token="ana").author
        ('client 10.0.0.7', 'client 10.0.0.7 (token ana)')
        """
        return f"{CLIENT} {self.address}" + ("" if self.token is None else f" (token {self.token})")


@dataclass(frozen=True)
class Holder:
    """The holder of a right token."""

    role: Role
    named: StoredToken | None = None
    """None: it is the read or the write token."""

    @property
    def name(self) -> str | None:
        """The name of the token, where it has one."""
        return None if self.named is None else self.named.token.name


@dataclass
class Guard:
    """ASGI middleware in front of the application."""

    app: ASGIApp
    access: Access
    signed_out: SignedOut
    tokens: NamedTokens
    proxies: TrustedProxies
    limits: LoginLimits = field(default_factory=LoginLimits)
    max_body_bytes: int = MAX_BODY_BYTES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on with the visitor in its state."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        send = _with_headers(send, scope["path"])
        try:
            visitor = await self._admit(scope)
        except LynceusError as refused:
            status, headers = status_of(refused)
            see = "api.md#access-control" if status in (401, 403, 421) else None
            await error_response(status, sentence_for(refused, None), headers, see)(scope, receive, send)
            return
        scope.setdefault("state", {})["visitor"] = visitor
        await self._pass_on(scope, receive, send)

    async def _admit(self, scope: Scope) -> Visitor:
        head_bytes = sum(len(name) + len(value) for name, value in scope["headers"])
        if head_bytes + len(scope["raw_path"]) + len(scope["query_string"]) > MAX_HEAD_BYTES:
            raise HttpError(431, f"The path and the headers have more than {MAX_HEAD_BYTES:,} bytes; send fewer.")
        headers = Headers(scope=scope)
        name = host_name(headers.get("host", ""))
        if name not in self.access.hosts and "*" not in self.access.hosts:
            raise HttpError(
                421, f"This server does not answer as {name[:100]!r}; start it with --allowed-host to allow that name."
            )
        needed = needed_role(scope["method"], scope["path"])
        visitor = await self._visitor(scope, headers, needed)
        if scope["method"] not in READ_METHODS:
            self._check_origin(scope, headers, visitor)
        if needed is None:
            return visitor
        if visitor.role is None:
            raise HttpError(
                401,
                f"A token with the role {needed} is needed: send it as 'Authorization: Bearer …'.",
                {"WWW-Authenticate": "Bearer"},
            )
        if not visitor.role.allows(needed):
            raise HttpError(403, await self._why_forbidden(visitor, needed))
        return visitor

    async def _why_forbidden(self, visitor: Visitor, needed: Role) -> str:
        if self.access.write_token is None and not await self.tokens.writers():
            return (
                "This server is read-only; start it with a write token (LYNCEUS_WRITE_TOKEN), or make a named one with: "
                f"lynceus token add NAME --role {needed}."
            )
        whose = "you have" if visitor.token is None else f"your token {visitor.token} has"
        one = "a named token" if self.access.write_token is None else "the write token or a named token"
        return (
            f"This needs the role {needed}, and {whose} the role {visitor.role}: send {one} with that role as "
            "'Authorization: Bearer …', or sign in with it."
        )

    async def _visitor(self, scope: Scope, headers: Headers, needed: Role | None) -> Visitor:
        """The sender of a request, by token, by session, or anonymous."""
        now = time.time()
        peer = scope["client"][0] if scope.get("client") else "unknown"
        address, scope["scheme"] = self.proxies.sender(peer, scope["scheme"], headers)
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            holder = await self.check_token(token.strip(), address, now)
            return Visitor(holder.role, address, token=holder.name)
        cookie = _cookie(headers)
        if cookie is not None and (needed is not None or scope["path"].startswith(API)):
            known = await self._session(cookie, now)
            if known is not None:
                return Visitor(known.role, address, cookie, known.name)
        return Visitor(self.access.anonymous, address)

    async def _session(self, cookie: str, now: float) -> Holder | None:
        """The holder of the token with which a browser has signed in; None when its session has ended."""
        if cookie.startswith(PREFIX):
            named = await self.tokens.of_session(cookie)
            if named is None:
                return None
            self.tokens.mark(named)
            return Holder(named.token.role, named)
        role = self.access.session_role(cookie, now)
        return None if role is None or await self.signed_out.has(cookie) else Holder(role)

    async def check_token(self, token: str, address: str, now: float) -> Holder:
        """The holder of a token. A right one is always accepted; after some wrong ones, further wrong ones must wait."""
        role, named, source = self.access.role_of(token), None, network_of(address)
        if role is None and (named := await self.tokens.find(token)) is not None:
            role = named.token.role
            if await self.tokens.expired(named):
                raise HttpError(
                    401, f"The token {named.token.name} has expired; ask for a new one.", {"WWW-Authenticate": "Bearer"}
                )
            self.tokens.mark(named)
        if role is None:
            if (wait_s := self.limits.wait_s(source, now)) > 0:
                seconds = math.ceil(wait_s)
                raise HttpError(
                    429, f"Too many wrong tokens from your address; wait {seconds} s.", {"Retry-After": str(seconds)}
                )
            self.limits.failed(source, token, now)
            raise HttpError(401, "The token is wrong, or was revoked.", {"WWW-Authenticate": "Bearer"})
        if role is Role.ADMIN:  # not with lesser tokens, or their owners could guess others without any wait
            self.limits.succeeded(source)
        return Holder(role, named)

    def _check_origin(self, scope: Scope, headers: Headers, visitor: Visitor) -> None:
        """Refuse changes by a browser that do not come from our own pages (CSRF)."""
        origin = headers.get("origin")
        if origin is not None and not _same_origin(origin, headers.get("host", "")):
            raise HttpError(
                403, f"The request comes from a page of {origin[:100]!r}, which is not allowed to change anything here."
            )
        if visitor.cookie is None or (scope["path"] == f"{API}/session" and scope["method"] == "POST"):
            return
        expected = self.access.csrf_token(visitor.cookie)
        given = headers.get("x-csrf-token", "")
        if origin is None or not hmac.compare_digest(given.encode(), expected.encode()):
            raise HttpError(403, "The header X-CSRF-Token is missing or wrong; reload the page and try again.")

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Call the application, unless the body is too large."""
        announced = Headers(scope=scope).get("content-length", "0")
        sentence = f"The body is larger than {self.max_body_bytes:,} bytes."
        if not announced.isdigit():
            await error_response(400, "Content-Length is not a number.")(scope, receive, send)
            return
        if int(announced) > self.max_body_bytes:
            await self._discard(receive)
            await error_response(413, sentence, {"Connection": "close"})(scope, receive, send)
            return
        seen, more = 0, True

        async def counted() -> Message:
            nonlocal seen, more
            message = await receive()
            more = message.get("more_body", False)
            seen += len(message.get("body", b""))
            if seen > self.max_body_bytes:
                raise HttpError(413, sentence)
            return message

        async def send_unless_too_large(message: Message) -> None:
            # The application saw only a part of the body, so its response is dropped.
            if seen <= self.max_body_bytes:
                await send(message)

        try:
            await self.app(scope, counted, send_unless_too_large)
        except HttpError:
            if seen <= self.max_body_bytes:
                raise
        if seen > self.max_body_bytes:
            if more:
                await self._discard(receive)
            await error_response(413, sentence, {"Connection": "close"})(scope, receive, send)

    async def _discard(self, receive: Receive) -> None:
        """Read the rest of a body that is too large, up to a limit: clients that still send do not read the response."""
        discarded = 0
        while discarded < _MAX_DISCARDED * self.max_body_bytes:
            message = await receive()
            discarded += len(message.get("body", b""))
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
            if path.startswith("/api") or path == METRICS:
                headers.setdefault("cache-control", "no-store")
        await send(message)

    return sent
