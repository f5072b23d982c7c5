"""One run further, by information."""

from __future__ import annotations

import numpy as np
import pytest

from lynceus.acquisition.entropy_search import ConstrainedEntropySearch
from lynceus.models.fabolas import Fabolas
from lynceus.models.joint_trees import JointTrees
from lynceus.models.state import State
from lynceus.policy.planners.further_run import Priced, rates_with_further_run
from lynceus.policy.planners.information import InformationPlanner
from lynceus.problem.data_fraction import Fraction, row_shares
from shares import small_share_job

PLANNER = InformationPlanner((ConstrainedEntropySearch(),), overhead=0.02, ahead=3)


def present() -> State:
    job = small_share_job()
    problem = Fraction("share", "all", "full").apply(job.problem)
    samples = np.flatnonzero(row_shares(problem) < 1)[:10].tolist()
    return State.present(problem, job.finished(samples))


def test_only_the_best_rows_are_compared_and_one_of_them_is_chosen() -> None:
    state, model = present(), Fabolas(care=1)
    rows = np.flatnonzero(state.open)
    joint = model.predict_jointly(state, 0)
    utility = ConstrainedEntropySearch()
    usd = np.full(len(rows), 0.01)
    rate = utility(joint, state, rows) / usd
    found = rates_with_further_run(state, joint, (utility,), Priced(rows, usd, rate), 3)
    compared = np.flatnonzero(found >= 0)
    assert set(compared) == set(np.argsort(-rate, kind="stable")[:3])
    plan = PLANNER(state, model, 0)
    assert plan is not None
    assert state.open[plan.row]


def test_without_discount_rates_are_those_of_single_runs() -> None:
    state, model = present(), Fabolas(care=1)
    rows = np.flatnonzero(state.open)
    joint, utility = model.predict_jointly(state, 0), ConstrainedEntropySearch()
    usd = np.linspace(0.01, 0.02, len(rows))
    rate = utility(joint, state, rows) / usd
    found = rates_with_further_run(state, joint, (utility,), Priced(rows, usd, rate), 3, discount=0.0)
    np.testing.assert_allclose(found[found >= 0], rate[found >= 0])


def test_trees_cannot_be_updated_by_one_run() -> None:
    with pytest.raises(ValueError, match="needs the surrogate fabolas"):
        PLANNER(present(), JointTrees(), 0)
