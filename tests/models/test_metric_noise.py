"""The chance to keep a limit on a metric: against Monte Carlo, metrics that never vary, and calibration over simulated jobs."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from lynceus.models import metric_noise
from lynceus.models.distribution import Normal
from lynceus.models.metric_noise import chance_to_keep, reported_by_row
from lynceus.problem.objective import Constraint
from lynceus.trial.order import Order, Plan
from lynceus.trial.outcome import End, Observation, Outcome, TrainingTarget

SIZE = Constraint("size", 2_180_000.0)
SIZES = [1_950_000.0, 2_170_343.0, 2_418_958.0, 2_900_000.0, 3_400_000.0]


def sampled(own: list[float], prior: tuple[float, float], bound: float, unit: float) -> float:
    """The chance by importance sampling, for a metric in its own unit."""
    random, count = np.random.default_rng(3), 400_000
    low, high = metric_noise._SPREADS
    sigma = np.exp(random.normal(*metric_noise._LOG_SPREAD, count))
    sigma = unit * np.clip(np.where(random.random(count) < metric_noise._NONE, low, sigma), low, high)
    f = prior[0] + prior[1] * random.standard_t(4, count)
    log_weight = sum(-0.5 * np.square((value - f) / sigma) - np.log(sigma) for value in own)
    weight = np.exp(log_weight - np.max(log_weight))
    return float((weight * ndtr((bound - f) / sigma)).sum() / weight.sum())


@pytest.mark.parametrize("own", [[-1.2, -0.7], [-0.3, -0.9, 0.4]])
def test_sums_agree_with_monte_carlo(own: list[float]) -> None:
    typical = [-2.0, 0.0, 2.0]
    unit = float(np.std(typical, ddof=1))
    chance = chance_to_keep(Constraint("m", 0.0), own, [], typical, Normal(-0.5, 1.0))
    assert chance == pytest.approx(sampled(own, (-0.5, 1.0), 0.0, unit), abs=0.03)


def test_a_metric_that_never_varies_keeps_its_limit() -> None:
    assert chance_to_keep(SIZE, [2_170_343.0] * 6, [], SIZES, Normal(2_300_000.0, 400_000.0)) > 0.99
    assert chance_to_keep(SIZE, [2_170_343.0] * 2, [], SIZES, Normal(2_300_000.0, 400_000.0)) > 0.95
    assert chance_to_keep(SIZE, [2_180_000.0] * 3, [], SIZES) > 0.99, "the limit is met exactly"
    assert chance_to_keep(Constraint("size", 2_170_343.0, at_least=True), [2_170_343.0] * 3, [], SIZES) > 0.99
    assert chance_to_keep(SIZE, [2_250_000.0] * 3, [], SIZES) < 0.01


def test_a_single_run_clearly_inside_its_limit_is_believed() -> None:
    limit = Constraint("size", 2_500_000.0)
    assert chance_to_keep(limit, [2_418_958.0], [], SIZES, Normal(2_500_000.0, 500_000.0)) > 0.85


def test_other_repeated_configurations_teach_the_noise() -> None:
    alone = chance_to_keep(SIZE, [2_170_343.0], [], SIZES)
    calm = chance_to_keep(SIZE, [2_170_343.0], [[2_900_000.0] * 3], SIZES)
    noisy = chance_to_keep(SIZE, [2_170_343.0], [[2_600_000.0, 2_900_000.0, 3_300_000.0]], SIZES)
    assert noisy < 0.65 < alone < 0.99 < calm


@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_a_limit_from_below_is_the_mirror_image(shift: float) -> None:
    """Values that are not positive have a noise in their own unit, others a relative one: near the limit they are alike."""
    values, typical = [shift - 0.5, shift - 0.7], [shift - 2.0, shift + 1.0]
    below = chance_to_keep(Constraint("m", shift - 0.4), values, [], typical, Normal(shift, 1.0))
    above = chance_to_keep(
        Constraint("m", 0.4 - shift, at_least=True),
        [-v for v in values],
        [],
        [-v for v in typical],
        Normal(-shift, 1.0),
    )
    assert 0.5 < below < 1.0
    assert above == pytest.approx(below, abs=0.05)


def test_extreme_values_have_a_chance() -> None:
    for own in ([0.0], [0.0, 0.0], [-1e300], [1e-300, 1e300]):
        for prior in (None, Normal(0.0, 0.0), Normal(1e9, 1e-9)):
            assert 0.0 <= chance_to_keep(Constraint("m", 1.0), own, [[0.0, 0.0]], [own[0]], prior) <= 1.0
    with pytest.raises(ValueError, match="never reported m"):
        chance_to_keep(Constraint("m", 1.0), [], [], [])


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("runs", [2, 4])
def test_stated_chances_are_true_on_average(noise: float, runs: int) -> None:
    """Simulated metrics with a noise of that share of the value; a configuration is asked about if its first run kept the limit."""
    random, stated, true = np.random.default_rng(17), [], []
    for _ in range(300):
        levels = 1000.0 * np.exp(0.4 * random.normal(size=10))
        bound = 1000.0 * math.exp(0.2 * random.normal())
        own = levels[0] * (1 + noise * random.normal(size=runs))
        if own[0] <= bound:
            seen = [float(own.mean()), *(levels[1:] * (1 + noise * random.normal(size=9)))]
            stated.append(chance_to_keep(Constraint("m", bound), own.tolist(), [], seen, Normal(1080.0, 430.0)))
            true.append(float(ndtr((bound / levels[0] - 1) / noise)) if noise else 1.0)
    assert len(stated) > 100
    assert np.mean(stated) == pytest.approx(np.mean(true), abs=0.05)


def test_values_are_collected_by_configuration() -> None:
    def run(row: int, end: End, value: float) -> Observation:
        outcome = Outcome(end, 1.0, 1.0, {"m": value})
        return Observation(Order(0, row, 9.0, 9.0, Plan(row, why="")), outcome, TrainingTarget(1.0))

    observations = (
        run(1, End.FINISHED, 3.0),
        run(2, End.FINISHED, math.inf),
        run(1, End.TIMEOUT, 9.0),
        run(1, End.FINISHED, 4.0),
    )
    assert reported_by_row(observations, "m") == {1: [3.0, 4.0]}
    assert reported_by_row(observations, "other") == {}
