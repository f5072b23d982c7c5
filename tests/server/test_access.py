"""Access control on real servers: tokens, sessions, CSRF, host names, rate limits."""

import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.datastructures import Headers

from dashboards import JOB, READ, WRITE, Dashboard, dashboard, served
from local_runs import eventually
from lynceus.server import guard
from lynceus.server.access import SESSION_S, Access
from lynceus.server.login_limits import FREE_FAILURES, LONGEST_WAIT_S, LoginLimits
from lynceus.server.proxies import TrustedProxies
from lynceus.server.routes import session
from lynceus.storage.access_token import Role
from lynceus.storage.sql.storage import Storage
from lynceus.version import __version__


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A server with both tokens; requests carry none unless they give one."""
    folder = tmp_path_factory.mktemp("guarded")
    with dashboard(f"sqlite:///{folder}/studies.db", folder, read=READ, token=None) as running:
        assert running.post("studies", JOB, token=WRITE).status == 201
        yield running
    text = "".join(running.stderr)
    assert READ not in text
    assert WRITE not in text
    assert not running.broken, text


READS = [
    "studies",
    "studies/toy",
    "studies/toy/trials",
    "studies/toy/view",
    "studies/toy/export",
    "studies/toy/insight",
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
        assert plain.get("studies").json["studies"] == []
        assert plain.get("studies", token=None).status == 401
        refused = plain.post("studies", JOB)
        assert (refused.status, "read-only" in refused.sentence) == (403, True)
        assert plain.get("session").json["can_write"] is False
        assert plain.process is not None
        command = Path(f"/proc/{plain.process.pid}/cmdline").read_text()
    assert READ not in command


def test_tokens_in_urls_are_ignored(guarded: Dashboard) -> None:
    for query in (f"studies?token={READ}", f"studies?access_token={WRITE}"):
        assert guarded.get(query).status == 401


def sign_in(server: Dashboard, token: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The headers of a browser that is signed in, and its session."""
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
        "role": None,
        "token": None,
        "can_read": False,
        "can_write": False,
        "csrf": None,
        "needs_token": True,
        "writes": True,
        "version": __version__,
    }
    headers, signed_in = sign_in(guarded, WRITE)
    assert (signed_in["signed_in"], signed_in["can_read"], signed_in["can_write"]) == (True, True, True)
    assert guarded.get("studies", headers).status == 200
    assert guarded.post("studies/toy/queue", {"params": {"n": 1, "mode": "a"}}, headers).status == 200
    signed_out = guarded.request("DELETE", "session", None, headers)
    assert signed_out.json["signed_in"] is False
    assert 'lynceus_session=""' in signed_out.headers["set-cookie"]


def test_a_reader_who_signed_in_cannot_write(guarded: Dashboard) -> None:
    headers, signed_in = sign_in(guarded, READ)
    assert (signed_in["can_read"], signed_in["can_write"]) == (True, False)
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
def test_other_sites_cannot_use_the_session_cookie(guarded: Dashboard, change: dict[str, str | None]) -> None:
    headers, _ = sign_in(guarded, WRITE)
    forged = {name: value for name, value in (headers | change).items() if value is not None}
    before = guarded.get("studies/toy", token=READ).json["sequence"]
    assert guarded.post("studies/toy/stop", {}, forged).status == 403
    assert guarded.get("studies/toy", token=READ).json["sequence"] == before


def test_the_csrf_token_of_another_session_is_refused(guarded: Dashboard) -> None:
    mine, _ = sign_in(guarded, WRITE)
    other, _ = sign_in(guarded, WRITE)
    assert guarded.post("studies/toy/ask", {}, mine | {"X-CSRF-Token": other["X-CSRF-Token"]}).status == 403


def test_sessions_are_signed_by_role_and_expire() -> None:
    access = Access(READ, WRITE)
    cookie = access.new_session(Role.ADMIN, now=1000.0)
    assert access.session_role(cookie, 1000.0) is Role.ADMIN
    assert access.session_role(cookie, 1001.0 + SESSION_S) is None
    # With the read token alone, one can forge sessions of readers, but not of writers.
    reader = Access(READ, "guessed-write-token-00")
    assert access.session_role(reader.new_session(Role.VIEWER, 1000.0), 1000.0) is Role.VIEWER
    assert access.session_role(reader.new_session(Role.ADMIN, 1000.0), 1000.0) is None
    forged = "admin." + access.new_session(Role.VIEWER, 1000.0).partition(".")[2]
    for invalid in (
        forged,
        "",
        "a.b.c.d",
        "admin.inf.x.y",
        cookie + "0",
        cookie[:-1],
        "none.9999999999.x.y",
        "runner.9999999999.x.y",
        "\ud800.1.2.3",
    ):
        assert access.session_role(invalid, 1000.0) is None, invalid
    without_write = Access(READ)
    assert without_write.session_role(without_write.new_session(Role.ADMIN, 1000.0), 1000.0) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]", "localhost.evil"]
)
def test_other_host_names_are_refused(guarded: Dashboard, host: str) -> None:
    answer = guarded.get("studies", {"Host": host}, token=READ)
    assert answer.status == 421
    assert b"toy" not in answer.body


@pytest.mark.parametrize("host", ["localhost:1", "LOCALHOST", "127.0.0.1", "[::1]:8080"])
def test_names_of_this_machine_are_accepted(guarded: Dashboard, host: str) -> None:
    assert guarded.get("studies", {"Host": host}, token=READ).status == 200


