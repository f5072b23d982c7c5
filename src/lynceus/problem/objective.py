"""Objective and constraints, as users write them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lynceus.errors import InputError, did_you_mean
from lynceus.problem.formula import PRICE, QUANTITY_WORDS
from lynceus.problem.metric_units import has_unit, in_unit, with_unit
from lynceus.problem.units import (
    format_bytes,
    format_duration,
    format_money,
    format_number,
    parse_duration,
    parse_money,
    parse_quantity,
)
from lynceus.space.expression import Expression

_NAME = re.compile(r"[A-Za-z_][\w.\-]*")
"""A metric's name; anything longer is a formula."""
_DIRECTIONS = ("minimize", "maximize")
_STATISTIC = re.compile(r"(p\d{1,2}(?:\.\d+)?|median|mean|min|max)\(([A-Za-z_][\w.\-]*)\)")
"""A statistic of what a run streams; `executors/supervisor/streams.py` computes it."""
_NO_UNITS: Mapping[str, str] = MappingProxyType({})
_PER_UNIT = re.compile(r"(?:usd|dollars?|cost)_per_([A-Za-z0-9]\w*)", re.IGNORECASE)
_CONSTRAINT = re.compile(
    r"^\s*([A-Za-z_][\w.\-]*(?:\s*\(\s*[A-Za-z_][\w.\-]*\s*\))?)\s*(<=|>=|<|>)\s*([^@]+?)\s*(?:@\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*)?$"
)


@dataclass(frozen=True, slots=True)
class Objective:
    """The quantity to minimise (or maximise).

    >>> Objective.parse("maximize accuracy")
    Objective(metric='accuracy', maximise=True)
    >>> Objective.parse("minimize price / throughput").is_formula
    True
    """

    metric: str = "cost"
    """`cost`, `time`, the name of a reported metric, or a formula over metrics, columns and `price` (dollars per hour)."""
    maximise: bool = False

    def __post_init__(self) -> None:
        if self.maximise and self.metric in ("cost", "time", PRICE):
            raise InputError(f"objective: maximising {self.metric} is not useful; write 'minimize {self.metric}'.")
        if self.is_formula:
            Expression.parse(self.metric, "objective:")

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Read `cost`, `minimize time`, `maximize accuracy`, `minimize price / throughput`; British spelling is accepted."""
        first, _, rest = text.strip().partition(" ")
        direction = first.lower().replace("is", "iz")
        if direction not in _DIRECTIONS or not rest:
            direction, rest = "minimize", text
        rest = rest.strip()
        words = rest.split()
        if not words or (len(words) > 1 and all(_NAME.fullmatch(word) for word in words) and "if" not in words):
            raise InputError(
                f"objective: cannot read {text!r}; write for example 'cost', 'minimize time', 'maximize accuracy' or "
                "'minimize price / throughput'."
            )
        return cls(QUANTITY_WORDS.get(rest, rest), direction == "maximize")

    @property
    def is_formula(self) -> bool:
        """Whether it is computed from several quantities, or from what is known of a configuration."""
        return self.metric == PRICE or _NAME.fullmatch(self.metric) is None

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities and columns that it reads, as written."""
        return Expression.parse(self.metric, "objective:").names if self.is_formula else (self.metric,)

    @property
    def sign(self) -> float:
        """Factor between the objective and the value that is minimised: −1 when the objective is maximised."""
        return -1.0 if self.maximise else 1.0

    @property
    def per_unit(self) -> str | None:
        """The unit of which a metric is the price in dollars, told by its name; None: runs count.

        >>> Objective("usd_per_million_tokens").per_unit, Objective("cost").per_unit
        ('million tokens', None)
        """
        matched = None if self.maximise else _PER_UNIT.fullmatch(self.metric)
        return None if matched is None else matched[1].replace("_", " ")

    def __str__(self) -> str:
        return f"{'maximize' if self.maximise else 'minimize'} {self.metric}"


def streamed(name: str) -> str | None:
    """The metric of which a name is a statistic over what a run streams; None for the name of a metric itself.

    >>> streamed("p99(latency)"), streamed("latency")
    ('latency', None)
    """
    matched = _STATISTIC.fullmatch(name)
    return None if matched is None else matched[2]


