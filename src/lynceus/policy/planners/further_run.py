"""One run further: look-ahead for planners that count information (future work of Mendes 2019)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lynceus.models.after_run import ImaginedRuns
from lynceus.models.distribution import Normal
from lynceus.models.fabolas import FractionJointPrediction
from lynceus.models.interfaces import JointPrediction, Utility
from lynceus.models.state import State
from lynceus.space.column import FloatArray, IntArray

_DRAWS = 1024
"""Draws of the utilities of entropy search."""


@dataclass(frozen=True, eq=False, slots=True)
class Priced:
    """Rows that may be run `[r]`, what each costs, overhead included, and its utility per dollar."""

    rows: IntArray
    usd: FloatArray
    rate: FloatArray


def rates_with_further_run(
    state: State,
    joint: JointPrediction,
    utilities: Sequence[Utility],
    priced: Priced,
    compared: int,
    points: int = 2,
    discount: float = 0.9,
) -> FloatArray:
    """Utility per dollar of the best few rows together with the best run after them `[r]`; −1 for rows that were not compared.

    As in Lynceus' look-ahead, (u + γ Σ w_k u_k) / (c + γ Σ w_k c_k), γ the `discount`: k counts imagined outcomes, all combinations
    of the Gauss–Hermite `points` of everything that the run reports; u_k and c_k are utility and cost of the run with the largest
    utility per dollar after that outcome. Outcomes are rank-one updates.
    """
    if not isinstance(joint, FractionJointPrediction):
        raise ValueError("the look-ahead of the information planner needs the surrogate fabolas")
    first = np.argsort(-priced.rate, kind="stable")[:compared]
    imagined = ImaginedRuns.of(joint, priced.rows[first], _DRAWS)
    rate = np.full(len(priced.rows), -1.0)
    for place, chosen in enumerate(first):
        told, usd = float(priced.rate[chosen] * priced.usd[chosen]), float(priced.usd[chosen])
        for outcome, weight in _outcomes(list(imagined.known), points):
            after = imagined.after(place, outcome)
            further = np.prod([utility(after, state, priced.rows) for utility in utilities], axis=0)
            further[chosen] = 0.0
            best = int(np.argmax(further / np.maximum(priced.usd, 1e-12)))
            told += discount * weight * float(further[best])
            usd += discount * weight * float(priced.usd[best])
        rate[chosen] = told / max(usd, 1e-12)
    return rate


def _outcomes(targets: Sequence[int], points: int) -> list[tuple[dict[int, float], float]]:
    """Every combination of standardised outcomes by target, with its weight.

    >>> [(outcome, round(weight, 3)) for outcome, weight in _outcomes([0], 2)]
    [({0: -1.0}, 0.5), ({0: 1.0}, 0.5)]
    """
    values, weights = Normal(np.zeros(1), np.ones(1)).nodes(points)
    each = [(round(float(z), 12), float(weight)) for z, weight in zip(values[0], weights, strict=True)]
    return [
        (
            {index: z for index, (z, _) in zip(targets, chosen, strict=True)},
            float(np.prod([weight for _, weight in chosen])),
        )
        for chosen in itertools.product(each, repeat=len(targets))
    ]
