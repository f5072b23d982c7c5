"""Further configurations that one trial measured: metrics with names such as `throughput@clients=16`.

A ramp of loads on one server measures several rows of the space and pays for the start of the server once. What was measured of each
becomes a trial of its own, so that models, pages and exports read it like any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from lynceus.executors.placeholders import as_text
from lynceus.executors.serve import MEASURING, ROW_MARK
from lynceus.problem.problem import Problem
from lynceus.trial.order import Order, Plan, Purpose
from lynceus.trial.outcome import End, Outcome

Run = tuple[Order, Outcome]


def separated(problem: Problem, order: Order, outcome: Outcome, first: int) -> tuple[Outcome, tuple[Run, ...]]:
    """The outcome of the trial's own row, and the further rows as runs with numbers from `first` on.

    A further row is charged for its measuring time; its seconds are those of a trial of its own, the set-up included. The charges add up
    to what the whole trial cost.
    """
    own, further = _by_row(problem, order.row, outcome.metrics)
    if not further or outcome.end is End.FAILED:
        return outcome, ()
    measured_s = {row: max(metrics.get(MEASURING, 0.0), 0.0) for row, metrics in further.items()}
    own_s = max(outcome.seconds - sum(measured_s.values()), 0.0)
    setup_s = max(own_s - own[MEASURING], 0.0) if MEASURING in own else 0.0
    boot_s = problem.billing.boot_s if order.boots else 0.0
    usd_per_s = outcome.charged_usd / max(outcome.seconds + boot_s, sum(measured_s.values()), 1e-9)
    runs = tuple(
        _run(problem, order, first + place, row, metrics, setup_s + measured_s[row], usd_per_s * measured_s[row])
        for place, (row, metrics) in enumerate(further.items())
    )
    left_usd = max(outcome.charged_usd - sum(each.charged_usd for _, each in runs), 0.0)
    # A further row is measured after the trial's own, which is complete even if the run was stopped later.
    mine = replace(outcome, end=End.FINISHED, seconds=own_s, charged_usd=left_usd, metrics=own)
    return mine, runs


def _run(
    problem: Problem,
    order: Order,
    number: int,
    row: int,
    metrics: Mapping[str, float],
    seconds: float,
    charged_usd: float,
) -> Run:
    plan = Plan(row, why=f"measured by trial {order.number}", stoppable=False, purpose=Purpose.SHARED)
    ordered = replace(order, number=number, row=row, reserved_usd=charged_usd, plan=plan, boots=False)
    return ordered, Outcome(End.FINISHED, seconds, charged_usd, dict(metrics))


def _by_row(
    problem: Problem, row: int, metrics: Mapping[str, float]
) -> tuple[dict[str, float], dict[int, dict[str, float]]]:
    """Metrics of the trial's own row, and of further rows; a name that names no row of the space is a metric as any other."""
    own: dict[str, float] = {}
    further: dict[int, dict[str, float]] = {}
    for name, value in metrics.items():
        metric, mark, where = name.rpartition(ROW_MARK)
        found = _row(problem, row, where) if mark and metric else None
        if found is None:
            own[name] = value
        elif found != row:
            further.setdefault(found, {})[metric] = value
    return own, further


def _row(problem: Problem, row: int, where: str) -> int | None:
    """The row that differs from another one in the parameter of `clients=16`; None if there is none."""
    space = problem.space
    name, _, text = where.partition("=")
    place = next((place for place, one in enumerate(space.parameters) if one.name == name), None)
    if place is None:
        return None
    others = np.delete(space.codes, place, axis=1)
    for candidate in np.flatnonzero((others == others[row]).all(axis=1)):
        if as_text(space.point(int(candidate)).get(name)) == text:
            return int(candidate)
    return None
