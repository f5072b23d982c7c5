"""Trials as rows: for tables, files and the API."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lynceus.problem.problem import Problem
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observation
from lynceus.trial.trial import STATES, TrialState

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a spreadsheet takes for the start of a formula, also after a line break."""


@dataclass(frozen=True)
class TrialRow:
    """A settled or open trial. Fields that are not known are None."""

    number: int
    params: Mapping[str, object]
    price_usd_per_hour: float
    timeout_s: float | None
    """It is stopped after so many seconds; None for none."""
    reserved_usd: float | None
    """The most that it can be charged; None without a timeout."""
    why: str
    """Why this configuration was chosen."""
    state: str
    """`RUNNING`, `COMPLETE`, `TIMEOUT` or `FAIL`."""
    reason: str | None = None
    """Why it failed: `infra`, `preempted`, `oom`, `job` or `user`."""
    runtime_s: float | None = None
    cost_usd: float | None = None
    """Dollars of a production run; None for runs that did not finish."""
    charged_usd: float | None = None
    """What this trial was charged."""
    keeps_constraints: bool | None = None
    """Whether it met every constraint; None for runs that did not finish."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""
    """One sentence: the exit code, the last line of an error."""


def select_trials(
    study: StudyView, *, state: str | None = None, where: str | None = None, feasible: bool = False
) -> list[Observation | Order]:
    """The trials of a study by number: those in a state, where an expression over the columns holds, that met every constraint."""
    return sorted(_matching(study, state, where, feasible), key=_number)


def _matching(study: StudyView, state: str | None, where: str | None, feasible: bool) -> Iterator[Observation | Order]:
    problem = study.problem
    mask = None if where is None else problem.space.mask(where)
    for seen in study.observations:
        outcome = seen.outcome
        if state is not None and STATES[outcome.end] != state:
            continue
        if mask is not None and not mask[seen.row]:
            continue
        if feasible and not (
            outcome.end is End.FINISHED and problem.meets_constraints(seen.row, outcome.seconds, outcome.metrics)
        ):
            continue
        yield seen
    if state not in (None, TrialState.RUNNING) or feasible:
        return
    for order in study.pending:
        if mask is None or mask[order.row]:
            yield order


def _number(one: Observation | Order) -> int:
    return one.number if isinstance(one, Order) else one.order.number


def trial_rows(problem: Problem, trials: Sequence[Observation | Order]) -> list[TrialRow]:
    """One row per trial."""
    return [trial_row(problem, one) for one in trials]


def trial_row(problem: Problem, trial: Observation | Order) -> TrialRow:
    """The row of a settled trial, or of an open one."""
    order = trial if isinstance(trial, Order) else trial.order
    known = (
        order.number,
        problem.space.point(order.row),
        float(problem.price[order.row]) * 3600,
        None if math.isinf(order.timeout_s) else order.timeout_s,
        None if math.isinf(order.reserved_usd) else order.reserved_usd,
        order.plan.why,
    )
    if isinstance(trial, Order):
        return TrialRow(*known, str(TrialState.RUNNING))
    outcome, row = trial.outcome, trial.row
    done = outcome.end is End.FINISHED
    return TrialRow(
        *known,
        str(STATES[outcome.end]),
        None if outcome.reason is None else str(outcome.reason),
        outcome.seconds,
        problem.cost(row, outcome.seconds) if done else None,
        outcome.charged_usd,
        problem.meets_constraints(row, outcome.seconds, outcome.metrics) if done else None,
        dict(outcome.metrics),
        outcome.detail,
    )


def flat_rows(study: StudyView) -> list[dict[str, Any]]:
    """All trials with one column per parameter (`params_…`) and metric (`metrics_…`), the same columns in every row."""
    rows = [asdict(row) for row in trial_rows(study.problem, select_trials(study))]
    metrics = sorted({name for row in rows for name in row["metrics"]})
    names = [parameter.name for parameter in study.problem.space.parameters]
    flat = []
    for row in rows:
        params, reported = row.pop("params"), row.pop("metrics")
        flat.append(
            {"number": row.pop("number"), "state": row.pop("state")}
            | {f"params_{name}": params.get(name) for name in names}
            | row
            | {f"metrics_{name}": reported.get(name) for name in metrics}
        )
    return flat


def csv_cell(value: object) -> object:
    """A value for a CSV file: spreadsheets would run a text such as `=HYPERLINK(…)` as a formula, so it gets an apostrophe.

    >>> [csv_cell(value) for value in ("=1+1", "-Xmx2g", "large", -1.5, None)]
    ["'=1+1", "'-Xmx2g", 'large', -1.5, None]
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def of_csv_cell(text: str) -> str:
    """The text that `csv_cell` wrote, or any other.

    >>> of_csv_cell("'-Xmx2g"), of_csv_cell("'quoted'")
    ('-Xmx2g', "'quoted'")
    """
    return text[1:] if text.startswith("'") and text[1:].startswith(_FORMULA) else text


def trials_csv(study: StudyView) -> bytes:
    """All trials as a CSV file in UTF-8."""
    rows = flat_rows(study)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(map(csv_cell, rows[0] if rows else ["number"]))
    writer.writerows(map(csv_cell, row.values()) for row in rows)
    return text.getvalue().encode("utf-8", "replace")
