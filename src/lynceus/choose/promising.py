"""Only rows that seem to keep the limits (Nephele's set Γ)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lynceus.history import Plan
from lynceus.parts import Chooser, Surrogate
from lynceus.situation import Belief, BoolArray, Situation


@dataclass(frozen=True)
class Promising:
    """Let a chooser see only the rows whose believed mean keeps every limit; silence when there is none.

    Imagined runs of a look-ahead stay within the same rows; the paper asks the updated model again.
    """

    chooser: Chooser

    def __call__(self, situation: Situation, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The inner chooser's plan, were all other rows closed."""
        if surrogate is None:
            raise ValueError("what seems to keep the limits is a surrogate's word; this policy has none")
        if not len(situation.rows) or not situation.problem.limits:
            return self.chooser(situation, surrogate, seed)
        inside = situation.open & seems_to_keep(surrogate(situation, seed), situation)
        return self.chooser(replace(situation, open=inside), surrogate, seed) if inside.any() else None


def seems_to_keep(belief: Belief, situation: Situation) -> BoolArray:
    """Whether the means of every row of the first situation keep every limit `[q]`."""
    problem = situation.problem
    run = belief.mean[0, :, 0]
    kept = run <= problem.ceiling_usd if belief.form == "cost" else np.exp(np.minimum(run, 700.0)) <= problem.ceiling_s
    for limit in problem.metric_limits:
        value = belief.mean[0, :, 1 + problem.metrics.index(limit.metric)]
        kept = kept & (value >= limit.bound if limit.at_least else value <= limit.bound)
    return np.asarray(kept)
