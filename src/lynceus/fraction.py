"""The data fraction: a column of the space that says on which share of its data a job runs.

It is a column like any other. What differs between the systems is only what may be run and what may be recommended:

| who | test | answer |
|---|---|---|
| Nephele: the cheapest run that is accurate enough, on whatever share | all | any |
| Fabulinus, Fabolas, TrimTuner: the best on all data, learnt on samples | samples | full |
| successive halving | all | full |
| whoever knows no samples (a baseline) | full | full |
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lynceus.errors import InputError
from lynceus.space import Space

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Tested = Literal["all", "samples", "full"]
"""Every share, only shares below 1, only the whole data."""
Answers = Literal["any", "full"]
"""Any share may win, or only runs on the whole data."""


@dataclass(frozen=True, slots=True)
class Fraction:
    """Which column holds the share of the data, and what it means for tests and answers."""

    column: str
    test: Tested = "all"
    answer: Answers = "any"

    def masks(self, space: Space) -> tuple[BoolArray | None, BoolArray | None]:
        """What may be tested and what may be the answer, `[q]` each; nothing stands for everything."""
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


def shares(space: Space, column: str) -> FloatArray:
    """The share of the data of every row `[q]`, checked to lie in (0, 1]."""
    cells = space.column(column)
    try:
        values = np.array([float(cell) for cell in cells.tolist()])
    except (TypeError, ValueError):
        odd = next(cell for cell in cells.tolist() if isinstance(cell, str | None))
        raise InputError(f"fraction: {column} holds {odd!r}; shares of the data are numbers such as 0.25.") from None
    wrong = values[~((values > 0) & (values <= 1))]
    if len(wrong):
        percent = f"; write {wrong[0] / 100:g} for {wrong[0]:g} %" if 1 < wrong[0] <= 100 else ""
        raise InputError(
            f"fraction: {column} holds {wrong[0]:g}; a share of the data lies above 0 and up to 1{percent}."
        )
    return values


@lru_cache(maxsize=32)
def configurations(space: Space, column: str | None) -> IntArray:
    """A number per row `[q]`, equal for rows that differ in nothing but the share of the data.

    >>> from lynceus.space import Ordinal
    >>> configurations(Space.build([Ordinal("depth", (2, 4)), Ordinal("share", (0.5, 1.0))], price=1.0), "share")
    array([0, 0, 1, 1])
    """
    others = [place for place, parameter in enumerate(space.parameters) if parameter.name != column]
    if not others:
        return np.zeros(len(space), dtype=np.int64)
    return np.unique(space.codes[:, others], axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
