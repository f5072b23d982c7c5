"""Requests that are too large, malformed or hostile, on a real server."""

import http.client
import json
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from dashboards import WRITE, Answer, Dashboard


def test_oversized_bodies_are_refused_with_and_without_content_length(
    server: Dashboard, new_study: Callable[..., str]
) -> None:
    name = new_study()
    server.post(f"studies/{name}/ask")
    large = b'{"detail": "' + b"x" * 2_100_000 + b'"}'
    announced = server.post(f"studies/{name}/trials/0/tell", large)
    assert (announced.status, announced.headers["content-type"]) == (413, "application/problem+json")
    assert _chunked(server, f"/api/v1/studies/{name}/trials/0/tell", large) == 413
    wrong = server.post("studies", b"name: " + b"x" * 2_100_000, {"Content-Type": "application/yaml"})
    assert wrong.status == 413
    assert server.get(f"studies/{name}").json["open"] == [0]


def _chunked(server: Dashboard, path: str, data: bytes) -> int:
    """The status of a request without Content-Length."""
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    pieces = [data[start : start + 100_000] for start in range(0, len(data), 100_000)]
    headers = {"Authorization": f"Bearer {WRITE}", "Content-Type": "application/json"}
    try:
        connection.request("POST", path, iter(pieces), headers, encode_chunked=True)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize(
    "lines",
    [
        b"GET /api/v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /api/v1/studies HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x00\x01\x02\r\n\r\n",
        b"GET /api/v1/studies HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET /api/v1/studies HTTP/1.1\r\n\r\n",
    ],
)
def test_malformed_requests_are_refused(server: Dashboard, lines: bytes) -> None:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
        connection.sendall(lines)
        status = connection.recv(100).split(b" ")[1:2]
    assert status in ([b"400"], [b"404"], [b"421"], [b"431"], []), status
    assert server.get("health").status == 200


SECRET = "root:x:0:0"


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/static/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/static//etc/passwd",
        "/static/%00",
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/studies/..%2f..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/studies/..%2f..%2fetc%2fpasswd",
        "/api/v1/studies/%2e%2e/trials",
        "/api/v1/studies/%00",
        "/api/v1/studies/%ff",
        "/api/v1/studies/a%0d%0aX-Evil:%20yes/export",
        "/api/v1/studies/toy/trials/..%2f..%2f0",
        "/api/v1/studies/toy/trials/99999999999999999999",
        "/api/v1/studies/toy/trials/-1",
    ],
)
def test_paths_do_not_leave_their_folder(server: Dashboard, path: str) -> None:
    answer = server.get(path)
    assert answer.status in (200, 400, 404, 422), path
    assert SECRET.encode() not in answer.body
    assert b"create_app" not in answer.body
    assert "x-evil" not in answer.headers
    if answer.status == 200:
        assert path.startswith("/studies/"), "the page itself is the same for every study"


SCRIPT = "<script>alert(1)</script>\"'`${7*7}{{7*7}}"


def test_script_in_every_text_stays_text(server: Dashboard, new_study: Callable[..., str]) -> None:
    name = new_study(
        space={SCRIPT: [SCRIPT, "b"]}, price=36.0, constraints=[], trial={"timeout": "none"}, policy="sweep"
    )
    server.post(f"studies/{name}/ask")
    body = {"runtime": 5, "detail": SCRIPT, "metrics": {SCRIPT: 1.0}}
    assert server.post(f"studies/{name}/trials/0/tell", body).status == 200
    server.post(f"studies/{name}/stop", {"reason": SCRIPT})
    paths = [f"studies/{name}", f"studies/{name}/trials", f"studies/{name}/trials/0", f"studies/{name}/view", "studies"]
    found = 0
    for path in [
        *paths,
        f"studies/{name}/explain",
        f"studies/{name}/export?format=json",
        f"studies/{SCRIPT}".replace(" ", ""),
    ]:
        answer = server.get(path.replace("<", "%3C").replace(">", "%3E").replace('"', "%22").replace("`", "%60"))
        assert answer.headers["content-type"].startswith(("application/json", "application/problem+json")), path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "script-src 'self'" in answer.headers["content-security-policy"]
        found += json.dumps(SCRIPT)[1:-1] in answer.body.decode()
    assert found >= 5
    assert server.get(f"studies/{name}/export").headers["content-type"] == "text/csv; charset=utf-8"
    page: Answer = server.get("/studies/%3Cscript%3Ealert(1)%3C%2Fscript%3E")
    assert (page.status, page.headers["content-type"]) == (404, "application/problem+json")


def test_a_browser_gets_a_page_for_unknown_addresses(server: Dashboard) -> None:
    page = server.get("/nope", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    for path in ("/nope", "/static/none.js", "studies/unknown"):
        answer = server.get(path, headers={"Accept": "*/*" if path == "/nope" else "text/html"})
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path


def test_the_host_header_appears_in_no_response(server: Dashboard) -> None:
    """A cache between server and browsers must not keep what one client made up."""
    for path in ("/", "/studies/toy/", "/compare", "/static", "/static/", "studies/", "/nope", "//evil.example/"):
        answer = server.get(path, {"Host": "localhost:66", "X-Forwarded-Host": "evil.example", "Accept": "text/html"})
        assert answer.status in (200, 404), path
        assert b"localhost:66" not in answer.body
        assert b"http://evil.example" not in answer.body
        assert "location" not in answer.headers


def test_a_refused_chunk_of_a_request_without_a_response_body_is_no_error(server: Dashboard) -> None:
    """The response to HEAD has no body, and there is none to send an explanation in."""
    parts = urlsplit(server.url)
    head = b"HEAD /api/v1/health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
        connection.sendall(head + b"2\r\n{}\r\nzz\r\n")
        assert connection.recv(100).split(b" ")[1] in (b"400", b"405")
    assert not server.broken, "".join(server.stderr)


def test_a_client_that_leaves_in_the_middle_of_a_body_leaves_no_trace(server: Dashboard) -> None:
    parts = urlsplit(server.url)
    for path in (b"studies", b"session"):
        start = b"POST /api/v1/%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
            connection.sendall(start % (path, WRITE.encode()) + b"Content-Length: 100\r\n\r\n{")
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1000)
    assert server.get("health").status == 200
    assert not server.broken, "".join(server.stderr)
