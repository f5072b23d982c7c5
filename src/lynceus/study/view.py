"""A study as it reads: what was run, what it cost, which configuration is best, what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lynceus.errors import InputError
from lynceus.policy.answer import BestBelieved
from lynceus.policy.next_step import Step, next_step
from lynceus.policy.policy import Policy
from lynceus.policy.recommendation import Recommendation, recommend
from lynceus.policy.retries import RetryRules, with_retries
from lynceus.problem.problem import Problem
from lynceus.study.notebook_card import study_card
from lynceus.trial.incumbents import Incumbent, incumbent, median_runs
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observations
from lynceus.trial.record import Record
from lynceus.trial.stop import Stopped, StopReason
from lynceus.trial.trial import TrialSummary, open_trial, summary_of


class StudyView:
    """A study at one moment, for readers: it never changes, and several threads may look at it."""

    def __init__(
        self,
        problem: Problem,
        policy: Policy,
        record: Record,
        *,
        seed: int = 0,
        name: str = "study",
        retry_rules: RetryRules | None = None,
        elapsed_s: float = 0.0,
    ) -> None:
        self.problem, self.policy, self.seed, self.name = problem, policy, seed, name
        self.retry_rules = RetryRules() if retry_rules is None else retry_rules
        self._record, self._elapsed_s = record, elapsed_s

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
        ended = record.stopped is not None and record.stopped.kind not in (StopReason.PAUSED, StopReason.USER)
        return ended and not record.open_runs and not record.queue

    @property
    def budget_usd(self) -> float:
        """The budget, with money that was added later."""
        return self.problem.budget.usd + self.record.added_usd

    @property
    def spent_usd(self) -> float:
        """What all settled trials were charged."""
        return self.record.spent_usd

    @property
    def reserved_usd(self) -> float:
        """What open trials may still be charged at most."""
        return self.record.reserved_usd

    @property
    def trials(self) -> list[TrialSummary]:
        """Every trial by its number, open ones included."""
        settled = [summary_of(self.problem, seen) for seen in self.observations]
        running = [open_trial(self.problem, order) for order in self.pending]
        return sorted([*settled, *running], key=lambda trial: trial.number)

    @property
    def best_params(self) -> Mapping[str, object]:
        """The best configuration that was seen to keep every constraint."""
        return self.problem.space.point(self._incumbent().row)

    @property
    def best_value(self) -> float:
        """Its objective: dollars, seconds, or the metric."""
        value = self._incumbent().value
        return -value if self.problem.objective.maximise else value

    @property
    def best_trial(self) -> TrialSummary:
        """The run that represents the best configuration: its only one, or the median of several."""
        return summary_of(self.problem, self._incumbent().observation)

    def recommend(self) -> Recommendation | None:
        """The configuration to use from now on; None when none is known to keep the constraints."""
        answer = recommend(self.problem, self.policy, conclusive(self), seed=self.seed)
        if answer is None:
            return None
        observations = self.observations
        stopped_early = sum(seen.outcome.end is End.TIMEOUT for seen in observations)
        return replace(answer, spent_usd=self.spent_usd, trials=len(observations), stopped_early=stopped_early)

    def next_step(self, policy: Policy | None = None, slots: int = 1) -> Step:
        """What `ask` would do now; `policy` stands in for the study's own, for example a quicker one that explains."""
        return next_step(
            self.problem,
            self.policy if policy is None else policy,
            self.retry_rules,
            self.record,
            seed=self.seed,
            elapsed_s=self._elapsed(),
            slots=slots,
        )

    def _elapsed(self) -> float:
        """Seconds since the study began, for records that do not count the time worked."""
        return self._elapsed_s

    def _incumbent(self) -> Incumbent:
        found = incumbent(self.problem, self.observations)
        if found is None:
            raise InputError(f"study {self.name!r}: no trial has kept every constraint yet, so there is no best one.")
        return found

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        return study_card(self)


def conclusive(study: StudyView) -> Observations:
    """The observations that conclusions rest on: failures by the retry rules, and repeated configurations as their median run, unless
    the policy itself weighs the runs of a configuration."""
    known = with_retries(study.observations, study.retry_rules)
    return known if isinstance(study.policy.answer, BestBelieved) else median_runs(known)
