"""A study together with what its storage and its job file say about it: what every answer is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lynceus.analysis.overview import interrupted_reason
from lynceus.study.view import StudyView, conclusive
from lynceus.trial.outcome import Observations


@dataclass(frozen=True)
class StudyContext:
    """A study to report on. A study in memory needs no other field."""

    study: StudyView
    baseline: int | None = None
    """Row of the configuration used until now."""
    command: Callable[[Mapping[str, object]], str] | None = None
    """The command line that runs a configuration; None for studies without a command."""
    created_s: float | None = None
    """Seconds since the epoch, like the next field."""
    worker_seen_s: float | None = None
    """When a worker last worked on the study."""
    worker_left: bool = False
    """Whether the last worker left before the search ended."""

    @property
    def known(self) -> Observations:
        """The observations that conclusions rest on: repeated configurations as their median run."""
        return conclusive(self.study)

    def state(self) -> tuple[str, str | None]:
        """`RUNNING`, `INTERRUPTED`, `PAUSED`, `STOPPED` or `FINISHED`, and why; None while it runs."""
        stopped = self.study.stopped
        if stopped is not None:
            return stopped.study_state, stopped.reason
        if self.worker_left and not self.study.pending:
            return "INTERRUPTED", interrupted_reason(self.study.name)
        return "RUNNING", None
