"""What a model predicts after some observations, also for policies without a model of their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.policy import Policy
from lynceus.problem.problem import Problem
from lynceus.study.view import StudyView
from lynceus.trial.outcome import Observations

FEWEST_RUNS = 2
"""Runs that a model needs before its predictions are shown."""
MANY_RUNS = 1000
"""Runs above which regression trees explain, whatever model the policy has: a Gaussian process would take minutes."""


def explaining_policy(study: StudyView) -> Policy:
    """The policy that answers questions about a study: its own, with a quicker model when there are many runs."""
    policy = study.policy
    if policy.surrogate is None or len(study.observations) <= MANY_RUNS:
        return policy
    return replace(policy, surrogate=Trees())


def predict(problem: Problem, policy: Policy, observations: Observations, seed: int) -> Prediction | None:
    """A prediction of every row; None while there are too few runs. Trees predict for policies without a model."""
    state = State.present(problem, observations)
    if len(state.rows) < FEWEST_RUNS:
        return None
    surrogate = policy.surrogate if policy.surrogate is not None else Trees()
    return surrogate(state, seed)


def predicted_objective(prediction: Prediction, problem: Problem) -> NDArray[np.float64]:
    """The predicted objective of every row, in its own unit and sign `[q]`."""
    return np.asarray(problem.objective.sign * prediction.objective(problem)[0], dtype=np.float64)


def predicted_times(prediction: Prediction, problem: Problem) -> NDArray[np.float64]:
    """The predicted time of every row in seconds `[q]`."""
    return np.asarray(prediction.seconds(problem)[0], dtype=np.float64)
