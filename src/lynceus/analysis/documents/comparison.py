"""Two studies side by side."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from lynceus.analysis.answer import Answer, answer
from lynceus.analysis.documents.json import Document, page_document, short
from lynceus.analysis.importance import Importance, importance
from lynceus.analysis.overview import StudyOverview, overview
from lynceus.analysis.predictions import explaining_policy
from lynceus.analysis.study_context import StudyContext


@dataclass(frozen=True)
class Side:
    """One of the two studies."""

    name: str
    head: StudyOverview
    curve: list[list[float | None]]
    """(dollars spent, best so far, number of its trial) where the best changes, and at the end."""
    answer: Answer | None
    importance: list[Importance]


@dataclass(frozen=True)
class ComparedParameter:
    """A parameter of either study, with the value that each study recommends."""

    name: str
    present: list[bool]
    """Whether each study has the parameter."""
    values: list[object]
    """None where a study recommends no value."""
    differs: bool


def comparison_document(left: StudyContext, right: StudyContext, now_s: float | None = None) -> Document:
    """Overview, progress and answer of two studies, and where their answers differ."""
    sides = [_side(left), _side(right)]
    return page_document(
        "comparison",
        {
            "now_s": time.time() if now_s is None else now_s,
            "same_objective": left.study.problem.objective == right.study.problem.objective,
            "sides": sides,
            "parameters": _parameters((left, right), sides),
        },
    )


def _side(context: StudyContext) -> Side:
    study = context.study
    policy = explaining_policy(study)
    weights = importance(study.problem, policy, context.known, seed=study.seed)
    return Side(study.name, overview(context), _curve(context), answer(context), weights)


def _curve(context: StudyContext) -> list[list[float | None]]:
    found: list[list[float | None]] = []
    before: int | None = None
    points = context.progress.points[: len(context.study.observations)]
    for place, point in enumerate(points):
        if math.isnan(point.best_value):
            continue
        if point.best_trial != before or place == len(points) - 1:
            found.append([short(point.spent_usd), short(point.best_value), point.best_trial])
        before = point.best_trial
    return found


def _parameters(subjects: Sequence[StudyContext], sides: Sequence[Side]) -> list[ComparedParameter]:
    own = [[parameter.name for parameter in context.study.problem.space.parameters] for context in subjects]
    chosen = [{} if side.answer is None else side.answer.params for side in sides]
    return [
        ComparedParameter(
            name,
            [name in names for names in own],
            [params.get(name) for params in chosen],
            all(chosen) and chosen[0].get(name) != chosen[1].get(name),
        )
        for name in dict.fromkeys([*own[0], *own[1]])
    ]
