"""Published statements compared with our numbers: each holds, is exceeded, holds in direction only, fails, or is not clear in part."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lynceus.errors import InputError
from lynceus.replay.job import ReplayJob
from lynceus_lab.experiment_file import ClaimSpec, MeasureSpec, chosen
from lynceus_lab.statistics import BySeed, Estimate, FloatArray, estimate, ratio, statistic, together
from lynceus_lab.table_facts import fact

_BOUND = re.compile(r"\s*(<=|>=|<|>)\s*([-+0-9.e]+)\s*$")
_RANGE = re.compile(r"\s*([-+0-9.e]+?)\s*\.\.\s*([-+0-9.e]+)\s*$")
FEWEST = 30
"""With fewer seeds, a verdict is preliminary."""
HEADLINE = 100
"""With fewer seeds, their number is shown beside the verdict."""
GOAL = "our goal"
"""The published value of a claim of our own."""


class Verdict(enum.StrEnum):
    """The result for a claim."""

    HOLDS = "holds"
    BEYOND = "holds, larger than published"
    DIRECTION = "holds in direction, not in size"
    UNCLEAR = "not clear: the interval contains the bound"
    REFUTED = "size refuted, direction open"
    FAILS = "does not hold"
    ELSEWHERE = "not reproduced, in another set-up"
    UNMEASURED = "not measured"


def in_setup(verdict: str, published: str, differs: Sequence[str]) -> str:
    """A published claim can only be refuted in its own set-up; in another one it is not reproduced.

    >>> in_setup("does not hold", "2×", ["price"])
    'not reproduced, in another set-up'
    """
    if verdict not in (Verdict.FAILS, Verdict.ELSEWHERE):
        return verdict
    return str(Verdict.ELSEWHERE if differs and published != GOAL else Verdict.FAILS)


@dataclass(frozen=True)
class Judged:
    """A claim with our number and the verdict."""

    claim: ClaimSpec
    found: Estimate | None
    verdict: Verdict
    distances: Distances | None = None
    """For a distance from the optimum: how papers print it besides."""


@dataclass(frozen=True, slots=True)
class Distances:
    """A distance from the optimum over seeds, of which some may have found nothing feasible."""

    mean_of_found: float
    found: int
    seeds: int
    median: float


Values = Callable[[str, str, str, MeasureSpec], BySeed]
"""(job, policy, variant, measure) → one number per seed; empty when it was not run."""


def judge(claim: ClaimSpec, jobs: Sequence[str], values: Values, loaded: Callable[[str], ReplayJob]) -> Judged:
    """Compute our number for a claim, and compare."""
    jobs_of = chosen(jobs, claim.measure.jobs)
    found = measured(claim.measure, jobs_of, values, loaded)
    if found is None or math.isnan(found.value):
        return Judged(claim, None, Verdict.UNMEASURED)
    distances = None
    if claim.measure.kind == "value" and claim.measure.quantity == "dfo":
        sample = [
            value
            for job in jobs_of
            for value in values(job, claim.measure.of or "", claim.measure.variant or "", claim.measure).values()
        ]
        distances = _distances(np.array(sample))
    return Judged(claim, found, verdict(found, claim.holds, claim.direction), distances)


def _distances(sample: FloatArray) -> Distances:
    known = np.isfinite(sample)
    return Distances(float(statistic(sample, "found")), int(known.sum()), len(sample), float(statistic(sample, "p50")))


def measured(
    measure: MeasureSpec, jobs: Sequence[str], values: Values, loaded: Callable[[str], ReplayJob]
) -> Estimate | None:
    """Our number; None when a part of it was not run."""
    if measure.kind == "table":
        value = fact(measure.fact or "", [loaded(job) for job in jobs])
        return Estimate(value, value, value, 0, len(jobs))
    variant = measure.variant or ""
    above = [values(job, measure.of or "", variant, measure) for job in jobs]
    if not all(above):
        return None
    if measure.kind == "value":
        pooled = estimate([together(above)] if measure.pooled else above, measure.statistic)
        return _of_jobs(pooled, above, above) if measure.pooled else pooled
    other = measure.to_variant if measure.to_variant is not None else variant
    its = measure if measure.to_level is None else measure.model_copy(update={"level": measure.to_level})
    below = [values(job, measure.to or "", other, its) for job in jobs]
    if not all(below):
        return None
    if measure.pooled:
        found = _of_jobs(ratio([together(above)], [together(below)], measure.statistic), above, below)
    else:
        found = ratio(above, below, measure.statistic)
    if measure.kind == "saving":
        return replace(found, value=1 - found.value, low=1 - found.high, high=1 - found.low)
    return found


def _of_jobs(found: Estimate, above: Sequence[BySeed], below: Sequence[BySeed]) -> Estimate:
    """A pooled number with the seeds of each job and the number of jobs, not those of the pool."""
    seeds = min(len(one.keys() & other.keys()) for one, other in zip(above, below, strict=True))
    return replace(found, seeds=seeds, jobs=len(above))


@dataclass(frozen=True, slots=True)
class Condition:
    """An interval of numbers; either end may be infinite."""

    low: float
    high: float

    @property
    def is_range(self) -> bool:
        """Whether it has two ends."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    def covers(self, found: Estimate) -> bool:
        """Whether the whole interval satisfies it."""
        return self.low <= found.low and found.high <= self.high

    def misses(self, found: Estimate) -> bool:
        """Whether no part of the interval satisfies it."""
        return found.high < self.low or self.high < found.low


