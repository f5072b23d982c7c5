"""Named tokens on real servers: every route has a role, every role does what it may and nothing else, and audits name the token."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.routing import iter_route_contexts
from starlette.routing import Mount

import lynceus
from dashboards import JOB, READ, WRITE, Answer, Dashboard, served
from local_runs import eventually
from lynceus.errors import InputError
from lynceus.server import named_tokens
from lynceus.server.access import COOKIE
from lynceus.server.app import create_app
from lynceus.server.route_roles import ROUTES, needed_role
from lynceus.storage.access_token import Role, digest_of, new_secret
from lynceus.storage.sql.audit import AuditEntry
from lynceus.storage.sql.audit_log import audit_log
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tokens import TokenStore

WRITING = [
    (role, route)
    for role in (Role.RUNNER, Role.ADMIN)
    for route in ROUTES[role]
    if not route.startswith("GET ") or role is Role.ADMIN
]


@dataclass
class Team:
    """A server, its storage, and the secrets of its tokens."""

    server: Dashboard
    url: str
    secrets: dict[str, str]

    def ask(self, route: str, name: str | None, study: str = "toy") -> Answer:
        """Send a request with an empty body; `name` is that of a token."""
        method, path = route.split(" ")
        for part, value in {"name": study, "number": "0", "account:path": "project:x"}.items():
            path = path.replace(f"{{{part}}}", value)
        body = None if method in ("GET", "DELETE") else {}
        return self.server.request(method, path, body, token=None if name is None else self.secrets[name])

    def audit(self) -> list[AuditEntry]:
        with Storage(self.url) as storage:
            return audit_log(storage)


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    url = f"sqlite:///{tmp_path}/s.db"
    with Storage(url) as storage:
        store = TokenStore(storage)
        secrets = {str(role): store.add(str(role), role, by="boss")[1] for role in Role}
    with served(url, tmp_path, read=READ, token=None) as running:
        assert running.post("studies", JOB, token=secrets["runner"]).status == 201
        yield Team(running, url, secrets)


def application_routes() -> set[str]:
    """Method and path of every route of the application, pages and static files included."""
    app = create_app("sqlite://")
    found = set()
    for context in iter_route_contexts(app.routes):
        methods = getattr(context, "methods", None) or {"GET"}
        path = f"{context.path}/{{path:path}}" if isinstance(context.original_route, Mount) else context.path
        found |= {f"{method} {path}" for method in methods if method not in ("HEAD", "OPTIONS")}
    app.state.context.storage.close()
    return found


def test_every_route_has_one_role() -> None:
    listed = [route for routes in ROUTES.values() for route in routes]
    assert len(listed) == len(set(listed)), "a route is listed twice"
    assert application_routes() == set(listed)


def test_what_only_reads_never_needs_more_than_a_viewer_but_for_tokens_and_all_changes_do() -> None:
    for role, routes in ROUTES.items():
        for route in routes:
            method, path = route.split(" ")
            if method == "GET":
                assert role in (None, Role.VIEWER) or path == "/api/v1/tokens", route
            else:
                assert role in (Role.RUNNER, Role.ADMIN) or path == "/api/v1/session", route
            if method == "DELETE" and path != "/api/v1/session":
                assert role is Role.ADMIN, route


@pytest.mark.parametrize(
    ("method", "path", "role"),
    [
        ("GET", "/api/v1/new", Role.VIEWER),
        ("HEAD", "/api/v1/studies", Role.VIEWER),
        ("HEAD", "/api/v1/tokens", Role.ADMIN),
        ("OPTIONS", "/api/v1/tokens", Role.ADMIN),
        ("POST", "/api/v1/new", Role.ADMIN),
        ("post", "/api/v1/studies", Role.ADMIN),
        ("POST", "/api/v1/studies/a/b/ask", Role.ADMIN),
        ("POST", "/api/v1/studies/a/ask/", Role.ADMIN),
        ("POST", "/", Role.ADMIN),
        ("PATCH", "/api/v1/studies/a", Role.ADMIN),
        ("DELETE", "/api/v1/budgets/project:a/b", Role.ADMIN),
        ("GET", "/apiary", Role.VIEWER),
        ("GET", "/nowhere", None),
    ],
)
def test_what_is_not_in_the_table_is_refused_by_default(method: str, path: str, role: Role | None) -> None:
    assert needed_role(method, path) is role


def test_every_role_is_refused_what_needs_a_higher_one(team: Team) -> None:
    """A viewer tries every writing route, a runner every route of admins, and nobody every route that needs a token."""
    before = team.server.get("studies/toy", token=READ).json["sequence"]
    for needed, route in WRITING:
        for role in Role:
            if role.allows(needed):
                continue
            refused = team.ask(route, str(role))
            assert refused.status == 403, route
            assert f"needs the role {needed}, and your token {role} has the role {role}" in refused.sentence
        nobody = team.ask(route, None)
        assert (nobody.status, f"the role {needed} is needed" in nobody.sentence) == (401, True), route
    for route in ROUTES[Role.VIEWER]:
        assert team.ask(route, None).status == 401, route
    assert team.server.get("studies/toy", token=READ).json["sequence"] == before
    assert [one.kind for one in team.audit()] == ["token"] * 3 + ["create"]


def test_every_role_may_do_what_it_is_for(team: Team) -> None:
    """Requests with an empty body pass the guard: what they lack is said by the route itself, never with 401 or 403."""
    for route in ROUTES[Role.VIEWER]:
        if not route.endswith("/events"):
            assert team.ask(route, "viewer").status not in (401, 403), route
    for route in ROUTES[Role.RUNNER]:
        assert team.ask(route, "runner", "unknown").status not in (401, 403), route
    for route in ROUTES[Role.ADMIN]:
        assert team.ask(route, "admin", "unknown").status not in (401, 403), route
    assert team.server.get("tokens", token=WRITE).status == 200, "the write token is an admin"
    assert team.server.get("tokens", token=READ).status == 403, "the read token is a viewer"


def test_the_audit_the_worker_and_the_owner_name_the_token(team: Team) -> None:
    runner, admin = team.secrets["runner"], team.secrets["admin"]
    me = "client 127.0.0.1 (token runner)"
    team.server.post("studies/toy/ask", token=runner)
    assert team.server.post("studies/toy/trials/0/stop", {}, token=runner).json["worker"] == me
    team.server.post("studies/toy/trials/0/tell", {"runtime": 9}, token=admin)
    team.server.post("studies/toy/stop", {}, token=runner)
    assert team.server.get("studies/toy", token=READ).json["owner"] == "runner", "its budget pays"
    named = JOB | {"name": "of-bo", "owner": "bo", "run": "true"}
    assert team.server.post("studies", named, token=runner).status == 201
    assert team.server.get("studies/of-bo", token=READ).json["owner"] == "bo"
    adopted = {"study": "toy", "params": {"n": 1, "mode": "a"}, "by": "somebody else"}
    assert team.server.post("jobs/night/adopt", adopted, token=runner).status == 200
    assert team.server.post("jobs/night/settings", {"held": True}, token=admin).status == 200
    told = [one["by"] for one in team.server.get("jobs/night", token=READ).json["changes"]]
    assert sorted(told) == ["client 127.0.0.1 (token admin)", "somebody else (token runner)"]
    assert team.server.request("PUT", "budgets/project:a", {"amount": 1}, token=admin).status == 200
    assert team.server.request("PUT", "budgets/project:a", {"amount": 2}, token=WRITE).status == 200
    assert team.server.request("DELETE", "studies/toy", token=admin).status == 200
    assert [(one.author, one.kind) for one in team.audit()][3:] == [
        (me, "create"),
        (me, "create"),
        ("client 127.0.0.1 (token admin)", "budget"),
        ("client 127.0.0.1", "budget"),
        ("client 127.0.0.1 (token admin)", "delete"),
    ]


def test_tokens_are_managed_over_http_and_work_at_once(team: Team) -> None:
    admin = lynceus.Client(team.server.url, team.secrets["admin"])
    secret = admin.add_token("ci", "runner", expires="30d")
    mine = lynceus.Client(team.server.url, secret)
    assert mine.create_study(JOB | {"name": "from-ci"}).name == "from-ci"
    found = {one["name"]: one for one in admin.tokens()}["ci"]
    assert (found["role"], found["created_by"]) == ("runner", "client 127.0.0.1 (token admin)")
    assert found["expires_s"] == pytest.approx(found["created_s"] + 30 * 86400)
    assert "digest" not in found
    with pytest.raises(InputError, match="needs the role admin, and your token ci has the role runner"):
        mine.add_token("mine", "admin")
    with pytest.raises(InputError, match="'ci' exists already"):
        admin.add_token("ci", "viewer")
    admin.revoke_token("ci")
    with pytest.raises(InputError, match="The token is wrong, or was revoked"):
        mine.studies()
    with pytest.raises(InputError, match="'ci' is not in"):
        admin.revoke_token("ci")
    for wrong in ({"name": "a b", "role": "viewer"}, {"name": "a", "role": "boss"}, {"name": "a"}, {"role": "viewer"}):
        assert team.server.post("tokens", wrong, token=WRITE).status == 422
    assert team.server.post("tokens", {"name": "a", "role": "viewer", "expires": "soon"}, token=WRITE).status == 422


def test_a_token_that_was_added_revoked_or_expired_elsewhere_is_noticed(team: Team) -> None:
    with Storage(team.url) as storage:
        store = TokenStore(storage)
        _, short = store.add("short", Role.VIEWER, by="boss", lasts_s=1.0)
        _, late = store.add("late", Role.VIEWER, by="boss")
        time.sleep(0.11)
        assert team.server.get("studies", token=late).status == 200, "a new token works at once"
        store.revoke("late", by="boss")
        eventually(lambda: team.server.get("studies", token=late).status == 401)
        eventually(lambda: team.server.get("studies", token=short).status == 401)
    refused = team.server.get("studies", token=short)
    assert refused.sentence == "The token short has expired; ask for a new one."


def test_the_last_use_is_stored(team: Team) -> None:
    def used() -> list[str]:
        found = team.server.get("tokens", token=WRITE).json["tokens"]
        return [one["name"] for one in found if one["last_used_s"] is not None]

    eventually(lambda: used() == ["runner"])
    headers, _ = sign_in(team.server, team.secrets["viewer"])
    assert team.server.get("studies", headers).status == 200
    eventually(lambda: used() == ["runner", "viewer"])


def sign_in(server: Dashboard, token: str) -> tuple[dict[str, str], Answer]:
    """The headers of a browser that is signed in, and the answer."""
    answer = server.post("session", {"token": token}, {"Origin": server.url}, token=None)
    assert answer.status == 200, answer.body
    cookie = answer.headers["set-cookie"].partition(";")[0]
    return {"Cookie": cookie, "Origin": server.url, "X-CSRF-Token": answer.json["csrf"]}, answer


def test_a_browser_signs_in_with_a_named_token_and_is_signed_out_with_it(team: Team) -> None:
    secret = team.secrets["runner"]
    headers, answer = sign_in(team.server, secret)
    shown = {name: answer.json[name] for name in ("signed_in", "role", "token", "can_write")}
    assert shown == {"signed_in": True, "role": "runner", "token": "runner", "can_write": True}
    cookie = headers["Cookie"].removeprefix(f"{COOKIE}=")
    assert all(word in answer.headers["set-cookie"] for word in ("HttpOnly", "SameSite=strict"))
    assert secret not in answer.headers["set-cookie"] + answer.body.decode()
    assert team.server.post("studies/toy/queue", {"params": {"n": 1, "mode": "a"}}, headers).status == 200
    without = {name: value for name, value in headers.items() if name != "X-CSRF-Token"}
    assert team.server.post("studies/toy/stop", {}, without).status == 403
    assert team.server.request("DELETE", "studies/toy", None, headers).status == 403, "a runner"
    assert team.server.get("studies", token=cookie).status == 401, "the secret of a session is no token"
    forged = {"Cookie": f"{COOKIE}={secret}"}
    assert team.server.get("studies", forged).status == 401, "a token is no session"
    other, _ = sign_in(team.server, secret)
    assert team.server.request("DELETE", "session", None, headers).json["signed_in"] is False
    assert [team.server.get(path, headers).status for path in ("studies", "/metrics")] == [401, 401]
    assert team.server.get("studies", other).status == 200
    with served(team.url, Path(team.url.removeprefix("sqlite:///")).parent, read=READ, token=None) as second:
        assert second.get("studies", other).status == 200, "a session works on every server of the storage"
    team.server.request("DELETE", "tokens/runner", token=WRITE)
    assert team.server.get("studies", other).status == 401
    assert team.server.get("session", other).json["signed_in"] is False


def test_forged_tokens_open_nothing(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = team.secrets["admin"]
    with Storage(team.url) as storage:
        (digest, *_) = [one.digest for one in TokenStore(storage).stored()]
    forgeries = [new_secret(), secret[:-1], secret + "A", secret.upper(), digest, f"lyn_{digest}", "lyn_", ""]
    forgeries += ["lyn_" + "\u00e9" * 43, digest_of(secret), secret[4:], f"{secret}, {secret}", "lyn_' OR '1'='1"]
    for forged in forgeries:
        header = forged.encode("latin-1", "replace").decode("latin-1")
        answer = team.server.get("studies", {"Authorization": f"Bearer {header}"})
        assert answer.status in (401, 429), forged
        assert not forged or len(forged) < 8 or forged not in answer.body.decode("utf-8", "replace")
    for query in (f"studies?token={secret}", f"studies?access_token={secret}"):
        assert team.server.get(query, token=None).status == 401, "tokens in URLs are ignored"
    assert team.server.get("studies", token=secret).status == 200, "a right token is always accepted"


def test_secrets_are_in_no_answer_page_or_log(team: Team, caplog: pytest.LogCaptureFixture) -> None:
    secret = team.secrets["admin"]
    answers = [
        team.server.get(path, token=secret)
        for path in ("tokens", "studies", "session", "budgets", "/metrics", "openapi.json", "nowhere", "/")
    ]
    answers += [
        team.server.post("tokens", {"name": "viewer", "role": "admin"}, token=secret),
        team.server.post("session", {"token": [secret]}, {"Origin": team.server.url}),
        team.server.post("session", {"token": secret * 20}, {"Origin": team.server.url}),
        team.server.post("session", {"token": secret, "more": 1}, {"Origin": team.server.url}),
    ]
    for answer in answers:
        assert secret not in answer.body.decode() + json.dumps(answer.headers)
    assert "lyn_" not in caplog.text


def test_a_server_with_named_tokens_alone_lets_nobody_else_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with Storage(url) as storage:
        _, viewer = TokenStore(storage).add("ana", Role.VIEWER, by="boss")
    with served(url, tmp_path, write=None, token=None, closed=True) as server:
        assert server.get("studies").status == 401
        assert server.get("studies", token=viewer).status == 200
        assert "This server is read-only" in server.post("studies", JOB, token=viewer).sentence
        session = server.get("session").json
        assert (session["needs_token"], session["writes"], session["can_read"]) == (True, False, False)
        with Storage(url) as storage:
            _, runner = TokenStore(storage).add("bo", Role.RUNNER, by="boss")
        eventually(lambda: server.get("session").json["writes"])
        assert "send a named token with that role" in server.post("studies", JOB, token=viewer).sentence
        assert server.post("studies", JOB, token=runner).status == 201


def test_wrong_tokens_do_not_make_the_server_read_the_storage_for_each(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_tokens, "_MISSED_S", 3600.0)
    monkeypatch.setattr(named_tokens, "BELIEVED_S", 3600.0)
    reads: list[None] = []
    stored = TokenStore.stored
    monkeypatch.setattr(TokenStore, "stored", lambda store: reads.append(None) or stored(store))
    for number in range(30):
        team.server.get("studies", token=f"lyn_{number:043d}")
        team.server.get("studies", token=f"other-{number}")
    assert len(reads) <= 1
