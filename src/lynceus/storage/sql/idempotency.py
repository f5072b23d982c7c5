"""Answers by idempotency key: a repeated request gets the first answer, and nothing happens twice.

An answer is written in the transaction of what it reports, so that both are kept or neither is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from lynceus.errors import InputError
from lynceus.storage.sql.tables import answers

KEPT_S = 30 * 86_400.0
"""How long answers are kept: no client repeats a request after a month."""
LONGEST_KEY = 200


class ReusedKeyError(InputError):
    """One idempotency key came with two different requests."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Idempotency-Key {key[:60]!r} came with another request before; choose a new key for every new request."
        )


@dataclass(frozen=True, slots=True)
class Once:
    """A request that must be carried out once."""

    key: str
    """Chosen by the client: a random text, the same for every repetition."""
    request: str
    """SHA-256 of everything that was asked, see `request_digest`."""

    def __post_init__(self) -> None:
        if not 1 <= len(self.key) <= LONGEST_KEY or not self.key.isprintable():
            raise InputError(
                f"Idempotency-Key has {len(self.key)} characters; give 1 to {LONGEST_KEY} printable ones, such as a UUID."
            )


def request_digest(*parts: object) -> str:
    """A SHA-256 of what was asked, the same for equal values however they were written.

    >>> request_digest("ask", {"a": 1, "b": 2}) == request_digest("ask", {"b": 2, "a": 1})
    True
    """
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request."""

    once: Once
    values: Mapping[str, Any]
    """JSON values."""

    def to(self, once: Once) -> Mapping[str, Any]:
        """The answer for a repetition; another request with the same key is refused."""
        if once.request != self.once.request:
            raise ReusedKeyError(once.key)
        return self.values


def given_answers(connection: Connection, asked: Sequence[Once]) -> dict[str, Answer]:
    """The answers that were given before, by key; what is missing is new."""
    if not asked:
        return {}
    wanted = select(answers.c.key, answers.c.request, answers.c.answer).where(
        answers.c.key.in_([once.key for once in asked])
    )
    return {row.key: Answer(Once(row.key, row.request), row.answer) for row in connection.execute(wanted)}


def keep_answers(connection: Connection, study_id: int, given: Sequence[Answer], now: float) -> None:
    """Store answers beside what they report."""
    if given:
        rows = [
            {
                "key": one.once.key,
                "study_id": study_id,
                "request": one.once.request,
                "answer": dict(one.values),
                "at_s": now,
            }
            for one in given
        ]
        connection.execute(insert(answers), rows)


def forget_answers(connection: Connection, now: float) -> None:
    """Delete old answers."""
    connection.execute(delete(answers).where(answers.c.at_s < now - KEPT_S))
