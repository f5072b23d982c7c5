"""What a view is given: a study, and what is known around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from lynceus.cli.glance import left_reason, was_left
from lynceus.conduct import as_seen, typical
from lynceus.history import Because, History
from lynceus.study import Study

if TYPE_CHECKING:
    from lynceus.cli.opened import Opened


@dataclass(frozen=True)
class Subject:
    """A study as it is shown. A study in memory needs no more than itself."""

    study: Study
    baseline: int | None = None
    """Row of the configuration used until now."""
    command: Callable[[Mapping[str, object]], str] | None = None
    """The command line that runs a configuration; nothing for studies whose job nobody described."""
    created_s: float | None = None
    """Seconds since the epoch, as the next."""
    seen_s: float | None = None
    """When a worker was last there."""
    left: bool = False
    """Whether the last worker has left, without having finished."""

    @property
    def known(self) -> History:
        """What conclusions are drawn from: a configuration that ran several times counts with its median run."""
        return typical(as_seen(self.study.history, self.study.conduct))

    def standing(self) -> tuple[str, str | None]:
        """The state in one word, and why."""
        stopped = self.study.stopped
        if stopped is not None:
            word = {Because.PAUSED: "PAUSED", Because.USER: "STOPPED"}.get(stopped.because, "FINISHED")
            return word, stopped.reason
        if self.left and not self.study.pending:
            return "INTERRUPTED", left_reason(self.study.name)
        return "RUNNING", None


def subject_of(one: Opened) -> Subject:
    """A study that a storage holds, with the command line of its job file."""
    from lynceus.job.execution import command_line
    from lynceus.job.told import has_command

    job = one.prepared.job
    command = partial(command_line, job) if has_command(job) else None
    record = one.record
    left = not one.study.pending and was_left(one.storage, record)
    return Subject(one.study, one.baseline, command, record.created_s, record.seen_s, left)
