"""The published tables on subsampling give the counts of the papers."""

from __future__ import annotations

import numpy as np
import pytest

from lynceus.analysis.rank_agreement import rank_agreements
from lynceus.policy.presets import preset
from lynceus.problem.data_fraction import row_shares
from lynceus.replay.job import ReplayJob, load_job
from lynceus.replay.run import replay
from lynceus.replay.tables import data_folder
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget

pytestmark = pytest.mark.skipif(data_folder() is None, reason="no folder of measured tables: set LYNCEUS_DATA")


def feasible(job: ReplayJob) -> np.ndarray:
    accuracy, seconds = job.measurements.metrics["accuracy"], job.measurements.seconds
    return np.array(
        [
            job.problem.meets_constraints(row, float(seconds[row]), {"accuracy": float(accuracy[row])})
            for row in range(1440)
        ]
    )


@pytest.mark.parametrize(
    ("name", "everywhere", "on_all_data", "share", "ratio"), [("cnn", 208, 61, 0.1, 4.1), ("rnn", 264, 104, 0.25, 2.1)]
)
def test_table_1_and_the_cost_on_all_data(
    name: str, everywhere: int, on_all_data: int, share: float, ratio: float
) -> None:
    job, full = load_job(f"subsampling/{name}"), load_job(f"subsampling/{name}-full")
    kept = feasible(job)
    assert (kept.sum(), kept[row_shares(job.problem) == 1].sum()) == (everywhere, on_all_data)
    assert row_shares(job.problem)[job.optimum.row] == share
    assert row_shares(full.problem)[full.optimum.row] == 1
    assert round(full.optimum.cost_usd / job.optimum.cost_usd, 1) == ratio


@pytest.mark.parametrize(("name", "within", "accurate"), [("cnn", 111, 69), ("rnn", 178, 42)])
def test_table_2(name: str, within: int, accurate: int) -> None:
    job = load_job(f"subsampling/{name}-accuracy")
    kept = feasible(job) & (row_shares(job.problem) == 1)
    assert kept.sum() == within
    assert (kept & (job.measurements.metrics["accuracy"] >= 0.85)).sum() == accurate


def test_ranks_of_larger_samples_agree_better_with_all_data() -> None:
    job = load_job("subsampling/rnn-accuracy")
    seen = []
    for row in range(1440):
        seconds, metrics = (
            float(job.measurements.seconds[row]),
            {"accuracy": float(job.measurements.metrics["accuracy"][row])},
        )
        order = Order(row, row, float("inf"), 0.0, Plan(row, why="given"))
        seen.append(Observation(order, Outcome(End.FINISHED, seconds, 0.0, metrics), TrainingTarget(seconds, metrics)))
    ranks = [one.correlation for one in rank_agreements(job.problem, tuple(seen)) if one.quantity == "accuracy"]
    assert ranks == sorted(ranks)
    assert ranks[0] == pytest.approx(0.77, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fabulinus", "trimtuner"])
def test_samples_give_an_accurate_recommendation_for_little_money(name: str) -> None:
    job = load_job("subsampling/rnn-accuracy", budget=0.06)
    done = replay(job, preset(name), 0, until="end")
    assert done.cno_at_stop is not None
    # Trees cannot tell the time on all data after 15 runs on samples: their recommendation may violate the limit on cost.
    assert name == "trimtuner" or done.cno_at_stop < 1.1
    assert sum(step.charged_usd for step in done.steps) <= 0.06 + 1e-9
    on_all_data = [step for step in done.steps if float(str(step.params["data_fraction"])) == 1]
    assert bool(on_all_data) == (name == "fabulinus"), "fabulinus checks what it recommends"
    if name == "fabulinus":
        assert {step.advised for step in done.steps} <= {-1, *(step.row for step in on_all_data)}