def test_wrong_tokens_of_a_stranger_keep_nobody_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All come from one address, as behind a proxy: wrong tokens must wait, right ones never."""
    now = [time.time()]
    for module in (guard, session):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: now[0]))
    with served(f"sqlite:///{folder}/s.db", folder, read=READ, token=None) as server:
        statuses = [server.get("studies", token=f"guess-{number}").status for number in range(20)]
        assert statuses == [401] * (FREE_FAILURES + 1) + [429] * (19 - FREE_FAILURES)
        assert server.get("studies", token=READ).status == 200
        refused = server.post("session", {"token": "guess-again"}, {"Origin": server.url})
        assert (refused.status, 1 <= int(refused.headers["retry-after"]) <= 2) == (429, True)
        assert server.post("session", {"token": READ}, {"Origin": server.url}).status == 200
        now[0] += 2.1
        assert server.get("studies", token="guess-again").status == 401
        assert int(server.get("studies", token="and-again").headers["retry-after"]) >= 3, "readers do not end the wait"
        assert server.get("studies", token=WRITE).status == 200
        assert server.get("studies", token="once-more").status == 401, "the write token does"


def test_a_trusted_proxy_names_the_client_and_the_scheme(folder: Path) -> None:
    def guess(server: Dashboard, count: int, **headers: str) -> int:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        for number in range(count):
            last = server.get("studies", named | {"Authorization": f"Bearer guess-{number}"})
        return last.status

    with served(
        f"sqlite:///{folder}/s.db", folder, read=READ, token=None, proxies=("127.0.0.1", "10.0.0.0/8")
    ) as behind:
        assert guess(behind, FREE_FAILURES + 2, X_Forwarded_For="6.6.6.6, 192.0.2.7, 10.0.0.2") == 429
        assert guess(behind, 1, X_Forwarded_For="192.0.2.8") == 401, "another client"
        assert guess(behind, 1, X_Forwarded_For="192.0.2.9, 192.0.2.7") == 429, "what the client writes does not count"
        assert guess(behind, 1, Forwarded='for="192.0.2.7:4711";proto=https') == 429
        both = {"X-Forwarded-For": "192.0.2.7", "Forwarded": "for=192.0.2.99"}
        assert guess(behind, 1, **{name.replace("-", "_"): value for name, value in both.items()}) == 401, "the proxy"
        signed = behind.post("session", {"token": WRITE}, {"Origin": behind.url, "X-Forwarded-Proto": "https"})
        assert SimpleCookie(signed.headers["set-cookie"])["lynceus_session"]["secure"]
    with served(f"sqlite:///{folder}/s.db", folder, read=READ, token=None) as direct:
        for number in range(FREE_FAILURES + 1):
            direct.get("studies", {"Authorization": f"Bearer guess-{number}", "X-Forwarded-For": f"192.0.2.{number}"})
        assert guess(direct, 1, X_Forwarded_For="192.0.2.77") == 429, "nobody is believed"
        signed = direct.post("session", {"token": WRITE}, {"Origin": direct.url, "X-Forwarded-Proto": "https"})
        assert not SimpleCookie(signed.headers["set-cookie"])["lynceus_session"]["secure"]


@pytest.mark.parametrize(
    ("hops", "client"),
    [
        ("", "10.0.0.1"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, not an address, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.3, 10.0.0.2", "10.0.0.3"),
        ("unknown", "10.0.0.1"),
    ],
)
def test_chains_of_proxies(hops: str, client: str) -> None:
    proxies = TrustedProxies.parse(["10.0.0.0/8"])
    assert proxies.sender("10.0.0.1", "http", Headers({"x-forwarded-for": hops})) == (client, "http")
    if client != "10.0.0.1":
        quoted = ", ".join(f'for="{hop}";by=x;proto=http' for hop in hops.split(", "))
        assert proxies.sender("10.0.0.1", "http", Headers({"forwarded": quoted})) == (client, "http")


def test_a_session_ends_with_its_sign_out_on_every_server(folder: Path) -> None:
    url = f"sqlite:///{folder}/s.db"
    with served(url, folder, read=READ, token=None) as one:
        stolen, _ = sign_in(one, WRITE)
        kept, _ = sign_in(one, WRITE)
        assert one.request("DELETE", "session", None, stolen).status == 200
        assert one.get("studies", stolen).status == 401
        assert one.get("session", stolen).json["signed_in"] is False
        assert one.get("studies", kept).status == 200
        with served(url, folder, read=READ, token=None) as two:
            assert two.get("studies", stolen).status == 401
            assert two.get("studies", kept).status == 200
            assert two.request("DELETE", "session", None, kept | {"Origin": two.url}).status == 200
            eventually(lambda: one.get("studies", kept).status == 401)


def test_waits_double_with_each_failure_and_expire() -> None:
    limits, now = LoginLimits(), 0.0
    waits = []
    for number in range(40):
        limits.failed("a", f"guess {number}", now)
        waits.append(limits.wait_s("a", now))
        now += waits[-1]
    assert waits[:FREE_FAILURES] == [0.0] * FREE_FAILURES
    assert waits[FREE_FAILURES : FREE_FAILURES + 4] == [2.0, 4.0, 8.0, 16.0]
    assert waits[-1] == LONGEST_WAIT_S
    limits.failed("a", "another", now)
    assert limits.wait_s("a", now + LONGEST_WAIT_S) == 0.0
    assert limits.wait_s("b", now) == 0.0
    limits.failed("a", "much later", now + 1e5)
    assert limits.wait_s("a", now + 1e5) == 0.0, "failures expire after an hour"
    for number in range(20_000):
        limits.failed(f"address {number}", "guess", now)
    assert len(limits._failures) <= 10_000
