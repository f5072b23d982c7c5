"""The parts of the published program: its deviations from the paper, and its names everywhere."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from lynceus.acquisition.functions import ConstrainedImprovement
from lynceus.errors import InputError
from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.planners.lookahead import Lookahead
from lynceus.policy.planners.outcomes import GaussHermite
from lynceus.policy.planners.shortlist import TopRows
from lynceus.policy.presets import all_presets, preset
from lynceus.policy.timeouts.by_name import timeout_named
from lynceus.policy.timeouts.censoring import TruncatedMean
from lynceus.problem.budget import Budget
from lynceus.testing.choosers import check_chooser
from lynceus.testing.job import small_job
from lynceus.testing.surrogates import check_surrogate
from lynceus.testing.timeouts import check_timeout
from lynceus.trial.order import Expected, Order, Plan
from lynceus.trial.outcome import End, Outcome, TrainingTarget
from lynceus_lab.published_program import (
    AUTHORS_TIMEOUT,
    PUBLISHED_TREES,
    PublishedImprovement,
    PublishedLookahead,
    PublishedQuadrature,
    PublishedRecord,
)

JOB = small_job("runtime <= 30m")
ROW = 9


def state_of(runs: int = 8, budget: float = math.inf) -> State:
    return State.present(replace(JOB.problem, budget=Budget(usd=budget)), JOB.finished(JOB.order_of_runs[:runs]))


def test_the_preset_has_the_programs_parts() -> None:
    policy = preset("authors-2020")
    planner = policy.choose.choosers[1]  # type: ignore[attr-defined]
    assert planner == PublishedLookahead(PublishedImprovement(), depth=2, quadrature=PublishedQuadrature())
    assert policy.surrogate == PUBLISHED_TREES
    assert policy.timeout == AUTHORS_TIMEOUT == timeout_named("authors")
    assert preset("authors-2020", lookahead=1).choose.choosers[1].depth == 1  # type: ignore[attr-defined]
    assert list(all_presets())[-1] == "authors-2020", "plugins are listed after the built-in presets"


def test_job_files_name_the_preset_and_the_timeout() -> None:
    text = "name: a\nspace: {n: [1, 2]}\nprice: 1\nbudget: {cost: 1 USD}\nrun: 'true {n}'\n"
    assert prepare(Job.parse(text + "policy: authors-2020\n")).policy == preset("authors-2020")
    assert prepare(Job.parse(text + "policy: bo\ntrial: {timeout: authors}\n")).policy.timeout == AUTHORS_TIMEOUT
    with pytest.raises(InputError, match=r"there is no rule 'author'\. Did you mean 'authors'"):
        prepare(Job.parse(text + "trial: {timeout: author}\n"))


def test_the_parts_meet_their_contracts() -> None:
    policy = preset("authors-2020", lookahead=1)
    check_chooser(policy.choose, policy.surrogate)
    check_surrogate(PUBLISHED_TREES)
    check_timeout(AUTHORS_TIMEOUT)


def test_an_unknown_best_is_guessed_with_the_root_of_sigma() -> None:
    state = replace(state_of(5), best=np.array([math.nan]))
    rng = np.random.default_rng(8)
    prediction = Prediction("cost", rng.uniform(0.2, 0.6, (1, 24, 1)), rng.uniform(0.05, 0.2, (1, 24, 1)))
    guessed = state.worst + 3 * math.sqrt(prediction.std[0, state.open, 0].max())
    expected = ConstrainedImprovement()(prediction, replace(state, best=np.array([guessed])))
    assert PublishedImprovement()(prediction, state) == pytest.approx(expected)
    assert (PublishedImprovement()(prediction, state) != ConstrainedImprovement()(prediction, state)).any()
    known = replace(state, best=np.array([0.3]))
    assert np.array_equal(PublishedImprovement()(prediction, known), ConstrainedImprovement()(prediction, known))
    logs = Prediction("log time", prediction.mean + 7.0, prediction.std)
    assert np.array_equal(PublishedImprovement()(logs, state), ConstrainedImprovement()(logs, state))


def test_the_quadrature_is_off_by_the_root_of_pi() -> None:
    mean, std = np.array([[2.0, 0.8]]), np.array([[1.0, 0.1]])
    nodes, weights = PublishedQuadrature()(mean, std)
    right_nodes, right_weights = GaussHermite()(mean, std)
    assert nodes == pytest.approx(right_nodes / math.sqrt(math.pi))
    assert weights == pytest.approx(right_weights * math.pi)
    with pytest.raises(ValueError, match="has 3 points, got 5"):
        PublishedQuadrature(5)


def test_imagined_runs_are_tested_with_the_real_budget() -> None:
    """The program's paths are longer than those of the paper, because imagined runs do not reduce the budget."""
    spent = sum(seen.outcome.charged_usd for seen in JOB.finished(JOB.order_of_runs[:8]))
    state = state_of(budget=spent + 0.62)
    paper = Lookahead(ConstrainedImprovement(), depth=1)(state, Trees(), 4)
    program = PublishedLookahead(ConstrainedImprovement(), depth=1)(state, Trees(), 4)
    assert paper is not None
    assert program is not None
    assert program.score != paper.score
    unlimited = state_of()
    for shortlist in (None, TopRows(5)):
        paper = Lookahead(ConstrainedImprovement(), depth=2, shortlist=shortlist)(unlimited, Trees(), 4)
        assert (
            PublishedLookahead(ConstrainedImprovement(), depth=2, shortlist=shortlist)(unlimited, Trees(), 4) == paper
        )


def record(
    ran: float, progress: tuple[tuple[float, float], ...] = (), oracle: float | None = 5000.0
) -> TrainingTarget | None:
    order = Order(4, ROW, ran, 1.0, Plan(ROW, why="tested", expected=Expected("cost", (0.3,), (0.1,))))
    outcome = Outcome(End.TIMEOUT, ran, JOB.problem.cost(ROW, ran), {"accuracy": 0.5}, progress, oracle_s=oracle)
    return PublishedRecord(target=0.85, tick_s=30.0)(JOB.problem, order, outcome, state_of(4))


def test_what_the_program_records_for_a_stopped_run() -> None:
    rising = tuple((30.0 * i, 0.05 * i) for i in range(1, 21))
    assert record(1800.0, rising) == TrainingTarget(5000.0, {"accuracy": 0.5}), "at the deadline: the full time"
    assert record(540.0, rising) == TrainingTarget(540.0, {"accuracy": 0.5}), "at the target: the time until the stop"
    assert record(10.0) == TrainingTarget(5000.0, {"accuracy": 0.5}), "no progress yet: the full time"
    order = Order(4, ROW, 300.0, 1.0, Plan(ROW, why="tested", expected=Expected("cost", (0.3,), (0.1,))))
    outcome = Outcome(End.TIMEOUT, 300.0, JOB.problem.cost(ROW, 300.0), {"accuracy": 0.5}, rising)
    assert record(300.0, rising) == TruncatedMean()(JOB.problem, order, outcome, state_of(4))
    with pytest.raises(InputError, match="'authors' needs the full time of stopped runs"):
        record(100.0, oracle=None)
