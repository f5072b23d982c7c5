"""What a server remembers of named tokens while requests of other users change them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lynceus.server.named_tokens import NamedTokens
from lynceus.storage.access_token import Role, StoredToken
from lynceus.storage.sql.storage import Storage
from lynceus.storage.sql.tokens import TokenStore


class Overtaken(TokenStore):
    """A store in which something happens between a question and its answer, once."""

    meanwhile: Callable[[], None] | None = None

    def stored(self) -> tuple[StoredToken, ...]:
        answer = super().stored()
        self._overtake()
        return answer

    def of_session(self, secret: str) -> StoredToken | None:
        answer = super().of_session(secret)
        self._overtake()
        return answer

    def _overtake(self) -> None:
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()


@pytest.fixture
def known(tmp_path: Path) -> Iterator[NamedTokens]:
    with Storage(f"sqlite:///{tmp_path}/s.db") as storage:
        tokens = NamedTokens(
            Overtaken(storage), clock=lambda: 1000.0
        )  # time stands still: what is believed stays believed
        yield tokens
        tokens.close()


def test_a_token_that_is_revoked_while_the_storage_answers_is_refused_from_then_on(known: NamedTokens) -> None:
    store = known.store
    assert isinstance(store, Overtaken)
    _, secret = store.add("ana", Role.ADMIN, by="boss")

    def revoke() -> None:
        store.revoke("ana", by="boss")
        known.forget()

    store.meanwhile = revoke
    asyncio.run(known.find(secret))  # perhaps still accepted
    assert asyncio.run(known.find(secret)) is None


def test_a_session_that_ends_while_the_storage_answers_has_ended_from_then_on(known: NamedTokens) -> None:
    store = known.store
    assert isinstance(store, Overtaken)
    store.add("ana", Role.ADMIN, by="boss")
    cookie = store.begin_session(store.stored()[0], 60.0)
    store.meanwhile = lambda: asyncio.run(known.end_session(cookie))
    asyncio.run(known.of_session(cookie))
    assert asyncio.run(known.of_session(cookie)) is None
