"""The one decider of recurring jobs: what to do now, from the record, today's prices and the time alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lynceus.recurring.action import Action, ActionKind
from lynceus.recurring.alternatives import Alternatives
from lynceus.recurring.canary_rules import adopting_change, allowance_left, last_good, open_trial, refusal, was_on_time
from lynceus.recurring.forecast import Prior, forecast, row_of, study_prior
from lynceus.recurring.record import JobRecord, ProductionRun
from lynceus.recurring.settings import Mode
from lynceus.recurring.triggers import LONGER, Trigger, triggers
from lynceus.recurring.watch import LEAST_RUNS, Watch, adopted_at, runs_of, size_ahead, typical_size, watch

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem

_PROBATION = 5
"""Runs after an adoption in which one late or failed run brings the last good version back."""


def next_action(
    problem: Problem,
    record: JobRecord,
    now_s: float,
    size: float | None = None,
    *,
    prior: Prior | None = None,
    watched: Watch | None = None,
) -> Action:
    """What to do before the next run, whose input has `size` (None: the last size).

    `problem` is the study's, at today's prices. `prior` and `watched` save work: what `study_prior` and `watch` return for this record.
    """
    version = record.adopted
    if version is None:
        return Action(ActionKind.KEEP, "nothing is adopted yet")
    row = row_of(problem, version.params)
    deadline_s = min(problem.deadline_s, record.settings.deadline_s)
    size = size if size is not None else typical_size(record, None)
    usd_per_hour = None if row is None else float(problem.price[row]) * 3600
    seen = watch(record, size_ahead(record, size), usd_per_hour=usd_per_hour, deadline_s=deadline_s, before=watched)
    returned = _return_of_adopted(record, deadline_s, size)
    if returned is not None and not _held(record):
        return returned
    trial = open_trial(record)
    if trial is not None and (trial.at_fault or trial.seconds > deadline_s):
        return _returned(record, trial.version, "was late" if not trial.at_fault else f"{_end(trial)}")
    if _held(record) or row is None:
        why = "changes are held" if record.settings.held else "the job is only observed"
        return Action(ActionKind.KEEP, why if row is not None else "the configuration is not in the study's space")
    found = triggers(problem, record, seen, size, row)
    if trial is None and not found:
        return Action(ActionKind.KEEP, "nothing has changed since the configuration was chosen")
    look = _Look(problem, record, now_s, size, deadline_s, row, seen, found)
    options = look.options(prior)
    if trial is not None:
        action = look.after_canary(options, trial)
        if action is not None:
            return action
    return look.decide(options)


def proves_itself(problem: Problem, record: JobRecord, row: int, now_s: float) -> bool:
    """Whether what a search found may be adopted without a canary, by the rule for canaries: surely cheaper, or on time where the adopted
    configuration may not be. One that fails all the time gives way to any that is on time."""
    own = None if record.adopted is None else row_of(problem, record.adopted.params)
    if own is None:
        return True
    deadline_s, size = min(problem.deadline_s, record.settings.deadline_s), typical_size(record, None)
    usd_per_hour = float(problem.price[own]) * 3600
    seen = watch(record, size_ahead(record, size), usd_per_hour=usd_per_hour, deadline_s=deadline_s)
    found = triggers(problem, record, seen, size, own)
    options = _Look(problem, record, now_s, size, deadline_s, own, seen, found).options(None)
    failing = any(one.kind == "failures" for one in found)
    return options.proven(row) or (failing and bool(options.safe[row]))


def _held(record: JobRecord) -> bool:
    return record.settings.held or record.settings.mode is Mode.OBSERVE


def _end(run: ProductionRun) -> str:
    return "was stopped at its cap" if run.reason is None else f"failed ({run.reason})"


def _returned(record: JobRecord, canary: int, what: str) -> Action:
    reason = f"the canary of version {canary} {what}; version {record.current} goes on"
    return Action(ActionKind.RETURN, reason, version=record.current, evidence={"canary": canary})


def _return_of_adopted(record: JobRecord, deadline_s: float, size: float | None) -> Action | None:
    """Back to the last good version if the adopted one was late or failed soon after Lynceus adopted it.

    Not to one that was late itself with such an input, and not from one that was returned to.
    """
    version, good = record.adopted, last_good(record)
    if version is None or good is None or version.source in ("adopt", "rollback"):
        return None
    if adopting_change(record) == "return" or not was_on_time(record, good, size, deadline_s):
        return None
    since = adopted_at(record)
    runs = [run for run in record.runs if run.version == version.number and run.ended_s > since and not run.canary]
    bad = next((run for run in runs[:_PROBATION] if run.at_fault or run.seconds > deadline_s), None)
    if bad is None:
        return None
    what = _end(bad) if bad.at_fault else "was late"
    reason = f"run {bad.run_id} of version {version.number} {what}; version {good} is the last good one"
    return Action(
        ActionKind.RETURN, reason, record.version(good).params, good,
        evidence={"run": bad.run_id, "from": version.number},
        basis=record.version(good).basis,
    )  # fmt: skip


@dataclass(frozen=True)
class _Look:
    """One look at a job."""

    problem: Problem
    record: JobRecord
    now_s: float
    size: float | None
    deadline_s: float
    row: int
    seen: Watch
    found: tuple[Trigger, ...]

    def options(self, prior: Prior | None) -> Alternatives:
        """What every configuration would take, cost and risk now."""
        problem, record = self.problem, self.record
        if prior is None:
            adopted = [(self.row, run) for run in runs_of(record, problem.space.point(self.row))]
            prior = study_prior(problem, record.trials, adopted)
        series = self.seen.series
        changes = [] if series is None else [series.runs[one.start].ended_s for one in series.changes]
        known, ahead = (
            forecast(problem, record, prior, size, adopted=self.row, changes_s=changes, noise=self.seen.noise)
            for size in (self.size, size_ahead(record, self.size))
        )
        enough = series is not None and len(series.runs) >= LEAST_RUNS
        late = self.seen.late_chance if enough else None
        options = Alternatives.of(problem, record, known, self.deadline_s, self.size, ahead, late)
        longer = open_trial(record) is not None or any(one.kind in LONGER for one in self.found)
        return replace(options, longer=longer)

    def after_canary(self, options: Alternatives, trial: ProductionRun) -> Action | None:
        """Adopt a canary that proved itself, or give it up; None if it should run again."""
        row = row_of(self.problem, self.record.version(trial.version).params)
        if row is None or not trial.informs:
            return None
        if options.proven(row):
            return self._action(ActionKind.ADOPT, options, row, "its canary proved itself", version=trial.version)
        if options.disproven(row):
            return _returned(self.record, trial.version, "saves nothing")
        return None

    def decide(self, options: Alternatives) -> Action:
        """What the triggers call for."""
        reason = self.found[0].text if self.found else "a canary has not told enough yet"
        prices_only = bool(self.found) and all(one.kind == "price" for one in self.found)
        if (row := options.known_cheaper()) is not None and (prices_only or options.adopted_unsafe):
            return self._allowed(ActionKind.REPRICE if prices_only else ActionKind.CANARY, options, row, reason)
        if (row := options.worth_trying(allowance_left(self.record, self.now_s))) is not None:
            return self._allowed(ActionKind.CANARY, options, row, reason)
        budget = options.search_budget(self.found, allowance_left(self.record, self.now_s))
        if budget > 0:
            action = Action(ActionKind.RETUNE, reason, budget_usd=budget, evidence=self._evidence())
            return self._in_mode(action)
        return Action(ActionKind.KEEP, f"{reason}, but nothing better is worth trying", evidence=self._evidence())

    def _allowed(self, kind: ActionKind, options: Alternatives, row: int, reason: str) -> Action:
        action = self._action(kind, options, row, reason)
        if kind is ActionKind.CANARY and self.record.settings.mode is Mode.APPLY:
            no = refusal(self.record, self.now_s, action.reserved_usd)
            if no is not None:
                return Action(ActionKind.KEEP, f"{reason}, but {no}", evidence=action.evidence, effect=action.effect)
        return action

    def _action(
        self, kind: ActionKind, options: Alternatives, row: int, reason: str, version: int | None = None
    ) -> Action:
        timeout_s = float(options.timeouts_s[row]) if kind is ActionKind.CANARY else math.inf
        reserved = self.problem.cost(row, timeout_s) if math.isfinite(timeout_s) else 0.0
        action = Action(
            kind, reason, self.problem.space.point(row), version, timeout_s, reserved,
            instead_usd=float(options.forecast.usd[self.row]), effect=options.effect(row),
            evidence=self._evidence(), basis=options.basis(),
        )  # fmt: skip
        return self._in_mode(action)

    def _in_mode(self, action: Action) -> Action:
        if self.record.settings.mode is not Mode.SUGGEST:
            return action
        return replace(action, kind=ActionKind.SUGGEST, evidence={**action.evidence, "would": str(action.kind)})

    def _evidence(self) -> dict[str, Any]:
        return {
            "triggers": [one.record() for one in self.found],
            "late_chance": self.seen.late_chance,
            "expected_s": None if self.seen.next_run is None else self.seen.next_run.seconds,
            "size": self.size,
        }
