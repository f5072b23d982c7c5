"""What makes it worth looking at a job again. Noise is none of it: without a trigger nothing is tried."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scipy.special import bdtrc

from lynceus.recurring.record import JobRecord
from lynceus.recurring.watch import Watch, adopted_at, size_spread, typical_size

if TYPE_CHECKING:
    from lynceus.problem.problem import Problem

SIZE_CHANGE = 0.10
"""Change of ln size, since the version was chosen, that may have changed which configuration is best."""
SIZE_SPREADS = 4.0
"""The same in standard deviations of ln size from run to run: the input of the study need not have been a typical one."""
UNSETTLED_RUNS = 40
"""Runs after a change by Lynceus in which it goes on looking: what was found in a hurry need not be the best."""
CLEARLY_LATE = 3.0
"""A chance to be late of so many times the bound is a trigger of its own."""
LATE_RUNS, LATE_LUCK = 40, 0.2
"""But only if more of so many runs were late than the bound explains, except with this probability: an estimate alone moves nothing."""
PRICE_CHANGE = 0.03
"""The same for the price of an alternative relative to that of the adopted configuration."""


LONGER = ("late", "failures", "size", "step", "drift")
"""Triggers that may make runs late."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A reason to look again."""

    kind: str
    """`price`, `size`, or the kind of a finding."""
    text: str
    """One clause for the user."""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {"kind": self.kind, "text": self.text}


def triggers(problem: Problem, record: JobRecord, seen: Watch, size: float | None, row: int) -> tuple[Trigger, ...]:
    """Every reason to look again, the most urgent first."""
    found = [
        Trigger(one.kind, _clause(one.text)) for one in seen.findings if one.sure and one.kind in ("step", "drift")
    ]
    basis = record.adopted.basis if record.adopted is not None else None
    now = typical_size(record, size)
    chosen_for = basis.size if basis is not None and basis.size is not None else _first_size(record)
    if chosen_for is not None and now is not None:
        change = math.log(now / chosen_for)
        if abs(change) >= max(SIZE_CHANGE, SIZE_SPREADS * size_spread(record)):
            share = f"{math.exp(abs(change)) - 1:.0%}".replace("%", " %")
            found.append(Trigger("size", f"inputs are {share} {'larger' if change > 0 else 'smaller'} than they were"))
    if basis is not None and (changed := _price_change(problem, basis.usd_per_hour, row)):
        found.append(Trigger("price", changed))
    version = record.adopted
    if version is not None and version.source in ("canary", "retune"):
        since = adopted_at(record)
        if sum(run.ended_s > since for run in record.runs) < UNSETTLED_RUNS:
            found.append(Trigger("unsettled", "the configuration was changed recently, and may not be the best yet"))
    # A chance to be late is an estimate. Where nothing else surely made runs longer, it has to be clear, and an alarm or late runs have to
    # bear it out.
    slower = any(one.kind in ("step", "drift", "size") for one in found)
    bound = record.settings.late_chance
    if not slower:
        alarm = any(one.kind in ("step", "drift") and one.factor > 1 for one in seen.findings)
        bound = CLEARLY_LATE * bound if alarm or _late_too_often(problem, record, seen) else math.inf
    urgent = [one for one in seen.findings if one.kind == "failures" or (one.kind == "late" and one.factor > bound)]
    return (*(Trigger(one.kind, _clause(one.text)) for one in urgent), *found)


def _late_too_often(problem: Problem, record: JobRecord, seen: Watch) -> bool:
    """Whether more of the last runs were late than luck explains: P(so many or more) with the allowed chance is small."""
    deadline_s = min(problem.deadline_s, record.settings.deadline_s)
    late = [one.seconds > deadline_s for one in seen.checks[-LATE_RUNS:]]
    return sum(late) > 0 and float(bdtrc(sum(late) - 1, len(late), record.settings.late_chance)) < LATE_LUCK


def _price_change(problem: Problem, before: Any, row: int) -> str:
    """The largest change of a price relative to the adopted configuration, in words; empty if none is large enough."""
    if row not in before:
        return ""
    own = math.log(float(problem.price[row]) * 3600 / before[row])
    changes = {
        other: math.log(float(problem.price[other]) * 3600 / usd) - own
        for other, usd in before.items()
        if other < len(problem.price)
    }
    other = min(changes, key=lambda one: changes[one])
    if changes[other] > -PRICE_CHANGE:
        return ""
    share = f"{1 - math.exp(changes[other]):.0%}".replace("%", " %")
    return f"prices changed: an alternative costs {share} less than before, relative to the adopted configuration"


def _first_size(record: JobRecord) -> float | None:
    """The size of the first inputs after the present version was adopted, for versions that were chosen without one."""
    since = adopted_at(record)
    sizes = [run.size for run in record.runs if run.size is not None and run.ended_s >= since][:3]
    return sorted(sizes)[len(sizes) // 2] if sizes else None


def _clause(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
