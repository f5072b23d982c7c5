"""Noise between runs: the integrals against Monte Carlo, the limits without noise, and robustness to slow runs."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from lynceus.models import run_noise
from lynceus.models.run_noise import RunNoise, Runs, runs_by_row
from lynceus.trial.outcome import End, FailureReason
from retry_cases import run

NOISE = RunNoise()
times = st.floats(1.0, 1e5)


def sampled(noise: RunNoise, runs: Runs, prior: tuple[float, float], limit_s: float) -> tuple[float, float]:
    """Mean time and chance by importance sampling: everything is drawn from its prior and weighted by the likelihood."""
    random, count = np.random.default_rng(5), 400_000
    sigma = np.exp(random.normal(*noise.log_spread, count))
    sigma = np.clip(np.where(random.random(count) < noise.none, 0.0005, sigma), 0.0005, 1.0)
    share = np.where(random.random(count) < noise.slow[0], noise.slow[1], 0.0)
    slower, width = noise.log_slower
    wide = np.hypot(sigma, width)
    f = prior[0] + prior[1] * random.standard_t(4, count)

    def density(x: np.ndarray, std: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (x / std) ** 2) / std

    weight = np.ones(count)
    for seconds in runs.finished:
        gap = math.log(seconds) - f
        weight *= (1 - share) * density(gap, sigma) + share * density(gap - slower, wide)
    for seconds in runs.stopped:
        gap = f - math.log(seconds)
        weight *= (1 - share) * np.exp(log_ndtr(gap / sigma)) + share * np.exp(log_ndtr((gap + slower) / wide))
    mean = np.exp(f + sigma**2 / 2) * (1 + share * (math.exp(slower + width**2 / 2) - 1))
    gap = math.log(limit_s) - f
    chance = (1 - share) * np.exp(log_ndtr(gap / sigma)) + share * np.exp(log_ndtr((gap - slower) / wide))
    return float((weight * mean).sum() / weight.sum()), float((weight * chance).sum() / weight.sum())


@pytest.mark.parametrize(
    "runs",
    [
        Runs((100.0, 120.0)),
        Runs((100.0, 93.0, 131.0)),
        Runs((100.0, 290.0)),
        Runs((100.0, 112.0), (140.0,)),
    ],
)
def test_the_grid_agrees_with_monte_carlo(runs: Runs) -> None:
    prior = (math.log(130.0), 0.3)
    belief = NOISE.belief(runs, prior=prior)
    mean, chance = sampled(NOISE, runs, prior, 125.0)
    assert belief.seconds == pytest.approx(mean, rel=0.03)
    assert belief.chance(125.0) == pytest.approx(chance, abs=0.03)


@pytest.mark.parametrize(
    "runs", [Runs((100.0, 290.0)), Runs((100.0,), (300.0,)), Runs((100.0, 101.0, 99.0, 300.0)), Runs((100.0,) * 20)]
)
def test_a_finer_grid_says_the_same(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where runs are far apart, and σ may be so small that f lies close to one of them."""
    prior = (math.log(130.0), 0.3)
    coarse = NOISE.belief(runs, prior=prior)
    monkeypatch.setattr(run_noise, "_PLACES", 10_000)
    fine = NOISE.belief(runs, prior=prior)
    assert coarse.seconds == pytest.approx(fine.seconds, rel=0.005)
    assert coarse.chance(125.0) == pytest.approx(fine.chance(125.0), abs=0.005)
    assert (coarse.low_s, coarse.high_s) == pytest.approx((fine.low_s, fine.high_s), rel=0.01)


def test_other_repeated_configurations_teach_the_noise() -> None:
    own = Runs((100.0,))
    calm = NOISE.belief(own, [Runs((50.0, 50.2)), Runs((70.0, 69.8))])
    noisy = NOISE.belief(own, [Runs((50.0, 70.0)), Runs((70.0, 48.0))])
    assert calm.spread < NOISE.belief(own).spread < noisy.spread
    assert calm.chance(110.0) > noisy.chance(110.0)
    assert NOISE.belief(own, [Runs((50.0,))]).spread == NOISE.belief(own).spread
    assert NOISE.spread([Runs((50.0, 50.2))]) < NOISE.spread([]) < NOISE.spread([Runs((50.0, 70.0))])


@given(times)
def test_equal_runs_leave_no_doubt(seconds: float) -> None:
    belief = NOISE.belief(Runs((seconds, seconds, seconds)))
    assert belief.spread < 0.005
    assert belief.typical_s == pytest.approx(seconds, rel=0.01)
    assert belief.chance(seconds) > 0.97
    assert belief.chance(0.95 * seconds) < 0.03
    assert belief.doubt < 0.02


