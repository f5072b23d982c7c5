"""Requests to a server. A request whose response is lost is sent again with the same idempotency key, so it takes effect once."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any
from urllib.parse import quote, urlencode, urlsplit

from lynceus.errors import InfrastructureError, InputError
from lynceus.trial.text import clean_line

MAX_ANSWER_BYTES = 64_000_000
"""Larger responses are refused; a page of 1,000 trials has less than a million bytes."""
_MAX_ERROR_BYTES = 100_000
_RETRIED = (429, 502, 503, 504)
"""Statuses after which the same request may succeed."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 5.0


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is sent to the server that the user named, and nowhere else: an answer that points to another one is an error."""

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
        if not _is_address(self.url):
            shown = self.url.rpartition("@")[2][:100]  # there may be a password in front of it
            raise InputError(f"Client: {shown!r} is not the address of a server; write http://host:8080.")
        token = self.token or ""
        if not token.isascii() or not token.isprintable() or " " in token:
            raise InputError("Client: the token has characters that no token has; give it as the server has it.")

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

    def put(self, *path: str, body: Mapping[str, Any]) -> Any:
        """Set something to a value."""
        return self._send("PUT", self._address(path), json.dumps(body).encode(), {"Content-Type": "application/json"})

    def delete(self, *path: str) -> Any:
        """Remove something."""
        return self._send("DELETE", self._address(path), None, {})

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
        try:
            with _deadline(self.timeout_s) as opener, opener.open(request, timeout=self.timeout_s) as response:
                data = response.read(MAX_ANSWER_BYTES + 1)
                if response.length and len(data) <= MAX_ANSWER_BYTES:
                    raise http.client.IncompleteRead(data, response.length)
                return self._document(data)
        except urllib.error.HTTPError as refused:
            with refused:
                sentence = _sentence(refused)
                if refused.code in _RETRIED:
                    raise _TemporaryError(sentence, _seconds(refused.headers.get("Retry-After"))) from None
                raise InputError(f"server {self.url}: {sentence}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise InputError(
                    f"server {self.url}: its certificate cannot be verified ({reason.verify_message}); name a file with the "
                    "certificate of its authority in the environment variable SSL_CERT_FILE."
                ) from None
            raise _TemporaryError(f"it cannot be reached ({clean_line(str(reason), 200)})") from None

    def _document(self, data: bytes) -> Any:
        """The JSON document of a response."""
        if len(data) > MAX_ANSWER_BYTES:
            raise InputError(
                f"server {self.url}: its answer has more than {MAX_ANSWER_BYTES:,} bytes, so it was not read."
            )
        try:
            found = json.loads(data, object_hook=_Document)
        except (ValueError, RecursionError):
            found = data
        if found is not None and not isinstance(found, _Document):
            raise InputError(
                f"server {self.url}: its answer is not a JSON object; check that this is the address of a Lynceus server."
            )
        return found


class _Document(dict[str, Any]):
    """A JSON object; a field that is missing is a mistake of the server, and not of the program that reads it."""

    def __missing__(self, name: str) -> Any:
        raise InputError(
            f"the server's answer has no field {name!r}; check that client and server have the same version."
        )


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[urllib.request.OpenerDirector]:
    """Opens URLs whose connections end after so many seconds: a timeout alone is as patient with every single byte."""
    sockets: list[socket.socket] = []
    late = threading.Event()

    def end() -> None:
        late.set()
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

    class Encrypted(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

    class PlainHandler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, req)

    class EncryptedHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
            return self.do_open(Encrypted, req)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield urllib.request.build_opener(_NoRedirect, PlainHandler, EncryptedHandler)
    except (OSError, http.client.HTTPException, ValueError, InputError):
        if late.is_set():
            raise _TemporaryError(f"it took longer than {seconds:g} s to answer") from None
        raise
    finally:
        timer.cancel()


class _TemporaryError(Exception):
    def __init__(self, sentence: str, wait_s: float | None = None) -> None:
        super().__init__(sentence)
        self.wait_s = wait_s


def _sentence(refused: urllib.error.HTTPError) -> str:
    """The sentence of the server, or at least the status."""
    if 300 <= refused.code < 400:
        where = clean_line(str(refused.headers.get("Location", "another address")), 200)
        return f"it redirects to {where}; if you trust that address, use it for the client."
    try:
        return clean_line(str(json.loads(refused.read(_MAX_ERROR_BYTES))["detail"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError, http.client.HTTPException):
        return clean_line(f"it answered {refused.code} {refused.reason}")


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isascii() and header.isdigit() else None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment or parts.username or parts.password)
        )
    except ValueError:  # a port that is no port, a bracket that is not closed
        return False
