"""Random bytes, methods, headers, paths and bodies on a real server: never an internal error, never a traceback, never a dead server.

Everything follows from a seed, which a failure prints. For a longer campaign: `python tests/server/test_fuzz.py SECONDS [SEED]`.
"""

import contextlib
import json
import random
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from dashboards import JOB, WRITE, Dashboard, dashboard

TEXTS = [
    "", "toy", "constructor", "__proto__", "[/bold]", "<img src=x onerror=alert(1)>", "..", "../../etc/passwd", "%00", "%ff%fe",
    "%c0%ae%c0%ae", "\ud800", "\x00", "\u202eevil", "a" * 3000, "'; DROP TABLE studies; --", "\r\nX-Evil: yes", "nan", "-1", "1e999",
    "9" * 5000, "０", "🜂", "=HYPERLINK(1)", "{}", "//", "%2e%2e%2f", "\\", ";", "?", "#", "trials", "0", "events/..", "*", "null",
]  # fmt: skip
PATHS = [
    "/", "/studies/{}", "/studies/{}/trials/{}", "/compare?a={}&b={}", "/login?next={}", "/static/{}", "/static/lib/{}", "/{}",
    "/api/v1/studies", "/api/v1/studies/{}", "/api/v1/studies/{}/view?since={}", "/api/v1/studies/{}/trials?limit={}&offset={}",
    "/api/v1/studies/{}/trials?where={}&state={}", "/api/v1/studies/{}/trials/{}", "/api/v1/studies/{}/best?deadline={}",
    "/api/v1/studies/{}/what-if?deadline={}&price={}", "/api/v1/studies/{}/export?format={}", "/api/v1/compare?a={}&b={}",
    "/api/v1/studies/{}/ask", "/api/v1/studies/{}/trials/{}/tell", "/api/v1/studies/{}/trials/{}/heartbeat", "/api/v1/session",
    "/api/v1/studies/{}/stop", "/api/v1/studies/{}/resume", "/api/v1/studies/{}/queue", "/api/v1/studies/{}/trials/{}/stop",
    "/api/v1/health", "/api/v1/openapi.json", "/api/v1/{}", "/api/{}", "//{}", "/api/v1//studies",
]  # fmt: skip
CHANGES = ("/studies", "/ask", "/tell", "/heartbeat", "/session", "/stop", "/resume", "/queue", "/trials")
METHODS = ["GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT", "BREW", "get", "P\x7fT", ""]
FIELDS = [
    "runtime", "state", "reason", "charged", "metrics", "progress", "detail", "kill", "add_budget", "params", "trials", "token",
    "name", "space", "price", "budget", "constraints", "policy", "seed", "run", "trial", "storage", "x", "__proto__",
]  # fmt: skip
HOSTS = ["localhost"] * 20 + ["evil.example", "", "localhost:x", "[::1", "localhost, evil.example", "\x00"]
KINDS = ["application/json"] * 6 + [
    "application/yaml",
    "text/plain",
    "multipart/form-data; boundary=x",
    "text/json; charset=utf-7",
]
ODD = [
    "Cookie", "Origin", "Idempotency-Key", "X-CSRF-Token", "X-Forwarded-For", "Forwarded", "Range", "If-Modified-Since", "Accept",
    "If-None-Match", "Expect", "Upgrade", "Connection", "Transfer-Encoding", "Content-Length", "Host", "X-HTTP-Method-Override", "A" * 3000,
]  # fmt: skip
ODD_VALUES = [
    *TEXTS, "100-continue", "websocket", "close", "bytes=0-1,3-5,-1", "lynceus_session=write.9999999999.x.y", "text/html", "*",
]  # fmt: skip
LAST_CHUNKS = [b"0\r\n\r\n", b"zz\r\n", b"", b"0\r\nX: y\r\n\r\n", b"ffffffffffffffff\r\n"]
NUMBERS = [0, 1, -1, 2**31, 2**63, -(2**63), 10**400, 5, 0.5, 1e308, float("nan"), float("inf"), -0.0]
STRANGE_JSON = [
    b"[" * 50_000, b'{"a":' * 20_000, b"{" + b'"a":1,' * 1000 + b'"a":1}', b"\xff\xfe{}", b"\xef\xbb\xbf{}", b"", b'{"runtime": 1e-999999}',
]  # fmt: skip
STRANGE_YAML = [
    b"a: &a [*a]", b"a: !!python/object/apply:os.system [id]", b"name: x\nname: y", b"- " * 5000, b"? [", b"\x00: 1",
    b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]",
]  # fmt: skip


def value(rng: random.Random, depth: int = 0) -> object:
    """A JSON value, or one that only Python's JSON has."""
    kind = rng.randrange(9 if depth < 4 else 6)
    if kind < 2:
        return rng.choice([None, True, False, *NUMBERS])
    if kind < 4:
        return rng.choice(TEXTS)
    if kind < 6:
        return rng.choice(["COMPLETE", "FAIL", "12m", "5 USD", "n", "mode", "a", "random", "sweep"])
    if kind == 6:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(TEXTS + FIELDS): value(rng, depth + 1) for _ in range(rng.randrange(5))}


def body(rng: random.Random) -> bytes:
    """The body of a request: bytes, strange JSON and YAML, a job file with a mistake, fields of commands."""
    kind = rng.randrange(10)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    if kind == 1:
        return rng.choice(STRANGE_JSON + STRANGE_YAML)
    if kind < 4:
        return json.dumps(JOB | {rng.choice(FIELDS): value(rng)}).encode()
    if kind < 7:
        return json.dumps({"runtime": 50, rng.choice(FIELDS[:7]): value(rng)}).encode()
    return json.dumps({rng.choice(FIELDS): value(rng) for _ in range(rng.randrange(4))}).encode()


