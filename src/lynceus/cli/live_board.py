"""What the user sees while a study runs: a live board on a terminal, one line per event elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lynceus.analysis.progress import ProgressPoint, progress
from lynceus.cli.clean_render import Clean
from lynceus.cli.output import counted, objective_text, params_text, safe
from lynceus.errors import InputError
from lynceus.executors.interface import Outage
from lynceus.problem.units import format_duration, format_metric, format_money
from lynceus.study.study import Study
from lynceus.study.view import StudyView
from lynceus.trial.order import Order
from lynceus.trial.outcome import End, Observation
from lynceus.trial.record import OpenRun
from lynceus.trial.text import clean_line

_RECENT = 6
"""Settled trials on the board."""
_BAR = 40
"""Characters of the bar of money."""
_SPARKS = "▁▂▃▄▅▆▇█"

_Best = tuple[Mapping[str, object], float, bool]
"""The best configuration, its objective, and whether it meets the constraints with the confidence that they demand."""


@dataclass
class Board:
    """The live display. The thread that works calls `update`, the thread that draws calls `__rich__`."""

    study: Study
    began_s: float = field(default_factory=time.time)
    now: Callable[[], float] = time.time
    note: str = ""
    """One line at the bottom: what Ctrl-C does, or that the study is stopping."""
    outage: Outage | None = None
    """What does not answer. Time and money are counted up to there: nobody knows what runs since."""
    _shown: tuple[StudyView, Sequence[ProgressPoint], _Best | None] | None = None
    """A snapshot of the study, its progress and its best; one value, so that the other thread never reads some that do not match."""

    def update(self) -> None:
        """Show the study as it is now."""
        study, before = self.study.snapshot(shared_budgets=()), self._shown
        if before is not None and len(before[0].observations) == len(study.observations):
            self._shown = study, *before[1:]  # these only change when a trial settles, and take all of them
        else:
            self._shown = study, progress(study.problem, study.observations), _best_of(study)

    def __rich__(self) -> RenderableType:
        if self._shown is None:
            return Text("starting …")
        (study, points, best), now, outage = self._shown, self.now(), self.outage
        seen_s = now if outage is None else min(now, outage.since_s)
        parts: list[RenderableType] = [self._head(study, seen_s), _money(study)]
        if outage is not None:
            parts.append(Text(outage_text(outage, now), style="bold red"))
        if study.pending:
            parts.append(_open_trials(study, seen_s, unseen=outage is not None))
        return Group(*parts, _best(study, points, best), _recent_trials(study), Text(self.note, style="dim"))

    def _head(self, shown: StudyView, now: float) -> Text:
        problem, passed_s = shown.problem, now - self.began_s
        passed = f"{format_duration(passed_s)} passed"
        if problem.budget.wall_clock_s is not None:
            passed += f", {format_duration(max(0.0, problem.budget.wall_clock_s - passed_s))} left"
        count, most = (
            shown.record.ordered - len(shown.pending),
            problem.with_budget(problem.budget.usd, shown.record.added_trials).budget.trials,
        )
        trials = f"{count} of {counted(most, 'trial')}" if most else counted(count, "trial")
        constraints = ", ".join(str(constraint) for constraint in problem.constraints)
        return Text.assemble(
            (shown.name, "bold"), f"  {problem.objective}; {constraints}  ", (f"{trials}, {passed}", "dim")
        )


def _best_of(study: StudyView) -> _Best | None:
    try:
        return study.best_params, study.best_value, study.best_reaches_confidence
    except InputError:
        return None


def _best(shown: StudyView, points: Sequence[ProgressPoint], best: _Best | None) -> Text:
    if best is None:
        return Text("no configuration has met every constraint yet", style="yellow")
    sure = best[2]
    return Text.assemble(
        ("best ", "dim") if sure else ("no configuration is sure enough of the constraints; nearest ", "yellow"),
        (params_text(best[0]), "bold green" if sure else "bold yellow"),
        f"  {objective_text(str(shown.problem.objective), best[1])} ",
        (sparkline([point.best_value for point in points if point.best_trial is not None]), "cyan"),
    )


def _money(shown: StudyView) -> Text:
    spent, reserved, budget = shown.spent_usd, shown.reserved_usd, shown.budget_usd
    if math.isinf(budget) or budget <= 0:
        return Text(f"{format_money(spent)} spent, no budget in dollars")
    first = round(_BAR * min(spent / budget, 1.0))
    second = min(_BAR - first, math.ceil(_BAR * min(reserved / budget, 1.0)))
    bar = Text.assemble(("█" * first, "green"), ("▒" * second, "yellow"), ("░" * (_BAR - first - second), "dim"))
    text = f"{format_money(spent)} spent + {format_money(reserved)} reserved of {format_money(budget)}"
    return Text.assemble(bar, f"  {text}")


def outage_text(outage: Outage, now: float) -> str:
    """One sentence about what does not answer, and since when."""
    since = time.strftime("%H:%M:%S", time.localtime(outage.since_s))
    lasts = format_duration(max(0.0, round(now - outage.since_s)))
    return f"no answer since {since} ({lasts}): {clean_line(outage.detail)}"


def _open_trials(shown: StudyView, now: float, *, unseen: bool) -> Table:
    """Open trials as of `now`; `unseen`: nobody knows since then whether they run."""
    headings = ("#", "unseen" if unseen else "running", "elapsed", "so far", "timeout in", "why")
    table = Table(*headings, box=None, header_style="dim", pad_edge=False)
    for run in shown.record.open_runs:
        order = run.order
        elapsed_s = 0.0 if run.launched_s is None else max(0.0, now - run.launched_s)
        table.add_row(
            str(order.number),
            safe(params_text(shown.problem.space.point(order.row))),
            "starting" if run.launched_s is None else format_duration(max(elapsed_s, 0.1)),
            format_money(_charge(shown, run, elapsed_s)),
            "—" if unseen or math.isinf(order.timeout_s) else format_duration(max(0.0, order.timeout_s - elapsed_s)),
            safe(order.plan.why),
        )
    return table


def _charge(shown: StudyView, run: OpenRun, elapsed_s: float) -> float:
    """Dollars that an open run has cost so far."""
    if run.launched_s is None:
        return 0.0
    problem, order = shown.problem, run.order
    return problem.billing.charge(elapsed_s, float(problem.price[order.row]), boots=order.boots)


def _recent_trials(shown: StudyView) -> Table:
    table = Table("#", "settled", "result", "time", "charged", "", box=None, header_style="dim", pad_edge=False)
    for seen in shown.observations[-_RECENT:]:
        table.add_row(
            str(seen.order.number),
            safe(params_text(shown.problem.space.point(seen.row))),
            result_text(shown, seen),
            format_duration(seen.outcome.seconds),
            format_money(seen.outcome.charged_usd),
            safe(seen.outcome.detail),
        )
    return table


def sparkline(values: list[float], most: int = 30) -> str:
    """A row of blocks, highest value tallest.

    >>> sparkline([3.0, 2.0, 1.0])
    '█▅▁'
    """
    values = values[-most:]
    if not values:
        return ""
    low, high = min(values), max(values)
    if high == low:
        return _SPARKS[0] * len(values)
    return "".join(_SPARKS[round((value - low) / (high - low) * (len(_SPARKS) - 1))] for value in values)


def result_text(study: StudyView, seen: Observation) -> str:
    """How a trial ended, in colour."""
    outcome = seen.outcome
    if outcome.end is End.TIMEOUT:
        return "[yellow]stopped early[/]"
    if outcome.end is End.FAILED:
        return f"[red]failed ({outcome.reason})[/]"
    broken = _broken_limits(study, seen)
    return f"[red]finished, violates {safe('; '.join(broken))}[/]" if broken else "[green]finished[/]"


def _broken_limits(study: StudyView, seen: Observation) -> list[str]:
    """The constraints that a finished run did not meet, with what it has: `ratio <= 0.25 with 0.2631`."""
    outcome, broken = seen.outcome, []
    for one in study.problem.constraints:
        value: float | None = {"time": outcome.seconds, "cost": study.problem.cost(seen.row, outcome.seconds)}.get(
            one.metric, outcome.metrics.get(one.metric)
        )
        if value is None or not one.holds(value):
            broken.append(f"{one} with {_quantity(one.metric, value)}")
    return broken


def _quantity(metric: str, value: float | None) -> str:
    if value is None:
        return "no value"
    if metric == "time":
        return format_duration(value)
    return format_money(value) if metric == "cost" else format_metric(value)


class EventLines:
    """One plain line per event, for logs."""

    def __init__(self, study: Study, out: Console) -> None:
        self.study, self.out = study, out
        self._best = _best_of(study)

    def ordered(self, order: Order) -> None:
        """A trial starts."""
        until = (
            "" if math.isinf(order.timeout_s) else f", stopped after {format_duration(order.timeout_s)} at the latest"
        )
        most = "" if math.isinf(order.reserved_usd) else f", at most {format_money(order.reserved_usd)}"
        params = params_text(self.study.problem.space.point(order.row))
        self._print(f"trial {order.number} starts: {params}{until}{most} ({order.plan.why})")

    def settled(self, seen: Observation) -> None:
        """A trial has ended."""
        study, outcome = self.study, seen.outcome
        result = Text.from_markup(result_text(study, seen)).plain
        before, self._best = self._best, _best_of(study)
        best = self._change(seen, before, self._best)
        total = "" if math.isinf(study.budget_usd) else f" of {format_money(study.budget_usd)}"
        detail = f" ({outcome.detail})" if outcome.detail else ""
        self._print(
            f"trial {seen.order.number} {result} after {format_duration(outcome.seconds)}, "
            f"charged {format_money(outcome.charged_usd)}{best}; spent {format_money(study.spent_usd)}{total}{detail}"
        )

    def _change(self, seen: Observation, before: _Best | None, best: _Best | None) -> str:
        """What a trial changed about the recommendation; only the trial of the new best configuration itself is praised."""
        problem = self.study.problem
        if best == before or (best and before and (best[0], best[2]) == (before[0], before[2])):
            return ""
        if best is None:
            return "; no configuration is known to meet every constraint any more"
        named = f"{params_text(best[0])} at {objective_text(str(problem.objective), best[1])}"
        outcome = seen.outcome
        if not best[2]:
            return f"; no configuration is sure enough of the constraints, the nearest is {named}"
        won = outcome.end is End.FINISHED and problem.space.point(seen.row) == best[0]
        if won and problem.meets_constraints(seen.row, outcome.seconds, outcome.metrics):
            return f"; new best: {named}"
        return f"; the best is now {named}"

    def outage(self, found: Outage | None, before: Outage | None) -> None:
        """Something stopped answering, or answers again."""
        if found is not None:
            self._print(
                f"{outage_text(found, time.time())}; nothing is started until it answers; Ctrl-C leaves, "
                f"and 'lynceus resume {self.study.name}' goes on later"
            )
        elif before is not None:
            self._print(f"everything answers again after {format_duration(max(0.0, time.time() - before.since_s))}")

    def _print(self, text: str) -> None:
        self.out.print(f"{time.strftime('%H:%M:%S')} {text}", markup=False, soft_wrap=True)


class Screen:
    """Where a search is shown: on the board of a terminal, or line by line."""

    def __init__(self, study: Study, out: Console, *, began_s: float) -> None:
        self._board, self._lines = Board(study, began_s=began_s), EventLines(study, out)
        self._live = (
            Live(Clean(self._board), console=out, refresh_per_second=4, transient=True) if out.is_terminal else None
        )
        self._outage: Outage | None = None
        """What was said to be away."""

    def __enter__(self) -> Screen:
        self._board.update()
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def ordered(self, order: Order) -> None:
        """A trial starts."""
        if self._live is None:
            self._lines.ordered(order)

    def settled(self, seen: Observation) -> None:
        """A trial has ended."""
        if self._live is None:
            self._lines.settled(seen)

    def tick(self, note: str) -> None:
        """Show the study as it is now; `note` says what Ctrl-C does."""
        if self._live is not None:
            self._board.note = note
            self._board.outage = self._outage
            self._board.update()

    def outage(self, found: Outage | None) -> None:
        """Something stopped answering; None: everything answers again."""
        before, self._outage = self._outage, found
        if self._live is None:
            self._lines.outage(found, before)

    def stalled(self, since_s: float) -> None:
        """The search has been blocked since then. Called from another thread, because the search cannot say so itself."""
        found = Outage("the storage does not answer", since_s)
        if self._live is None:
            self._lines.outage(found, None)
        else:
            self._board.outage = found
