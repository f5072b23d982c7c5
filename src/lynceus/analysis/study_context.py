"""A study together with what its storage and its job file say about it: what every answer is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from lynceus.analysis.overview import Best, interrupted_reason
from lynceus.analysis.progress import Progress, ProgressTrail
from lynceus.analysis.shortfall import shortfall_text
from lynceus.policy.recommendation import answering_policy, best_configuration, runs_decide
from lynceus.study.view import StudyView, conclusive
from lynceus.trial.incumbents import representative
from lynceus.trial.outcome import Observations
from lynceus.trial.present_input import present_runs
from lynceus.trial.shared_budget import Payer


@dataclass(frozen=True)
class StudyContext:
    """A study to report on. A study in memory needs no other field."""

    study: StudyView
    command: Callable[[Mapping[str, object]], str] | None = None
    """The command line that runs a configuration; None for studies without a command."""
    created_s: float | None = None
    """Seconds since the epoch, like the next field."""
    worker_seen_s: float | None = None
    """When a worker last worked on the study."""
    worker_left: bool = False
    """Whether the last worker left before the search ended."""
    payer: Payer = field(default_factory=Payer)
    """On whose budgets its runs draw."""
    tracked: Progress | None = None
    """The progress of the study where a server keeps track of it; otherwise it is computed when it is needed."""

    @cached_property
    def progress(self) -> Progress:
        """The incumbent after each settled trial, and how trials ended."""
        return self.tracked or ProgressTrail(self.study.problem).after(self.study.observations)

    @cached_property
    def best(self) -> Best | None:
        """The best configuration, as `recommend` names it; None while there is none."""
        study = self.study
        if runs_decide(study.problem, study.policy):
            return None if self.progress.best is None else Best.seen(study.problem, self.progress.best)
        policy = answering_policy(study.policy, study.observations)
        found = best_configuration(study.problem, policy, self.known, seed=study.seed)
        if found is None:
            return None
        seen = representative(present_runs(study.problem, study.observations), found.row)
        number = None if seen is None else seen.order.number
        short = None if found.reaches_confidence else shortfall_text(study.problem, found.row, found.probability)
        return Best(found.row, found.value, found.cost_usd, number, short)

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
            return "INTERRUPTED", interrupted_reason(self.study.name, has_command=self.command is not None)
        return "RUNNING", None
