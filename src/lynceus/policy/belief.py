"""What a model believes after a history, also for policies that have none of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lynceus.history import History
from lynceus.policy.answer import predicted_value
from lynceus.policy.policy import Policy
from lynceus.problem import Problem
from lynceus.situation import Belief, Situation
from lynceus.surrogate.trees import Trees

LEAST = 2
"""Runs that a model must have heard of before its opinion is shown."""


def belief_of(problem: Problem, policy: Policy, history: History, seed: int) -> tuple[Belief, Situation] | None:
    """The belief and the situation it was formed in; nothing while too little is known. Without a model, trees explain."""
    situation = Situation.present(problem, history)
    if len(situation.rows) < LEAST:
        return None
    surrogate = policy.surrogate if policy.surrogate is not None else Trees()
    return surrogate(situation, seed), situation


def believed_values(belief: Belief, situation: Situation) -> NDArray[np.float64]:
    """The goal of every row as believed, in its own unit and sign `[q]`."""
    values = np.asarray(predicted_value(belief, situation)[0], dtype=np.float64)
    return -values if situation.problem.goal.maximise else values


def believed_seconds(belief: Belief, problem: Problem) -> NDArray[np.float64]:
    """The expected time of every row `[q]`."""
    run = belief.run().expectation()[0]
    seconds = problem.seconds_at(run) if belief.form == "cost" else run
    return np.asarray(np.maximum(seconds, 0.0))
