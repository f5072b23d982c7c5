"""The clock of a storage. Moments that several hosts compare come from one clock: the database's, never one host's own.

PostgreSQL tells its time. A SQLite file belongs to one machine, so its moments are that machine's. The machine's clock may be set while
workers run; leases are therefore measured on SQLite by the time since boot, which nobody can set and which all containers share.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from lynceus.storage.worker import boot_id

_DATABASE_NOW = text("SELECT extract(epoch FROM clock_timestamp())::float8")
_CLOCK_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


@dataclass(frozen=True, slots=True)
class LeaseTime:
    """A moment by which leases are measured."""

    clock: str | None
    """The boot whose seconds are counted; None: seconds since the epoch by the storage's clock."""
    at_s: float


@dataclass(frozen=True, slots=True)
class StorageClock:
    """Tells the time of a storage."""

    engine: Engine
    given: Callable[[], float] | None = None
    """Replaces the clock: simulations and tests."""

    def now(self, connection: Connection | None = None) -> float:
        """Seconds since the epoch, as all moments of the storage; inside a transaction, ask on its connection."""
        if self.given is not None:
            return self.given()
        if self.engine.dialect.name != "postgresql":
            return time.time()
        if connection is None:
            with self.engine.connect() as connection:
                return float(connection.execute(_DATABASE_NOW).scalar_one())
        return float(connection.execute(_DATABASE_NOW).scalar_one())

    def lease_now(self, now: float) -> LeaseTime:
        """The moment for leases; `now` is what `now` has just told."""
        boot = boot_id() if self.given is None and self.engine.dialect.name == "sqlite" else ""
        return LeaseTime(boot, steady_s()) if boot else LeaseTime(None, now)


def steady_s() -> float:
    """Seconds by a clock of this machine that nobody can set, and that goes on while a process or the machine sleeps."""
    return time.monotonic() if _CLOCK_BOOTTIME is None else time.clock_gettime(_CLOCK_BOOTTIME)


def machine_started_s() -> float:
    """When this machine was started, seconds since the epoch by its own clock; 0 when that is not known."""
    return 0.0 if _CLOCK_BOOTTIME is None else time.time() - steady_s()
