"""Who may do what, on real servers: tokens, sessions, foreign pages, foreign names, guesses, sizes, paths."""

import http.client
import json
import socket
import sys
import time
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest

from dashboards import JOB, READ, WRITE, Answer, Dashboard, dashboard, served
from lynceus.cli import main
from lynceus.errors import InputError
from lynceus.ledger.sql import Storage
from lynceus.web import guard, routes_pages
from lynceus.web.access import SESSION_S, Access, Role, check_exposure
from lynceus.web.attempts import FREE, LONGEST_WAIT_S, Attempts


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A server with both tokens; requests bring none unless they say so."""
    folder = tmp_path_factory.mktemp("guarded")
    with dashboard(f"sqlite:///{folder}/studies.db", folder, read=READ, token=None) as running:
        assert running.post("studies", JOB, token=WRITE).status == 201
        yield running
    text = "".join(running.said)
    assert READ not in text
    assert WRITE not in text
    assert not running.broken, text


READS = [
    "studies",
    "studies/toy",
    "studies/toy/trials",
    "studies/toy/view",
    "studies/toy/export",
    "view/studies",
    "events",
]
CHANGES = ["studies", "studies/toy/ask", "studies/toy/stop", "studies/toy/trials/0/tell", "studies/toy/trials/0/stop"]


@pytest.mark.parametrize("path", READS)
def test_reading_needs_a_token_where_one_is_set(guarded: Dashboard, path: str) -> None:
    refused = guarded.get(path)
    assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
    if path != "events":
        assert guarded.get(path, token=READ).status == 200
        assert guarded.get(path, token=WRITE).status == 200


@pytest.mark.parametrize("path", CHANGES)
def test_changes_need_the_write_token(guarded: Dashboard, path: str) -> None:
    before = guarded.get("studies/toy", token=READ).json["sequence"]
    assert guarded.post(path, {}).status == 401
    refused = guarded.post(path, {}, token=READ)
    assert (refused.status, "write token" in refused.sentence) == (403, True)
    assert guarded.get("studies/toy", token=READ).json["sequence"] == before


def test_a_server_without_a_write_token_only_reads_and_takes_tokens_from_files(folder: Path) -> None:
    (folder / "token").write_text(f"{READ}\n")
    options = ("--read-token-file", str(folder / "token"))
    Storage(f"sqlite:///{folder}/s.db").close()
    with dashboard(f"sqlite:///{folder}/s.db", folder, write=None, token=READ, options=options) as plain:
        assert plain.get("studies").json == {"studies": []}
        assert plain.get("studies", token=None).status == 401
        refused = plain.post("studies", JOB)
        assert (refused.status, "only reads" in refused.sentence) == (403, True)
        assert plain.get("session").json["can_write"] is False
        assert plain.process is not None
        command = Path(f"/proc/{plain.process.pid}/cmdline").read_text()
    assert READ not in command


def test_tokens_do_not_count_in_addresses(guarded: Dashboard) -> None:
    for query in (f"studies?token={READ}", f"studies?access_token={WRITE}"):
        assert guarded.get(query).status == 401


# Sessions --------------------------------------------------------------------------------------------------------------


def sign_in(server: Dashboard, token: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The headers of a signed-in browser on a page of ours, and what the server said."""
    origin = {"Origin": server.url}
    answer = server.post("session", {"token": token}, origin)
    assert answer.status == 200, answer.body
    cookie: SimpleCookie = SimpleCookie(answer.headers["set-cookie"])
    morsel = cookie["lynceus_session"]
    assert morsel["httponly"]
    assert morsel["samesite"].lower() == "strict"
    assert token not in morsel.value
    headers = {"Cookie": f"lynceus_session={morsel.value}", "X-CSRF-Token": answer.json["csrf"]} | origin
    return headers, answer.json


def test_a_browser_signs_in_and_out(guarded: Dashboard) -> None:
    assert guarded.get("session").json == {
        "signed_in": False,
        "can_read": False,
        "can_write": False,
        "csrf": None,
        "needs_token": True,
        "writes": True,
        "version": "0.1.0",
    }
    headers, said = sign_in(guarded, WRITE)
    assert (said["signed_in"], said["can_read"], said["can_write"]) == (True, True, True)
    assert guarded.get("studies", headers).status == 200
    assert guarded.post("studies/toy/queue", {"params": {"n": 1, "mode": "a"}}, headers).status == 200
    left = guarded.request("DELETE", "session", None, headers)
    assert left.json["signed_in"] is False
    assert 'lynceus_session=""' in left.headers["set-cookie"]


