"""The numbers behind `/metrics`. A scrape reads sums that the database computes, and only of studies that have changed."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace

from lynceus.analysis.documents.json import Document
from lynceus.analysis.prometheus import StudyNumbers, is_late
from lynceus.errors import InputError, LynceusError
from lynceus.library.studies import study_line
from lynceus.storage.serialization import DamagedRecordError
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage

_log = logging.getLogger("lynceus.server")
_PATIENCE_S = 1.0
"""How long one scrape may work on savings and deadlines, which need the problem and perhaps a model; the rest follows with the next."""


@dataclass
class _Known:
    sequence: int
    numbers: StudyNumbers
    complete: bool = False
    """Whether savings and deadline misses are those of this moment."""
    completed: float = 0.0
    """When they last were: those that wait longest come first."""


@dataclass
class StudyMetrics:
    """What scrapes have read so far, and how long decisions of this server took."""

    storage: Storage
    _known: dict[str, _Known] = field(default_factory=dict)
    _decisions: Counter[str] = field(default_factory=Counter)
    _deciding_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def decided(self, study: str, seconds: float) -> None:
        """A trial of a study was chosen here."""
        with self._lock:
            self._decisions[study] += 1
            self._deciding_s[study] += seconds

    def read(self, patience_s: float = _PATIENCE_S) -> list[StudyNumbers]:
        """All studies as they are now."""
        with self._lock:
            records = [record for record in self.storage.studies() if record.damage is None]
            for gone in self._known.keys() - {record.identity for record in records}:
                del self._known[gone]
            records = [record for record in records if self._readable(record)]
            until = time.monotonic() + patience_s
            for record in sorted(records, key=lambda one: self._known[one.identity].completed):
                if not self._known[record.identity].complete and time.monotonic() < until:
                    self._complete(record)
            return [self._shown(record) for record in records]

    def _readable(self, record: StudyRecord) -> bool:
        """Update the sums of a study; False for one with a damaged trial, or that was deleted just now: others are shown all the same."""
        try:
            self._update_sums(record)
        except (InputError, DamagedRecordError) as error:
            _log.warning("%s has no metrics: %s", record.name, error)
            return False
        return True

    def _shown(self, record: StudyRecord) -> StudyNumbers:
        name = record.name
        return replace(
            self._known[record.identity].numbers,
            study=name,
            state=record.state,
            decisions=self._decisions[name],
            deciding_s=self._deciding_s[name],
        )

    def _update_sums(self, record: StudyRecord) -> None:
        known = self._known.get(record.identity)
        if known is not None and known.sequence == record.sequence:
            return
        sums = self.storage.totals(record.name)
        complete = sums.settled - sums.stopped_early - sums.failed
        numbers = StudyNumbers(
            record.name,
            record.state,
            sums.spent_usd,
            sums.reserved_usd,
            sums.running,
            complete,
            sums.stopped_early,
            sums.failed,
        )
        if known is not None:  # the last known ones, until they are read again
            before = known.numbers
            numbers = replace(numbers, budget_usd=before.budget_usd, saved_usd=before.saved_usd, late=before.late)
        completed = 0.0 if known is None else known.completed
        self._known[record.identity] = _Known(record.sequence, numbers, completed=completed)

    def _complete(self, record: StudyRecord) -> None:
        known = self._known[record.identity]
        known.complete, known.completed = True, time.monotonic()
        try:
            line: Document = study_line(self.storage, record)
            deadline_s = line["deadline_s"]
            runs = self.storage.comparable_runs(record.name) if deadline_s is not None else ()
        except LynceusError:
            return
        late = sum(is_late(one.outcome.end, one.outcome.seconds, deadline_s) for one in runs)
        cost, saving = line["best_cost_usd"], line["saving"]
        saved = cost * saving / (1 - saving) if cost is not None and saving is not None and saving < 1 else None
        budget = line["budget_usd"]
        budget = budget if budget is not None and math.isfinite(budget) else None
        known.numbers = replace(known.numbers, budget_usd=budget, saved_usd=saved, late=late)
