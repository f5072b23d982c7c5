"""Requests to a server. A request whose response is lost is sent again with the same idempotency key, so it takes effect once."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from lynceus.errors import InfrastructureError, InputError

_RETRIED = (429, 502, 503, 504)
"""Statuses after which the same request may succeed."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is sent to the server that the user named, and nowhere else."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> None:
        """Do not follow."""


@dataclass(frozen=True)
class Http:
    """A server with its token and timeouts."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    """Seconds that one attempt may take."""
    patience_s: float = 120.0
    """Seconds for which a request is repeated before it counts as failed."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.username:
            raise InputError(
                f"Client: {parts.netloc or self.url!r} is not the address of a server; write http://host:8080."
            )

    def get(self, *path: str, **query: str | int | None) -> Any:
        """Read a document."""
        wanted = urlencode({name: value for name, value in query.items() if value is not None})
        return self._send("GET", self._address(path) + (f"?{wanted}" if wanted else ""), None, {})

    def post(self, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Change something; repeated requests take effect once."""
        data = json.dumps({} if body is None else body).encode()
        return self.post_raw(*path, data=data, kind="application/json")

    def post_raw(self, *path: str, data: bytes, kind: str) -> Any:
        """The same with a body that is not JSON."""
        headers = {"Content-Type": kind, "Idempotency-Key": str(uuid.uuid4())}
        return self._send("POST", self._address(path), data, headers)

    def _address(self, path: tuple[str, ...]) -> str:
        return "/".join([self.url.rstrip("/"), "api", "v1", *(quote(part, safe="") for part in path)])

    def _send(self, method: str, url: str, data: bytes | None, headers: dict[str, str]) -> Any:
        if self.token is not None:
            headers = headers | {"Authorization": f"Bearer {self.token}"}
        deadline, pause_s = time.monotonic() + self.patience_s, _FIRST_PAUSE_S
        while True:
            try:
                return self._once(urllib.request.Request(url, data, headers, method=method))
            except _TemporaryError as error:
                wait_s = pause_s if error.wait_s is None else error.wait_s
                if time.monotonic() + wait_s > deadline:
                    raise InfrastructureError(
                        f"server {self.url}: {error}; gave up after {self.patience_s:g} s."
                    ) from None
                time.sleep(wait_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _once(self, request: urllib.request.Request) -> Any:
        opener = urllib.request.build_opener(_NoRedirect)
        try:
            with opener.open(request, timeout=self.timeout_s) as response:
                return json.loads(response.read())
        except urllib.error.HTTPError as refused:
            with refused:
                sentence = _sentence(refused)
                if refused.code in _RETRIED:
                    raise _TemporaryError(sentence, _seconds(refused.headers.get("Retry-After"))) from None
                raise InputError(f"server {self.url}: {sentence}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise _TemporaryError(f"it cannot be reached ({reason})") from None


class _TemporaryError(Exception):
    def __init__(self, sentence: str, wait_s: float | None = None) -> None:
        super().__init__(sentence)
        self.wait_s = wait_s


def _sentence(refused: urllib.error.HTTPError) -> str:
    """The sentence of the server, or at least the status."""
    try:
        return str(json.loads(refused.read())["detail"])
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return f"it answered {refused.code} {refused.reason}"


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isdigit() else None
