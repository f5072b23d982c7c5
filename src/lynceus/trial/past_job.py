"""A study as the history of another one."""

from __future__ import annotations

import math

from lynceus.problem.history import PastJob
from lynceus.problem.job_input import JobInput
from lynceus.problem.problem import Problem
from lynceus.space.column import Scalar
from lynceus.trial.outcome import End, Observation, Observations


def past_jobs(
    name: str, problem: Problem, observations: Observations, source: str = "", declared: JobInput | None = None
) -> tuple[PastJob, ...]:
    """The finished and stopped runs of a study, one job for each input that they read; an error if there are none.

    `declared` is what runs read that do not say it.
    """
    inputs = [seen.order.input or declared for seen in _kept(observations)]
    return past_job(name, problem, observations, source).by_input(inputs)


def past_job(name: str, problem: Problem, observations: Observations, source: str = "") -> PastJob:
    """The finished and stopped runs of a study in the columns of its space; an error if it has none."""
    kept = _kept(observations)
    columns: dict[str, tuple[Scalar | None, ...]] = {
        column: tuple(cells[seen.row] for seen in kept)
        for column, values in problem.space.columns.items()
        for cells in [values.tolist()]
    }
    seconds = tuple(float(seen.outcome.seconds) for seen in kept)
    stopped = tuple(seen.outcome.end is End.TIMEOUT for seen in kept)
    reported = sorted({metric for seen in kept for metric in seen.outcome.metrics})
    metrics = {metric: tuple(seen.outcome.metrics.get(metric) for seen in kept) for metric in reported}
    deadline_s = problem.deadline_s if math.isfinite(problem.deadline_s) else None
    inputs = {seen.order.input for seen in kept}
    read = inputs.pop() if len(inputs) == 1 else None
    return PastJob(name, columns, seconds, stopped, source, metrics, deadline_s, input=read)


def _kept(observations: Observations) -> list[Observation]:
    return [seen for seen in observations if seen.outcome.end is not End.FAILED and seen.outcome.seconds > 0]
