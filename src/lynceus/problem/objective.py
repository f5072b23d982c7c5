"""Objective and constraints, as users write them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from lynceus.errors import InputError, did_you_mean
from lynceus.problem.units import (
    format_duration,
    format_money,
    format_number,
    parse_duration,
    parse_money,
    parse_quantity,
)

TIME_WORDS = ("time", "runtime", "duration")
COST_WORDS = ("cost", "price", "money")

_ALIASES = dict.fromkeys(TIME_WORDS, "time") | dict.fromkeys(COST_WORDS, "cost")
_PER_UNIT = re.compile(r"(?:usd|dollars?|cost)_per_([A-Za-z0-9]\w*)", re.IGNORECASE)
_CONSTRAINT = re.compile(r"^\s*([A-Za-z_][\w.\-]*)\s*(<=|>=|<|>)\s*([^@]+?)\s*(?:@\s*(\d+\.?\d*|\.\d+)\s*(%?)\s*)?$")


@dataclass(frozen=True, slots=True)
class Objective:
    """The quantity to minimise (or maximise).

    >>> Objective.parse("maximize accuracy")
    Objective(metric='accuracy', maximise=True)
    """

    metric: str = "cost"
    """`cost`, `time`, or the name of a reported metric."""
    maximise: bool = False

    def __post_init__(self) -> None:
        if self.maximise and self.metric in ("cost", "time"):
            raise InputError(f"objective: maximising {self.metric} is not useful; write 'minimize {self.metric}'.")

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Read `cost`, `minimize time`, `maximize accuracy`; British spelling is accepted."""
        words = text.split()
        direction = "minimize"
        if len(words) == 2:
            direction, words = words[0].lower().replace("is", "iz"), words[1:]
        if len(words) != 1 or direction not in ("minimize", "maximize"):
            raise InputError(
                f"objective: cannot read {text!r}; write for example 'cost', 'minimize time' or 'maximize accuracy'."
            )
        return cls(_ALIASES.get(words[0], words[0]), direction == "maximize")

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
    def parse(cls, text: str) -> Constraint:
        """Read `runtime <= 45m @ 0.95`, `accuracy >= 0.85`, `cost <= $0.50`, `bytes <= 4.3MB`."""
        match = _CONSTRAINT.match(text)
        if match is None:
            raise InputError(
                f"constraints: cannot read {text!r}; write a quantity, <= or >=, a bound and optionally a confidence, "
                "for example 'runtime <= 45m @ 0.95' or 'accuracy >= 0.85'."
            )
        name, sign, bound_text, confidence_text, percent = match.groups()
        metric = _ALIASES.get(name, name)
        if metric == "time":
            bound = parse_duration(bound_text, f"constraints: the bound in {text!r}")
        elif metric == "cost":
            bound = parse_money(bound_text, f"constraints: the bound in {text!r}")
        else:
            number = parse_quantity(bound_text)
            if number is None:
                raise InputError(
                    f"constraints: {bound_text!r} in {text!r} is neither a number nor an amount of bytes; write for example "
                    f"'{name} {sign} 0.85', '{name} {sign} 3MB' or '{name} {sign} 3MiB' (B for bytes; b would be bits)."
                    + did_you_mean(name, _ALIASES)
                )
            bound = number
        confidence = None
        if confidence_text is not None:
            confidence = float(confidence_text) / (100.0 if percent else 1.0)
        return cls(metric, bound, sign.startswith(">"), confidence)

    def holds(self, value: float) -> bool:
        """Whether an observed value meets the constraint."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        bound = format_number(self.bound)
        if self.metric in ("time", "cost"):
            bound = format_duration(self.bound) if self.metric == "time" else format_money(self.bound)
        confidence = "" if self.confidence is None else f" @ {self.confidence:g}"
        return f"{self.metric} {'>=' if self.at_least else '<='} {bound}{confidence}"
