"""Notifications about studies that clients work on through this server."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from lynceus.errors import InputError
from lynceus.library.open_study import OpenStudy
from lynceus.notify.notifier import Notifier, notifier_of


@dataclass
class Notifiers:
    """One notifier per study, created when the study is first written."""

    _known: dict[str, Notifier] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def notify(self, one: OpenStudy) -> None:
        """Send what is new about a study."""
        if one.prepared.job.spec.notify is None:
            return
        with self._lock:
            notifier = self._known.get(one.record.identity)
            if notifier is None:
                notifier = self._known[one.record.identity] = _notifier(one)
        notifier.notify(one.study)

    def close(self) -> None:
        """Wait a while for messages that are being sent."""
        for notifier in self._known.values():
            notifier.close(2.0)


def _notifier(one: OpenStudy) -> Notifier:
    try:
        return notifier_of(one.prepared.job)
    except InputError:
        return Notifier(())  # this machine does not know the addresses; a worker that does sends the messages