@dataclass(frozen=True, slots=True)
class Constraint:
    """A bound on an observed quantity, optionally with the confidence with which it must hold.

    >>> print(Constraint.parse("runtime <= 45m @ 0.95"))
    time <= 45m @ 0.95
    """

    metric: str
    """`time` (seconds), `cost` (dollars), or the name of a reported metric."""
    bound: float
    at_least: bool = False
    """False: the quantity may be at most `bound`; true: it must be at least `bound`."""
    confidence: float | None = None
    """Required probability that a recommended configuration meets this constraint; None: one run that met it is enough."""
    unit: str = ""
    """The declared unit of a metric, in which `bound` is; empty: none is declared."""

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
            raise InputError(f"constraints: the bound on {self.metric} is {self.bound!r}; give a positive one.")

    @classmethod
    def parse(cls, text: str, units: Mapping[str, str] = _NO_UNITS) -> Constraint:
        """Read `runtime <= 45m @ 0.95`, `accuracy >= 0.85`, `cost <= $0.50`, `bytes <= 4.3MB`; `units` of metrics by name.

        >>> print(Constraint.parse("p99(ttft) <= 0.5s", {"ttft": "ms"}))
        p99(ttft) <= 500ms
        """
        match = _CONSTRAINT.match(text)
        if match is None:
            raise InputError(
                f"constraints: cannot read {text!r}; write a quantity, <= or >=, a bound and optionally a confidence, "
                "for example 'runtime <= 45m @ 0.95' or 'accuracy >= 0.85'."
            )
        name, sign, bound_text, confidence_text, percent = match.groups()
        name = "".join(name.split())
        if "(" in name and streamed(name) is None:
            raise InputError(
                f"constraints: {name!r} in {text!r} is no statistic of what a run streams; write for example 'p99(latency) <= 200', "
                "or median, mean, min or max."
            )
        metric, unit = QUANTITY_WORDS.get(name, name), units.get(streamed(name) or name, "")
        if metric == "time":
            bound = parse_duration(bound_text, f"constraints: the bound in {text!r}")
        elif metric == "cost":
            bound = parse_money(bound_text, f"constraints: the bound in {text!r}")
        else:
            bound = _bound(text, name, sign, bound_text, unit)
        confidence = None
        if confidence_text is not None:
            confidence = float(confidence_text) / (100.0 if percent else 1.0)
        return cls(metric, bound, sign.startswith(">"), confidence, unit)

    def holds(self, value: float) -> bool:
        """Whether an observed value meets the constraint."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        bound = bound_text(self.bound, self.unit)
        if self.metric in ("time", "cost"):
            bound = format_duration(self.bound) if self.metric == "time" else format_money(self.bound)
        confidence = "" if self.confidence is None else f" @ {self.confidence:g}"
        return f"{self.metric} {'>=' if self.at_least else '<='} {bound}{confidence}"


def bound_text(amount: float, unit: str) -> str:
    """The bound on a metric as it is written, with the unit that is declared for the metric."""
    return _bytes(amount) if unit == "B" else with_unit(format_number(amount), unit)


def _bytes(amount: float) -> str:
    """An amount of bytes as it is written, in powers of 1000 where that loses nothing.

    >>> [_bytes(amount) for amount in (100e6, 1.05e6, 1048576.0, 512.0)]
    ['100MB', '1.05MB', '1048576B', '512B']
    """
    short = format_bytes(amount).replace(" ", "")
    return short if in_unit(short, "B") == amount else with_unit(format_number(amount), "B")


def _bound(text: str, name: str, sign: str, bound: str, unit: str) -> float:
    """The bound on a metric as a number in its declared unit."""
    number = in_unit(bound, unit) if unit else parse_quantity(bound)
    if number is not None:
        return number
    if unit:
        raise InputError(
            f"constraints: {bound!r} in {text!r} is no amount of {unit}, the unit of {streamed(name) or name}; write for example "
            f"'{name} {sign} {with_unit('500', unit)}'."
        )
    if has_unit(bound):
        raise InputError(
            f"constraints: {bound!r} in {text!r} has a unit, but none is declared for {streamed(name) or name}; declare it, as in "
            f"metrics: {{{streamed(name) or name}: {{unit: ms}}}}, or write a plain number."
            + _did_you_mean_quantity(name)
        )
    raise InputError(
        f"constraints: {bound!r} in {text!r} is neither a number nor an amount of bytes; write for example "
        f"'{name} {sign} 0.85', '{name} {sign} 3MB' or '{name} {sign} 3MiB' (B for bytes; b would be bits)."
        + _did_you_mean_quantity(name)
    )


def _did_you_mean_quantity(name: str) -> str:
    """What Lynceus itself tells of a run, for a name that is nearly one of its words: `ratio` is part of `duration`, no slip."""
    return did_you_mean(name, [word for word in QUANTITY_WORDS if abs(len(word) - len(name)) <= 2])
