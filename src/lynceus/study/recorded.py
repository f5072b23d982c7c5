"""What the record of a study tells by itself: its trials, its money, and whether it goes on."""

from __future__ import annotations

from lynceus.trial.order import Order
from lynceus.trial.outcome import Observations
from lynceus.trial.record import Record
from lynceus.trial.stop import Stopped


class RecordedStudy:
    """A study as it is written down."""

    def __init__(self, record: Record) -> None:
        self._record = record

    @property
    def record(self) -> Record:
        """Everything that is written down about the study."""
        return self._record

    @property
    def observations(self) -> Observations:
        """Every settled trial, in the order of settling."""
        return self.record.observations

    @property
    def pending(self) -> tuple[Order, ...]:
        """Trials that were asked for and not told."""
        return self.record.pending

    @property
    def stopped(self) -> Stopped | None:
        """Why the study ended, with its kind; None while it goes on."""
        return self.record.stopped

    @property
    def reason(self) -> str | None:
        """Why the study ended, as a sentence; None while it goes on."""
        return None if self.stopped is None else self.stopped.reason

    @property
    def over(self) -> bool:
        """Whether the search ended by itself, and no trial is open or queued: neither paused nor stopped by the user."""
        record = self.record
        ended = record.stopped is not None and record.stopped.study_state == "FINISHED"
        return ended and not record.open_runs and not record.queue

    @property
    def spent_usd(self) -> float:
        """What all settled trials were charged."""
        return self.record.spent_usd

    @property
    def reserved_usd(self) -> float:
        """What open trials may still be charged at most."""
        return self.record.reserved_usd