def condition(text: str) -> Condition:
    """Parse `>= 2`, `< 0.9` or `0.3..0.5`.

    >>> condition(">= 2"), condition("0.3..0.5")
    (Condition(low=2.0, high=inf), Condition(low=0.3, high=0.5))
    """
    inside, bound = _RANGE.match(text), _BOUND.match(text)
    try:
        if inside is not None:
            return Condition(float(inside.group(1)), float(inside.group(2)))
        if bound is not None:
            return _half_line(bound.group(1), float(bound.group(2)))
    except ValueError:
        pass
    raise InputError(f"claims: cannot parse the condition {text!r}; write '>= 2', '< 0.9' or '0.3..0.5'.")


def _half_line(sign: str, bound: float) -> Condition:
    """For a strict inequality, the next floating-point number is the end."""
    if sign.startswith("<"):
        return Condition(-math.inf, bound if sign == "<=" else math.nextafter(bound, -math.inf))
    return Condition(bound if sign == ">=" else math.nextafter(bound, math.inf), math.inf)


def verdict(found: Estimate, holds: str, direction: str | None) -> Verdict:
    """The verdict on a number: its interval satisfies a condition, lies outside, or contains a bound.

    >>> verdict(Estimate(5.0, 4.0, 6.0, 100), ">= 3", None).value
    'holds'
    >>> verdict(Estimate(2.0, 1.5, 2.5, 100), ">= 3", "> 1").value
    'holds in direction, not in size'
    >>> verdict(Estimate(9.0, 8.0, 9.5, 100), "4..6", "> 1").value
    'holds, larger than published'
    >>> verdict(Estimate(1.2, 0.9, 1.4, 100), ">= 3", "> 1").value
    'size refuted, direction open'
    """
    size, weaker = condition(holds), None if direction is None else condition(direction)
    if math.isnan(found.low) or math.isnan(found.high):  # one seed says nothing about the spread
        return Verdict.UNCLEAR
    if size.covers(found):
        return Verdict.HOLDS
    if not size.misses(found):
        return Verdict.UNCLEAR
    if weaker is None or weaker.misses(found):
        return Verdict.FAILS
    if not weaker.covers(found):
        return Verdict.REFUTED
    return Verdict.BEYOND if _beyond(found, size, weaker) else Verdict.DIRECTION


def _beyond(found: Estimate, size: Condition, weaker: Condition) -> bool:
    """Whether the effect is larger than published."""
    return size.is_range and (found.low > size.high if math.isinf(weaker.high) else found.high < size.low)
