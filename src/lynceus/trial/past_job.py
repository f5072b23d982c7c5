"""A study as the history of another one."""

from __future__ import annotations

from lynceus.problem.history import PastJob
from lynceus.problem.problem import Problem
from lynceus.space.column import Scalar
from lynceus.trial.outcome import End, Observations


def past_job(name: str, problem: Problem, observations: Observations, source: str = "") -> PastJob:
    """The finished and stopped runs of a study in the columns of its space; an error if it has none."""
    kept = [seen for seen in observations if seen.outcome.end is not End.FAILED and seen.outcome.seconds > 0]
    columns: dict[str, tuple[Scalar | None, ...]] = {
        column: tuple(cells[seen.row] for seen in kept)
        for column, values in problem.space.columns.items()
        for cells in [values.tolist()]
    }
    seconds = tuple(float(seen.outcome.seconds) for seen in kept)
    stopped = tuple(seen.outcome.end is End.TIMEOUT for seen in kept)
    return PastJob(name, columns, seconds, stopped, source)
