"""The answer for an input that may never have run: predicted from the runs on other inputs, with how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lynceus.analysis.input_growth import next_check
from lynceus.analysis.study_context import StudyContext
from lynceus.errors import InputError
from lynceus.models.input_size import AtInput, InputModel
from lynceus.policy.input_answer import best_at_input, demanded_chance
from lynceus.problem.job_input import SIZE, JobInput
from lynceus.problem.problem import Problem
from lynceus.problem.units import format_bytes
from lynceus.study.view import StudyView
from lynceus.trial.outcome import Observations

_LOW, _HIGH = 0.1, 0.9
"""The ends of an interval of 80 %."""
_FARTHEST = 1000.0
"""Inputs so many times larger or smaller than all that ran are not answered: the growth of time is not known that well."""


@dataclass(frozen=True, kw_only=True)
class InputChoice:
    """A configuration with what is predicted of its runs on one input."""

    input: Mapping[str, float | str]
    input_text: str
    row: int
    params: Mapping[str, object]
    value: float
    """The objective in its own unit and sign."""
    runtime_s: float
    """Expected time of a run."""
    runtime_interval_s: tuple[float, float]
    """Where the time of a run lies with a probability of 80 %."""
    cost_usd: float
    cost_interval_usd: tuple[float, float]
    probability: float
    """Chance that a run meets every constraint."""
    likely: bool
    """Whether that is the chance that the constraints demand, or 80 % where they demand none; if not, no configuration is known that has
    it: this is the likeliest."""
    runs: int
    """Runs of this configuration on this input."""


@dataclass(frozen=True, kw_only=True)
class InputAnswer(InputChoice):
    """`lynceus best --input 240GB`: the configuration for an input, and when to look again."""

    study: str
    command: str | None
    """The command line that runs it; None for studies without a command."""
    inputs_run: Mapping[str, int]
    """The inputs that ran, and how many runs each has."""
    growth: float
    """By how many percent time grows with 1 % more data; NaN (null in JSON) where no run says how much it read."""
    check_at: Mapping[str, float | str] | None
    """The smallest larger input at which this configuration must be checked again; None where none up to eight times as large is known."""
    check_again: str
    """The same as a sentence."""


def best_for_input(study: StudyView, given: JobInput | Mapping[str, object] | str) -> InputAnswer | None:
    """The configuration for an input, run or not, with how sure that is; None as long as no trial has ended.

    >>> import lynceus
    >>> space = lynceus.Space.build([lynceus.Ordinal("nodes", [1, 2, 4, 8])], price="0.36 * nodes")
    >>> study = lynceus.create_study(space=space, constraints=["runtime <= 20m"], input="100 GB")
    >>> study.add_trials([({"nodes": nodes}, 60 + 900 / nodes, {}) for nodes in (1, 2, 4, 8)])
    >>> study.add_trials([({"nodes": nodes}, 40 + 450 / nodes, {}) for nodes in (1, 2, 4, 8)], input="50 GB")
    >>> found = best_for_input(study, "200 GB")
    >>> found.params, found.probability > 0.8, found.check_again
    ({'nodes': 2}, True, 'check it with a run on 200 GB: no run has read more than 100 GB')
    """
    return answer_at_input(StudyContext(study), target_input(study, given))


def target_input(study: StudyView, given: object, where: str = "input") -> JobInput:
    """The input that is asked about; what it leaves out is as in the present one. An error where no run says what it read.

    Sizes are compared by their numbers, so the runs must have some: of a study without `input:` nothing can be said.
    """
    asked = JobInput.read(given, where)
    known = [seen.order.input for seen in study.observations if seen.order.input is not None]
    present = study.problem.input or (known[-1] if known else None)
    if present is None:
        raise InputError(
            f"{where}: study {study.name!r} does not say what its runs read; give it in the job file, as in input: {{size: 120 GB}}."
        )
    if unknown := [name for name, _ in asked.values if name not in dict(present.values)]:
        raise InputError(f"{where}: {unknown[0]!r} is not a part of the input, which is {present}; ask with its parts.")
    target = JobInput(tuple(sorted({**dict(present.values), **dict(asked.values)}.items())))
    _check_near(target, known, where)
    return target


def _check_near(target: JobInput, known: Sequence[JobInput], where: str) -> None:
    """An error where a size is so far from what ran that it is probably in another unit, and nothing can be said of it."""
    ran = [one.numbers[SIZE] for one in known if SIZE in one.numbers]
    size = target.numbers.get(SIZE)
    if size is None or not ran or min(ran) / _FARTHEST <= size <= max(ran) * _FARTHEST:
        return
    what = "smaller" if size < min(ran) else "larger"
    ran_text = " to ".join(dict.fromkeys(map(format_bytes, (min(ran), max(ran)))))
    raise InputError(
        f"{where}: {format_bytes(size)} is more than {_FARTHEST:,.0f} times {what} than what ran ({ran_text}), so nothing is known of "
        "it; check the unit, as in 120 GB."
    )


def answer_at_input(context: StudyContext, target: JobInput, problem: Problem | None = None) -> InputAnswer | None:
    """The configuration for an input; None as long as no run has told anything. `problem` replaces the study's own."""
    study = context.study
    problem = replace(study.problem if problem is None else problem, input=target)
    observations = study.observations
    model = InputModel.fit(problem, observations)
    if model is None:
        return None
    believed = model.at(target)
    row = best_at_input(problem, believed.prediction)
    found = _choice(problem, believed, row, observations)
    check_at, sentence = next_check(model, target, row)
    return InputAnswer(
        **vars(found),
        study=study.name,
        command=None if context.command is None else context.command(found.params),
        inputs_run=inputs_run(observations),
        growth=believed.growth,
        check_at=None if check_at is None else check_at.record(),
        check_again=sentence,
    )