def test_a_reader_who_signed_in_cannot_write(guarded: Dashboard) -> None:
    headers, said = sign_in(guarded, READ)
    assert (said["can_read"], said["can_write"]) == (True, False)
    assert guarded.get("studies", headers).status == 200
    assert guarded.post("studies/toy/ask", {}, headers).status == 403


@pytest.mark.parametrize(
    "change",
    [
        {"X-CSRF-Token": None},
        {"X-CSRF-Token": "0" * 64},
        {"Origin": None},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
def test_a_page_elsewhere_cannot_use_our_cookie(guarded: Dashboard, change: dict[str, str | None]) -> None:
    headers, _ = sign_in(guarded, WRITE)
    forged = {name: value for name, value in (headers | change).items() if value is not None}
    before = guarded.get("studies/toy", token=READ).json["sequence"]
    assert guarded.post("studies/toy/stop", {}, forged).status == 403
    assert guarded.get("studies/toy", token=READ).json["sequence"] == before


def test_the_csrf_token_of_another_session_does_not_count(guarded: Dashboard) -> None:
    mine, _ = sign_in(guarded, WRITE)
    other, _ = sign_in(guarded, WRITE)
    assert guarded.post("studies/toy/ask", {}, mine | {"X-CSRF-Token": other["X-CSRF-Token"]}).status == 403


def test_sessions_are_signed_by_role_and_end() -> None:
    access = Access(READ, WRITE)
    note = access.new_session(Role.WRITE, now=1000.0)
    assert access.session_role(note, 1000.0) is Role.WRITE
    assert access.session_role(note, 1001.0 + SESSION_S) is None
    # Whoever knows the read token alone can make readers' notes, and no writers' ones.
    reader = Access(READ, "guessed-write-token-00")
    assert access.session_role(reader.new_session(Role.READ, 1000.0), 1000.0) is Role.READ
    assert access.session_role(reader.new_session(Role.WRITE, 1000.0), 1000.0) is None
    forged = "write." + access.new_session(Role.READ, 1000.0).partition(".")[2]
    for odd in (forged, "", "a.b.c.d", "write.inf.x.y", note + "0", note[:-1], "nobody.9999999999.x.y", "\ud800.1.2.3"):
        assert access.session_role(odd, 1000.0) is None, odd
    without_write = Access(READ)
    assert without_write.session_role(without_write.new_session(Role.WRITE, 1000.0), 1000.0) is None


# Names, guesses, sizes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]", "localhost.evil"]
)
def test_foreign_names_are_not_answered(guarded: Dashboard, host: str) -> None:
    answer = guarded.get("studies", {"Host": host}, token=READ)
    assert answer.status == 421
    assert b"toy" not in answer.body


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "127.0.0.1", "[::1]:8080"])
def test_names_of_this_machine_are_answered(guarded: Dashboard, host: str) -> None:
    assert guarded.get("studies", {"Host": host}, token=READ).status == 200