def target(rng: random.Random) -> str:
    """A path and a query."""
    template = rng.choice(PATHS)
    while "{}" in template:
        if rng.random() < 0.6:
            text = rng.choice(["toy", "toy", "0", "1", "5m", "n > 2"])
        elif rng.random() < 0.1:
            text = rng.choice(TEXTS).encode("utf-8", "surrogatepass").decode("latin-1")
        else:
            text = quote(rng.choice(TEXTS), safe="%/", errors="replace")
        template = template.replace("{}", text.replace("{}", ""), 1)
    return template


def request(rng: random.Random) -> tuple[bytes, bool]:
    """One request, or what a hostile client sends in its place; and whether its head is as it should be, so that it is answered."""
    if rng.random() < 0.03:
        return rng.randbytes(rng.randrange(1, 3000)), False
    path, plain = target(rng), rng.random() < 0.5
    changes = path.partition("?")[0].endswith(CHANGES)
    method = ("POST" if changes else "GET") if rng.random() < 0.8 else rng.choice(METHODS)
    content = body(rng) if method != "GET" or rng.random() < 0.1 else b""
    headers = [("Host", "localhost" if plain else rng.choice(HOSTS)), ("Content-Type", rng.choice(KINDS))]
    headers.append(("Authorization", f"Bearer {WRITE}" if plain or rng.random() < 0.8 else rng.choice(TEXTS)))
    if not plain:
        headers += [(rng.choice(ODD), rng.choice(ODD_VALUES)) for _ in range(rng.randrange(4))]
    if plain or rng.random() < 0.9:
        headers.append(
            ("Content-Length", str(len(content) + (0 if plain or rng.random() < 0.8 else rng.randrange(-3, 4))))
        )
    else:
        headers.append(("Transfer-Encoding", "chunked"))
        content = b"%x\r\n%s\r\n" % (len(content), content) + rng.choice(LAST_CHUNKS)
    version = "HTTP/1.1" if plain else rng.choice(["HTTP/1.1"] * 20 + ["HTTP/1.0", "HTTP/2.0", "HTTP/9"])
    lines = [f"{method} {path} {version}", *(f"{name}: {text}" for name, text in headers)]
    whole = "\r\n".join(lines).encode("utf-8", "surrogatepass") + b"\r\n\r\n" + content
    return whole if plain or rng.random() < 0.95 else whole[: rng.randrange(len(whole))], plain and method in METHODS[
        :8
    ]


def send(server: Dashboard, data: bytes, patience_s: float) -> int | None:
    """The status of the response; None when the server closed the connection without one."""
    parts = urlsplit(server.url)
    with (
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=patience_s) as connection,
        contextlib.suppress(ConnectionError, TimeoutError),
    ):
        connection.sendall(data)
        first = connection.recv(4096)
        while first.startswith(b"HTTP/1.1 100"):
            first = first.partition(b"\r\n\r\n")[2] or connection.recv(4096)
        assert b"\nX-Evil" not in first.partition(b"\r\n\r\n")[0], f"a header was injected by {data[:500]!r}"
        assert b"root:x:0" not in first, f"a file was read by {data[:500]!r}"
        return int(first[9:12]) if first else None
    return None


def check(server: Dashboard, seed: str) -> int | None:
    """Send the request of a seed."""
    data, answered = request(random.Random(seed))
    status = send(server, data, 60.0 if answered else 0.1)
    assert status is not None or not answered or not data.isascii(), f"seed {seed!r}: no answer for {data[:500]!r}"
    assert status is None or status < 500, f"seed {seed!r}: {status} for {data[:500]!r}"
    return status


@contextlib.contextmanager
def site(folder: Path) -> Iterator[Dashboard]:
    """A server with a study whose metrics and details have odd names."""
    with dashboard(f"sqlite:///{folder}/s.db", folder) as server:
        assert server.post("studies", JOB | {"budget": {"cost": "1000000 USD"}}).status == 201
        metrics = {text[:100]: 1.5 for text in TEXTS if text}
        for number in range(3):
            server.post("studies/toy/ask")
            told = {"runtime": 50 + number, "metrics": metrics, "detail": "\ud800\x00\x1b[2J"}
            assert server.post(f"studies/toy/trials/{number}/tell", told).status == 200
        yield server
        assert server.get("health").status == 200
        assert server.get("studies/toy/view").status == 200
        assert server.get("studies").status == 200
    assert not server.broken, "".join(server.stderr)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    with site(tmp_path_factory.mktemp("fuzz")) as server:
        yield server


def test_hostile_requests_get_an_answer_or_a_closed_connection(fuzzed: Dashboard) -> None:
    statuses = Counter(check(fuzzed, f"quick {number}") for number in range(400))
    assert min(statuses[200], statuses[400], statuses[404], statuses[422]) > 20, "every part of the server is reached"


def campaign(seconds: float, seed: str) -> None:
    """Requests for so many seconds; prints every finding."""
    with tempfile.TemporaryDirectory() as folder, site(Path(folder)) as server:
        statuses: Counter[object] = Counter()
        until, number = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            try:
                statuses[check(server, f"{seed} {number}")] += 1
            except AssertionError as found:
                statuses["found"] += 1
                print(found, flush=True)
            number += 1
        print(f"{number} requests, seed {seed!r}: {dict(statuses)}; {len(server.stderr)} lines in the log")
        print("".join(server.stderr[-60:]))


if __name__ == "__main__":
    campaign(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "campaign")