def curve_over_size(study: StudyView, count: int = 9) -> list[InputChoice]:
    """The answer over the size of the input, from half the smallest to four times the largest that ran; empty without sizes."""
    inputs = [seen.order.input for seen in study.observations if seen.order.input is not None]
    sized = [one.numbers[SIZE] for one in inputs if SIZE in one.numbers]
    present = study.problem.input or (inputs[-1] if inputs else None)
    if not sized or present is None or SIZE not in present.numbers:
        return []
    model = InputModel.fit(study.problem, study.observations)
    if model is None:
        return []
    found = []
    for size in np.geomspace(min(sized) / 2.0, max(sized) * 4.0, count):
        believed = model.at(present.grown(float(size) / present.numbers[SIZE]))
        row = best_at_input(study.problem, believed.prediction)
        found.append(_choice(study.problem, believed, row, study.observations))
    return found


def inputs_run(observations: Observations) -> dict[str, int]:
    """The inputs of the runs that ended, in the order of their first run, and how many runs each has."""
    found: dict[str, int] = {}
    for seen in observations:
        if seen.order.input is not None and seen.target is not None:
            found[str(seen.order.input)] = found.get(str(seen.order.input), 0) + 1
    return found


def _choice(problem: Problem, believed: AtInput, row: int, observations: Observations) -> InputChoice:
    prediction, target = believed.prediction, believed.input
    low, high = (float(prediction.run().quantile(share)[0, row]) for share in (_LOW, _HIGH))
    seconds, chance = float(prediction.seconds(problem)[0, row]), float(prediction.feasible(problem)[0, row])
    return InputChoice(
        input=target.record(),
        input_text=str(target),
        row=row,
        params=problem.space.point(row),
        value=float(problem.objective.sign * prediction.objective(problem)[0, row]),
        runtime_s=seconds,
        runtime_interval_s=(low, high),
        cost_usd=problem.cost(row, seconds),
        cost_interval_usd=(problem.cost(row, low), problem.cost(row, high)),
        probability=chance,
        likely=chance >= demanded_chance(problem),
        runs=sum(
            seen.row == row and seen.order.input is not None and target.equals(seen.order.input)
            for seen in observations
        ),
    )
