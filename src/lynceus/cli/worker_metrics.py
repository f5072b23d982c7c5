"""`lynceus run --metrics HOST:PORT`: a worker's own numbers, for Prometheus."""

from __future__ import annotations

import hmac
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from lynceus.analysis.prometheus import CONTENT_TYPE, exposition, numbers_of
from lynceus.errors import InputError
from lynceus.study.study import Study

TOKEN = "LYNCEUS_READ_TOKEN"
_LOCAL = ("127.0.0.1", "localhost", "::1")
_SLOW_S = 5.0
"""How long a client may take to send its request."""


@contextmanager
def served_metrics(study: Study, address: str | None) -> Iterator[None]:
    """Serve the numbers of a study at an address as long as the context lasts; None: nowhere."""
    if address is None:
        yield
        return
    host, port = _parts(address)
    token = os.environ.get(TOKEN) or None
    if token is None and host not in _LOCAL:
        raise InputError(
            f"--metrics: {address!r} can be reached from other machines; set {TOKEN}, or use 127.0.0.1:{port}."
        )
    try:
        server = ThreadingHTTPServer((host, port), _handler(study, token))
    except OSError as error:
        raise InputError(f"--metrics: cannot listen on {address!r}: {error.strerror or error}.") from None
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="lynceus-metrics", daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def _parts(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise InputError(f"--metrics: got {address!r}; expected an address and a port, such as 127.0.0.1:9464.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _handler(study: Study, token: str | None) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers `GET /metrics`."""

        timeout = _SLOW_S

        def do_GET(self) -> None:
            """The numbers; 401 without the token, 404 for anything else."""
            scheme, _, given = self.headers.get("Authorization", "").partition(" ")
            if token is not None and not (
                scheme.lower() == "bearer" and hmac.compare_digest(given.encode(), token.encode())
            ):
                self._answer(401, b"A token is needed: send it as 'Authorization: Bearer ...'.\n")
            elif self.path != "/metrics":
                self._answer(404, b"There is only /metrics.\n")
            else:
                view = study.snapshot(shared_budgets=())
                state = "RUNNING" if view.stopped is None else view.stopped.study_state
                numbers = numbers_of(view, state, decisions=study.decisions, deciding_s=study.deciding_s)
                self._answer(200, exposition([numbers]).encode())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            if status == 401:
                self.send_header("WWW-Authenticate", "Bearer")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: the terminal shows the search."""

    return Handler
