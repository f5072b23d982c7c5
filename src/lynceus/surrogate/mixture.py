"""An average of models: what one gets badly wrong, another one doubts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lynceus.parts import Surrogate
from lynceus.situation import Belief, Situation


@dataclass(frozen=True)
class Mixture:
    """An equal mixture of surrogates, handed out by its first two moments (law of total variance).

    mean = Σ μᵢ/k,   std² = Σ (σᵢ² + μᵢ²)/k − mean²: where the models disagree, the mixture is unsure.
    """

    surrogates: tuple[Surrogate, ...]

    def __post_init__(self) -> None:
        if not self.surrogates:
            raise ValueError("a mixture needs at least one surrogate")

    def __call__(self, situation: Situation, seed: int) -> Belief:
        """The mixture's moments of every row in every situation."""
        beliefs = [surrogate(situation, seed) for surrogate in self.surrogates]
        forms = {belief.form for belief in beliefs}
        if len(forms) > 1:
            raise ValueError(f"a mixture needs models of one unit, these model {sorted(forms)}")
        mean = sum(belief.mean for belief in beliefs) / len(beliefs)
        second = sum(np.square(belief.std) + np.square(belief.mean - mean) for belief in beliefs) / len(beliefs)
        return Belief(beliefs[0].form, np.asarray(mean), np.sqrt(second))
