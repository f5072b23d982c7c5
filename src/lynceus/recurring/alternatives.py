"""Which configuration to try: what it would save, what trying costs, and how likely it is late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from lynceus.recurring.action import Effect
from lynceus.recurring.canary_rules import ADOPTING
from lynceus.recurring.forecast import Forecast, forecast, row_of, study_prior
from lynceus.recurring.record import Basis, JobRecord
from lynceus.recurring.triggers import Trigger
from lynceus.trial.outcome import End

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem
    from lynceus.space.column import BoolArray, FloatArray

_SMALLEST_SAVING = 0.02
"""A change has to save this share of a run's cost."""
_SURE = 0.8
"""A canary is adopted once it is cheaper with this probability, and given up below one minus this."""
_CANARY_RUNS, _CANARY_MEMORY = 6, 60
"""A configuration is decided upon after so many canaries, and not tried again within so many runs."""
_STOPPED_MEMORY = 15
"""Runs after which a configuration whose canary was stopped before the deadline may be tried again."""
_COMFORTABLE = 0.5
"""To save money, only configurations with this share of the allowed chance to be late are tried: else the next run brings them back."""
_CAREFUL = 3.0
"""Scales above its typical time that are left for the adopted configuration to run after a canary that was stopped."""
_BASIS_ROWS = 64
"""Alternatives whose prices are remembered with a version."""
_SEARCH_RUNS = 2.0
"""A search of its own is worth starting with at least this many runs' money."""
_SEARCH_SHARE = 0.6
"""A search gets this share of what is left of the allowance: canaries of its answer need some, too."""
_SEARCH_PAUSE = 15
"""Runs between the first two searches."""
_SEARCH_LATE = 2.0
"""A search needs a chance to be late of so many times the bound."""
_MUCH_LESS = 0.5
"""A configuration is much less often late than another if its chance is this share of the other's."""
_MOSTLY, _ANY_LESS = 0.5, 0.05
"""Where the adopted configuration is late in more than this share of runs, one that is late this much less often may be tried."""
_NEAR = 0.5
"""A canary that was tried because of the deadline is judged by it as long as the adopted one's chance is above this share of the bound."""


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Every configuration beside the adopted one."""

    problem: Problem
    record: JobRecord
    forecast: Forecast
    late: FloatArray
    """Chance of a run to be late, now or soon if inputs grow `[q]`."""
    barred: BoolArray
    """Configurations that were late or failed at such an input, or are not known to keep the constraints on metrics `[q]`."""
    size: float | None
    deadline_s: float
    longer: bool = True
    """Whether something made runs longer; if not, an estimate of the chance to be late moves nothing."""

    @classmethod
    def of(
        cls,
        problem: Problem,
        record: JobRecord,
        known: Forecast,
        deadline_s: float,
        size: float | None,
        ahead: Forecast | None = None,
        adopted_late: float | None = None,
    ) -> Alternatives:
        """The alternatives of a forecast; `ahead` is one for the inputs to come, if they grow.

        `adopted_late` is the adopted configuration's chance to be late by its own runs, which tell it best.
        """
        barred = ~_keeps_metrics(problem, record)
        for age, run in enumerate(reversed(record.runs)):
            smaller = size is not None and run.size is not None and size < 0.9 * run.size
            # A canary that was stopped at the cap on its cost was not late: the model knows that it took longer, and that is all.
            forgotten = run.end is End.TIMEOUT and run.seconds < deadline_s and age >= _STOPPED_MEMORY
            if (run.at_fault or run.seconds > deadline_s) and not smaller and not forgotten:
                row = row_of(problem, record.version(run.version).params)
                if row is not None:
                    barred[row] = True
        barred[known.adopted] = False
        late = (known if ahead is None else ahead).late_chance(deadline_s)
        if adopted_late is not None:
            late[known.adopted] = adopted_late
        return cls(problem, record, known, late, barred, size, deadline_s)

    @property
    def adopted_unsafe(self) -> bool:
        """Whether the adopted configuration is late more often than allowed."""
        return self.longer and self.late_before > self.record.settings.late_chance

    @property
    def late_before(self) -> float:
        """The adopted configuration's chance to be late."""
        return float(self.late[self.forecast.adopted])

    @property
    def safe(self) -> BoolArray:
        """Configurations that may be adopted to save money: their chance to be late is well within the bound `[q]`."""
        return self._open & (self.late <= _COMFORTABLE * self.record.settings.late_chance)

    @property
    def _open(self) -> BoolArray:
        """Configurations that may run at all `[q]`."""
        return ~self.barred if self.problem.answerable is None else ~self.barred & self.problem.answerable

    @cached_property
    def _trial_late(self) -> FloatArray:
        """The chance that a canary makes its run late `[q]`: it takes too long, or is stopped and the job has to run again."""
        known, deadline_s = self.forecast, self.deadline_s
        if math.isinf(deadline_s):
            return np.zeros(len(self.late))
        timeouts = self.timeouts_s
        stopped = known.late_chance(timeouts)
        again = known.late_chance(np.maximum(deadline_s - timeouts, 1e-9), known.adopted)
        return np.asarray(np.where(timeouts < deadline_s, stopped * again, self.late))

    def cheaper_chance(self) -> FloatArray:
        """The probability that each configuration saves enough to be worth a change `[q]`."""
        known = self.forecast
        margin = np.log(known.usd[known.adopted] * (1 - _SMALLEST_SAVING) / known.usd)
        chance = ndtr(margin / np.maximum(known.difference_std, 1e-6))
        chance[known.adopted] = 0.0
        return np.asarray(chance)

    def expected_saving(self) -> FloatArray:
        """E[(cost of the adopted − cost)⁺] of one run as a share of the former's cost `[q]`."""
        known = self.forecast
        spread = np.maximum(known.difference_std, 1e-6)
        mean = np.log(known.usd / known.usd[known.adopted]) - spread**2 / 2
        share = ndtr(-mean / spread) - np.exp(mean + spread**2 / 2) * ndtr(-mean / spread - spread)
        share[known.adopted] = 0.0
        return np.asarray(np.maximum(share, 0.0))

    def known_cheaper(self) -> int | None:
        """The cheapest safe configuration whose time is known; of a safe adopted one, only if it is surely cheaper."""
        known = self.forecast
        fit = self.safe & known.known()
        fit[known.adopted] = False
        if not self.adopted_unsafe:
            fit &= self.cheaper_chance() >= _SURE
        return int(np.where(fit, known.usd, np.inf).argmin()) if fit.any() else None

    def worth_trying(self, allowance_usd: float) -> int | None:
        """The configuration whose canary is expected to pay back most within the horizon; None if none does."""
        known, settings = self.forecast, self.record.settings
        base = float(known.usd[known.adopted])
        bound = settings.late_chance
        if self.adopted_unsafe:  # then a run that is much less likely to be late than the adopted one is no risk
            bound = max(bound, self._no_worse)
        fit = self._open & (self._trial_late <= bound)
        fit &= self.problem.run_costs.of(self.timeouts_s) <= allowance_usd * (1 + 1e-9)
        fit[known.adopted] = False
        if not fit.any():
            return None
        if self.adopted_unsafe:
            return self._most_punctual(fit)
        extra = np.maximum(known.usd - base, 0.0)
        share = self.expected_saving()
        net = settings.horizon_runs * base * (share - _SMALLEST_SAVING / 2) - extra
        net = np.where(fit, net, -np.inf)
        for row in np.flatnonzero(net > 0).tolist():
            if self._canaries(row) >= _CANARY_RUNS or row in self._left:
                net[row] = -np.inf
        best = int(net.argmax())
        return best if net[best] > 0 else None

    def _most_punctual(self, fit: BoolArray) -> int | None:
        """The cheapest configuration within the bound; without one, that which is late least often, if much less than the adopted."""
        known, bound = self.forecast, self.record.settings.late_chance
        within = fit & (self.late <= bound)
        if within.any():
            return int(np.where(within, known.usd, np.inf).argmin())
        row = int(np.where(fit, self.late, np.inf).argmin())
        return row if self.late[row] <= self._no_worse else None

    @property
    def _no_worse(self) -> float:
        """The chance to be late with which trying is no risk: much less than the adopted one's, or any less if that is mostly late."""
        share = 1 - _ANY_LESS if self.late_before > _MOSTLY else _MUCH_LESS
        return share * self.late_before

    def proven(self, row: int) -> bool:
        """Whether a canary may be adopted: it is on time where the adopted configuration may not be, or cheaper."""
        bound = self.record.settings.late_chance
        if self._open[row] and self.late_before > _NEAR * bound and self.late[row] <= _MUCH_LESS * self.late_before:
            return bool(self.adopted_unsafe or self.late[row] <= bound)
        enough = _SURE if self._canaries(row) < _CANARY_RUNS else 0.5
        return bool(self.safe[row] and self.cheaper_chance()[row] >= enough)

    def disproven(self, row: int) -> bool:
        """Whether a canary is not worth another run."""
        if self.adopted_unsafe:
            return bool(not self._open[row] or self.late[row] > _MUCH_LESS * self.late_before)
        return bool(not self.safe[row] or self.cheaper_chance()[row] < 1 - _SURE or self._canaries(row) >= _CANARY_RUNS)

    @cached_property
    def _left(self) -> frozenset[int]:
        """Configurations that were given up for another one not long ago: they are not tried to save money."""
        since = len(self.record.runs) - _CANARY_MEMORY
        recent = [one.version for one in self.record.changes if one.kind in ADOPTING and one.after_runs >= since]
        first = [one.version for one in self.record.changes if one.kind in ADOPTING and one.after_runs < since][-1:]
        numbers = [1, *first, *recent] if recent else []
        rows = [row_of(self.problem, self.record.version(one).params) for one in numbers if one is not None]
        return frozenset(row for row in rows if row is not None and row != self.forecast.adopted)

    def _canaries(self, row: int) -> int:
        """Canaries of a configuration among the last runs."""
        numbers = set(self.record.of_params(self.problem.space.point(row)))
        return sum(run.canary and run.version in numbers for run in self.record.runs[-_CANARY_MEMORY:])

    def search_budget(self, found: Sequence[Trigger], allowance_usd: float) -> float:
        """Dollars for a search of its own; 0 if none is called for."""
        base = float(self.forecast.usd[self.forecast.adopted])
        often_late = self.late_before > _SEARCH_LATE * self.record.settings.late_chance
        stuck = often_late or any(one.kind == "failures" for one in found)
        searches = [one.after_runs for one in self.record.changes if one.kind == "retune"]
        # Every search that did not end the trouble doubles the pause before the next.
        waited = not searches or len(self.record.runs) - searches[-1] >= _SEARCH_PAUSE * 2 ** (len(searches) - 1)
        budget = _SEARCH_SHARE * allowance_usd
        return budget if stuck and waited and budget >= _SEARCH_RUNS * base else 0.0

    @cached_property
    def timeouts_s(self) -> FloatArray:
        """When a canary is stopped `[q]`: at the cap on its cost, at the deadline, and with room to run the job again where possible."""
        known, settings = self.forecast, self.record.settings
        cap_usd = settings.canary_cap * float(known.usd[known.adopted])
        caps_s = self.problem.run_costs.seconds_at(np.full(len(known.usd), cap_usd))
        if self.adopted_unsafe:
            caps_s = np.maximum(caps_s, known.upper_s(_CAREFUL))
        caps_s = np.minimum(caps_s, self.deadline_s)
        room = self.deadline_s - float(known.upper_s(_CAREFUL)[known.adopted])
        return np.where((room > 0) & (known.typical_s() <= room), np.minimum(caps_s, room), caps_s)

    def effect(self, row: int) -> Effect:
        """What is expected of a change to a configuration."""
        known, own = self.forecast, self.forecast.adopted
        return Effect(
            known.seconds(row), float(known.usd[row]), float(self.late[row]),
            known.seconds(own), float(known.usd[own]), float(self.late[own]),
            max(float(known.usd[row] - known.usd[own]), 0.0),
        )  # fmt: skip

    def basis(self) -> Basis:
        """What is known now, to be stored with a version."""
        cheapest = np.argsort(self.forecast.usd, kind="stable")[:_BASIS_ROWS].tolist()
        rows = sorted({*cheapest, self.forecast.adopted})
        return Basis(self.size, {row: float(self.problem.price[row]) * 3600 for row in rows})


def _keeps_metrics(problem: Problem, record: JobRecord) -> BoolArray:
    """Configurations whose last finished trial kept every constraint on a metric; all, where there is no such constraint `[q]`.

    Production runs report no metrics, so nothing else may be tried in production: a search can try it.
    """
    kept = np.full(len(problem.space), not problem.metric_constraints)
    if problem.metric_constraints:
        for trial in record.trials:
            row = row_of(problem, trial.params)
            if row is not None and trial.end is End.FINISHED:
                kept[row] = all(
                    one.metric in trial.metrics and one.holds(trial.metrics[one.metric])
                    for one in problem.metric_constraints
                )
    return kept


def adoption_basis(problem: Problem, record: JobRecord, row: int, size: float | None) -> Basis:
    """What is known when a user adopts the configuration of `row`, to be stored with its version."""
    prior = study_prior(problem, record.trials)
    known = forecast(problem, replace(record, runs=()), prior, None, adopted=row)
    return Alternatives.of(problem, replace(record, runs=()), known, math.inf, size).basis()
