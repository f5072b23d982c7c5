"""The ledger of a study, read with plain SQL. The product's own readers are among what is attacked."""

import json
import math
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

from lynceus.trial.record import Record


@dataclass(frozen=True)
class Entry:
    """One trial."""

    number: int
    row: int
    timeout_s: float
    reserved_usd: float
    boots: bool
    purpose: str
    settled: bool
    end: str = ""
    reason: str = ""
    seconds: float = 0.0
    charged_usd: float = 0.0
    detail: str = ""
    launched_s: float | None = None
    heartbeat_s: float | None = None

    @property
    def overran(self) -> bool:
        return self.settled and self.charged_usd > self.reserved_usd * (1 + 1e-9) + 1e-12


@dataclass(frozen=True)
class Ledger:
    identity: str
    added_usd: float
    requested_state: str
    because: str | None
    queue: tuple[int, ...]
    entries: tuple[Entry, ...]

    @property
    def spent_usd(self) -> float:
        return math.fsum(one.charged_usd for one in self.entries)

    @property
    def reserved_usd(self) -> float:
        return math.fsum(one.reserved_usd for one in self.entries if not one.settled)

    @property
    def open(self) -> tuple[Entry, ...]:
        return tuple(one for one in self.entries if not one.settled)


_STUDY = "SELECT id, identity, added_usd, wish, because, queue FROM studies WHERE name = "
_TRIALS = "SELECT number, rank, ordered, outcome, launched_s, heartbeat_s FROM trials WHERE study_id = "


def read_ledger(url: str, name: str) -> Ledger | None:
    """None if there is no such study, or not yet."""
    if url.startswith("sqlite"):
        if not os.path.exists(path := url.partition("///")[2]):
            return None
        try:
            with closing(sqlite3.connect(path, timeout=60, isolation_level=None)) as connection:
                connection.execute("BEGIN")  # both queries see the same moment
                return _read(connection, name, "?")
        except sqlite3.OperationalError as error:
            if "no such table" not in str(error):
                raise
            return None
    with psycopg.connect(_libpq(url)) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            return _read(connection, name, "%s")
        except psycopg.errors.UndefinedTable:
            return None


def _libpq(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(scheme="postgresql"))


def _read(connection: Any, name: str, mark: str) -> Ledger | None:
    study = connection.execute(_STUDY + mark, (name,)).fetchone()
    if study is None:
        return None
    key, identity, added, wish, because, queue = study
    rows = connection.execute(f"{_TRIALS}{mark} ORDER BY number", (key,)).fetchall()
    return Ledger(identity, added, wish, because, tuple(_json(queue)), tuple(_entry(*row) for row in rows))


def _entry(
    number: int, rank: int | None, ordered: Any, outcome: Any, launched: float | None, beat: float | None
) -> Entry:
    order, ended = _json(ordered), _json(outcome) or {}
    assert order["number"] == number
    assert (rank is None) == (not ended), f"trial {number} has rank {rank} and outcome {ended}"
    return Entry(
        number,
        order["row"],
        float(order["cap_s"]),
        float(order["reserved_usd"]),
        order["boots"],
        order["plan"].get("purpose", "search"),
        rank is not None,
        ended.get("end", ""),
        ended.get("reason") or "",
        ended.get("seconds", 0.0),
        ended.get("charged_usd", 0.0),
        ended.get("detail", ""),
        launched,
        beat,
    )


def _json(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def ledger_of(record: Record) -> Ledger:
    """The ledger of a study in memory."""
    settled = [
        Entry(
            seen.order.number,
            seen.order.row,
            seen.order.timeout_s,
            seen.order.reserved_usd,
            seen.order.boots,
            str(seen.order.plan.purpose),
            True,
            str(seen.outcome.end),
            str(seen.outcome.reason or ""),
            seen.outcome.seconds,
            seen.outcome.charged_usd,
            seen.outcome.detail,
        )
        for seen in record.observations
    ]
    running = [
        Entry(order.number, order.row, order.timeout_s, order.reserved_usd, order.boots, str(order.plan.purpose), False)
        for order in record.pending
    ]
    stopped = None if record.stopped is None else str(record.stopped.kind)
    entries = tuple(sorted([*settled, *running], key=lambda one: one.number))
    return Ledger(record.identity, record.added_usd, str(record.requested_state), stopped, record.queue, entries)


Billing = Mapping[str, float]
"""`granularity_s`, `minimum_s`, `boot_s` and `fee_usd`; absent is 0."""


def charge(billing: Billing, seconds: float, usd_per_s: float, *, boots: bool) -> float:
    """What a run costs, computed again as the documentation of `billing` says it."""
    billed = seconds + (billing.get("boot_s", 0.0) if boots else 0.0)
    step = billing.get("granularity_s", 0.0)
    if step:
        units = billed / step
        whole = round(units)
        billed = step * (whole if abs(units - whole) < 1e-6 else math.ceil(units))
    fee = billing.get("fee_usd", 0.0) if boots else 0.0
    return max(billed, billing.get("minimum_s", 0.0)) * usd_per_s + fee
