"""A study as it reads: what was run, what it cost, which configuration is best, what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from lynceus.errors import InputError
from lynceus.policy.answer import BestBelieved
from lynceus.policy.next_step import Step, next_step
from lynceus.policy.policy import Policy
from lynceus.policy.recommendation import Recommendation, answering_policy, best_configuration, recommend
from lynceus.policy.retries import RetryRules, with_retries
from lynceus.problem.problem import Problem
from lynceus.study.dataframe import trials_frame
from lynceus.study.notebook_card import study_card, study_text
from lynceus.study.recorded import RecordedStudy
from lynceus.trial.incumbents import median_runs, representative
from lynceus.trial.limit_change import present_problem
from lynceus.trial.outcome import End, Observations
from lynceus.trial.present_input import present_runs
from lynceus.trial.record import Record
from lynceus.trial.trial import TrialSummary, open_trial, summary_of

if TYPE_CHECKING:
    from pandas import DataFrame


class StudyView(RecordedStudy):
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
        super().__init__(record)
        self.policy, self.seed, self.name = policy, seed, name
        self._original = self._present = problem
        self.retry_rules = RetryRules() if retry_rules is None else retry_rules
        self._elapsed_s = elapsed_s
        self._answered: tuple[Problem, Observations, Recommendation | None] | None = None
        """The last answer, and what it is about."""

    @property
    def problem(self) -> Problem:
        """The problem, under the constraints that hold now."""
        if not (changes := self.record.limit_changes):
            return self._original
        self._present = present_problem(self._present, changes)
        return self._present

    @property
    def budget_usd(self) -> float:
        """The budget, with money that was added later."""
        return self.problem.budget.usd + self.record.added_usd

    @property
    def trials(self) -> list[TrialSummary]:
        """Every trial by its number, open ones included."""
        settled = [summary_of(self.problem, seen) for seen in self.observations]
        running = [open_trial(self.problem, run) for run in self.record.open_runs]
        return sorted([*settled, *running], key=lambda trial: trial.number)

    def trials_dataframe(self) -> DataFrame:
        """Every trial as a row of a pandas data frame: number, value, datetime_start, datetime_complete, duration, params_…, metrics_…,
        cost_usd, charged_usd, keeps_constraints, reason, state."""
        return trials_frame(self.problem, self.trials)

    @property
    def best_params(self) -> Mapping[str, object]:
        """The best configuration: the one that `recommend` names."""
        return self._best().params

    @property
    def best_value(self) -> float:
        """What `recommend` says of its objective: dollars, seconds, or the metric."""
        return self._best().value

    @property
    def best_reaches_confidence(self) -> bool:
        """Whether the best configuration keeps the constraints with the confidence that they demand; otherwise it is only the nearest."""
        return self._best().reaches_confidence

    @property
    def best_trial(self) -> TrialSummary:
        """The run that represents the best configuration: its only one, or the median of several."""
        seen = representative(present_runs(self.problem, self.observations), self._best().row)
        if seen is None:
            raise InputError(
                f"study {self.name!r}: the best configuration is predicted and was not run, so no trial stands for it; see recommend()."
            )
        return summary_of(self.problem, seen)

    def recommend(self) -> Recommendation | None:
        """The configuration to use from now on; None when none is known to keep the constraints."""
        policy = answering_policy(self.policy, self.observations)
        found = recommend(self.problem, policy, conclusive(self), seed=self.seed)
        if found is None:
            return None
        observations = self.observations
        stopped_early = sum(seen.outcome.end is End.TIMEOUT for seen in observations)
        return replace(found, spent_usd=self.spent_usd, trials=len(observations), stopped_early=stopped_early)

    def next_step(self, policy: Policy | None = None, slots: int = 1) -> Step:
        """What `ask` would do now; `policy` stands in for the study's own, for example a quicker one that explains."""
        return next_step(
            self.problem,
            self.policy if policy is None else policy,
            self.retry_rules,
            self._budgeted_record(),
            seed=self.seed,
            elapsed_s=self._elapsed(),
            slots=slots,
        )

    def _budgeted_record(self) -> Record:
        """The record with the budgets that the study shares, as they are when it decides."""
        return self.record

    def _elapsed(self) -> float:
        """Seconds since the study began, for records that do not count the time worked."""
        return self._elapsed_s

    def _best(self) -> Recommendation:
        """The answer of `recommend`, without a probability that the choice did not need."""
        problem, observations = self.problem, self.observations
        if self._answered is None or self._answered[0] is not problem or self._answered[1] is not observations:
            policy = answering_policy(self.policy, observations)
            found = best_configuration(problem, policy, conclusive(self), seed=self.seed)
            self._answered = problem, observations, found
        if (found := self._answered[2]) is None:
            raise InputError(f"study {self.name!r}: no trial has kept every constraint yet, so there is no best one.")
        return found

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {study_text(self)}>"

    def _repr_html_(self) -> str:
        """A card for notebooks."""
        return study_card(self)


def conclusive(study: StudyView) -> Observations:
    """The observations that conclusions rest on: those on the present input, failures by the retry rules, and repeated configurations as
    their median run, unless the policy itself weighs the runs of a configuration."""
    known = with_retries(study.observations, study.retry_rules, study.record.resumed_at)
    known = present_runs(study.problem, known)
    return known if isinstance(study.policy.answer, BestBelieved) else median_runs(known)
