"""Which configuration to try: what it would save, what trying costs, and how likely it is late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from lynceus.recurring.action import Effect
from lynceus.recurring.forecast import Forecast, forecast, study_prior
from lynceus.recurring.record import Basis, JobRecord
from lynceus.recurring.triggers import Trigger

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem
    from lynceus.space.column import BoolArray, FloatArray

_SMALLEST_SAVING = 0.02
"""A change has to save this share of a run's cost."""
_SURE = 0.8
"""A canary is adopted once it is cheaper with this probability, and given up below one minus this."""
_BASIS_ROWS = 64
"""Alternatives whose prices are remembered with a version."""
_SEARCH_RUNS = 6
"""A search of its own is worth starting with at least this many runs' money."""


@dataclass(frozen=True, eq=False)
class Alternatives:
    """Every configuration beside the adopted one."""

    problem: Problem
    record: JobRecord
    forecast: Forecast
    late: FloatArray
    """Chance of a run to be late `[q]`."""
    barred: BoolArray
    """Configurations that were late or failed at such an input `[q]`."""
    size: float | None
    deadline_s: float

    @classmethod
    def of(
        cls, problem: Problem, record: JobRecord, known: Forecast, deadline_s: float, size: float | None
    ) -> Alternatives:
        """The alternatives of a forecast."""
        barred = np.zeros(len(known.log_s), dtype=bool)
        for run in record.runs:
            smaller = size is not None and run.size is not None and size < 0.9 * run.size
            if (run.at_fault or run.seconds > deadline_s) and not smaller:
                params = record.version(run.version).params
                barred[problem.space.row(params)] = True
        barred[known.adopted] = False
        return cls(problem, record, known, known.late_chance(deadline_s), barred, size, deadline_s)

    @property
    def adopted_unsafe(self) -> bool:
        """Whether the adopted configuration is late more often than allowed."""
        return bool(self.late[self.forecast.adopted] > self.record.settings.late_chance)

    @property
    def safe(self) -> BoolArray:
        """Configurations that may be tried `[q]`."""
        testable = self.problem.answerable if self.problem.answerable is not None else True
        return np.asarray((self.late <= self.record.settings.late_chance) & ~self.barred & testable)

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
        fit = self.safe & (known.usd <= allowance_usd + base)
        fit[known.adopted] = False
        if not fit.any():
            return None
        if self.adopted_unsafe:
            return int(np.where(fit, known.usd, np.inf).argmin())
        extra = np.maximum(known.usd - base, 0.0)
        share = self.expected_saving()
        net = settings.horizon_runs * base * (share - _SMALLEST_SAVING / 2) - extra
        net = np.where(fit, net, -np.inf)
        best = int(net.argmax())
        return best if net[best] > 0 else None

    def proven(self, row: int) -> bool:
        """Whether a canary may be adopted."""
        if not self.safe[row]:
            return False
        return bool(self.adopted_unsafe or self.cheaper_chance()[row] >= _SURE)

    def disproven(self, row: int) -> bool:
        """Whether a canary is not worth another run."""
        return bool(not self.safe[row] or (not self.adopted_unsafe and self.cheaper_chance()[row] < 1 - _SURE))

    def search_budget(self, found: Sequence[Trigger], allowance_usd: float) -> float:
        """Dollars for a search of its own; 0 if none is called for."""
        base = float(self.forecast.usd[self.forecast.adopted])
        stuck = self.adopted_unsafe and any(one.kind in ("late", "failures", "step", "drift") for one in found)
        last = max((one.at_s for one in self.record.changes if one.kind == "retune"), default=-math.inf)
        again = any(run.ended_s > last for run in self.record.runs[-1:]) and not math.isfinite(last)
        return allowance_usd if stuck and again and allowance_usd >= _SEARCH_RUNS * base else 0.0

    def timeout_s(self, row: int) -> float:
        """When a canary is stopped: at the cap on its cost, at the deadline, and early enough to run the job again if there is room."""
        known, settings = self.forecast, self.record.settings
        cap_usd = settings.canary_cap * float(known.usd[known.adopted])
        cap_s = float(self.problem.run_costs.seconds_at(np.asarray(cap_usd), np.asarray(row)))
        if self.adopted_unsafe:
            cap_s = max(cap_s, known.upper_s(row))
        cap_s = min(cap_s, self.deadline_s)
        room = self.deadline_s - known.upper_s(known.adopted)
        return min(cap_s, room) if room >= known.upper_s(row) else cap_s

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


def adoption_basis(problem: Problem, record: JobRecord, row: int, size: float | None) -> Basis:
    """What is known when a user adopts the configuration of `row`, to be stored with its version."""
    prior = study_prior(problem, record.trials)
    known = forecast(problem, replace(record, runs=()), prior, None, adopted=row)
    return Alternatives.of(problem, replace(record, runs=()), known, math.inf, size).basis()
