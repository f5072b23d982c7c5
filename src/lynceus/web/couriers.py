"""Messages about studies that are asked and told through this server: the same couriers as those of workers."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from lynceus.cli.opened import Opened
from lynceus.errors import InputError
from lynceus.notify import Courier, courier_of


@dataclass
class Couriers:
    """One courier per study, made when something is done in it."""

    _known: dict[str, Courier] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, name: str, one: Opened) -> None:
        """Something was done in a study: tell people what is new."""
        if one.prepared.job.spec.notify is None:
            return
        with self._lock:
            courier = self._known.get(one.record.identity)
            if courier is None:
                courier = self._known[one.record.identity] = _courier(one)
        courier.look(one.study)

    def close(self) -> None:
        """Wait a while for messages under way."""
        for courier in self._known.values():
            courier.close(2.0)


def _courier(one: Opened) -> Courier:
    try:
        return courier_of(one.prepared.job)
    except InputError:
        return Courier(())  # the addresses are not known on this machine; a worker that knows them tells people
