"""Two studies side by side."""

from __future__ import annotations

import math
import time

from lynceus.insight import importance, steps
from lynceus.plain import Document, finite, short
from lynceus.view.insight import answer, explaining
from lynceus.view.study import VERSION, head
from lynceus.view.subject import Subject


def compare_view(left: Subject, right: Subject, now_s: float | None = None) -> Document:
    """How two studies stand, how each came to its best, what each recommends, and where the recommendations differ."""
    moment = time.time() if now_s is None else now_s
    sides = [_side(subject) for subject in (left, right)]
    return {
        "v": VERSION,
        "kind": "comparison",
        "now_s": moment,
        "same_goal": sides[0]["head"]["objective"] == sides[1]["head"]["objective"],
        "sides": sides,
        "parameters": _parameters(left, right, sides),
    }


def _side(subject: Subject) -> Document:
    study = subject.study
    return {
        "name": study.name,
        "head": head(subject),
        "running": len(study.pending),
        "curve": _curve(subject),
        "verdict": answer(subject),
        "importance": finite(
            [
                {"parameter": one.parameter, "share": one.share}
                for one in importance(study.problem, explaining(subject), subject.known, seed=study.seed)
            ]
        ),
    }


def _curve(subject: Subject) -> list[list[float | None]]:
    """(dollars spent, best so far) where the best changes, and at the end: a stair needs no other points."""
    found: list[list[float | None]] = []
    before: int | None = None
    every = steps(subject.study.problem, subject.study.history)
    for place, step in enumerate(every):
        if math.isnan(step.best):
            continue
        if step.incumbent != before or place == len(every) - 1:
            found.append([short(step.spent_usd), short(step.best)])
        before = step.incumbent
    return found


def _parameters(left: Subject, right: Subject, sides: list[Document]) -> list[Document]:
    """Every parameter of either study with the value that each recommends."""
    own = [[parameter.name for parameter in subject.study.problem.space.parameters] for subject in (left, right)]
    names = dict.fromkeys([*own[0], *own[1]])
    chosen = [{} if side["verdict"] is None else side["verdict"]["params"] for side in sides]
    return [
        {
            "name": name,
            "in": [name in each for each in own],
            "values": [values.get(name) for values in chosen],
            "differs": all(chosen) and chosen[0].get(name) != chosen[1].get(name),
        }
        for name in names
    ]