def test_guessing_is_slowed_down_also_for_the_right_token(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [time.time()]
    for module in (guard, routes_pages):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    with served(f"sqlite:///{folder}/s.db", folder, read=READ, token=None) as server:
        statuses = [server.get("studies", token=f"guess-{number}").status for number in range(FREE + 1)]
        assert statuses == [401] * (FREE + 1)
        locked = server.post("session", {"token": WRITE}, {"Origin": server.url})
        assert locked.status == 429
        assert 1 <= int(locked.headers["retry-after"]) <= 2
        assert server.get("studies", token=READ).status == 429
        now[0] += 2.1
        assert server.get("studies", token=READ).status == 200
        assert server.get("studies", token="guess-again").status == 401
        assert int(server.get("studies", token=READ).headers["retry-after"]) >= 3


def test_attempts_wait_longer_each_time_and_are_forgotten() -> None:
    attempts, now = Attempts(), 0.0
    waits = []
    for _ in range(40):
        attempts.failed("a", now)
        waits.append(attempts.wait_s("a", now))
        now += waits[-1]
    assert waits[:FREE] == [0.0] * FREE
    assert waits[FREE : FREE + 4] == [2.0, 4.0, 8.0, 16.0]
    assert waits[-1] == LONGEST_WAIT_S
    attempts.failed("a", now)
    assert attempts.wait_s("a", now + LONGEST_WAIT_S) == 0.0
    assert attempts.wait_s("b", now) == 0.0
    attempts.failed("a", now + 1e5)
    assert attempts.wait_s("a", now + 1e5) == 0.0, "after an hour without failures an address starts anew"
    for number in range(20_000):
        attempts.failed(f"address {number}", now)
    assert len(attempts._failures) <= 10_000


def test_oversized_bodies_are_refused_announced_or_not(server: Dashboard, new_study: Callable[..., str]) -> None:
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
    """The status of a request that does not say how long it is."""
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
def test_malformed_requests_are_refused_and_hurt_nobody(server: Dashboard, lines: bytes) -> None:
    parts = urlsplit(server.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30) as connection:
        connection.sendall(lines)
        status = connection.recv(100).split(b" ")[1:2]
    assert status in ([b"400"], [b"404"], [b"421"], []), status
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
def test_paths_lead_nowhere_else(server: Dashboard, path: str) -> None:
    answer = server.get(path)
    assert answer.status in (200, 400, 404, 422), path
    assert SECRET.encode() not in answer.body
    assert b"create_app" not in answer.body
    assert "x-evil" not in answer.headers
    if answer.status == 200:
        assert path.startswith("/studies/"), "only the page itself, which is the same for every study"


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


def test_a_wrong_turn_in_a_browser_ends_on_a_page(server: Dashboard) -> None:
    page = server.get("/nope", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert (page.status, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    for path in ("/nope", "/static/none.js", "studies/nobody"):
        answer = server.get(path, headers={"Accept": "*/*" if path == "/nope" else "text/html"})
        assert (answer.status, answer.headers["content-type"]) == (404, "application/problem+json"), path


# Starting --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org"])
def test_other_addresses_need_a_read_token(host: str) -> None:
    with pytest.raises(InputError, match=r"a read token is needed; set LYNCEUS_READ_TOKEN"):
        check_exposure(host, Access(write_token=WRITE))
    check_exposure(host, Access(READ, WRITE))
    for mine in ("127.0.0.1", "127.0.0.9", "::1", "localhost"):
        check_exposure(mine, Access())


@pytest.fixture
def start(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[Any, str]]:
    """Try to start a server that must refuse: its exit code and what it says."""

    def run(*arguments: str, **variables: str) -> tuple[Any, str]:
        with monkeypatch.context() as changed:
            changed.setattr(sys, "argv", ["lynceus", "dashboard", f"sqlite:///{folder}/s.db", *arguments])
            for name in ("LYNCEUS_READ_TOKEN", "LYNCEUS_WRITE_TOKEN"):
                changed.delenv(name, raising=False)
            for name, value in variables.items():
                changed.setenv(name, value)
            with pytest.raises(SystemExit) as ended:
                main()
        return ended.value.code, capsys.readouterr().err

    return run


def test_what_does_not_start_says_why_in_one_line(folder: Path, start: Callable[..., tuple[Any, str]]) -> None:
    (folder / "empty").write_text("\n")
    Storage(f"sqlite:///{folder}/s.db").close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        cases = [
            start("--host", "0.0.0.0"),
            start(LYNCEUS_WRITE_TOKEN="short"),
            start(LYNCEUS_WRITE_TOKEN=WRITE, LYNCEUS_READ_TOKEN=WRITE),
            start("--read-token-file", str(folder / "empty")),
            start("--write-token-file", str(folder / "nowhere")),
            start("--port", port),
        ]
    assert [code for code, _ in cases] == [2, 2, 2, 2, 2, 4]
    words = ["read token is needed", "at least 16", "the same", "is empty", "cannot be read", "choose another --port"]
    for (_, said), word in zip(cases, words, strict=True):
        assert word in said
        assert said.startswith("lynceus: ")
        assert len(said.splitlines()) == 1
        assert WRITE not in said


@pytest.mark.parametrize("missing", ["fastapi", "uvicorn"])
def test_a_missing_package_is_one_sentence(
    missing: str, start: Callable[..., tuple[Any, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lynceus.web.app", "lynceus.web.serve"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    assert start() == (
        2,
        "lynceus: The dashboard and its API need an optional package: pip install -e '.[web]' in the project's folder.\n",
    )
