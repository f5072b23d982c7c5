"""Which runs read the input that the job reads now, and which read another one."""

from __future__ import annotations

from lynceus.problem.problem import Problem
from lynceus.trial.outcome import Observation, Observations


def on_present_input(problem: Problem, seen: Observation) -> bool:
    """Whether a run read the present input. Where the job or the run says nothing of its input, it did."""
    return problem.input is None or seen.order.input is None or problem.input.equals(seen.order.input)


def present_runs(problem: Problem, observations: Observations) -> Observations:
    """The runs on the present input: those that tell directly what its configurations cost now."""
    if problem.input is None:
        return observations
    kept = tuple(seen for seen in observations if on_present_input(problem, seen))
    return observations if len(kept) == len(observations) else kept
