"""Constraints that changed while a study goes on: all runs count, those stopped under the former ones as bounds at their old timeouts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from lynceus.trial.limit_change import LimitChange
from lynceus.trial.order import Purpose
from lynceus.trial.outcome import Observation, Observations


def under_present_limits(observations: Observations, changes: Sequence[LimitChange]) -> Observations:
    """The observations as the search under the last constraints reads them.

    What was expected of a run before the change was expected of another problem, so stopping rules wait for new plans; and a run that
    repeated the best configuration of that time does not repeat the present one.
    """
    if not changes:
        return observations
    first = changes[-1].started
    return tuple(_without_expectations(seen) if seen.order.number < first else seen for seen in observations)


def _without_expectations(seen: Observation) -> Observation:
    plan = seen.order.plan
    purpose = Purpose.SEARCH if plan.purpose is Purpose.CONFIRM else plan.purpose
    plan = replace(plan, best_gain=math.nan, best_rate=math.nan, chance_rate=math.nan, purpose=purpose)
    return replace(seen, order=replace(seen.order, plan=plan))
