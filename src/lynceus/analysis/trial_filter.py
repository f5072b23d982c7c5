"""Filters of trials: an expression over parameters, states, times, costs and metrics, such as `state == 'FAIL' and nodes > 2`.

| name | value |
|---|---|
| a parameter or another column of the space | its value in the trial's configuration |
| `number`, `state`, `reason` | as `lynceus trials -o json` shows them; `state == FAIL` needs no quotes |
| `runtime`, `timeout` | seconds |
| `cost`, `charged` | dollars: of a production run, and of this trial |
| `price` | dollars per hour |
| `feasible` | whether it met every constraint |
| a metric | as the job reported it |

Where two of these have one name, the first in this table counts; `trial.NAME` and `metrics.NAME` always name a fact and a metric. What
is not known of a trial is None: it equals None and is neither less nor more than anything.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from lynceus.analysis.trial_rows import all_trials, trial_rows
from lynceus.errors import InputError
from lynceus.problem.problem import Problem
from lynceus.space.column import BoolArray, Cell, as_column
from lynceus.space.expression import Expression
from lynceus.study.view import StudyView
from lynceus.trial.outcome import End, Observation
from lynceus.trial.record import OpenRun
from lynceus.trial.trial import STATES, TrialState


def select_trials(
    study: StudyView, *, state: str | None = None, where: str | None = None, feasible: bool = False
) -> list[Observation | OpenRun]:
    """The trials of a study by number: those in a state, for which an expression is true, that met every constraint."""
    trials = all_trials(study)
    if state is not None:
        trials = [one for one in trials if _state(one) == state]
    if feasible:
        trials = [one for one in trials if isinstance(one, Observation) and _is_feasible(study.problem, one)]
    if where is not None:
        trials = [one for one, true in zip(trials, matching(study.problem, trials, where), strict=True) if true]
    return trials


def matching(problem: Problem, trials: Sequence[Observation | OpenRun], where: str) -> BoolArray:
    """Which trials an expression is true for."""
    expression = Expression.parse(where, "where")
    _check_states(expression)
    columns = _columns(problem, trials)
    expression.check_names(columns)
    read = ("number", *expression.names)  # the first one tells how many trials there are
    return expression.mask({name: as_column(columns[name]) for name in read})


def _columns(problem: Problem, trials: Sequence[Observation | OpenRun]) -> dict[str, list[Cell]]:
    rows = trial_rows(problem, trials)
    facts: dict[str, list[Cell]] = {
        "number": [row.number for row in rows],
        "state": [row.state for row in rows],
        "reason": [row.reason for row in rows],
        "runtime": [row.runtime_s for row in rows],
        "timeout": [row.timeout_s for row in rows],
        "cost": [row.cost_usd for row in rows],
        "charged": [row.charged_usd for row in rows],
        "price": [row.price_usd_per_hour for row in rows],
        "feasible": [row.keeps_constraints for row in rows],
    }
    # Metrics of the problem are known although no trial may have reported them yet.
    names = dict.fromkeys([*problem.metrics, *(name for row in rows for name in row.metrics)])
    metrics: dict[str, list[Cell]] = {name: [row.metrics.get(name) for row in rows] for name in names}
    places = [one.order.row for one in trials]
    space: dict[str, list[Cell]] = {name: column[places].tolist() for name, column in problem.space.columns.items()}
    named: dict[str, list[Cell]] = {f"trial.{name}": cells for name, cells in facts.items()}
    named |= {f"metrics.{name}": cells for name, cells in metrics.items()}
    states: dict[str, list[Cell]] = {str(state): [str(state)] * len(rows) for state in TrialState}
    return {**named, **states, **metrics, **facts, **space}


def _state(trial: Observation | OpenRun) -> TrialState:
    return TrialState.RUNNING if isinstance(trial, OpenRun) else STATES[trial.outcome.end]


def _is_feasible(problem: Problem, seen: Observation) -> bool:
    outcome = seen.outcome
    return outcome.end is End.FINISHED and problem.meets_constraints(seen.row, outcome.seconds, outcome.metrics)


def _check_states(expression: Expression) -> None:
    """Refuse a state that no trial can have: `state == 'failed'` would silently find nothing."""
    for node in ast.walk(expression.tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(isinstance(side, ast.Name) and side.id in ("state", "trial.state") for side in sides):
                for each in (part for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)):
                    if isinstance(each.value, str) and each.value not in list(TrialState):
                        raise InputError(
                            f"where {expression.text!r}: no trial has the state {each.value!r}; use one of {', '.join(TrialState)}."
                        )
