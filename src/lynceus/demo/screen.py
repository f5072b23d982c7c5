"""The demo on a terminal: money, incumbent and recent trials, updated during the search."""

from __future__ import annotations

import math
import time

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from lynceus.demo.job import INPUT_GB, Job
from lynceus.demo.trial_lines import Line, Tally, configuration, sparkline, timeout_text
from lynceus.problem.units import format_duration, format_money
from lynceus.trial.order import Order
from lynceus.trial.outcome import Observation

WIDEST = 136
"""The screen uses at most this many columns; longer lines are hard to read."""
_LONG_FITS, _WHY_FITS = 92, 124
_LEAST_S, _MOST_S, _HOUR_S = 0.05, 0.30, 0.4
"""A run is shown for at least and at most this many seconds, and for so many per simulated hour."""


def header(job: Job, policy: str, seed: int) -> Panel:
    """The job that will be tuned."""
    problem = job.problem
    first = Text.assemble(
        ("A recurring Spark-like job", "bold"),
        f" on {INPUT_GB:.0f} GB (synthetic): {len(problem.space)} configurations",
    )
    second = Text.assemble(
        ("objective ", "dim"), "cheapest run",
        ("  deadline ", "dim"), format_duration(problem.deadline_s),
        ("  budget ", "dim"), format_money(problem.budget.usd),
        ("  policy ", "dim"), policy,
        ("  seed ", "dim"), str(seed),
    )  # fmt: skip
    return Panel(Group(first, second), title="Lynceus demo", title_align="left", border_style="cyan")


def money_bar(spent: float, reserved: float, budget: float, width: int) -> Text:
    """Spent, reserved and free money in proportion; any amount above 0 takes at least one cell."""
    full = min(width, math.ceil(width * spent / budget)) if spent > 0 else 0
    held = min(width - full, math.ceil(width * reserved / budget)) if reserved > 0 else 0
    return Text.assemble(("█" * full, "cyan"), ("▒" * held, "yellow"), ("░" * (width - full - held), "bright_black"))


class Screen:
    """Shows a search while it runs."""

    def __init__(self, job: Job, console: Console, *, paced: bool = True) -> None:
        self.tally = Tally()
        self._job, self._console, self._paced = job, console, paced
        self._running: tuple[Order, float] | None = None
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Screen:
        self._live.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self._running = None
        self._live.update(self.view(), refresh=True)
        self._live.__exit__(None, None, None)

    def ordered(self, order: Order) -> None:
        """A run starts."""
        self._running = (order, 0.0)
        self._live.update(self.view(), refresh=True)

    def settled(self, seen: Observation) -> None:
        """A run has ended: let its simulated time pass, then add it to the table."""
        if self._paced:
            pause = min(_MOST_S, _LEAST_S + seen.outcome.seconds / 3600 * _HOUR_S)
            frames = max(1, round(pause / 0.05))
            for frame in range(frames):
                self._running = (seen.order, seen.outcome.seconds * (frame + 1) / frames)
                self._live.update(self.view(), refresh=True)
                time.sleep(pause / frames)
        self._running = None
        self.tally = self.tally.after(self._job, seen)
        self._live.update(self.view(), refresh=True)

    def view(self) -> RenderableType:
        """Everything below the header."""
        width = min(self._console.width, WIDEST)
        return Group(Padding(self._totals(width), (0, 1)), Padding(self._recent(width), (1, 1)))

    def _totals(self, width: int) -> Table:
        tally, budget = self.tally, self._job.problem.budget.usd
        reserved = self._running[0].reserved_usd if self._running else 0.0
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(no_wrap=True)
        bar = money_bar(tally.spent_usd, reserved, budget, max(10, width - 62))
        money = Text.assemble(bar, f"  {format_money(tally.spent_usd)} of {format_money(budget)}")
        if reserved:
            money.append(f", {format_money(reserved)} reserved", "yellow")
        grid.add_row("spent", money)
        best = Text("no run has met the deadline yet", "dim")
        if tally.best is not None:
            price = (f"{format_money(tally.best_usd)} per run", "bold green")
            best = Text.assemble(price, f"  {configuration(self._job, tally.best.row)}")
        grid.add_row("best", best)
        grid.add_row("", Text(sparkline(tally.bests, width - 20) or " ", "green"))
        share = f"{tally.stopped} of {len(tally.lines)} runs, saving {format_money(tally.saved_usd)}"
        grid.add_row("stopped early", Text(f"{share}; {format_duration(tally.machine_s)} simulated"))
        return grid

    def _recent(self, width: int) -> Table:
        table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, header_style="dim")
        table.add_column("#", justify="right", min_width=3)
        table.add_column("configuration", no_wrap=True, min_width=29, max_width=40)
        table.add_column("timeout", justify="right", width=7, no_wrap=True)
        table.add_column("ended", width=15, no_wrap=True)
        table.add_column("charged", justify="right", width=7, no_wrap=True)
        table.add_column("best", justify="right", width=7, no_wrap=True)
        if width >= _WHY_FITS:
            table.add_column("why", no_wrap=True, max_width=width - 88, style="dim")
        short = width < _LONG_FITS
        room = max(3, min(12, self._console.height - 15))
        for line in self.tally.lines[-room:]:
            text = configuration(self._job, line.row, short=short)
            cells = [str(line.number), text, line.timeout, line.ended, line.charged, line.best, line.why]
            table.add_row(*cells[: len(table.columns)], style=_style(line))
        if self._running:
            order, now = self._running
            state = f"running {format_duration(now)}" if now else "starting"
            row = configuration(self._job, order.row, short=short)
            cells = [str(order.number + 1), row, timeout_text(order), state, "", "", order.plan.why]
            table.add_row(*cells[: len(table.columns)], style="cyan")
        return table


def _style(line: Line) -> str:
    return "green" if line.improved else "yellow" if line.stopped else "red" if line.late else ""
