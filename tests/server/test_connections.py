"""Clients that hold connections: half-open requests, slow bodies, clients that never read, and a process without free descriptors."""

import contextlib
import logging
import resource
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dashboards import READ, WRITE, Dashboard, dashboard, served
from local_runs import eventually
from lynceus.server import connections, events
from lynceus.server.connections import Connections, connection_limit
from lynceus.server.log_limit import PER_MINUTE, LogLimit

HALF = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
WHOLE = b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextlib.contextmanager
def held(server: Dashboard, count: int, data: bytes, source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Connections that have sent the beginning of a request."""
    parts = urlsplit(server.url)
    address = (parts.hostname or "", parts.port or 0)
    with contextlib.ExitStack() as stack:
        found = []
        for _ in range(count):
            one = stack.enter_context(socket.create_connection(address, timeout=30, source_address=(source, 0)))
            with contextlib.suppress(ConnectionError):
                one.sendall(data)
            found.append(one)
        yield found


def ended(one: socket.socket) -> bool:
    """Whether the server has closed a connection."""
    one.setblocking(False)
    try:
        while one.recv(65536):
            pass
    except BlockingIOError:
        return False
    except ConnectionError:
        return True
    return True


def limited(files: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))


@pytest.mark.parametrize("count", [700, pytest.param(2050, marks=pytest.mark.slow)])
def test_half_open_requests_do_not_keep_others_out(folder: Path, count: int) -> None:
    """All come from one address, and the process may open 512 files."""
    with dashboard(f"sqlite:///{folder}/s.db", folder, read=READ, before=limited(512)) as server:
        with held(server, count, HALF) as open_ones:
            for _ in range(3):
                assert server.get("health").status == 200
                assert server.get("studies", token=WRITE).json["studies"] == []
            eventually(lambda: sum(map(ended, open_ones)) >= count - 256)
        assert server.process is not None
        assert server.process.poll() is None
    text = "".join(server.stderr)
    assert "too many connections" in text
    assert "Traceback" not in text
    assert len(server.stderr) < 4 * PER_MINUTE, text


def test_a_process_without_free_descriptors_says_so_in_a_line(folder: Path) -> None:
    """Something else in the process uses the descriptors that are reserved: connections are closed, and the log stays short."""
    with dashboard(f"sqlite:///{folder}/s.db", folder) as server:
        assert server.process is not None
        assert server.get("health").status == 200
        used = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        _limit(server.process, used + 20)
        with held(server, 300, HALF):
            eventually(lambda: "no free file descriptor" in "".join(server.stderr))
        _limit(server.process, used + 500)
        eventually(lambda: _answers(server))
    assert not server.broken
    assert len(server.stderr) < 4 * PER_MINUTE, "".join(server.stderr)


def _limit(process: subprocess.Popen[bytes], files: int) -> None:
    hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (files, hard))


def _answers(server: Dashboard) -> bool:
    try:
        return server.get("health").status == 200
    except OSError:
        return False


SLOW = {
    "silent": b"",
    "head": HALF,
    "second head": WHOLE + HALF,
    "body": b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{",
    "chunks": b"POST /api/v1/session HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n",
    "body of a request that is refused": b"POST /api/v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
}


def test_slow_clients_are_disconnected(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Those that do not finish a request, and one that does not read a response larger than the kernel's buffers."""
    for name in ("HEAD_S", "BODY_S", "STALLED_S"):
        monkeypatch.setattr(connections, name, 1.0)
    large = b"GET /static/lib/chart.js HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(f"sqlite:///{folder}/s.db", folder) as server, contextlib.ExitStack() as stack:
        open_ones = {kind: stack.enter_context(held(server, 2, data)) for kind, data in SLOW.items()}
        (deaf,) = stack.enter_context(held(server, 1, large * 2000))
        for some in open_ones.values():
            eventually(lambda some=some: all(map(ended, some)))
        eventually(lambda: _is_reset(deaf))
        assert server.get("health").status == 200


def _is_reset(one: socket.socket) -> bool:
    try:
        one.sendall(b"x")
    except (ConnectionError, TimeoutError):
        return True
    return False


def test_a_client_that_takes_its_time_between_requests_is_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.5)
    with served(f"sqlite:///{folder}/s.db", folder) as server, held(server, 1, WHOLE) as (one,):
        time.sleep(1.6)
        one.sendall(WHOLE)
        received = b""
        while received.count(b"HTTP/1.1 200") < 2:
            more = one.recv(65536)
            assert more, received
            received += more


@pytest.mark.parametrize("size", [100, 20_000, 60_000])
def test_a_head_of_any_size_that_arrives_at_once_is_bounded(folder: Path, size: int) -> None:
    requests = (
        b"GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * size + b"\r\n\r\n",
        b"GET /api/v1/health?" + b"a" * size + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    )
    with served(f"sqlite:///{folder}/s.db", folder) as server:
        for request in requests:
            with held(server, 1, request) as (one,):
                answer = one.recv(65536)
                assert answer.startswith(b"HTTP/1.1 200 " if size == 100 else b"HTTP/1.1 431 ")


def test_busy_and_recent_connections_stay() -> None:
    """Room is made at the cost of the client that has waited longest, and of one with as many connections as half of all may be."""
    most = Connections(4)
    assert [most.admit("10.0.0.1") for _ in range(2)] == [True, True]
    for address in ("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.3"):
        most.opened(address)
    assert not most.admit("10.0.0.4"), "all are busy"
    most.closed("10.0.0.3")
    assert most.admit("10.0.0.4")
    assert not most.admit("10.0.0.1"), "it has its share"
    assert Connections(4, is_proxy=lambda _: True).admit("10.0.0.1")


def test_the_limit_is_below_that_of_files() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 0 < connection_limit() < max(soft, 1257)


def test_lines_of_one_kind_are_left_out_after_a_few() -> None:
    now = [0.0]
    limit = LogLimit(clock=lambda: now[0])

    def passed(text: str) -> int:
        return sum(limit.filter(logging.makeLogRecord({"msg": text})) for _ in range(100))

    assert (passed("a"), passed("b"), passed("a")) == (PER_MINUTE, PER_MINUTE, 0)
    now[0] = 61.0
    assert passed("a") == PER_MINUTE


def test_one_address_cannot_take_the_places_of_all_listeners(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MAX_OF_ONE_ADDRESS", 3)
    stream = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(f"sqlite:///{folder}/s.db", folder, token=None) as server, held(server, 3, stream) as open_ones:
        for one in open_ones:
            assert b"200 OK" in one.recv(4096)
        refused = server.get("events")
        assert (refused.status, refused.headers["retry-after"]) == (503, "10")
        assert "from your address" in refused.sentence
        with held(server, 1, stream, source="127.0.0.2") as (other,):
            assert b"200 OK" in other.recv(4096)
