"""Published statements against our numbers: each holds, holds in direction only, does not hold, or is not clear."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lynceus.errors import InputError
from lynceus.lab.facts import fact
from lynceus.lab.spec import ClaimSpec, MeasureSpec, chosen
from lynceus.lab.statistics import BySeed, Estimate, estimate, ratio
from lynceus.replay import ReplayJob

_CONDITION = re.compile(r"\s*(<=|>=|<|>)\s*([-+0-9.e]+)\s*$")
_RANGE = re.compile(r"\s*([-+0-9.e]+?)\s*\.\.\s*([-+0-9.e]+)\s*$")
FEWEST = 30
"""Seeds below which a verdict is called preliminary."""
HEADLINE = 100
"""Seeds that a headline claim should rest on."""


class Verdict(enum.StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    DIRECTION = "holds in direction, not in size"
    UNCLEAR = "not clear: the interval reaches over the bound"
    FAILS = "does not hold"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Judged:
    """A claim with our number."""

    claim: ClaimSpec
    found: Estimate | None
    verdict: Verdict


Values = Callable[[str, str, str, MeasureSpec], BySeed]
"""(job, policy, variant, measure) → one number per seed; empty: not run."""


def judge(claim: ClaimSpec, jobs: Sequence[str], values: Values, loaded: Callable[[str], ReplayJob]) -> Judged:
    """Measure what the claim speaks of, and compare."""
    found = measured(claim.measure, chosen(jobs, claim.measure.jobs), values, loaded)
    if found is None or math.isnan(found.value):
        return Judged(claim, None, Verdict.UNMEASURED)
    return Judged(claim, found, verdict(found, claim.holds, claim.direction))


def measured(
    measure: MeasureSpec, jobs: Sequence[str], values: Values, loaded: Callable[[str], ReplayJob]
) -> Estimate | None:
    """Our number; nothing when something of it was not run."""
    if measure.kind == "table":
        value = fact(measure.fact or "", [loaded(job) for job in jobs])
        return Estimate(value, value, value, 0)
    variant = measure.variant or ""
    above = [values(job, measure.of or "", variant, measure) for job in jobs]
    if not all(above):
        return None
    if measure.kind == "value":
        return estimate(above, measure.statistic)
    other = measure.to_variant if measure.to_variant is not None else variant
    below = [values(job, measure.to or "", other, measure) for job in jobs]
    if not all(below):
        return None
    found = ratio(above, below, measure.statistic)
    if measure.kind == "saving":
        return Estimate(1 - found.value, 1 - found.high, 1 - found.low, found.seeds)
    return found


def verdict(found: Estimate, holds: str, direction: str | None) -> Verdict:
    """The verdict on a number: the point must satisfy a condition, and its interval must not contradict it.

    >>> verdict(Estimate(5.0, 4.0, 6.0, 100), ">= 3", None).value
    'holds'
    >>> verdict(Estimate(2.0, 1.5, 2.5, 100), ">= 3", "> 1").value
    'holds in direction, not in size'
    """
    if _satisfied(found, holds):
        # A range is a published number with its roundings: our point must lie in it. A bound must be cleared surely.
        return Verdict.HOLDS if _is_range(holds) or _surely(found, holds) else Verdict.UNCLEAR
    if direction is None:
        return Verdict.FAILS
    if not _satisfied(found, direction):
        return Verdict.FAILS
    return Verdict.DIRECTION if _surely(found, direction) else Verdict.UNCLEAR


def _is_range(condition: str) -> bool:
    return _RANGE.match(condition) is not None


def _surely(found: Estimate, condition: str) -> bool:
    """Whether the whole interval satisfies a condition."""
    ends = [end for end in (found.low, found.high) if not math.isnan(end)]
    return bool(ends) and all(meets(end, condition) for end in ends)


def _satisfied(found: Estimate, condition: str) -> bool:
    return meets(found.value, condition)


def meets(value: float, condition: str) -> bool:
    """Whether a number satisfies `>= 2`, `< 0.9` or `0.3..0.5`."""
    inside = _RANGE.match(condition)
    if inside is not None:
        return float(inside.group(1)) <= value <= float(inside.group(2))
    match = _CONDITION.match(condition)
    if match is None:
        raise InputError(f"claims: cannot read the condition {condition!r}; write '>= 2', '< 0.9' or '0.3..0.5'.")
    sign, bound = match.group(1), float(match.group(2))
    return {"<": value < bound, "<=": value <= bound, ">": value > bound, ">=": value >= bound}[sign]
