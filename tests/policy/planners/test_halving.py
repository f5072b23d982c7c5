"""Successive halving over the data fraction: rungs, promotions, and what counts as better."""

from __future__ import annotations

import numpy as np
import pytest

from lynceus.models.state import State
from lynceus.policy.planners.halving import SuccessiveHalving
from lynceus.problem.data_fraction import Fraction, configurations, row_shares
from shares import small_share_job


def played(
    design: SuccessiveHalving, *constraints: str, objective: str = "maximize accuracy"
) -> tuple[list[int], object, object]:
    job = small_share_job(*constraints, objective=objective)
    problem = Fraction("share", "all", "any").apply(job.problem)
    rows: list[int] = []
    while (plan := design(State.present(problem, job.finished(rows)), None, 3)) is not None:
        rows.append(plan.row)
    return rows, job, problem


def test_every_rung_runs_the_best_of_the_one_below() -> None:
    rows, job, problem = played(SuccessiveHalving(count=9, eta=3))
    share, accuracy = row_shares(problem)[rows], job.measured.metrics["accuracy"]
    assert share.tolist() == [0.05] * 9 + [0.2] * 3 + [1.0]
    group = configurations(problem.space, "share")
    first = rows[:9]
    best = {int(group[row]) for row in sorted(first, key=lambda row: -accuracy[row])[:3]}
    assert {int(group[row]) for row in rows[9:12]} == best
    assert group[rows[12]] == group[max(rows[9:12], key=lambda row: accuracy[row])]
    assert len(set(rows)) == len(rows)


def test_a_run_that_misses_the_constraints_by_less_is_better() -> None:
    """The cheapest run is promoted only among those that are accurate enough."""
    rows, job, problem = played(SuccessiveHalving(count=9, eta=3), "accuracy >= 0.80", objective="cost")
    accuracy = job.measured.metrics["accuracy"]
    accurate = [row for row in rows[:9] if accuracy[row] >= 0.80]
    group = configurations(problem.space, "share")
    promoted = {int(group[row]) for row in rows[9:12]}
    if len(accurate) >= 3:
        cheapest = sorted(accurate, key=lambda row: problem.price[row] * job.measured.seconds[row])[:3]
    else:
        others = sorted(set(rows[:9]) - set(accurate), key=lambda row: -accuracy[row])
        cheapest = [*accurate, *others][:3]
    assert promoted == {int(group[row]) for row in cheapest}


def test_settings_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="eta of 2"):
        SuccessiveHalving(eta=1)


def test_without_a_fraction_there_is_one_rung() -> None:
    job = small_share_job()
    rows: list[int] = []
    design = SuccessiveHalving(count=5)
    while (plan := design(State.present(job.problem, job.finished(rows)), None, 0)) is not None:
        rows.append(plan.row)
    assert len(rows) == 5
    assert np.unique(rows).size == 5
