"""An average of models: where they disagree, the prediction becomes uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.space.column import FloatArray


@dataclass(frozen=True)
class Mixture:
    """An equal mixture of surrogates, described by its first two moments (law of total variance).

    mean = Σ μᵢ/k,   std² = Σ (σᵢ² + μᵢ²)/k − mean²: where the models disagree, the std grows.
    """

    surrogates: tuple[Surrogate, ...]

    def __post_init__(self) -> None:
        if not self.surrogates:
            raise ValueError("a mixture needs at least one surrogate")

    def __call__(self, state: State, seed: int) -> Prediction:
        """The mixture's moments of every row in every state."""
        return moments([surrogate(state, seed) for surrogate in self.surrogates])


def moments(predictions: Sequence[Prediction], weights: FloatArray | None = None) -> Prediction:
    """The first two moments of a mixture, by default an equal one; `weights [k]` have the sum 1."""
    forms = {prediction.form for prediction in predictions}
    if len(forms) > 1:
        raise ValueError(f"a mixture needs models of one unit, got {sorted(forms)}")
    if weights is None:
        weights = np.full(len(predictions), 1.0 / len(predictions))
    pairs = list(zip(weights, predictions, strict=True))
    mean = sum(weight * prediction.mean for weight, prediction in pairs)
    second = sum(
        weight * (np.square(prediction.std) + np.square(prediction.mean - mean)) for weight, prediction in pairs
    )
    return Prediction(predictions[0].form, np.asarray(mean), np.sqrt(second))
