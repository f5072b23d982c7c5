"""Trials as lines of text, for the live screen and for logs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lynceus.demo.job import Job
from lynceus.demo.trajectory import saved_usd
from lynceus.problem.units import format_duration, format_money
from lynceus.trial.incumbents import Incumbent, incumbent
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observation, Observations

LONG = "{machine} ×{nodes}, {executor_gb} GB, {partitions} parts, {codec}"


@dataclass(frozen=True)
class Line:
    """One trial that has ended."""

    number: int
    """From 1."""
    row: int
    timeout: str
    ended: str
    charged: str
    best: str
    """Cost per run of the incumbent after this trial."""
    why: str
    improved: bool
    stopped: bool
    late: bool


@dataclass(frozen=True)
class Tally:
    """The state of a search: what the screen shows above its table."""

    spent_usd: float = 0.0
    saved_usd: float = 0.0
    stopped: int = 0
    best: Incumbent | None = None
    bests: tuple[float, ...] = ()
    """Cost of the incumbent after every trial in dollars; infinite before there is one."""
    machine_s: float = 0.0
    """Simulated time of all runs together."""
    lines: tuple[Line, ...] = field(default=(), repr=False)
    observations: Observations = field(default=(), repr=False)

    @property
    def best_usd(self) -> float:
        """Cost of the incumbent; infinite before there is one."""
        return math.inf if self.best is None else self.best.value

    def after(self, job: Job, seen: Observation) -> Tally:
        """The tally with one more trial."""
        observations = (*self.observations, seen)
        best = incumbent(job.problem, observations)
        best_usd = math.inf if best is None else best.value
        line = _line(job, seen, best_usd, improved=best_usd < self.best_usd)
        return replace(
            self,
            spent_usd=self.spent_usd + seen.outcome.charged_usd,
            saved_usd=self.saved_usd + saved_usd(job.problem, seen),
            stopped=self.stopped + line.stopped,
            best=best,
            bests=(*self.bests, best_usd),
            machine_s=self.machine_s + seen.outcome.seconds,
            lines=(*self.lines, line),
            observations=observations,
        )


def configuration(job: Job, row: int, *, short: bool = False) -> str:
    """A configuration in about 40 characters, or in 30."""
    text = "{machine}×{nodes} {executor_gb}GB p{partitions} {codec}" if short else LONG
    return text.format(**job.problem.space.point(row))


def timeout_text(order: Order) -> str:
    """The timeout of a run."""
    return "none" if math.isinf(order.timeout_s) else format_duration(order.timeout_s)


def _line(job: Job, seen: Observation, best_usd: float, *, improved: bool) -> Line:
    outcome, stopped = seen.outcome, seen.outcome.end is End.TIMEOUT
    late = not stopped and outcome.seconds > job.problem.deadline_s
    ended = f"{'stopped' if stopped else 'late' if late else 'finished'} {format_duration(outcome.seconds)}"
    return Line(
        seen.order.number + 1,
        seen.row,
        timeout_text(seen.order),
        ended,
        format_money(outcome.charged_usd),
        "–" if math.isinf(best_usd) else format_money(best_usd),
        seen.order.plan.why,
        improved,
        stopped,
        late,
    )


def plain_line(job: Job, tally: Tally) -> str:
    """The last trial as one line of a log."""
    line, spent, budget = tally.lines[-1], format_money(tally.spent_usd), format_money(job.problem.budget.usd)
    mark = "*" if line.improved else " "
    return (
        f"{line.number:>3}{mark} {configuration(job, line.row):<40} timeout {line.timeout:<7} {line.ended:<16} {line.charged:>7}"
        f"  spent {spent:>6} of {budget}  best {line.best}"
    )


def sparkline(values: Sequence[float], width: int) -> str:
    """A row of bars on a logarithmic scale: high is expensive, blank is unknown.

    >>> sparkline([math.inf, 4.0, 2.0, 1.0], 8)
    ' █▅▁'
    """
    if not values:
        return ""
    count = min(width, len(values))
    picked = [values[(place + 1) * len(values) // count - 1] for place in range(count)]
    known = [math.log(value) for value in picked if math.isfinite(value)]
    if not known:
        return " " * count
    low, span = min(known), (max(known) - min(known)) or 1.0
    bars = "▁▂▃▄▅▆▇█"
    return "".join(bars[round((math.log(v) - low) / span * 7)] if math.isfinite(v) else " " for v in picked)
