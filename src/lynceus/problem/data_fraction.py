"""The data fraction: a column of the space with the fraction of its data that a job reads.

It is a column like any other. The systems differ only in what may be run and what may be recommended:

| system | test | answer |
|---|---|---|
| Nephele: the cheapest run that is accurate enough, on any fraction | all | any |
| Fabulinus, Fabolas, TrimTuner: the best on all data, learnt on samples | samples | full |
| successive halving | all | full |
| baselines without subsampling | full | full |
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.errors import InputError
from lynceus.space.column import BoolArray, FloatArray, IntArray
from lynceus.space.table import Space

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem

Tested = Literal["all", "samples", "full"]
"""Which runs are tested: on every fraction, only on fractions below 1, or only on the whole data."""
Answers = Literal["any", "full"]
"""Which runs may be recommended: on any fraction, or only on the whole data."""


@dataclass(frozen=True, slots=True)
class Fraction:
    """Which column holds the fraction of the data, and what may be tested and recommended."""

    column: str
    test: Tested = "all"
    answer: Answers = "any"

    def apply(self, problem: Problem) -> Problem:
        """The problem with this data fraction, restricted to what may be tested and recommended."""
        testable, answerable = self.masks(problem.space)
        return replace(problem, fraction=self.column, testable=testable, answerable=answerable)

    def masks(self, space: Space) -> tuple[BoolArray | None, BoolArray | None]:
        """Rows that may be tested and rows that may be recommended, `[q]` each; None for all."""
        full = shares(space, self.column) == 1.0
        if not full.any() and (self.answer == "full" or self.test == "full"):
            raise InputError(
                f"fraction: no configuration has {self.column} = 1, so none runs on all data; add the value 1, "
                "or let any fraction be the answer."
            )
        if full.all() and self.test == "samples":
            raise InputError(
                f"fraction: every configuration has {self.column} = 1, so there are no samples to test; add values below 1."
            )
        testable = {"all": None, "samples": ~full, "full": full}[self.test]
        return testable, full if self.answer == "full" else None


@lru_cache(maxsize=32)
def shares(space: Space, column: str) -> FloatArray:
    """The fraction of the data that every row reads `[q]`, checked to lie in (0, 1]."""
    cells = space.column(column)
    try:
        values = np.array([float(cell) for cell in cells.tolist()])
    except (TypeError, ValueError):
        odd = next(cell for cell in cells.tolist() if isinstance(cell, str | None))
        raise InputError(
            f"fraction: {column} holds {odd!r}; a fraction of the data is a number such as 0.25."
        ) from None
    wrong = values[~((values > 0) & (values <= 1))]
    if len(wrong):
        percent = f"; write {wrong[0] / 100:g} for {wrong[0]:g} %" if 1 < wrong[0] <= 100 else ""
        raise InputError(
            f"fraction: {column} holds {wrong[0]:g}; a fraction of the data lies above 0 and up to 1{percent}."
        )
    values.setflags(write=False)
    return values


@lru_cache(maxsize=32)
def configurations(space: Space, column: str | None) -> IntArray:
    """A number per row `[q]`, equal for rows that differ only in the fraction of the data.

    >>> from lynceus.space import Ordinal
    >>> configurations(Space.build([Ordinal("depth", (2, 4)), Ordinal("share", (0.5, 1.0))], price=1.0), "share")
    array([0, 0, 1, 1])
    """
    others = [place for place, parameter in enumerate(space.parameters) if parameter.name != column]
    if not others:
        return np.zeros(len(space), dtype=np.int64)
    return np.unique(space.codes[:, others], axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def row_shares(problem: Problem) -> FloatArray:
    """The fraction of the data that each configuration reads `[q]`, in (0, 1]: 1 where every run reads all of it."""
    return np.ones(len(problem.space)) if problem.fraction is None else shares(problem.space, problem.fraction)
