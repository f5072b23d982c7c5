"""What is asked: a space of configurations, a goal, limits, money, and how machines are billed.

Two quantities are special because the price of every configuration is known before it runs: the *time* of a run is observed,
its *cost* follows through the tariff. Everything else a job reports (accuracy, throughput, …) is a *metric*.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from lynceus.errors import InputError
from lynceus.fraction import Fraction, shares
from lynceus.restarts import Restarts
from lynceus.space.column import nearest
from lynceus.units import format_duration, format_money, format_number, parse_duration, parse_money

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from lynceus.space import Space

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.int64]
    BoolArray = NDArray[np.bool_]

TIME_WORDS = ("time", "runtime", "duration")
COST_WORDS = ("cost", "price", "money")

_ALIASES = dict.fromkeys(TIME_WORDS, "time") | dict.fromkeys(COST_WORDS, "cost")
_LIMIT = re.compile(r"^\s*([A-Za-z_][\w.\-]*)\s*(<=|>=|<|>)\s*([^@]+?)\s*(?:@\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*)?$")
_ROUNDING = 1e-9
"""Relative slack when money is compared with money: 0.1 + 0.2 dollars must still fit into 0.3."""
_HALVINGS = 100
"""Bisections of a running time: from a year down to less than a nanosecond."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """How running time becomes money.

    >>> Tariff(granularity_s=60, minimum_s=60, boot_s=45).charge(30.0, price_per_second=0.01)
    1.2
    """

    granularity_s: float = 0.0
    """Billed time is rounded up to a multiple of this many seconds; 0 bills continuously."""
    minimum_s: float = 0.0
    """The least number of seconds that is billed for a run."""
    boot_s: float = 0.0
    """Seconds billed before the job starts, when the machines have to be booted for it."""
    fee_usd: float = 0.0
    """Dollars paid once per boot, whatever the machines (set-up work, licences, data transfer)."""
    warm: tuple[str, ...] = ()
    """Columns that identify the machines; a run that follows one with equal values boots nothing. Empty: every run boots."""

    def __post_init__(self) -> None:
        for name in ("granularity_s", "minimum_s", "boot_s", "fee_usd"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise InputError(f"billing: {name} is {value!r}; give a finite number that is not negative.")

    @property
    def linear(self) -> bool:
        """Whether cost is simply time × price."""
        return not (self.granularity_s or self.minimum_s or self.boot_s or self.fee_usd)

    def charge(self, seconds: float, price_per_second: float, *, boots: bool = True) -> float:
        """Dollars for a run of `seconds` at a price. Plain arithmetic: histories are summed up run by run, at every decision."""
        if self.linear:
            return seconds * price_per_second
        billed = seconds + (self.boot_s if boots else 0.0)
        if self.granularity_s:
            # The slack keeps 120.00000000000001 s from being billed as three minutes.
            billed = math.ceil(billed / self.granularity_s - _ROUNDING) * self.granularity_s
        return max(billed, self.minimum_s) * price_per_second + (self.fee_usd if boots else 0.0)

    def charges(self, seconds: FloatArray, price_per_second: FloatArray, *, boots: bool = True) -> FloatArray:
        """Like `charge`, for arrays that broadcast."""
        if self.linear:
            return seconds * price_per_second
        billed = seconds + (self.boot_s if boots else 0.0)
        if self.granularity_s:
            billed = np.ceil(billed / self.granularity_s - _ROUNDING) * self.granularity_s
        return np.maximum(billed, self.minimum_s) * price_per_second + (self.fee_usd if boots else 0.0)

    def seconds_for(
        self, dollars: FloatArray, price_per_second: FloatArray, *, boots: bool | BoolArray = True
    ) -> FloatArray:
        """The longest run that `dollars` pay for; −inf when not even its start is covered. `boots` may differ by row."""
        if self.linear:
            return dollars / price_per_second
        billed = (dollars - np.where(boots, self.fee_usd, 0.0)) * (1 + _ROUNDING) / price_per_second
        covered = billed >= self.minimum_s
        if self.granularity_s:
            with np.errstate(invalid="ignore"):
                billed = np.floor(billed / self.granularity_s + _ROUNDING) * self.granularity_s
        seconds = np.where(np.isinf(billed), billed, billed - np.where(boots, self.boot_s, 0.0))
        return np.where(covered & (seconds >= 0), seconds, -np.inf)


@dataclass(frozen=True, slots=True)
class Goal:
    """The quantity to make small (or large).

    >>> Goal.parse("maximize accuracy")
    Goal(metric='accuracy', maximise=True)
    """

    metric: str = "cost"
    """`cost`, `time`, or the name of a reported metric."""
    maximise: bool = False

    def __post_init__(self) -> None:
        if self.maximise and self.metric in ("cost", "time"):
            raise InputError(f"objective: maximising {self.metric} is not useful; write 'minimize {self.metric}'.")

    @classmethod
    def parse(cls, text: str) -> Goal:
        """Read `cost`, `minimize time`, `maximize accuracy` (British spelling welcome)."""
        words = text.split()
        direction = "minimize"
        if len(words) == 2:
            direction, words = words[0].lower().replace("is", "iz"), words[1:]
        if len(words) != 1 or direction not in ("minimize", "maximize"):
            raise InputError(
                f"objective: cannot read {text!r}; write for example 'cost', 'minimize time' or 'maximize accuracy'."
            )
        return cls(_ALIASES.get(words[0], words[0]), direction == "maximize")

    def __str__(self) -> str:
        return f"{'maximize' if self.maximise else 'minimize'} {self.metric}"


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on an observed quantity, perhaps with the confidence with which it must hold.

    >>> print(Limit.parse("runtime <= 45m @ 0.95"))
    time <= 45m @ 0.95
    """

    metric: str
    """`time` (seconds), `cost` (dollars), or the name of a reported metric."""
    bound: float
    at_least: bool = False
    """False: the quantity may be at most `bound`; true: it must be at least `bound`."""
    confidence: float | None = None
    """Demanded probability that a recommended configuration keeps this limit; nothing: seen to keep it is enough."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.bound):
            raise InputError(f"constraints: the bound on {self.metric} is {self.bound!r}; give a finite number.")
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise InputError(
                f"constraints: confidence {self.confidence!r} on {self.metric} must lie between 0 and 1, for example '@ 0.95'."
            )
        if self.metric in ("time", "cost") and self.at_least:
            raise InputError(
                f"constraints: '{self.metric} >= …' is not supported; {self.metric} can only be bounded from above."
            )
        if self.metric in ("time", "cost") and self.bound <= 0:
            raise InputError(
                f"constraints: the bound on {self.metric} is {self.bound!r}; nothing runs in no {self.metric}, give a positive one."
            )

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Read `runtime <= 45m @ 0.95`, `accuracy >= 0.85`, `cost <= $0.50`."""
        match = _LIMIT.match(text)
        if match is None:
            raise InputError(
                f"constraints: cannot read {text!r}; write a quantity, <= or >=, a bound and perhaps a confidence, "
                "for example 'runtime <= 45m @ 0.95' or 'accuracy >= 0.85'."
            )
        name, sign, bound_text, confidence_text, percent = match.groups()
        metric = _ALIASES.get(name, name)
        if metric == "time":
            bound = parse_duration(bound_text, f"constraints: the bound in {text!r}")
        elif metric == "cost":
            bound = parse_money(bound_text, f"constraints: the bound in {text!r}")
        else:
            try:
                bound = float(bound_text)
            except ValueError:
                raise InputError(
                    f"constraints: {bound_text!r} in {text!r} is not a number; write for example '{name} {sign} 0.85'."
                    + nearest(name, _ALIASES)
                ) from None
        confidence = None
        if confidence_text is not None:
            confidence = float(confidence_text) / (100.0 if percent else 1.0)
        return cls(metric, bound, sign.startswith(">"), confidence)

    def holds(self, value: float) -> bool:
        """Whether an observed value keeps the limit."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        bound = format_number(self.bound)
        if self.metric in ("time", "cost"):
            bound = format_duration(self.bound) if self.metric == "time" else format_money(self.bound)
        sure = "" if self.confidence is None else f" @ {self.confidence:g}"
        return f"{self.metric} {'>=' if self.at_least else '<='} {bound}{sure}"


@dataclass(frozen=True, slots=True)
class Budget:
    """What the exploration may use up. Every limit belongs to the study, not to a worker."""

    usd: float = math.inf
    """Dollars for all runs together; a hard cap."""
    trials: int | None = None
    """Most runs that are started."""
    wall_clock_s: float | None = None
    """Seconds from the start of the study after which no run is started."""

    def __post_init__(self) -> None:
        if math.isnan(self.usd) or self.usd <= 0:
            raise InputError(f"budget: {self.usd!r} dollars buy nothing; give a positive amount, for example '25 USD'.")
        if self.trials is not None and self.trials < 1:
            raise InputError(f"budget: max_trials is {self.trials}; give at least 1.")
        if self.wall_clock_s is not None and not self.wall_clock_s > 0:
            raise InputError(
                f"budget: wall_clock is {self.wall_clock_s!r} seconds; give a positive duration, for example '12h'."
            )


TargetKind = Literal["cost", "time", "metric"]


@dataclass(frozen=True)
class Problem:
    """A space with a goal, limits, money and a tariff; what may be tested and what may be the answer."""

    space: Space
    goal: Goal = field(default_factory=Goal)
    limits: tuple[Limit, ...] = ()
    budget: Budget = field(default_factory=Budget)
    tariff: Tariff = field(default_factory=Tariff)
    testable: BoolArray | None = None
    """Rows that may be run `[q]`; nothing: all."""
    answerable: BoolArray | None = None
    """Rows that may be recommended `[q]`; nothing: all."""
    repeats: int = 1
    """How often one configuration may be run."""
    fraction: str | None = None
    """The column with the share of the data that a run reads; nothing: every run reads all of it."""
    restarts: Restarts | None = None
    """Which configurations are interrupted now and then (spot machines); nothing: none."""

    def __post_init__(self) -> None:
        for name in ("testable", "answerable"):
            mask = getattr(self, name)
            if mask is None:
                continue
            if mask.shape != (len(self.space),):
                raise InputError(
                    f"{name}: a mask of shape {mask.shape} came for {len(self.space)} configurations; give one value each."
                )
            if not mask.any():
                raise InputError(f"{name}: no configuration is left; relax the rule that decides what is {name}.")
        if self.restarts is not None and len(self.restarts.twin) != len(self.space):
            raise InputError(f"restarts: {len(self.restarts.twin)} came for {len(self.space)} configurations.")
        if self.repeats < 1:
            raise InputError(f"repeats: {self.repeats} came; every configuration must be allowed at least 1 run.")
        for column in self.tariff.warm:
            self.space.column(column)
        if self.fraction is not None:
            shares(self.space, self.fraction)

    def with_budget(self, usd: float) -> Problem:
        """The same problem with another amount of money."""
        return replace(self, budget=replace(self.budget, usd=usd))

    def with_limits(self, limits: Iterable[Limit]) -> Problem:
        """The same problem under other limits (what if the deadline were 30 minutes?)."""
        return replace(self, limits=tuple(limits))

    def with_fraction(self, fraction: Fraction) -> Problem:
        """The same problem with a column that is the share of the data, and the two masks that follow from it."""
        testable, answerable = fraction.masks(self.space)
        return replace(self, fraction=fraction.column, testable=testable, answerable=answerable)

    @cached_property
    def share(self) -> FloatArray:
        """The share of the data that each configuration reads `[q]`, in (0, 1]."""
        return np.ones(len(self.space)) if self.fraction is None else shares(self.space, self.fraction)

    @cached_property
    def kind(self) -> TargetKind:
        """Which sort of quantity the goal is."""
        if self.goal.metric == "cost":
            return "cost"
        return "time" if self.goal.metric == "time" else "metric"

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """Reported metrics that goal and limits speak of, in order of appearance."""
        names = [self.goal.metric, *(limit.metric for limit in self.limits)]
        return tuple(dict.fromkeys(name for name in names if name not in ("cost", "time")))

    @cached_property
    def price(self) -> FloatArray:
        """Dollars per second of every configuration `[q]`."""
        return self.space.price_per_second

    @cached_property
    def _price_list(self) -> list[float]:
        return [float(price) for price in self.price]

    @cached_property
    def deadline_s(self) -> float:
        """The tightest limit on time, in seconds; infinite without one."""
        return min((limit.bound for limit in self.limits if limit.metric == "time"), default=math.inf)

    @cached_property
    def ceiling_s(self) -> FloatArray:
        """The longest time with which each configuration keeps all limits on time and cost `[q]`."""
        ceiling = np.full(len(self.space), self.deadline_s)
        for limit in self.limits:
            if limit.metric == "cost":
                ceiling = np.minimum(ceiling, self.seconds_at(np.asarray(limit.bound)))
        return ceiling

    @cached_property
    def ceiling_usd(self) -> FloatArray:
        """The highest cost with which each configuration keeps all limits on time and cost `[q]`."""
        # A ceiling of −inf seconds (not even the boot is affordable) stays impossible: no cost is low enough.
        with np.errstate(invalid="ignore"):
            usd = self.costs(self.ceiling_s)
        return np.where(np.isneginf(self.ceiling_s), -np.inf, usd)

    @cached_property
    def metric_limits(self) -> tuple[Limit, ...]:
        """Limits on reported metrics, that is, all but those on time and cost."""
        return tuple(limit for limit in self.limits if limit.metric not in ("time", "cost"))

    @cached_property
    def machine(self) -> NDArray[np.int64]:
        """A number per configuration, equal where no boot is needed between two runs `[q]`; all −1 when every run boots."""
        if not self.tariff.warm:
            return np.full(len(self.space), -1, dtype=np.int64)
        keys: dict[tuple[object, ...], int] = {}
        columns = [self.space.column(name) for name in self.tariff.warm]
        return np.array([keys.setdefault(key, len(keys)) for key in zip(*columns, strict=True)], dtype=np.int64)

    def boots(self, row: int, current: int | None) -> bool:
        """Whether the machines of `row` must be booted when those of `current` are up."""
        return current is None or self.machine[row] < 0 or self.machine[row] != self.machine[current]

    def cost(self, row: int, seconds: float) -> float:
        """Dollars of a production run of `row` that takes `seconds`, boot and expected restarts included."""
        if self.restarts is not None and self.restarts.rate_per_s[row] > 0:
            return float(self.costs(np.asarray(seconds), np.asarray(row)))
        return self.tariff.charge(seconds, self._price_list[row])

    def costs(self, seconds: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Like `cost`, for arrays that broadcast: one time per configuration, or per row of `rows`."""
        price = self.price if rows is None else self.price[rows]
        plain = self.tariff.charges(seconds, price)
        restarts = self.restarts
        if restarts is None:
            return plain
        rows = np.arange(len(self.space)) if rows is None else rows
        finite = np.where(np.isfinite(seconds), np.maximum(seconds, 0.0), 0.0)
        tried, tariff = restarts.attempts(finite, rows), self.tariff
        # Where an interruption falls between two billed units is luck: half a unit on average.
        billed = np.maximum(tried.interrupted_s + tariff.boot_s + tariff.granularity_s / 2, tariff.minimum_s)
        lost = tried.interrupted * (price * billed + tariff.fee_usd)
        moved = tariff.charges(finite, self.price[np.maximum(restarts.twin[rows], 0)])
        usd = tried.through * tariff.charges(finite, price) + lost + tried.moved * moved
        return np.where((restarts.rate_per_s[rows] > 0) & np.isfinite(seconds), usd, plain)

    def seconds_at(self, usd: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """The longest run whose cost is at most `usd`; −inf when not even its start is covered. The inverse of `costs`."""
        price = self.price if rows is None else self.price[rows]
        plain = self.tariff.seconds_for(usd, price)
        restarts = self.restarts
        if restarts is None:
            return plain
        rows = np.arange(len(self.space)) if rows is None else rows
        twin = restarts.twin[rows]
        longest = np.where(twin >= 0, self.tariff.seconds_for(usd, self.price[np.maximum(twin, 0)]), plain)
        high = np.where(np.isfinite(plain), np.maximum(np.maximum(plain, longest), 0.0), 0.0)
        low = np.zeros_like(high)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            fits = self.costs(middle, rows) <= usd
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return np.where((restarts.rate_per_s[rows] > 0) & np.isfinite(plain), low, plain)

    def price_of_runs(self, seconds: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Dollars per second of runs that take so long, restarts included: what turns a belief about time into money."""
        price = self.price if rows is None else self.price[rows]
        if self.restarts is None:
            return price
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            factor = self.costs(seconds, rows) / self.tariff.charges(seconds, price)
        return price * np.where(np.isfinite(factor), factor, 1.0)

    def value(self, row: int, seconds: float, metrics: Mapping[str, float]) -> float:
        """What the goal says of a finished run, smaller is better (a maximised metric changes sign)."""
        if self.kind == "cost":
            return self.cost(row, seconds)
        if self.kind == "time":
            return seconds
        reported = metrics[self.goal.metric]
        return -reported if self.goal.maximise else reported

    def meets_limits(self, row: int, seconds: float, metrics: Mapping[str, float]) -> bool:
        """Whether a finished run kept every limit; a metric that was not reported keeps none."""
        for limit in self.limits:
            if limit.metric == "time":
                value: float | None = seconds
            else:
                value = self.cost(row, seconds) if limit.metric == "cost" else metrics.get(limit.metric)
            if value is None or not limit.holds(value):
                return False
        return True

    def answer_value(self, row: int, seconds: float, metrics: Mapping[str, float]) -> float | None:
        """The goal's value of a finished run that may be the answer and kept every limit; nothing for any other run."""
        if self.answerable is not None and not self.answerable[row]:
            return None
        if (self.kind == "metric" and self.goal.metric not in metrics) or not self.meets_limits(row, seconds, metrics):
            return None
        return self.value(row, seconds, metrics)
