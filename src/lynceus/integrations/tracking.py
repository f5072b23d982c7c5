"""Trials for the trackers that a job file names, in the background: a tracker that fails is logged, and never stops a study."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Sequence
from typing import Protocol

from lynceus.jobfile.sections.tracking import TrackingSection
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation

_log = logging.getLogger("lynceus.tracking")
PATIENCE_S = 30.0
"""How long a worker waits for its trackers before it exits."""


class Tracker(Protocol):
    """A tool that keeps trials. Calls come from one thread."""

    def ordered(self, study: StudyView, order: Order, now_s: float, deciding_s: float) -> None:
        """A trial was chosen at this moment, in so many seconds."""

    def settled(self, study: StudyView, seen: Observation, now_s: float) -> None:
        """A trial has ended."""

    def close(self) -> None:
        """Send what is left."""


class Trackers:
    """All trackers of a study."""

    def __init__(self, trackers: Sequence[Tracker]) -> None:
        self._trackers = tuple(trackers)
        self._waiting: queue.SimpleQueue[tuple[str, tuple[object, ...]] | None] = queue.SimpleQueue()
        self._failed: set[Tracker] = set()
        self._thread: threading.Thread | None = None

    def ordered(self, study: StudyView, order: Order, now_s: float, deciding_s: float) -> None:
        """A trial was chosen. Returns at once."""
        self._send("ordered", study, order, now_s, deciding_s)

    def settled(self, study: StudyView, seen: Observation, now_s: float) -> None:
        """A trial has ended. Returns at once."""
        self._send("settled", study, seen, now_s)

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Wait until everything was sent, up to `patience_s` seconds."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(patience_s)

    def _send(self, method: str, *given: object) -> None:
        if not self._trackers:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="lynceus-tracking", daemon=True)
            self._thread.start()
        self._waiting.put((method, given))

    def _work(self) -> None:
        while (one := self._waiting.get()) is not None:
            self._call(*one)
        self._call("close", ())

    def _call(self, method: str, given: tuple[object, ...]) -> None:
        for tracker in self._trackers:
            try:
                getattr(tracker, method)(*given)
            except Exception as error:  # of a tool that we do not control: a study must not end because of it
                if tracker not in self._failed:
                    _log.warning("%s: trials are not logged: %s", type(tracker).__name__, error)
                self._failed.add(tracker)


def trackers_of(section: TrackingSection | None) -> Trackers:
    """The trackers that a job file names; `MissingExtraError` for one that is not installed."""
    found: list[Tracker] = []
    if section is not None and section.mlflow is not None:
        from lynceus.integrations.mlflow import MlflowTracker

        found.append(MlflowTracker(section.mlflow))
    if section is not None and section.wandb is not None:
        from lynceus.integrations.wandb import WandbTracker

        found.append(WandbTracker(section.wandb))
    if section is not None and section.opentelemetry is not None:
        from lynceus.integrations.opentelemetry import TraceTracker, otlp_exporter

        found.append(TraceTracker(otlp_exporter(section.opentelemetry)))
    return Trackers(found)
