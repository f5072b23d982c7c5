"""Trials in a few words: what both the live screen and the plain lines say."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from lynceus.demo.course import cost_on_time, saved_usd
from lynceus.demo.job import Job
from lynceus.history import End, Observation, Order
from lynceus.units import format_duration, format_money

LONG = "{machine} ×{nodes}, {executor_gb} GB, {partitions} parts, {codec}"


@dataclass(frozen=True)
class Line:
    """One settled trial."""

    number: int
    """From 1."""
    row: int
    cap: str
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
    """Where an exploration stands: what a screen shows above its table."""

    spent_usd: float = 0.0
    saved_usd: float = 0.0
    stopped: int = 0
    best_usd: float = math.inf
    best_row: int | None = None
    bests: tuple[float, ...] = ()
    """The incumbent's cost after every trial; infinite before there is one."""
    machine_s: float = 0.0
    """Simulated time of all runs together."""
    lines: tuple[Line, ...] = field(default=(), repr=False)

    def after(self, job: Job, seen: Observation) -> Tally:
        """The tally with one more trial."""
        problem = job.problem
        cost = cost_on_time(problem, seen)
        improved = cost < self.best_usd
        best = min(cost, self.best_usd)
        stopped = seen.outcome.end is End.CAPPED
        line = _line(job, seen, best, improved)
        return replace(
            self,
            spent_usd=self.spent_usd + seen.outcome.charged_usd,
            saved_usd=self.saved_usd + saved_usd(problem, seen),
            stopped=self.stopped + stopped,
            best_usd=best,
            best_row=seen.row if improved else self.best_row,
            bests=(*self.bests, best),
            machine_s=self.machine_s + seen.outcome.seconds,
            lines=(*self.lines, line),
        )


def configuration(job: Job, row: int, *, short: bool = False) -> str:
    """A configuration in about forty characters, or in thirty."""
    words = "{machine}×{nodes} {executor_gb}GB p{partitions} {codec}" if short else LONG
    return words.format(**job.problem.space.point(row))


def cap_words(order: Order) -> str:
    """When the run will be stopped."""
    return "none" if math.isinf(order.cap_s) else format_duration(order.cap_s)


def _line(job: Job, seen: Observation, best: float, improved: bool) -> Line:
    outcome, stopped = seen.outcome, seen.outcome.end is End.CAPPED
    late = not stopped and outcome.seconds > job.problem.deadline_s
    ended = f"{'stopped' if stopped else 'late' if late else 'finished'} {format_duration(outcome.seconds)}"
    return Line(
        seen.order.number + 1,
        seen.row,
        cap_words(seen.order),
        ended,
        format_money(outcome.charged_usd),
        "–" if math.isinf(best) else format_money(best),
        seen.order.plan.why,
        improved,
        stopped,
        late,
    )


def plain_line(job: Job, tally: Tally) -> str:
    """The latest trial as one line of a log."""
    line, spent, budget = tally.lines[-1], format_money(tally.spent_usd), format_money(job.problem.budget.usd)
    mark = "*" if line.improved else " "
    return (
        f"{line.number:>3}{mark} {configuration(job, line.row):<40} cap {line.cap:<7} {line.ended:<16} {line.charged:>7}"
        f"  spent {spent:>6} of {budget}  best {line.best}"
    )


def sparkline(values: Sequence[float], width: int) -> str:
    """A row of bars, high is expensive; on a logarithmic scale, blank while nothing is known.

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
