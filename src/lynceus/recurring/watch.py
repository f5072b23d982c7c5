"""Watch a recurring job: is its time what its input size lets expect, and will the next run be late?

Only finished runs tell anything. A failure of the infrastructure changes nothing: no expectation, no finding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lynceus.problem.units import format_duration
from lynceus.recurring.change_test import SMALLEST
from lynceus.recurring.record import JobRecord, ProductionRun
from lynceus.recurring.series import Series, SeriesChange
from lynceus.recurring.time_model import Expectation

MOST_RUNS = 400
"""Older runs of a configuration are left out."""
_TREND_RUNS, _AHEAD_RUNS = 20, 10
"""Runs over which the growth of inputs is measured, and how far it is followed."""
_LEAST_TREND = 0.04
"""Growth of ln size over these runs that is no coincidence."""
_SPREAD_RUNS, _SIZE_SPREAD = 60, 0.1
"""Runs over which the spread of ln size is measured, and what it is taken for before there are `LEAST_RUNS`."""
LEAST_RUNS = 10
"""Runs before a chance to be late is a finding."""
_FAILURES = 2
"""Failures in a row for which the configuration is to blame that make a finding."""


@dataclass(frozen=True, slots=True)
class RunCheck:
    """A run beside what was expected of it before it ran."""

    run_id: str
    seconds: float
    expected_s: float
    low_s: float
    high_s: float


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the adopted configuration that is no noise."""

    kind: str
    """`step`, `drift`, `variance`, `late` or `failures`."""
    key: str
    """The same for the same finding, however often it is looked at: a message is sent once per key."""
    version: int
    since: str
    """The run with which it began."""
    found: str
    """The run after which it was found."""
    factor: float
    """By how much time (variance: the spread of time) changed; for `late`, the chance to be late."""
    text: str
    """One sentence for the user."""
    sure: bool = True
    """Whether it may be acted upon; a step or drift is first only reported, until more runs have confirmed it."""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True)
class Watch:
    """What is known of the adopted configuration after all runs of a record."""

    findings: tuple[Finding, ...] = ()
    """Oldest first; those of the adopted configuration since it was adopted."""
    checks: tuple[RunCheck, ...] = ()
    """The runs of the adopted configuration."""
    next_run: Expectation | None = None
    """What the next run of the adopted configuration is expected to take; None before two runs have finished."""
    size: float | None = None
    """The input size that `next_run` and `late_chance` are for."""
    expected_usd: float | None = None
    """What it is expected to cost at its present price."""
    late_chance: float | None = None
    """The chance that it is late; None without a deadline or an expectation."""
    noise: float | None = None
    """Run-to-run variation of ln seconds: 0.05 is about 5 %."""
    series: Series | None = None
    """The runs as they were scanned; given to the next call, only new runs are scanned."""

    def record(self) -> dict[str, Any]:
        """As JSON, for pages and metrics."""
        return {
            "findings": [one.record() for one in self.findings],
            "expected_s": None if self.next_run is None else self.next_run.seconds,
            "expected_usd": self.expected_usd,
            "late_chance": self.late_chance,
            "variation": self.noise,
            "size": self.size,
        }


def watch(
    record: JobRecord,
    size: float | None = None,
    *,
    usd_per_hour: float | None = None,
    deadline_s: float = math.inf,
    before: Watch | None = None,
) -> Watch:
    """Look at all runs of the adopted configuration, and at the next one with an input of `size` (None: the last size).

    `deadline_s` tightens that of the settings. `before` is what an earlier call returned: runs that it has seen are not scanned again.
    """
    if record.adopted is None:
        return Watch()
    runs = runs_of(record, record.adopted.params)
    series = Series.scan(runs, None if before is None else before.series)
    since = adopted_at(record)
    changes = [one for one in series.changes if one.found >= since and abs(series.shift(one)) >= SMALLEST / 2]
    findings = [_change_finding(record, series, one) for one in changes]  # others were withdrawn by later runs
    findings += [_spread_finding(record, series, one) for one in series.spreads if one.found >= since]
    size = size if size is not None else last_size(record)
    expected = series.expectation(size)
    deadline = min(deadline_s, record.settings.deadline_s)
    late = None
    if expected is not None and math.isfinite(deadline):
        late = expected.late_chance(deadline)
        if late > record.settings.late_chance and len(series.runs) >= LEAST_RUNS:
            findings.append(_late_finding(record, runs, late, deadline))
    if (failed := _failures(record)) is not None:
        findings.append(failed)
    price = usd_per_hour if usd_per_hour is not None else next((r.price_usd_per_hour for r in reversed(runs)), None)
    return Watch(
        findings=tuple(findings),
        checks=tuple(RunCheck(r.run_id, r.seconds, *band) for r, band in zip(series.runs, series.bands, strict=True)),
        next_run=expected,
        size=size,
        expected_usd=None if expected is None or price is None else expected.seconds * price / 3600,
        late_chance=late,
        noise=None if expected is None else expected.noise,
        series=series,
    )


