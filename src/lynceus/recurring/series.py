"""The finished runs of one configuration, scanned one after the other for changes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lynceus.recurring.change_test import ACT_THRESHOLD, SPREAD_THRESHOLD, find_change, spread_ratio
from lynceus.recurring.record import ProductionRun
from lynceus.recurring.time_model import Expectation, TimeFit, design, fit
from lynceus.space.column import FloatArray

_BAND = 2.0
_MEMORY = 0.97
"""Weight of a run in what is expected of the next one, relative to the run after it: half after 23 runs."""
_SURE_RUNS = 5
"""Runs since a change before it may be acted upon: a few slow runs in a row may share a cause that passes, a full host or a bad day."""
_SPREAD_FACTOR = 1.5
"""Smaller increases of the spread are no finding."""
_SPREAD_PAUSE = 40
"""Runs after which the spread may be found to have risen again."""


@dataclass(frozen=True, slots=True)
class SeriesChange:
    """A change that was found in a series."""

    kind: str
    start: int
    """The place of the run with which it began."""
    shift: float
    """Change of ln seconds; of a spread, its factor."""
    found: float
    """When it was found, seconds since the epoch."""
    run_id: str
    """After which run."""
    place: int


@dataclass(frozen=True, eq=False)
class Series:
    """The runs of one configuration with everything that was found in them."""

    runs: tuple[ProductionRun, ...] = ()
    sized: bool = False
    """Whether time is modelled by size: most runs tell it. Those that do not are left out then."""
    changes: tuple[SeriesChange, ...] = ()
    spreads: tuple[SeriesChange, ...] = ()
    bands: tuple[tuple[float, float, float], ...] = ()
    """Expected seconds of each run before it ran, and the ends of the band; NaN for the first runs."""
    fitted: TimeFit | None = None

    @classmethod
    def scan(cls, runs: tuple[ProductionRun, ...], before: Series | None = None) -> Series:
        """The series of `runs`; what `before` has scanned already is taken from it."""
        sized = 2 * sum(run.size is not None for run in runs) > len(runs)
        runs = tuple(run for run in runs if run.size is not None) if sized else runs
        scanned = 0 if before is None else len(before.runs)
        if before is None or before.sized != sized or runs[:scanned] != before.runs:
            before = cls(sized=sized)
        for run in runs[len(before.runs) :]:
            before = before._after(run)
        return before

    def expectation(self, size: float | None) -> Expectation | None:
        """What a run is expected to take now: recent runs count more. None before two runs, or without a size where time depends on it."""
        if len(self.runs) < 2 or (self.sized and size is None):
            return None
        n = len(self.runs)
        weights = _MEMORY ** np.arange(n - 1, -1, -1.0)
        starts = [one.start for one in self.changes]
        fitted = fit(self._log_s(), design(self._log_sizes(), starts, n), self.sized, weights)
        return fitted.expectation(self._inputs(size))

    def sure(self, change: SeriesChange) -> bool:
        """Whether all runs by now confirm a change so clearly that it may be acted upon."""
        if self.fitted is None or len(self.runs) - change.start < _SURE_RUNS:
            return False
        place = self._place(change)
        score = self.fitted.coefficients[place] / (self.fitted.sigma * math.sqrt(self.fitted.covariance[place, place]))
        return bool(score**2 / 2 >= ACT_THRESHOLD)

    def shift(self, change: SeriesChange) -> float:
        """A change of ln seconds as all runs by now tell it."""
        return change.shift if self.fitted is None else float(self.fitted.coefficients[self._place(change)])

    def _place(self, change: SeriesChange) -> int:
        """The coefficient of a change: they come last, in their order."""
        return self.changes.index(change) - len(self.changes)

    def _after(self, run: ProductionRun) -> Series:
        band = self._band(run)
        series = replace(self, runs=(*self.runs, run), bands=(*self.bands, band))
        return series._tested(run)

    def _band(self, run: ProductionRun) -> tuple[float, float, float]:
        if self.fitted is None:
            return math.nan, math.nan, math.nan
        expected = self.fitted.expectation(self._inputs(run.size))
        return math.exp(expected.log_s), expected.quantile(-_BAND), expected.quantile(_BAND)

    def _tested(self, run: ProductionRun) -> Series:
        """With the last run tested for a change of time and of its spread."""
        n = len(self.runs)
        starts = [one.start for one in self.changes]
        fitted = fit(self._log_s(), design(self._log_sizes(), starts, n), self.sized)
        changes, spreads = self.changes, self.spreads
        if (change := find_change(fitted, max(starts, default=0))) is not None:
            found = SeriesChange(change.kind, change.start, change.shift, run.ended_s, run.run_id, n - 1)
            changes = (*changes, found)
            fitted = fit(self._log_s(), design(self._log_sizes(), [*starts, change.start], n), self.sized)
        elif not spreads or n - spreads[-1].place > _SPREAD_PAUSE:
            ratio, factor, last = spread_ratio(fitted.residuals)
            if ratio > SPREAD_THRESHOLD and factor > _SPREAD_FACTOR:
                spreads = (*spreads, SeriesChange("variance", n - last, factor, run.ended_s, run.run_id, n - 1))
        return replace(self, changes=changes, spreads=spreads, fitted=fitted if n >= 2 else None)

    def _log_s(self) -> FloatArray:
        return np.log([run.seconds for run in self.runs])

    def _log_sizes(self) -> FloatArray | None:
        """ln size relative to the first run `[n]`."""
        if not self.sized:
            return None
        sizes = np.log([run.size for run in self.runs if run.size is not None])
        return np.asarray(sizes - sizes[0])

    def _inputs(self, size: float | None) -> FloatArray:
        """The inputs of a run now `[p]`: every change has happened."""
        first = self.runs[0].size
        z = [] if not self.sized or size is None or first is None else [math.log(size / first)]
        return np.array([1.0, *z, *(one**2 for one in z), *(1.0 for _ in self.changes)])
