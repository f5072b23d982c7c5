"""What a model predicts after some observations, also for policies without a model of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from lynceus.models.interfaces import Surrogate
from lynceus.models.prediction import Prediction
from lynceus.models.state import State
from lynceus.models.trees import Trees
from lynceus.policy.beliefs import answering
from lynceus.policy.policy import Policy
from lynceus.policy.recommendation import answering_policy
from lynceus.problem.problem import Problem
from lynceus.study.view import StudyView
from lynceus.trial.outcome import Observations

FEWEST_RUNS = 2
"""Runs that a model needs before its predictions are shown."""


def explaining_policy(study: StudyView) -> Policy:
    """The policy that answers questions about a study: its own, with a quicker model when there are many runs."""
    return answering_policy(study.policy, study.observations)


def hypothetical_policy(study: StudyView) -> Policy:
    """The policy that answers for other limits and prices: what it believes of the time of a run is what it believes in the study."""
    policy = explaining_policy(study)
    return policy if policy.surrogate is None else replace(policy, surrogate=AsStudied(policy.surrogate, study.problem))


@dataclass(frozen=True, eq=False)
class AsStudied:
    """A model that sees every problem with the limits on time and cost, and the prices, under which the runs were made.

    A deadline or a price may say before the first run how long runs take, because users choose both knowingly. One that is only asked
    about says nothing.
    """

    surrogate: Surrogate
    studied: Problem

    def __call__(self, state: State, seed: int) -> Prediction:
        """The prediction of times and metrics; a model of dollars needs the prices that are asked about."""
        limits = [each for each in self.studied.constraints if each.metric in ("time", "cost")]
        known = self.studied.with_constraints((*limits, *state.problem.metric_constraints))
        prediction = self.surrogate(replace(state, problem=known), seed)
        return prediction if prediction.form == "log time" else self.surrogate(state, seed)

    def accurate(self) -> Surrogate:
        """The same with the model for an answer."""
        return AsStudied(answering(self.surrogate), self.studied)


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
