"""Named tokens in a real storage: only hashes are kept, and sessions end with their token."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import MetaData, select

from lynceus.errors import InputError
from lynceus.storage.access_token import Role, digest_of
from lynceus.storage.sql.audit_log import audit_log
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tokens import LONGEST_S, TokenExistsError, TokenStore, UnknownTokenError


class Clock:
    """18 November 2026, until it is set."""

    now_s = 1_795_000_000.0

    def __call__(self) -> float:
        return self.now_s


def everything(storage: Storage) -> str:
    """All rows of all tables as a text."""
    tables = MetaData()
    with storage._engine.connect() as connection:
        tables.reflect(connection)
        return repr([[tuple(row) for row in connection.execute(select(table))] for table in tables.sorted_tables])


def test_a_token_is_added_listed_and_revoked_and_the_audit_says_by_whom(url: str) -> None:
    with Storage(url, now=Clock()) as storage:
        store = TokenStore(storage)
        made, secret = store.add("airflow", Role.RUNNER, by="ana", lasts_s=86400.0)
        store.add("zoe", Role.VIEWER, by="token boss (10.0.0.7)")
        assert (made.created_s, made.created_by, made.expires_s) == (Clock.now_s, "ana", Clock.now_s + 86400.0)
        assert [(one.name, one.role, one.last_used_s) for one in store.all()] == [
            ("airflow", Role.RUNNER, None),
            ("zoe", Role.VIEWER, None),
        ]
        found, _ = store.stored()
        assert found.has_secret(digest_of(secret))
        assert not found.has_secret(digest_of(secret + "0"))
        store.mark_used(found.id)
        assert store.all()[0].last_used_s == Clock.now_s
        store.revoke("airflow", by="bo")
        assert [one.name for one in store.all()] == ["zoe"]
        told = [(one.author, one.kind, one.subject, one.detail) for one in audit_log(storage)]
        assert told == [
            ("ana", "token", "airflow", {"role": "runner", "expires_s": Clock.now_s + 86400.0}),
            ("token boss (10.0.0.7)", "token", "zoe", {"role": "viewer", "expires_s": None}),
            ("bo", "token", "airflow", {"role": None}),
        ]


def test_no_secret_is_stored_and_none_is_shown(url: str) -> None:
    with Storage(url) as storage:
        store = TokenStore(storage)
        made, secret = store.add("ana", Role.ADMIN, by="boss")
        (stored,) = store.stored()
        cookie = store.begin_session(stored, 60.0)
        kept = everything(storage)
        for hidden in (secret, cookie):
            assert hidden not in kept
            assert hashlib.sha256(hidden.encode()).hexdigest() in kept
        assert secret not in repr((made, stored))
        assert stored.digest not in repr(stored)
        secrets = {secret, cookie, *(store.add(f"t{number}", Role.VIEWER, by="")[1] for number in range(20))}
        assert len(secrets) == 22


def test_a_token_expires_at_its_moment(url: str) -> None:
    with Storage(url, now=Clock()) as storage:
        made, _ = TokenStore(storage).add("ana", Role.VIEWER, by="boss", lasts_s=10.0)
        for_ever, _ = TokenStore(storage).add("bo", Role.VIEWER, by="boss")
    assert [made.expired(Clock.now_s + later) for later in (0.0, 9.9, 10.0, 1e9)] == [False, False, True, True]
    assert not for_ever.expired(1e12)


def test_sessions_end_by_themselves_with_a_sign_out_and_with_their_token(url: str) -> None:
    clock = Clock()
    with Storage(url, now=clock) as storage:
        store = TokenStore(storage)
        store.add("ana", Role.RUNNER, by="boss")
        (stored,) = store.stored()
        first, second, third = (store.begin_session(stored, 100.0) for _ in range(3))
        assert store.of_session(first) == store.of_session(second) == stored
        assert store.of_session("lyn_guess") is None
        store.end_session(first)
        assert (store.of_session(first), store.of_session(second)) == (None, stored)
        clock.now_s += 100.0
        assert store.of_session(second) is None
        fourth = store.begin_session(stored, 100.0)
        assert digest_of(third) not in everything(storage), "what has expired is removed"
        store.revoke("ana", by="boss")
        assert store.of_session(fourth) is None
        assert digest_of(fourth) not in everything(storage)
        late = store.begin_session(stored, 100.0)  # the token was revoked while its owner signed in
        store.add("ana", Role.ADMIN, by="boss")
        assert store.of_session(late) is None
        later = store.begin_session(
            stored, 100.0
        )  # a new one was made meanwhile as well; SQLite gives it the same number
        assert store.of_session(later) is None


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b", "-a", "é", "a\n", "x" * 101, "\ud800"])
def test_names_that_nobody_could_type_are_refused(name: str) -> None:
    with Storage("sqlite://") as storage, pytest.raises(InputError, match="token: got the name"):
        TokenStore(storage).add(name, Role.VIEWER, by="boss")


def test_mistakes_name_the_way_out(url: str) -> None:
    with Storage(url) as storage:
        store = TokenStore(storage)
        store.add("ana", Role.VIEWER, by="boss")
        with pytest.raises(TokenExistsError, match=r"'ana' exists already in .*; choose another name, or replace it"):
            store.add("ana", Role.ADMIN, by="boss")
        assert store.all()[0].role is Role.VIEWER
        with pytest.raises(UnknownTokenError, match=r"'bo' is not in .*; known are: ana\."):
            store.revoke("bo", by="boss")
        for lasts_s in (0.0, -1.0, float("nan"), float("inf"), LONGEST_S * 2):
            with pytest.raises(InputError, match="give a duration such as 30d"):
                store.add("bo", Role.VIEWER, by="boss", lasts_s=lasts_s)
