"""What production runs cost: price, billing and expected preemptions together, and the inverse."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lynceus.problem.billing import Billing
    from lynceus.problem.preemption import Preemption
    from lynceus.space.column import FloatArray, IntArray

_HALVINGS = 100
"""Bisections of a running time: from a year down to less than a nanosecond."""


@dataclass(frozen=True, eq=False)
class RunCosts:
    """Dollars of a production run, boot and expected preemptions included.

    Arrays broadcast: they hold one value per configuration, or per row of `rows`.
    """

    price_per_second: FloatArray
    """Dollars per second of every configuration `[q]`."""
    billing: Billing
    preemption: Preemption | None

    @cached_property
    def _price_list(self) -> list[float]:
        return [float(price) for price in self.price_per_second]

    def of_run(self, row: int, seconds: float) -> float:
        """Dollars of one run of `row` that takes `seconds`. Plain floats where possible: it is called for every observation."""
        if self.preemption is not None and self.preemption.rate_per_s[row] > 0:
            return float(self.of(np.asarray(seconds), np.asarray(row)))
        return self.billing.charge(seconds, self._price_list[row])

    def of(self, seconds: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Dollars of runs that take `seconds`."""
        price = self.price_per_second if rows is None else self.price_per_second[rows]
        plain = self.billing.charges(seconds, price)
        preemption = self.preemption
        if preemption is None:
            return plain
        rows = np.arange(len(self.price_per_second)) if rows is None else rows
        finite = np.where(np.isfinite(seconds), np.maximum(seconds, 0.0), 0.0)
        tried, billing = preemption.attempts(finite, rows), self.billing
        # Where an interruption falls between two billed units is random: half a unit on average.
        billed = np.maximum(tried.interrupted_s + billing.boot_s + billing.granularity_s / 2, billing.minimum_s)
        lost = tried.interrupted * (price * billed + billing.fee_usd)
        moved = billing.charges(finite, self.price_per_second[np.maximum(preemption.twin[rows], 0)])
        usd = tried.completed * billing.charges(finite, price) + lost + tried.moved * moved
        return np.where((preemption.rate_per_s[rows] > 0) & np.isfinite(seconds), usd, plain)

    def seconds_at(self, usd: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """The longest run that costs at most `usd`; −inf when `usd` does not even cover its start. The inverse of `of`."""
        price = self.price_per_second if rows is None else self.price_per_second[rows]
        plain = self.billing.seconds_for(usd, price)
        preemption = self.preemption
        if preemption is None:
            return plain
        rows = np.arange(len(self.price_per_second)) if rows is None else rows
        twin = preemption.twin[rows]
        longest = np.where(twin >= 0, self.billing.seconds_for(usd, self.price_per_second[np.maximum(twin, 0)]), plain)
        high = np.where(np.isfinite(plain), np.maximum(np.maximum(plain, longest), 0.0), 0.0)
        low = np.zeros_like(high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = self.of(middle, rows) <= usd
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.where((preemption.rate_per_s[rows] > 0) & np.isfinite(plain), low, plain)

    def price(self, seconds: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Dollars per second of runs that take `seconds`, expected preemptions included: turns predicted time into cost."""
        price = self.price_per_second if rows is None else self.price_per_second[rows]
        if self.preemption is None:
            return price
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factor = self.of(seconds, rows) / self.billing.charges(seconds, price)
        return price * np.where(np.isfinite(factor), factor, 1.0)
