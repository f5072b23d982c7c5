"""Everything that is written down about a study at one moment: what a decision rests on."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import UNORDERED, Order
from lynceus.trial.outcome import Observations
from lynceus.trial.shared_budget import SharedBudget
from lynceus.trial.stop import Stopped


class RequestedState(enum.StrEnum):
    """What the user wants of the workers of a study."""

    RUN = "run"
    STOP = "stop"
    """Start no trial; let those that run finish."""
    KILL = "kill"
    """Start no trial; end those that run."""


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that was ordered and has not settled."""

    order: Order
    ticket: str | None = None
    """How the executor finds the run again; None before it was launched."""
    worker: str | None = None
    """The worker that looks after it; None when no worker does."""
    ordered_s: float = 0.0
    """When it was ordered, seconds since the epoch."""
    launched_s: float | None = None
    heartbeat_s: float | None = None
    """When it was last seen to run."""
    cancel_requested: bool = False
    """The user wants this run to end; its worker ends and settles it."""
    epoch: int = 0
    """How often another worker took it over; what a worker of an earlier epoch writes does not count."""
    taken_over: bool = False
    """Whether it was ours, and another worker looks after it by now."""


@dataclass(frozen=True)
class Record:
    """A study as it is written down. It never changes: a newer record replaces it."""

    identity: str
    """A few letters that tell this study apart from every other one, also of the same name."""
    observations: Observations = ()
    """Settled runs in the order in which they settled."""
    open_runs: tuple[OpenRun, ...] = ()
    """Ordered runs that have not settled, in the order of their numbers."""
    queue: tuple[int, ...] = ()
    """Rows that the user wants to run next."""
    requested_state: RequestedState = RequestedState.RUN
    stopped: Stopped | None = None
    """Why the study is over or paused; None while it goes on."""
    resumed_at: int = 0
    """Runs settled when the study was last resumed; failures before do not count towards a pause."""
    added_usd: float = 0.0
    """Money added to the budget after the study began."""
    added_trials: int = 0
    """Trials added to the budget after the study began."""
    limit_changes: tuple[LimitChange, ...] = ()
    """Every change of the constraints since the study began, oldest first."""
    active_s: float | None = None
    """Seconds in which workers worked on the study, pauses left out; None: the study's own clock tells."""
    shared_budgets: tuple[SharedBudget, ...] = ()
    """Those of its project and its owner, as they were when a decision was to be made."""

    @property
    def pending(self) -> tuple[Order, ...]:
        """Orders that have not settled."""
        return tuple(run.order for run in self.open_runs)

    @property
    def started(self) -> int:
        """Runs ordered or imported, settled and open; the number of the next run."""
        return len(self.observations) + len(self.open_runs)

    @property
    def ordered(self) -> int:
        """Runs that the study ordered, settled and open: they count against the trials of the budget, imported and shared ones do not."""
        return self.started - sum(seen.order.plan.purpose in UNORDERED for seen in self.observations)

    @property
    def spent_usd(self) -> float:
        """What all settled runs were charged."""
        return sum(seen.outcome.charged_usd for seen in self.observations)

    @property
    def reserved_usd(self) -> float:
        """What open runs may still be charged at most."""
        return sum(run.order.reserved_usd for run in self.open_runs)
