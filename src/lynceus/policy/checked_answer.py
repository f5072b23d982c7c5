"""The answer of searches that learn on samples of the data, and check on all data what they recommend."""

from __future__ import annotations

from dataclasses import dataclass, field

from lynceus.models.interfaces import Surrogate
from lynceus.models.state import State, feasible_runs
from lynceus.policy.answer import BestPredicted
from lynceus.problem.data_fraction import row_shares


@dataclass(frozen=True, slots=True)
class BestChecked:
    """The best run on all data that kept every constraint: nothing is recommended that only samples speak for.

    Where no run on all data is allowed (`test: samples`), there is nothing to check, and the best predicted row is recommended.
    """

    predicted: BestPredicted = field(default_factory=BestPredicted)

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> int | None:
        """A row; None before the first check that kept the constraints."""
        problem = state.problem
        full = row_shares(problem) == 1.0
        if problem.testable is not None and not (problem.testable & full).any():
            return self.predicted(state, surrogate, seed)
        runs = [run for run in feasible_runs(problem, state.observations) if full[run[0]]]
        return min(runs, key=lambda run: run[1])[0] if runs else None