def runs_of(record: JobRecord, params: Mapping[str, Any]) -> tuple[ProductionRun, ...]:
    """The last finished runs of a configuration, canaries included."""
    versions = set(record.of_params(params))
    return tuple(run for run in record.runs if run.version in versions and run.informs)[-MOST_RUNS:]


def adopted_at(record: JobRecord) -> float:
    """When the present version became the production configuration, seconds since the epoch."""
    version = record.adopted
    if version is None:
        return -math.inf
    times = [one.at_s for one in record.changes if one.version == version.number and one.kind in _ADOPTING]
    return max([*times, version.at_s if version.adopted_s is None else version.adopted_s])


_ADOPTING = ("adopt", "return", "reprice", "rollback", "retune")


def last_size(record: JobRecord) -> float | None:
    """The size of the last input that is known."""
    return next((run.size for run in reversed(record.runs) if run.size is not None), None)


def _change_finding(record: JobRecord, series: Series, change: SeriesChange) -> Finding:
    factor = math.exp(series.shift(change))
    direction = "longer" if factor > 1 else "shorter"
    rate = f"{abs(factor - 1):.0%}".replace("%", " %")
    began = series.runs[change.start].run_id
    how = "since" if change.kind == "step" else "more and more since"
    text = f"Runs take {rate} {direction} than their input lets expect, {how} run {began}."
    number = record.current or 0
    return Finding(
        change.kind, f"{change.kind} {began}", number, began, change.run_id, factor, text, series.sure(change)
    )


def _spread_finding(record: JobRecord, series: Series, spread: SeriesChange) -> Finding:
    began = series.runs[spread.start].run_id
    text = f"The times of runs vary {spread.shift:.1f} times as much as before, since run {began}."
    return Finding("variance", f"variance {began}", record.current or 0, began, spread.run_id, spread.shift, text)


def _late_finding(record: JobRecord, runs: tuple[ProductionRun, ...], late: float, deadline_s: float) -> Finding:
    chance = f"{late:.0%}".replace("%", " %") if late >= 0.01 else f"{late:.2%}".replace("%", " %")
    text = f"The next run will miss the deadline of {format_duration(deadline_s)} with a chance of {chance}."
    number = record.current or 0
    # One message until the version or the deadline changes, not one per run.
    return Finding("late", f"late {number} {deadline_s:.9g}", number, runs[-1].run_id, runs[-1].run_id, late, text)


def _failures(record: JobRecord) -> Finding | None:
    """The last runs of the adopted version failed one after the other, by its own fault."""
    failed: list[ProductionRun] = []
    for run in reversed(record.runs):
        if run.version != record.current or not (run.informs or run.at_fault):
            continue  # canaries, and failures of the infrastructure
        if run.informs:
            break
        failed.append(run)
    if len(failed) < _FAILURES:
        return None
    reason = failed[0].reason
    text = f"The last {len(failed)} runs failed ({reason}), and no failure of the infrastructure explains it."
    first = failed[-1].run_id
    return Finding("failures", f"failures {first}", record.current or 0, first, failed[0].run_id, math.nan, text)


def size_ahead(record: JobRecord, size: float | None) -> float | None:
    """The size of inputs some runs from now: the next one, and more if they have been growing."""
    sizes = [run.size for run in record.runs[-_TREND_RUNS:] if run.size is not None]
    now = typical_size(record, size)
    if size is None or now is None or len(sizes) < _TREND_RUNS:
        return size
    growth = math.log(np.median(sizes[-5:]) / np.median(sizes[:5])) / (_TREND_RUNS - 5)
    grown = now * math.exp(min(growth * _AHEAD_RUNS, 0.5))
    return max(size, grown) if growth * (_TREND_RUNS - 5) > _LEAST_TREND else size


def typical_size(record: JobRecord, size: float | None) -> float | None:
    """The size of inputs by now: the median of the last few, the next one included."""
    recent = [run.size for run in record.runs[-4:] if run.size is not None] + ([size] if size is not None else [])
    return float(np.median(recent)) if recent else None


def size_spread(record: JobRecord) -> float:
    """How much ln size varies from run to run, as a standard deviation; growth over many runs is no part of it."""
    sizes = [run.size for run in record.runs[-_SPREAD_RUNS:] if run.size is not None]
    if len(sizes) < LEAST_RUNS:
        return _SIZE_SPREAD
    # Half of all differences of two normal values are below 0.6745 · √2 standard deviations.
    return float(np.median(np.abs(np.diff(np.log(sizes)))) / (0.6745 * math.sqrt(2)))
