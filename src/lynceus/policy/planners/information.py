"""Information planner: the score of a row is the utility of the information in its run, per dollar (Fabolas, Fabulinus, TrimTuner)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lynceus.models.blas import one_thread
from lynceus.models.interfaces import JointPrediction, RefinedUtility, SupportsJointPrediction, Surrogate, Utility
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.policy.interfaces import Shortlist, single
from lynceus.policy.planners.further_run import Priced, rates_with_further_run
from lynceus.policy.planners.simple import Uniform
from lynceus.problem.data_fraction import row_shares
from lynceus.problem.units import format_money
from lynceus.space.column import FloatArray, IntArray
from lynceus.trial.order import Plan


@dataclass(frozen=True)
class InformationPlanner:
    """Chooses the row with the largest product of utilities, per dollar of the run."""

    utilities: tuple[Utility, ...]
    per: Literal["run", "dollar"] = "dollar"
    overhead: float = 0.0
    """What every run costs besides its machines (C_overhead in the papers), as a fraction of the mean predicted cost of the answers.
    Larger values lead from many nearly free runs to fewer, more informative ones."""
    confidence: float = 0.99
    """A row is a candidate when its run fits into the remaining budget with this probability; 0 for no test."""
    shortlist: Shortlist | None = None
    """Rows whose utility is computed, by their own predicted objective (TrimTuner); None for all candidates."""
    refine: int = 24
    """How many of the best rows are compared again by the refined form of a utility, where it has one."""
    ahead: int = 0
    """How many of the best rows are compared again by what they and the best run after them tell, per dollar of both; 0 for none."""

    def __call__(self, state: State, surrogate: Surrogate | None, seed: int) -> Plan | None:
        """The best row; None when no row is open and affordable."""
        if not isinstance(surrogate, SupportsJointPrediction):
            raise ValueError(
                "information-planner needs a surrogate with joint predictions, such as fabolas or joint-trees"
            )
        if not state.open.any():
            return None
        if not len(state.rows):
            # Every run so far failed or has no training target, so there is no model yet.
            return Uniform()(state, surrogate, seed)
        with one_thread():
            return self._plan(state, surrogate.predict_jointly(state, seed), surrogate(state, seed), seed)

    def _plan(self, state: State, joint: JointPrediction, prediction: Prediction, seed: int) -> Plan | None:
        candidates = state.open.copy()
        if self.confidence > 0:
            candidates &= prediction.affordable(state, self.confidence)[0]
        if not candidates.any():
            return None
        usd = single(prediction.charge(state))
        probability = single(prediction.feasible(state.problem))
        rows = np.flatnonzero(candidates)
        if self.shortlist is not None:
            rows = self.shortlist(state, _own_utility(state, prediction, probability), candidates, seed)
        extra = self.overhead * float(usd[joint.answers].mean())
        rate = self._ranked(joint, state, rows, usd[rows] + extra)
        if self.ahead:
            priced = Priced(rows, usd[rows] + extra, rate)
            rate = rates_with_further_run(state, joint, self.utilities, priced, self.ahead)
        chosen = int(np.argmax(rate))
        row = int(rows[chosen])
        return Plan(
            row,
            why=self._why(state, float(usd[row]), len(rows)),
            score=float(rate[chosen]),
            probability=float(probability[row]),
            usd=float(usd[row]),
            expected=prediction.expected(row),
        )

    def _ranked(self, joint: JointPrediction, state: State, rows: IntArray, usd: FloatArray) -> FloatArray:
        """Utility per dollar `[r]`; where the best few are compared again, −1 for all others."""
        factors = [utility(joint, state, rows) for utility in self.utilities]
        rate = self._rate(np.prod(factors, axis=0), usd)
        if self.refine < 2 or not any(isinstance(utility, RefinedUtility) for utility in self.utilities):
            return rate
        top = np.argsort(-rate, kind="stable")[: self.refine]
        closer = [
            utility.refined(joint, state, rows[top]) if isinstance(utility, RefinedUtility) else factor[top]
            for utility, factor in zip(self.utilities, factors, strict=True)
        ]
        refined = np.full(len(rows), -1.0)
        refined[top] = self._rate(np.prod(closer, axis=0), usd[top])
        # If all of the best few have no refined utility, the first ranking is used.
        return refined if refined.max() > 0 else rate

    def _rate(self, utility: FloatArray, usd: FloatArray) -> FloatArray:
        return utility if self.per == "run" else utility / np.maximum(usd, 1e-12)

    def _why(self, state: State, usd: float, compared: int) -> str:
        share = row_shares(state.problem)
        where = "" if (share == 1.0).all() else " about all data"
        return f"most informative{where} for {format_money(usd)}, best of {compared} compared"


def _own_utility(state: State, prediction: Prediction, probability: FloatArray) -> FloatArray:
    """How good each row itself is `[q]`: its objective times its probability of feasibility (the filter of TrimTuner)."""
    problem = state.problem
    if problem.kind == "metric":
        objective = prediction.objective(problem)[0]
        return np.asarray((objective.max() - objective + 1e-9) * probability)
    mean = prediction.mean[0]
    return np.asarray((mean[:, 0].max() - mean[:, 0] + 1e-9) * probability)
