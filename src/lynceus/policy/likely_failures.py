"""Failures as information: rows that are likely to fail as others did wait until nothing better is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lynceus.models.failures import chance_to_fail
from lynceus.models.state import State
from lynceus.trial.outcome import End, Observation

_LIKELY = 0.22
"""A row with a larger chance to fail is not run while others are left."""
_TIE = 0.05
"""If every open row is likely to fail, those within this of the smallest chance remain."""
_FAILURES = 2
"""So many failures of configurations before rows are closed: a single one says little about where the others are."""


def with_chance_to_fail(state: State) -> State:
    """The state with the chance that each row works, and rows closed that are likely to fail.

    The chance weighs every acquisition value. Closing rows makes initial designs and random choices, which have no such value, avoid
    them too. Nothing is closed for good: every trial counts anew, and when only likely failures are left, the least likely remain.
    """
    chance = chance_to_fail(state.problem.space, state.observations)
    if chance is None or not state.open.any():
        return state
    failures = sum(seen.outcome.end is End.FAILED and _is_blamed(seen) for seen in state.observations)
    if failures < _FAILURES:
        return replace(state, success=1.0 - chance)
    bearable = max(_LIKELY, float(chance[state.open].min()) + _TIE)
    return replace(state, success=1.0 - chance, open=state.open & np.asarray(chance <= bearable))


def _is_blamed(seen: Observation) -> bool:
    """Whether a failure is the configuration's fault."""
    return seen.outcome.reason is not None and seen.outcome.reason.blames_configuration