@given(times)
def test_a_few_runs_do_not_rule_out_that_some_are_slow(seconds: float) -> None:
    """Three equal runs say little about one in twenty that takes three times as long."""
    belief = NOISE.belief(Runs((seconds, seconds, seconds)))
    assert seconds < belief.seconds < 1.05 * seconds
    assert belief.low_s == pytest.approx(seconds, rel=0.01)
    assert belief.low_s < 1.09 * seconds < belief.high_s < 1.15 * seconds
    assert NOISE.belief(Runs((seconds,) * 40)).seconds == pytest.approx(seconds, rel=0.01)


@settings(max_examples=40)
@given(st.lists(times, min_size=1, max_size=4), st.floats(0.1, 10.0))
def test_beliefs_have_no_unit(seconds: list[float], factor: float) -> None:
    one, other = (NOISE.belief(Runs(tuple(scale * each for each in seconds))) for scale in (1.0, factor))
    assert other.seconds == pytest.approx(factor * one.seconds, rel=1e-6)
    assert other.chance(factor * 300.0) == pytest.approx(one.chance(300.0), abs=1e-6)
    assert one.low_s <= one.high_s
    assert one.chance(10.0) <= one.chance(100.0) <= one.chance(math.inf) == 1.0
    assert one.chance(0.0) == 0.0


def test_a_slow_run_neither_moves_the_cost_nor_the_noise_much() -> None:
    calm, slow = Runs((100.0, 103.0, 98.0)), Runs((100.0, 103.0, 98.0, 300.0))
    assert NOISE.belief(slow).seconds < 1.25 * NOISE.belief(calm).seconds
    assert NOISE.belief(slow).spread < 0.15
    without = RunNoise(slow=(0.0, 0.0))
    assert without.belief(slow).seconds > 1.35 * without.belief(calm).seconds


def test_a_lucky_run_is_weighed_against_the_prediction() -> None:
    noisy = [Runs((50.0, 75.0)), Runs((80.0, 60.0)), Runs((30.0, 41.0))]
    lucky = NOISE.belief(Runs((100.0,)), noisy, prior=(math.log(200.0), 0.2))
    assert 108.0 < lucky.seconds < 170.0
    calm = [Runs((50.0, 50.0)), Runs((80.0, 80.0))]
    assert NOISE.belief(Runs((100.0,)), calm, prior=(math.log(200.0), 0.2)).typical_s == pytest.approx(100.0, rel=0.02)


def test_a_stopped_run_is_a_lower_bound() -> None:
    assert NOISE.belief(Runs((100.0,), (130.0,))).seconds > NOISE.belief(Runs((100.0,))).seconds


def test_the_interval_covers_what_was_drawn_from_the_prior() -> None:
    random, inside, count = np.random.default_rng(11), 0, 150
    for _ in range(count):
        sigma = math.exp(random.normal(*NOISE.log_spread)) if random.random() > NOISE.none else 0.0005
        sigma = min(sigma, 1.0)
        share = NOISE.slow[1] if random.random() < NOISE.slow[0] else 0.0
        slow = random.random(3) < share
        noise = sigma * random.normal(size=3) + slow * random.normal(*NOISE.log_slower, size=3)
        f = math.log(100.0) + 0.4 * random.standard_t(4)
        belief = NOISE.belief(Runs(tuple(np.exp(f + noise).tolist())), prior=(math.log(100.0), 0.4))
        slower = math.exp(NOISE.log_slower[0] + NOISE.log_slower[1] ** 2 / 2) - 1
        truth = math.exp(f + sigma**2 / 2) * (1 + share * slower)
        inside += belief.low_s * 0.999 <= truth <= belief.high_s * 1.001
    assert 0.70 <= inside / count <= 0.93


def test_runs_are_collected_by_configuration() -> None:
    observations = (
        run(1, End.FINISHED, 10.0),
        run(1, End.TIMEOUT, 20.0),
        run(2, FailureReason.OOM, 5.0),
        run(1, End.FINISHED, 99.0),
    )
    assert runs_by_row(observations) == {1: Runs((10.0, 99.0), (20.0,))}


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="nothing to believe"):
        NOISE.belief(Runs((), (10.0,)))
    with pytest.raises(ValueError, match="std above 0"):
        RunNoise(log_spread=(-2.0, 0.0))
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\)"):
        RunNoise(none=1.0)
