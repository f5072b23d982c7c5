"""Answers that were given, by idempotency key: whoever repeats a request is given the first answer, and nothing happens twice.

They are written in the transaction of what they answer, so that both are kept or neither is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, insert, select

from lynceus.errors import InputError
from lynceus.ledger.schema import answers

KEPT_S = 30 * 86_400.0
"""How long answers are kept: nobody repeats a request after a month."""
LONGEST_KEY = 200


class ReusedKeyError(InputError):
    """One idempotency key came with two different requests."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"Idempotency-Key {key[:60]!r} came with another request before; choose a new key for every new request."
        )


@dataclass(frozen=True, slots=True)
class Once:
    """A request that is to be done once."""

    key: str
    """Chosen by whoever asks: a random text, the same for every repetition."""
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


def given_answer(connection: Connection, once: Once) -> Any | None:
    """The answer that this request was given before; nothing: it is new."""
    found = connection.execute(
        select(answers.c.request, answers.c.answer).where(answers.c.key == once.key)
    ).one_or_none()
    if found is None:
        return None
    if found.request != once.request:
        raise ReusedKeyError(once.key)
    return found.answer


def keep_answer(connection: Connection, study_id: int, once: Once, answer: Mapping[str, Any], now: float) -> None:
    """Keep an answer beside what it tells of."""
    connection.execute(
        insert(answers).values(key=once.key, study_id=study_id, request=once.request, answer=dict(answer), at_s=now)
    )


def forget_answers(connection: Connection, now: float) -> None:
    """Answers that nobody will ask for again."""
    connection.execute(delete(answers).where(answers.c.at_s < now - KEPT_S))
