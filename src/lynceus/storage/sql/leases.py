"""Leases of open runs: who may take a run over, and when. Heartbeats renew a lease; only one that ran out lets others in."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, select

from lynceus.storage.sql.clock import StorageClock, machine_started_s
from lynceus.storage.sql.tables import trials
from lynceus.storage.worker import lives, parse_worker
from lynceus.trial.record import OpenRun

LOST_AFTER_S = 900.0
"""How long a lease lasts: a run whose worker cannot be seen from here is lost when it was not renewed for so long."""

_COLUMNS = [trials.c.lease_s, trials.c.lease_clock, trials.c.heartbeat_s, trials.c.ordered_s]


@dataclass(frozen=True, slots=True)
class Leases:
    """The leases of one study."""

    study_id: int
    clock: StorageClock
    lasts_s: float = LOST_AFTER_S

    def renewed(self, now: float) -> dict[str, Any]:
        """The columns of a lease that begins now."""
        time = self.clock.lease_now(now)
        return {"lease_s": time.at_s + self.lasts_s, "lease_clock": time.clock}

    def abandoned(self, connection: Connection, run: OpenRun, now: float) -> bool:
        """Whether no worker looks after an open run: it was released, its worker is known to be dead, or the lease ran out."""
        if run.worker is None:
            return True
        alive = lives(run.worker)
        if alive is not None:
            return not alive
        # Heartbeats are no changes of the study, so the present row is read.
        mine = trials.c.study_id == self.study_id, trials.c.number == run.order.number
        row: Row[Any] = connection.execute(select(*_COLUMNS).where(*mine)).one()
        return self._expired(row, run.worker, now)

    def _expired(self, row: Row[Any], worker: str, now: float) -> bool:
        time = self.clock.lease_now(now)
        if row.lease_s is not None and time.clock is not None and row.lease_clock == time.clock:
            return bool(time.at_s > row.lease_s)
        seen = row.ordered_s if row.heartbeat_s is None else row.heartbeat_s
        if time.clock is not None and _before_this_boot(worker, time.clock, seen):
            return True
        until = seen + self.lasts_s
        return bool(now > (until if row.lease_s is None or row.lease_clock is not None else max(until, row.lease_s)))


def _before_this_boot(worker: str, boot: str, seen_s: float) -> bool:
    """Whether a worker of this machine was last seen before the machine started, so that it ended then.

    For SQLite alone: a file belongs to one machine, whereas workers of a server may share a host name.
    """
    name = parse_worker(worker)
    if name is None or name.host != socket.gethostname() or boot.startswith(name.boot):
        return False
    return seen_s < machine_started_s()
