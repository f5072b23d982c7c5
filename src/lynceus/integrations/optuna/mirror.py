"""An Optuna study as a Lynceus study: the same runs, in the order in which they ended.

Optuna's storage is the only record. The mirror is made of it in any process, so that a study goes on after a restart, on another machine,
or beside other workers, as with any other sampler.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from lynceus.errors import InputError
from lynceus.integrations.candidate_table import Table
from lynceus.integrations.optuna.attributes import CHARGED_USD, FAILURE_REASON, ORDER, RAN_S, RUNTIME_S
from lynceus.integrations.optuna.distributions import of_internal, to_internal
from lynceus.policy.next_step import Step, observe
from lynceus.storage.serialization import order_of, order_record
from lynceus.study.study import Study
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import Outcome
from lynceus.trial.trial import TrialState as State
from lynceus.trial.trial import told_outcome

VALUE = "optuna_value"
"""The metric that stands for Optuna's value where that is the objective."""
_STATES = {TrialState.COMPLETE: State.COMPLETE, TrialState.PRUNED: State.TIMEOUT, TrialState.FAIL: State.FAIL}


class StudyMirror:
    """Follows one Optuna study."""

    def __init__(self, table: Table, study: Study, distributions: Mapping[str, BaseDistribution]) -> None:
        self.table, self.study, self.distributions = table, study, dict(distributions)
        self._seen: list[int] = []
        """Numbers of the trials that have ended, in the order in which they were read."""
        self._step: Step | None = None

    def follow(self, trials: Sequence[FrozenTrial], asking: int | None = None) -> bool:
        """Read what is new; False if the mirror does not fit any more, and a new one must be made. `asking` is not yet decided."""
        ended = sorted((one for one in trials if one.state.is_finished()), key=_ended)
        if [one.number for one in ended[: len(self._seen)]] != self._seen:
            return False
        for one in ended[len(self._seen) :]:
            self._settle(one)
            self._seen.append(one.number)
            self._step = None
        known = {order.number for order in self.study.pending}
        for one in trials:
            if one.state is not TrialState.RUNNING or one.number in known or one.number == asking:
                continue
            if (order := self._order(one)) is not None:
                self.study.journal.ordered(order, self.study.problem.space.point(order.row))
                self._step = None
        return True

    def next_step(self) -> Step:
        """What Lynceus would do now."""
        if self._step is None:
            self._step = self.study.next_step()
        return self._step

    def ordered(self, number: int, order: Order) -> dict[str, Any]:
        """Trial `number` runs this order; returns the attribute that says so."""
        self.study.journal.ordered(replace(order, number=number), self.study.problem.space.point(order.row))
        self._step = None
        point = to_internal(self.distributions, self.table.choices(order.row))
        return {"order": order_record(order), "params": point}

    def _order(self, trial: FrozenTrial) -> Order | None:
        """The order of a trial that Lynceus chose, if it runs that configuration."""
        attribute = trial.system_attrs.get(ORDER)
        if attribute is None:
            return None
        point = of_internal(self.distributions, attribute["params"])
        chosen = all(trial.params.get(name, value) == value for name, value in point.items())
        row = self.table.row(point if chosen else trial.params)
        return None if row is None else replace(order_of(attribute["order"]), number=trial.number, row=row)

    def _settle(self, trial: FrozenTrial) -> None:
        """A trial that ended: one that this study ran, or one that was added."""
        order = self._order(trial)
        ran = order is not None or RAN_S in trial.system_attrs
        if order is None:
            if (row := self.table.row(trial.params)) is None:
                return  # its search space was another one
            purpose = Purpose.QUEUE if ran else Purpose.IMPORT
            why = "asked for by the user" if ran else "imported"
            order = Order(trial.number, row, float("inf"), 0.0, Plan(row, why, stoppable=False, purpose=purpose))
        outcome = self._outcome(trial, order, free=not ran)
        if outcome is None:
            return
        journal, point = self.study.journal, self.study.problem.space.point(order.row)
        if ran:
            if all(open_.number != order.number for open_ in self.study.pending):
                journal.ordered(order, point)
            self.study.runs.settle(order, outcome)
        else:
            seen = observe(self.study.problem, self.study.policy, self.study.observations, order, outcome)
            journal.imported([seen], [point])

    def _outcome(self, trial: FrozenTrial, order: Order, *, free: bool) -> Outcome | None:
        """How a trial ended; None, with a warning, if it cannot be used."""
        told = trial.user_attrs
        state = _STATES[trial.state]
        metrics = {name: told[name] for name in self.study.problem.metrics if name in told}
        if VALUE in self.study.problem.metrics and state is State.COMPLETE and trial.value is not None:
            metrics[VALUE] = trial.value
        try:
            return told_outcome(
                self.study.problem,
                order,
                runtime=run_seconds(trial),
                state=state,
                reason=told.get(FAILURE_REASON) if state is State.FAIL else None,
                charged=0.0 if free else told.get(CHARGED_USD),
                metrics=metrics,
                progress=(),
                detail=str(trial.system_attrs.get("fail_reason", "")),
            )
        except InputError as error:
            warnings.warn(f"Optuna's trial {trial.number} is not used: {error}", UserWarning, stacklevel=2)
            return None


def run_seconds(trial: FrozenTrial) -> float | None:
    """How long a trial ran: as the program told, or else as Optuna's clock saw it; None if nothing is known."""
    for known in (trial.user_attrs.get(RUNTIME_S), trial.system_attrs.get(RAN_S)):
        if known is not None:
            return float(known)
    if trial.datetime_start is None or trial.datetime_complete is None:
        return None
    return (trial.datetime_complete - trial.datetime_start).total_seconds() or None


def _ended(trial: FrozenTrial) -> tuple[datetime, int]:
    """The order of ends: by time, then by number."""
    return trial.datetime_complete or datetime.max, trial.number
