"""When a recommendation must be checked again because the input of the job grows."""

from __future__ import annotations

from lynceus.models.input_size import AtInput, InputModel
from lynceus.policy.input_answer import best_at_input, demanded_chance
from lynceus.problem.job_input import SIZE, JobInput
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_bytes, format_duration
from lynceus.trial.outcome import Observations

_STEP, _FARTHEST = 1.15, 8.0
"""A recommendation is looked at for inputs so many times as large, one step after the other, up to this factor."""
_DEARER = 1.1
"""It must be checked where it is expected to cost so many times as much as another configuration."""


def check_again(problem: Problem, observations: Observations, row: int) -> str | None:
    """When the recommendation of a row for the present input must be checked again; None where the job does not say what runs read."""
    if problem.input is None or (model := InputModel.fit(problem, observations)) is None:
        return None
    return next_check(model, problem.input, row)[1]


def next_check(model: InputModel, target: JobInput, row: int) -> tuple[JobInput | None, str]:
    """The next larger input at which a row is in doubt (None: none up to eight times as large), and a sentence that says why."""
    if SIZE not in target.numbers:
        return None, "check it with a run on every new input: no number says how much it reads"
    ran = [seen.order.input.numbers.get(SIZE, 0.0) for seen in model.runs if seen.order.input is not None]
    largest, size = max(ran, default=0.0), target.numbers[SIZE]
    if size > largest * 1.02:
        more = f"no run has read more than {format_bytes(largest)}" if largest else "no run has said how much it read"
        return target, f"check it with a run on {format_bytes(size)}: {more}"
    factor = _STEP
    while factor <= _FARTHEST:
        larger = target.grown(factor)
        if (reason := _reason(model.problem, model.at(larger), row)) is not None:
            return larger, f"check it again at {format_bytes(size * factor)}, where {reason}"
        factor *= _STEP
    return None, f"it should hold up to {format_bytes(size * _FARTHEST)}"


def _reason(problem: Problem, believed: AtInput, row: int) -> str | None:
    """Why a row is in doubt on an input; None when it is not."""
    chance = believed.prediction.feasible(problem)[0]
    value = believed.prediction.objective(problem)[0]
    if chance[row] < demanded_chance(problem):
        return _doubtful_limit(problem, believed, row, float(chance[row]))
    other = best_at_input(problem, believed.prediction)
    if other != row and 0 < value[other] * _DEARER < value[row]:
        return f"another configuration is expected to cost {1 - value[other] / value[row]:.0%} less"
    return None


def _doubtful_limit(problem: Problem, believed: AtInput, row: int, every: float) -> str:
    """The limit that is least likely to be kept; all of them where each by itself is likely enough."""
    chances = {one: float(believed.prediction.meets(one, problem)[0, row]) for one in problem.constraints}
    limit = min(chances, key=lambda one: chances[one], default=None)
    if limit is None or chances[limit] >= demanded_chance(problem):
        return f"it keeps every limit with a chance of {every:.0%} only"
    name = f"the deadline of {format_duration(limit.bound)}" if limit.metric == "time" else str(limit)
    return f"it keeps {name} with a chance of {chances[limit]:.0%} only"
