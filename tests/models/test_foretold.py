"""Averages of models that are weighted by their forecasts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import norm

from lynceus.models.foretold import Foretold
from lynceus.models.gaussian_process import GaussianProcess
from lynceus.models.mixture import Mixture
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.testing.job import small_job
from lynceus.testing.surrogates import check_surrogate


@dataclass(frozen=True)
class Fixed:
    """The same prediction everywhere."""

    mean: float
    std: float

    def __call__(self, state: State, seed: int) -> Prediction:
        shape = (len(state), len(state.open), state.targets)
        return Prediction("log time", np.full(shape, self.mean), np.full(shape, self.std))


def known(seconds: list[float], stopped: list[bool] | None = None) -> State:
    """A state after runs of so many seconds; some of them were stopped then."""
    job = small_job("runtime <= 30m")
    state = State.present(job.problem, job.finished(job.order_of_runs[: len(seconds)]))
    times = np.array(seconds)
    bounds = np.where(stopped, times, np.nan) if stopped is not None else np.full(len(times), np.nan)
    return replace(state, seconds=times, bound_s=bounds)


def test_weights_are_the_products_of_the_densities_of_all_runs_but_the_first() -> None:
    models = (Fixed(5.0, 0.5), Fixed(6.0, 1.0), Fixed(5.5, 2.0))
    logs = np.array([4.2, 5.3, 5.9, 4.8])
    expected = np.array([norm.pdf(logs[1:], model.mean, model.std).prod() for model in models])
    found = Foretold(models).weights(known(np.exp(logs).tolist()), 0)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-9)


def test_a_stopped_run_counts_with_the_chance_that_it_takes_longer() -> None:
    models = (Fixed(5.0, 0.5), Fixed(6.0, 1.0))
    expected = np.array([norm.sf(5.5, model.mean, model.std) for model in models])
    found = Foretold(models).weights(known([100.0, float(np.exp(5.5))], [False, True]), 0)
    np.testing.assert_allclose(found, expected / expected.sum(), rtol=1e-9)


def test_without_a_forecast_all_models_count_the_same() -> None:
    models = (GaussianProcess(), Trees(trees=4, target="log time"))
    here = known([100.0])
    np.testing.assert_array_equal(Foretold(models).weights(here, 0), [0.5, 0.5])
    np.testing.assert_allclose(Foretold(models)(here, 3).mean, Mixture(models)(here, 3).mean, atol=1e-12)


def test_only_the_latest_runs_are_forecast_and_one_surprise_does_not_decide() -> None:
    models = (Fixed(5.0, 0.1), Fixed(7.0, 0.1))
    times = [*[float(np.exp(7.0))] * 3, *[float(np.exp(5.0))] * 2]
    assert Foretold(models, forecasts=2).weights(known(times), 0)[0] > 0.99
    assert Foretold(models).weights(known([100.0, float(np.exp(7.0)), *[float(np.exp(5.0))] * 2]), 0)[0] > 0.99


def test_imagined_runs_change_no_weight() -> None:
    models = (GaussianProcess(), Fixed(5.0, 1.0))
    here = known([120.0, 90.0, 300.0, 80.0])
    rows = np.flatnonzero(here.open)[:2]
    imagined = here.after(rows, np.full((2, 3, here.targets), 4.0), np.full((2, 3), 0.1), np.full((2, 3), np.nan))
    np.testing.assert_array_equal(Foretold(models).weights(here, 1), Foretold(models).weights(imagined, 1))


def test_it_meets_the_contract_of_surrogates() -> None:
    check_surrogate(Foretold((GaussianProcess(), Trees(trees=4, target="log time"))), tolerance=1e-6)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Foretold(())
    with pytest.raises(ValueError, match="negative"):
        Foretold((Fixed(0.0, 1.0),), forecasts=-1)
