"""What a person watches while a study runs: a live board on a terminal, one line per event elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from lynceus.cli.look import goal_text
from lynceus.cli.output import words
from lynceus.history import End, Observation, Order
from lynceus.insight import Step, steps
from lynceus.ledger import OpenRun
from lynceus.study import Study
from lynceus.units import format_duration, format_money

_RECENT = 6
_SPARKS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class Snapshot:
    """A study at one moment, copied so that another thread may draw it."""

    spent_usd: float
    budget_usd: float
    open_runs: tuple[OpenRun, ...]
    recent: tuple[Observation, ...]
    steps: tuple[Step, ...]
    trials: int
    note: str


@dataclass
class Board:
    """The live display. `update` is called by the thread that works, `__rich__` by the one that draws."""

    study: Study
    began_s: float = field(default_factory=time.time)
    now: Callable[[], float] = time.time
    note: str = ""
    """One line at the bottom: what Ctrl-C does, or that the study is coming to its end."""
    _shown: Snapshot | None = None

    def update(self) -> None:
        """Copy what is known now."""
        study = self.study
        before = self._shown
        # Steps are computed from the whole history: anew only when it has grown.
        same = before is not None and before.trials == len(study.history)
        self._shown = Snapshot(
            study.spent_usd,
            study.budget_usd,
            study.open_runs,
            study.history[-_RECENT:],
            before.steps if before is not None and same else tuple(steps(study.problem, study.history)),
            len(study.history),
            self.note,
        )

    def __rich__(self) -> RenderableType:
        if self._shown is None:
            return Text("starting …")
        shown, now = self._shown, self.now()
        parts: list[RenderableType] = [self._head(shown, now), self._money(shown, now)]
        if shown.open_runs:
            parts.append(self._open(shown, now))
        parts += [self._incumbent(shown), self._recent(shown), Text(self.note or shown.note, style="dim")]
        return Group(*parts)

    def _head(self, shown: Snapshot, now: float) -> Text:
        limits = ", ".join(str(limit) for limit in self.study.problem.limits)
        passed = f"{format_duration(now - self.began_s)} passed"
        wall = self.study.problem.budget.wall_clock_s
        if wall is not None:
            passed += f", {format_duration(max(0.0, wall - (now - self.began_s)))} left"
        most = self.study.problem.budget.trials
        counted = f"{shown.trials} of {most} trials" if most else f"{shown.trials} trials"
        return Text.assemble(
            (self.study.name, "bold"), f"  {self.study.problem.goal}; {limits}  ", (f"{counted}, {passed}", "dim")
        )

    def _money(self, shown: Snapshot, now: float) -> RenderableType:
        reserved = sum(run.order.reserved_usd for run in shown.open_runs)
        spent, total = format_money(shown.spent_usd), format_money(shown.budget_usd)
        text = f"{spent} spent + {format_money(reserved)} reserved of {total}"
        if math.isinf(shown.budget_usd) or shown.budget_usd <= 0:
            return Text(f"{spent} spent, no budget in dollars")
        width = 40
        first = round(width * min(shown.spent_usd / shown.budget_usd, 1.0))
        second = min(width - first, math.ceil(width * min(reserved / shown.budget_usd, 1.0)))
        bar = Text.assemble(("█" * first, "green"), ("▒" * second, "yellow"), ("░" * (width - first - second), "dim"))
        return Text.assemble(bar, f"  {text}")

    def _open(self, shown: Snapshot, now: float) -> Table:
        table = Table(
            "#",
            "running",
            "elapsed",
            "so far",
            "stopped at the latest in",
            "why",
            box=None,
            header_style="dim",
            pad_edge=False,
        )
        problem = self.study.problem
        for run in shown.open_runs:
            began = run.launched_s
            elapsed = 0.0 if began is None else max(0.0, now - began)
            usd = (
                problem.tariff.charge(elapsed, float(problem.price[run.order.row]), boots=run.order.boots)
                if began
                else 0.0
            )
            cap = run.order.cap_s
            table.add_row(
                str(run.order.number),
                escape(words(problem.space.point(run.order.row))),
                "starting" if began is None else format_duration(max(elapsed, 0.1)),
                format_money(usd),
                "—" if math.isinf(cap) else format_duration(max(0.0, cap - elapsed)),
                escape(run.order.plan.why),
            )
        return table

    def _incumbent(self, shown: Snapshot) -> Text:
        known = [step for step in shown.steps if step.incumbent is not None]
        if not known:
            return Text("no configuration has kept every limit yet", style="yellow")
        problem, last = self.study.problem, known[-1]
        row = next(seen.row for seen in reversed(self.study.history) if seen.order.number == last.incumbent)
        spark = sparkline([step.best for step in known])
        return Text.assemble(
            ("best ", "dim"), (words(problem.space.point(row)), "bold green"), f"  {goal_text(str(problem.goal), last.best)}",
            (f"  (trial {last.incumbent}) ", "dim"), (spark, "cyan"),
        )  # fmt: skip

    def _recent(self, shown: Snapshot) -> Table:
        table = Table("#", "ended", "how", "time", "charged", "", box=None, header_style="dim", pad_edge=False)
        for seen in shown.recent:
            table.add_row(
                str(seen.order.number), escape(words(self.study.problem.space.point(seen.row))), how_it_ended(self.study, seen),
                format_duration(seen.outcome.seconds), format_money(seen.outcome.charged_usd), escape(seen.outcome.detail),
            )  # fmt: skip
        return table


def sparkline(values: list[float], most: int = 30) -> str:
    """A row of blocks, highest value tallest.

    >>> sparkline([3.0, 2.0, 1.0])
    '█▅▁'
    """
    values = values[-most:]
    low, high = min(values), max(values)
    if high == low:
        return _SPARKS[0] * len(values)
    return "".join(_SPARKS[round((value - low) / (high - low) * (len(_SPARKS) - 1))] for value in values)


def how_it_ended(study: Study, seen: Observation) -> str:
    """How a trial ended, in colour."""
    outcome = seen.outcome
    if outcome.end is End.CAPPED:
        return "[yellow]stopped early[/]"
    if outcome.end is End.FAILED:
        return f"[red]failed ({outcome.reason})[/]"
    kept = study.problem.meets_limits(seen.row, outcome.seconds, outcome.metrics)
    return "[green]finished[/]" if kept else "[red]finished, breaks a limit[/]"


class Lines:
    """One plain line per event, for logs."""

    def __init__(self, study: Study, out: Console) -> None:
        self.study, self.out = study, out

    def ordered(self, order: Order) -> None:
        """A trial starts."""
        cap = "" if math.isinf(order.cap_s) else f", stopped after {format_duration(order.cap_s)} at the latest"
        most = "" if math.isinf(order.reserved_usd) else f", at most {format_money(order.reserved_usd)}"
        self._say(
            f"trial {order.number} starts: {words(self.study.problem.space.point(order.row))}{cap}{most} ({order.plan.why})"
        )

    def settled(self, seen: Observation) -> None:
        """A trial has ended."""
        study, outcome = self.study, seen.outcome
        how = Text.from_markup(how_it_ended(study, seen)).plain
        progress = steps(study.problem, study.history)
        last = progress[-1]
        before = progress[-2].incumbent if len(progress) > 1 else None
        new = f"; new best: {goal_text(str(study.problem.goal), last.best)}" if last.incumbent != before else ""
        total = "" if math.isinf(study.budget_usd) else f" of {format_money(study.budget_usd)}"
        self._say(
            f"trial {seen.order.number} {how} after {format_duration(outcome.seconds)}, charged {format_money(outcome.charged_usd)}"
            f"{new}; spent {format_money(study.spent_usd)}{total}{f' ({outcome.detail})' if outcome.detail else ''}"
        )

    def _say(self, text: str) -> None:
        self.out.print(f"{time.strftime('%H:%M:%S')} {text}", markup=False, soft_wrap=True)


def live(board: Board, out: Console) -> Live:
    """The board on a terminal, drawn four times a second."""
    return Live(board, console=out, refresh_per_second=4, transient=True)
