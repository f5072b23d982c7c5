"""How often the result of a search will be used: what makes a search worth its money."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from lynceus.errors import InputError, hint, shown
from lynceus.problem.units import format_number

ASSUMED_RUNS = 100.0
"""Future runs where neither the user nor the policy says how many."""


@dataclass(frozen=True, slots=True)
class FutureUse:
    """How often the job will run with the configuration that is found; units where the objective is dollars per unit.

    The stopping rule, the savings and the pay-back count with it.

    >>> FutureUse(runs=100).count, FutureUse(per_month=30, months=6).count
    (100.0, 180.0)
    """

    runs: float | None = None
    """In all; None: per month."""
    per_month: float | None = None
    months: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and not _is_count(value):
                raise InputError(
                    f"future: {field.name} is {shown(value)}; give a finite number above 0, such as {_EXAMPLES[field.name]}."
                )
        if (problem := form_mistake(self.runs, self.per_month, self.months)) is not None:
            raise InputError(f"future: {problem}")

    @classmethod
    def read(cls, given: FutureUse | Mapping[str, Any]) -> FutureUse:
        """What a program gives: `{"runs": 100}` or `{"per_month": 30, "months": 6}`."""
        if isinstance(given, FutureUse):
            return given
        if not isinstance(given, Mapping):
            raise InputError(f"future: got {shown(given)}; {HOW_TO_WRITE}")
        known = [field.name for field in fields(cls)]
        for name in given:
            if name not in known:
                raise InputError(f"future: there is no field {shown(name)}{hint(str(name), known)}")
        return cls(**given)

    @property
    def count(self) -> float:
        """Uses in all."""
        return float((self.per_month or 0.0) * (self.months or 0.0) if self.runs is None else self.runs)

    def shown(self, unit: str = "runs") -> str:
        """In words.

        >>> FutureUse(runs=100).shown(), FutureUse(per_month=30, months=6).shown()
        ('100 runs', '180 runs (30 a month for 6 months)')
        """
        noun = unit.removesuffix("s") if self.count == 1 else unit
        text = f"{format_count(self.count)} {noun}"
        if self.per_month is None or self.months is None:
            return text
        span = "1 month" if self.months == 1 else f"{format_count(self.months)} months"
        return f"{text} ({format_count(self.per_month)} a month for {span})"


def future_count(future: FutureUse | None, assumed: float) -> float:
    """Uses in all: as the user says, otherwise as a rule assumes."""
    return assumed if future is None else future.count


HOW_TO_WRITE = "write {runs: 100}, or {per_month: 30, months: 6}."
"""The end of a message about a value that is no future use at all."""
_EXAMPLES = {"runs": 100, "per_month": 30, "months": 6}


def form_mistake(runs: float | None, per_month: float | None, months: float | None) -> str | None:
    """What is wrong with a combination of fields; None when it is one of the two forms."""
    if runs is not None and (per_month is not None or months is not None):
        return "runs and per_month with months say the same thing twice; give one of them."
    if runs is None and per_month is None and months is None:
        return f"it says nothing; {HOW_TO_WRITE}"
    if runs is None and per_month is None:
        return f"months is {months:g} without per_month; add how often the job runs in a month, such as per_month: 30."
    if runs is None and months is None:
        return f"per_month is {per_month:g} without months; add for how long, such as months: 6."
    if per_month is not None and months is not None and not math.isfinite(per_month * months):
        return f"{per_month:g} a month for {months:g} months is too large to count; give smaller numbers."
    return None


def format_count(count: float) -> str:
    """A number of uses with at most three decimals, and commas.

    >>> format_count(180.0), format_count(2.5), format_count(1234567)
    ('180', '2.5', '1,234,567')
    """
    if count >= 1e15 or count < 1e-3:
        return format_number(float(f"{count:.3g}"))
    return f"{count:,.3f}".rstrip("0").rstrip(".")


def plural(noun: str) -> str:
    """A unit as it is counted.

    >>> [plural(noun) for noun in ("run", "query", "million tokens")]
    ['runs', 'queries', 'million tokens']
    """
    if noun.endswith("s"):
        return noun
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"


def _is_count(value: object) -> bool:
    return (
        isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value) and float(value) > 0.0
    )
