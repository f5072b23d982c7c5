"""A real `lynceus dashboard` process for tests, on a free port."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

READ, WRITE = "read-token-0123456789", "write-token-0123456789"


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def sentence(self) -> str:
        return str(self.json["detail"])


@dataclass
class Dashboard:
    """A running server."""

    url: str
    process: subprocess.Popen[bytes] | None
    """None when it runs in a thread of the tests."""
    token: str | None = None
    """Sent with every request that has no token of its own."""
    stderr: list[str] = field(default_factory=list)
    """Lines of its standard error."""

    @property
    def broken(self) -> bool:
        """Whether it logged a traceback; those of requests that uvicorn cancels at shutdown do not count."""
        return "Traceback" in "".join(self.stderr).partition("graceful shutdown exceeded")[0]

    @property
    def api(self) -> str:
        return f"{self.url}/api/v1"

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        token: str | None = "",
    ) -> Answer:
        """Send one request as it is: no redirects, no retries. `path` starts with / or is below the API."""
        sent = dict(headers or {})
        bearer = self.token if token == "" else token
        if bearer is not None and not {"Authorization", "Cookie"} & sent.keys():
            sent["Authorization"] = f"Bearer {bearer}"
        data = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        parts = urlsplit(self.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        try:
            connection.request(method, path if path.startswith("/") else f"/api/v1/{path}", data, sent)
            answer = connection.getresponse()
            return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str, headers: dict[str, str] | None = None, *, token: str | None = "") -> Answer:
        return self.request("GET", path, None, headers, token=token)

    def post(
        self, path: str, body: Any = None, headers: dict[str, str] | None = None, *, token: str | None = ""
    ) -> Answer:
        return self.request("POST", path, body, headers, token=token)

    def kill(self) -> None:
        """Kill it, as the out-of-memory killer does."""
        assert self.process is not None
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def dashboard(
    storage: str,
    folder: Path,
    *,
    read: str | None = None,
    write: str | None = WRITE,
    token: str | None = WRITE,
    port: int = 0,
    options: tuple[str, ...] = (),
    before: Callable[[], None] | None = None,
) -> Iterator[Dashboard]:
    """A running dashboard; requests carry `token` unless they give another one. `before` runs in its process before it starts."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LYNCEUS_")}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for name, value in (("READ", read), ("WRITE", write)):
        if value is not None:
            environment[f"LYNCEUS_{name}_TOKEN"] = value
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "lynceus.cli", "dashboard", storage, "--port", str(port), *options],
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        preexec_fn=before,
    )
    reader: threading.Thread | None = None
    try:
        assert process.stderr is not None
        first = process.stderr.readline().decode()
        assert first.startswith(("http://", "https://")), first + process.stderr.read().decode()
        running = Dashboard(first.split()[0], process, token, [first])
        reader = threading.Thread(target=_listen, args=(running,), daemon=True)
        reader.start()
        yield running
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if reader is not None:
            reader.join(5)
        if process.stderr is not None:
            process.stderr.close()


def _listen(running: Dashboard) -> None:
    assert running.process is not None
    assert running.process.stderr is not None
    for line in running.process.stderr:
        running.stderr.append(line.decode("utf-8", "replace"))


@contextmanager
def served(
    storage: str,
    folder: Path,
    *,
    read: str | None = None,
    write: str | None = WRITE,
    token: str | None = WRITE,
    proxies: tuple[str, ...] = (),
    closed: bool = False,
) -> Iterator[Dashboard]:
    """A server in a thread: the same application and web server, without the seconds that a process takes to start."""
    from lynceus.server.access import Access
    from lynceus.server.app import create_app
    from lynceus.server.connections import Connections
    from lynceus.server.proxies import TrustedProxies
    from lynceus.server.serve import Server, listen

    trusted = TrustedProxies.parse(proxies)
    app = create_app(storage, access=Access(read, write, closed=closed), folder=folder, proxies=trusted)
    listening = listen("127.0.0.1", 0, Connections(1000, trusted.trusts))
    started = threading.Event()
    server = Server(app, listening, started=started.set)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert started.wait(60), "the server did not start"
        yield Dashboard(f"http://127.0.0.1:{listening.getsockname()[1]}", None, token)
    finally:
        server.should_exit = True
        thread.join(60)
        listening.close()
        assert not thread.is_alive(), "the server did not stop"


JOB: dict[str, Any] = {
    "name": "toy",
    "space": {"n": [1, 2, 4, 8], "mode": ["a", "b"]},
    "price": "36.0 * n",
    "constraints": ["runtime <= 10m"],
    "budget": {"cost": "500 USD"},
    "policy": "random",
    "trial": {"timeout": "capped"},
}
"""A study for ask and tell: eight configurations, one cent per second and node."""
