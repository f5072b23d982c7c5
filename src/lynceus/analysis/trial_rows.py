"""Trials as rows: for tables, files and the API."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from lynceus.problem.problem import Problem
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observation, Outcome
from lynceus.trial.record import OpenRun
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
    value: float | None = None
    """The objective in its own unit and sign; None for runs that did not finish, or did not report it."""
    charged_usd: float | None = None
    """What this trial was charged."""
    keeps_constraints: bool | None = None
    """Whether it met every constraint; None for runs that did not finish."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    detail: str = ""
    """One sentence: the exit code, the last line of an error."""
    started: str | None = None
    """When it was started, UTC in ISO 8601, as the storage's clock told; None if that is not known, as for imported ones."""
    ended: str | None = None
    """When its end was recorded; None while it runs."""
    input: Mapping[str, float | str] | None = None
    """What it read, where the job says so: `{"size": 120000000000.0}`."""
    peak_memory_bytes: float | None = None
    """The most memory that it held; this and the next three are None where no supervisor measured them."""
    cpus_used: float | None = None
    """Processors that it kept busy on average."""
    read_bytes: float | None = None
    """Read from disks."""
    written_bytes: float | None = None


def all_trials(study: StudyView) -> list[Observation | OpenRun]:
    """Every trial of a study by number, settled or open."""
    return sorted((*study.observations, *study.record.open_runs), key=lambda one: one.order.number)


def trial_rows(problem: Problem, trials: Sequence[Observation | OpenRun]) -> list[TrialRow]:
    """One row per trial."""
    return [trial_row(problem, one) for one in trials]


def trial_row(problem: Problem, trial: Observation | OpenRun) -> TrialRow:
    """The row of a settled trial, or of an open one."""
    order = trial.order
    known = (
        order.number,
        problem.space.point(order.row),
        float(problem.price[order.row]) * 3600,
        None if math.isinf(order.timeout_s) else order.timeout_s,
        None if math.isinf(order.reserved_usd) else order.reserved_usd,
        order.plan.why,
    )
    if isinstance(trial, OpenRun):
        started_s = trial.ordered_s if trial.launched_s is None else trial.launched_s
        return TrialRow(*known, str(TrialState.RUNNING), started=_moment(started_s), input=_input(order))
    outcome, row = trial.outcome, trial.row
    done = outcome.end is End.FINISHED
    return TrialRow(
        *known,
        str(STATES[outcome.end]),
        None if outcome.reason is None else str(outcome.reason),
        outcome.seconds,
        problem.cost(row, outcome.seconds) if done else None,
        objective_value(problem, trial),
        outcome.charged_usd,
        problem.meets_constraints(row, outcome.seconds, outcome.metrics) if done else None,
        dict(outcome.metrics),
        outcome.detail,
        _moment(trial.started_s),
        _moment(trial.ended_s),
        _input(order),
        *used(outcome).values(),
    )


def _input(order: Order) -> dict[str, float | str] | None:
    return None if order.input is None else order.input.record()


def objective_value(problem: Problem, seen: Observation) -> float | None:
    """The objective of a finished run in its own unit and sign; None where there is none."""
    outcome = seen.outcome
    if outcome.end is not End.FINISHED or not problem.goal.told_by(outcome.metrics):
        return None
    value = problem.objective.sign * problem.value(seen.row, outcome.seconds, outcome.metrics)
    return None if math.isnan(value) else value


def used(outcome: Outcome) -> dict[str, float | None]:
    """What a run used of its machine, by the names of a trial's row."""
    usage = outcome.usage
    if usage is None:
        return dict.fromkeys(("peak_memory_bytes", "cpus_used", "read_bytes", "written_bytes"))
    return {
        "peak_memory_bytes": usage.peak_memory_bytes,
        "cpus_used": usage.cpus(outcome.seconds),
        "read_bytes": usage.read_bytes,
        "written_bytes": usage.written_bytes,
    }


def _moment(since_epoch_s: float | None) -> str | None:
    """A moment as text.

    >>> _moment(1800000000.1234)
    '2027-01-15T08:00:00.123Z'
    """
    if since_epoch_s is None:
        return None
    return datetime.fromtimestamp(since_epoch_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def flat_rows(study: StudyView) -> list[dict[str, Any]]:
    """All trials with one column per parameter (`params_…`), metric (`metrics_…`) and number of the input (`input_…`), the same in every
    row."""
    rows = [asdict(row) for row in trial_rows(study.problem, all_trials(study))]
    metrics = sorted({name for row in rows for name in row["metrics"]})
    inputs = sorted({name for row in rows for name in row["input"] or ()})
    names = [parameter.name for parameter in study.problem.space.parameters]
    flat = []
    for row in rows:
        params, reported, read = row.pop("params"), row.pop("metrics"), row.pop("input") or {}
        flat.append(
            {"number": row.pop("number"), "state": row.pop("state")}
            | {f"params_{name}": params.get(name) for name in names}
            | row
            | {f"metrics_{name}": reported.get(name) for name in metrics}
            | {f"input_{name}": read.get(name) for name in inputs}
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
