"""An average of models, weighted by how well each of them foretold the runs so far."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from lynceus.models.features import target_values
from lynceus.models.interfaces import Surrogate
from lynceus.models.mixture import moments
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.space.column import FloatArray
from lynceus.space.table import Space

_SUREST = 0.05
"""The least relative standard deviation of a forecast: no model knows a result to the last per cent, whatever it says."""
_LOWEST = -8.0
"""The score of a single forecast counts at least this much, so that one surprise does not decide between models."""


@dataclass(frozen=True)
class Foretold:
    """A mixture of surrogates whose weights follow from their forecasts.

    Before each of the latest runs, every model is asked what it expects. The weight of a model is proportional to
    exp(Σ ln p(result | runs before)), as in Bayesian model averaging: for a process, the sum over all runs is its evidence.
    A run that was stopped scores ln P(T > its time).
    """

    surrogates: tuple[Surrogate, ...]
    forecasts: int = 8
    """How many of the latest runs are forecast."""

    def __post_init__(self) -> None:
        if not self.surrogates:
            raise ValueError("a mixture needs at least one surrogate")
        if self.forecasts < 0:
            raise ValueError(f"forecasts must not be negative, got {self.forecasts}")

    def __call__(self, state: State, seed: int) -> Prediction:
        """The mixture's moments of every row in every state."""
        return moments([surrogate(state, seed) for surrogate in self.surrogates], self.weights(state, seed))

    def weights(self, state: State, seed: int) -> FloatArray:
        """The weight of each model `[k]`, sum 1; imagined runs do not change it."""
        count = len(state.rows)
        logs = np.zeros(len(self.surrogates))
        for run in range(max(1, count - self.forecasts), count):
            logs += [_score(_Forecast.of(state, run, surrogate, seed)) for surrogate in self.surrogates]
        raw = np.exp(logs - logs.max())
        return np.asarray(raw / raw.sum())


@dataclass(frozen=True)
class _Forecast:
    """What a forecast depends on: the model, the runs before, and the run itself, compared by value."""

    surrogate: Surrogate
    seed: int
    space: Space
    digest: bytes
    before: State = field(compare=False)
    state: State = field(compare=False)
    run: int = field(compare=False)

    @classmethod
    def of(cls, state: State, run: int, surrogate: Surrogate, seed: int) -> _Forecast:
        before = replace(
            state.part(slice(0, 1)),
            rows=state.rows[:run],
            seconds=state.seconds[:run],
            metrics=state.metrics[:run],
            bound_s=state.bound_s[:run],
            started=run,
            imagined_rows=np.zeros((1, 0), dtype=np.int64),
            imagined_targets=np.zeros((1, 0, state.targets)),
        )
        through = slice(0, run + 1)
        parts = (state.rows[through], state.seconds[through], state.bound_s[through], state.metrics[through])
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts))
        digest.update(repr(state.logs).encode())
        return cls(surrogate, seed, state.problem.space, digest.digest(), before, state, run)


@lru_cache(maxsize=4096)
def _score(forecast: _Forecast) -> float:
    """ln p of one run's results under one model: the mean over its targets that are known."""
    state, run = forecast.state, forecast.run
    prediction = forecast.surrogate(forecast.before, forecast.seed)
    row = int(state.rows[run])
    mean = prediction.mean[0, row]
    in_logs = np.array([prediction.form == "log time", *(state.logs or [False] * len(state.metrics[run]))])
    std = np.maximum(prediction.std[0, row], _SUREST * np.where(in_logs, 1.0, np.maximum(np.abs(mean), 1e-12)))
    reached = target_values(state, prediction.form, state.seconds)[run]
    stopped = not np.isnan(state.bound_s[run])
    if stopped:
        reached = target_values(state, prediction.form, state.bound_s)[run]
    results = np.array([reached, *state.metrics[run]])
    z = (results - mean) / std
    scores = -0.5 * np.square(z) - np.log(std) - 0.5 * np.log(2.0 * np.pi)
    if stopped:
        scores[0] = log_ndtr(-z[0])
    return max(float(scores[np.isfinite(results)].mean()), _LOWEST)
